/* What rules, settings and defaults come to for one request. */
#include "unit.h"

#include "core/base/attr.h"
#include "core/base/strbuf.h"
#include "core/base/units.h"
#include "lines.h"

#include <stdio.h>

static struct settings settings;
static struct problems problems;
static struct config *config;
static struct strbuf shown;

static void setup(void)
{
    settings_init(&settings);
    problems = (struct problems){0};
    config = NULL;
    strbuf_init(&shown, 64 * 1024);
}

static void teardown(void)
{
    strbuf_fini(&shown);
    config_free(config);
    settings_fini(&settings);
    problems_fini(&problems);
}

static void add(enum setting_rank rank, const char *origin, const char *lines)
{
    lines_add(&settings, lines, rank, origin);
}

static void build(void)
{
    config_free(config);
    config = config_build(&settings, "/state", &problems);
    ck_assert_msg(config != NULL, "%s", problems.n ? problems.v[0].text : "");
}

static void given(const char *lines)
{
    settings_fini(&settings);
    settings_init(&settings);
    add(SETTING_FILE, "f.yaml", lines);
    build();
}

/* A request to AWS; members are changed after. */
static struct aws_target target;
static struct request_facts facts;

static void to_service(const char *name)
{
    const struct aws_service *s = aws_service_by_name(slice_str(name));
    ck_assert_ptr_nonnull(s);
    target = (struct aws_target){.is_aws = true,
                                 .service = s,
                                 .service_name = s->name,
                                 .signing_name = s->signing_name,
                                 .region = SLICE("eu-central-1"),
                                 .access_key = SLICE("AKIAEXAMPLE12345WXYZ")};
    facts = (struct request_facts){.target = &target,
                                   .host = SLICE("some.eu-central-1.amazonaws.com"),
                                   .method = HTTP_POST,
                                   .method_text = SLICE("POST")};
}

static void to_plain_host(const char *host, enum http_method method, const char *method_text)
{
    target = (struct aws_target){.service_name = SLICE("-")};
    facts = (struct request_facts){.target = &target,
                                   .host = slice_str(host),
                                   .method = method,
                                   .method_text = slice_str(method_text)};
}

static struct effective found(void)
{
    struct effective e;
    config_effective(config, &facts, &e);
    return e;
}

static unsigned attempts_of(const char *service)
{
    to_service(service);
    return found().policy.max_attempts;
}

static enum retry_mode mode_of(const char *service)
{
    to_service(service);
    return found().policy.mode;
}

/* --- settings --- */

START_TEST(unset_leaves_the_service_its_default)
{
    given("");
    ck_assert_uint_eq(attempts_of("sqs"), 3);
    ck_assert_uint_eq(attempts_of("dynamodb"), 4);
    struct effective e = found();
    ck_assert_int_eq(e.policy.mode, RETRY_MODE_STANDARD);
    ck_assert_int_eq(e.policy.behaviour, RETRY_BEHAVIOUR_21);
    ck_assert_int_eq(e.policy.base_transient_ns, 25 * NS_PER_MS);
    ck_assert_int_eq(e.policy.max_backoff_ns, 20 * NS_PER_S);
    ck_assert(e.policy.retry_429 && e.may_repeat && !e.policy.override && !e.rule);
    ck_assert_uint_eq(e.policy.modeled_codes.n, 0);
    ck_assert_int_eq(e.policy.crc32, RETRY_CRC32_NONE);
    ck_assert(!e.aws.modeled_errors && !e.aws.s3_more && !e.aws.crc32 && !e.aws.socket_message);
    ck_assert_int_eq(e.attempt_timeout_ns + e.client_timeout_ns + e.max_elapsed_ns, 0);
    ck_assert_uint_eq(e.replay_memory_bytes, MIB);
    ck_assert_uint_eq(e.replay_disk_bytes, 64 * MIB);
    given("retry.max_attempts=");
    ck_assert_uint_eq(attempts_of("dynamodb"), 4);
    given("retry.services.sqs.max_attempts=9");
    ck_assert_uint_eq(attempts_of("dynamodb"), 4);
}
END_TEST

START_TEST(general_setting_beats_the_service_default)
{
    given("retry.max_attempts=3");
    ck_assert_uint_eq(attempts_of("dynamodb"), 3);
    given("retry.max_attempts=100");
    ck_assert_uint_eq(attempts_of("dynamodb"), 100);
}
END_TEST

START_TEST(service_setting_beats_the_general_one)
{
    given("retry.max_attempts=2\nretry.services.dynamodb.max_attempts=7\n"
          "retry.services.sqs.mode=off");
    ck_assert_uint_eq(attempts_of("dynamodb"), 7);
    ck_assert_int_eq(mode_of("dynamodb"), RETRY_MODE_STANDARD);
    ck_assert_uint_eq(attempts_of("sqs"), 2);
    ck_assert_int_eq(mode_of("sqs"), RETRY_MODE_OFF);
    given("retry.mode=off\nretry.services.sqs.mode=standard");
    ck_assert_int_eq(mode_of("sqs"), RETRY_MODE_STANDARD);
    ck_assert_int_eq(mode_of("dynamodb"), RETRY_MODE_OFF);
}
END_TEST

START_TEST(the_rest_is_for_all)
{
    given("retry.retry_429=false\nretry.max_backoff=3s\nretry.client_timeout=4s\n"
          "retry.max_elapsed=5s\nretry.s3_errors=all");
    to_service("sqs");
    struct effective e = found();
    ck_assert(!e.policy.retry_429 && e.aws.s3_more);
    ck_assert_int_eq(e.policy.max_backoff_ns, 3 * NS_PER_S);
    ck_assert_int_eq(e.client_timeout_ns, 4 * NS_PER_S);
    ck_assert_int_eq(e.max_elapsed_ns, 5 * NS_PER_S);
}
END_TEST

START_TEST(behaviour_20)
{
    given("retry.behaviour=2.0");
    ck_assert_uint_eq(attempts_of("dynamodb"), 3);
    struct effective e = found();
    ck_assert_int_eq(e.policy.behaviour, RETRY_BEHAVIOUR_20);
    ck_assert_int_eq(e.policy.base_transient_ns, 1000 * NS_PER_MS);
    ck_assert_uint_eq(e.policy.cost_transient, 5);
    ck_assert_uint_eq(e.policy.cost_timeout, 10);
    ck_assert(e.policy.codes.n > 0);
}
END_TEST

START_TEST(optional_knowledge)
{
    given("retry.modeled_errors=true\nretry.dynamodb_crc32=true");
    to_service("dynamodb");
    struct effective e = found();
    ck_assert(e.policy.modeled_codes.n > 0 && e.aws.modeled_errors);
    ck_assert(e.policy.crc32 == RETRY_CRC32_SUCCESS && e.aws.crc32);
    to_service("sqs");
    e = found();
    ck_assert(e.policy.modeled_codes.n == 0 && !e.aws.modeled_errors);
    ck_assert(e.policy.crc32 == RETRY_CRC32_NONE && !e.aws.crc32);
}
END_TEST

/* What the SDKs are told about attempts, a flavour hears where its SDK does; what retryd is told,
 * always counts (legacy-modes 1). */
START_TEST(legacy_attempts)
{
    static const struct {
        const char *flavour;
        unsigned sqs, dynamodb, sqs_shared, dynamodb_shared;
    } cases[] = {
        {"python", 5, 10, 7, 7},  {"cli", 5, 10, 7, 7},    {"ruby", 4, 11, 4, 11},
        {"php", 3, 11, 7, 11},    {"cpp", 11, 11, 11, 11}, {"java", 4, 9, 7, 9},
        {"java-v1", 4, 11, 7, 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char lines[128];
        snprintf(lines, sizeof lines, "retry.mode=legacy\nretry.flavour=%s", cases[i].flavour);
        given(lines);
        ck_assert_int_eq(mode_of("sqs"), RETRY_MODE_LEGACY);
        ck_assert_uint_eq(attempts_of("sqs"), cases[i].sqs);
        ck_assert_uint_eq(attempts_of("dynamodb"), cases[i].dynamodb);
        add(SETTING_AWS_ENV, "AWS_MAX_ATTEMPTS", "retry.max_attempts=7");
        build();
        ck_assert_uint_eq(attempts_of("sqs"), cases[i].sqs_shared);
        ck_assert_uint_eq(attempts_of("dynamodb"), cases[i].dynamodb_shared);
        add(SETTING_ENV, "RETRYD_RETRY_MAX_ATTEMPTS", "retry.max_attempts=8");
        build();
        ck_assert_uint_eq(attempts_of("sqs"), 8);
        ck_assert_uint_eq(attempts_of("dynamodb"), 8);
    }
}
END_TEST

START_TEST(legacy_keeps_its_cap)
{
    given("retry.mode=legacy\nretry.flavour=python");
    to_service("sqs");
    ck_assert_int_eq(found().policy.max_backoff_ns, INT64_MAX);
    given("retry.mode=legacy\nretry.flavour=python\nretry.max_backoff=2s");
    to_service("sqs");
    ck_assert_int_eq(found().policy.max_backoff_ns, 2 * NS_PER_S);
}
END_TEST

/* --- who is retried at all --- */

START_TEST(eligible)
{
    given("retry.services.-.mode=standard");
    to_plain_host("api.example.com", HTTP_GET, "GET");
    ck_assert(!found().may_repeat);
    ck_assert_int_eq(found().policy.mode, RETRY_MODE_OFF);
    facts.intercept_listed = true;
    ck_assert(found().may_repeat);
    ck_assert_int_eq(found().policy.mode, RETRY_MODE_STANDARD);
    facts.method = HTTP_POST;
    ck_assert(found().may_repeat);
    facts.intercept_listed = false;
    target.is_aws = true;
    ck_assert(found().may_repeat);
}
END_TEST

START_TEST(generic)
{
    static const struct {
        enum http_method method;
        const char *text;
        bool repeat;
    } cases[] = {
        {HTTP_GET, "GET", true},         {HTTP_HEAD, "HEAD", true},   {HTTP_PUT, "PUT", true},
        {HTTP_DELETE, "DELETE", true},   {HTTP_POST, "POST", false},  {HTTP_PATCH, "PATCH", false},
        {HTTP_OPTIONS, "OPTIONS", true}, {HTTP_OTHER, "FROB", false},
    };
    given("rules[0].match.host=api.example.com\nrules[0].profile=generic\n"
          "rules[0].max_attempts=5");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        to_plain_host("API.example.com", cases[i].method, cases[i].text);
        struct effective e = found();
        ck_assert_msg(e.may_repeat == cases[i].repeat, "%s", cases[i].text);
        ck_assert_int_eq(e.policy.mode, RETRY_MODE_STANDARD);
        ck_assert_int_eq(e.policy.retry_after, RETRY_AFTER_HTTP_ANY);
        ck_assert_uint_eq(e.policy.max_attempts, 5);
        ck_assert_uint_eq(e.policy.codes.n, 0);
        facts.idempotency_key = true;
        ck_assert(found().may_repeat);
    }
    to_plain_host("other.example.com", HTTP_GET, "GET");
    ck_assert_int_eq(found().policy.mode, RETRY_MODE_OFF);
    ck_assert_ptr_null(found().rule);
}
END_TEST

START_TEST(generic_by_consent)
{
    given("rules[0].match.host=*.example.com\nrules[0].match.method=POST\n"
          "rules[0].profile=generic\nrules[0].any_method=true\n"
          "rules[1].match.host=*.example.com\nrules[1].profile=generic\n"
          "rules[1].any_method=false");
    to_plain_host("a.example.com", HTTP_POST, "POST");
    ck_assert(found().may_repeat);
    to_plain_host("a.example.com", HTTP_PATCH, "PATCH");
    ck_assert(!found().may_repeat && found().rule == &config->rules[1]);
}
END_TEST

/* Also on a listed host, and also there for idempotent methods only. */
START_TEST(generic_on_a_listed_host)
{
    given("intercept.hosts=api.example.com\nrules[0].match.host=api.example.com\n"
          "rules[0].profile=generic");
    to_plain_host("api.example.com", HTTP_POST, "POST");
    facts.intercept_listed = true;
    ck_assert(!found().may_repeat);
    ck_assert_int_eq(found().policy.retry_after, RETRY_AFTER_HTTP_ANY);
}
END_TEST

/* A signed request to such a host is one for AWS. */
START_TEST(generic_is_never_for_aws)
{
    given("rules[0].match.host=s3.example.com\nrules[0].profile=generic\n"
          "rules[1].match.host=s3.example.com\nrules[1].max_attempts=6");
    to_service("s3");
    facts.host = SLICE("s3.example.com");
    struct effective e = found();
    ck_assert_ptr_eq(e.rule, &config->rules[1]);
    ck_assert_uint_eq(e.policy.max_attempts, 6);
    ck_assert_int_eq(e.policy.retry_after, RETRY_AFTER_AMZ_MS);
    ck_assert(e.may_repeat);
}
END_TEST

START_TEST(generic_can_be_off)
{
    given("retry.mode=off\nrules[0].match.host=a.example\nrules[0].profile=generic\n"
          "rules[1].match.host=b.example\nrules[1].profile=generic\nrules[1].mode=standard");
    to_plain_host("a.example", HTTP_GET, "GET");
    ck_assert_int_eq(found().policy.mode, RETRY_MODE_OFF);
    to_plain_host("b.example", HTTP_GET, "GET");
    ck_assert_int_eq(found().policy.mode, RETRY_MODE_STANDARD);
}
END_TEST

/* --- which rule --- */

static const struct {
    const char *match;
    bool hit;
} matching[] = {
    {"service=dynamodb", true},
    {"service=s3,dynamodb", true},
    {"service=s3", false},
    {"service=DynamoDB", false},
    {"operation=PutItem", true},
    {"operation=GetItem,Query", false},
    {"region=eu-central-1", true},
    {"region=eu-central", false},
    {"host=dynamodb.eu-central-1.amazonaws.com", true},
    {"host=*.amazonaws.com", true},
    {"host=*.eu-central-1.amazonaws.com, a.example", true},
    {"host=amazonaws.com", false},
    {"host=*.dynamodb.eu-central-1.amazonaws.com", false},
    {"method=POST", true},
    {"method=GET,PUT", false},
    {"method=post", false},
    {"access_key_id=AKIAEXAMPLE12345WXYZ", true},
    {"access_key_id=*WXYZ", true},
    {"access_key_id=*12345WXYZ", true},
    {"access_key_id=WXYZ", false},
    {"access_key_id=*wxyz", false},
    {"access_key_id=*XAKIAEXAMPLE12345WXYZ", false},
    {"access_key_id=AKIAEXAMPLE12345", false},
};

START_TEST(one_condition)
{
    char lines[256];
    snprintf(lines, sizeof lines, "rules[0].match.%s\nrules[0].max_attempts=9", matching[_i].match);
    given(lines);
    to_service("dynamodb");
    target.operation = SLICE("PutItem");
    facts.host = SLICE("dynamodb.eu-central-1.amazonaws.com");
    struct effective e = found();
    ck_assert_msg((e.rule != NULL) == matching[_i].hit, "%s", matching[_i].match);
    ck_assert_uint_eq(e.policy.max_attempts, matching[_i].hit ? 9 : 4);
}
END_TEST

START_TEST(all_conditions)
{
    given("rules[0].match.service=dynamodb\nrules[0].match.region=us-east-1\n"
          "rules[0].max_attempts=9\n"
          "rules[1].match.service=dynamodb\nrules[1].match.region=eu-central-1\n"
          "rules[1].max_attempts=8");
    ck_assert_uint_eq(attempts_of("dynamodb"), 8);
    ck_assert_uint_eq(attempts_of("sqs"), 3);
}
END_TEST

/* The first rule alone: what it leaves open is not filled from the next. */
START_TEST(first_match_wins)
{
    given("retry.services.sqs.max_attempts=5\nretry.services.sqs.mode=off\n"
          "rules[0].match.service=sqs\nrules[0].mode=standard\n"
          "rules[1].match.service=sqs\nrules[1].max_attempts=9\nrules[2].max_attempts=2");
    ck_assert_uint_eq(attempts_of("sqs"), 5);
    ck_assert_int_eq(mode_of("sqs"), RETRY_MODE_STANDARD);
    ck_assert_uint_eq(attempts_of("dynamodb"), 2);
}
END_TEST

/* Without any key there is nothing that a rule for a key could match. */
START_TEST(unsigned_request)
{
    given("rules[0].match.access_key_id=*WXYZ\nrules[0].max_attempts=9");
    to_service("s3");
    target.access_key = SLICE_NONE;
    ck_assert_ptr_null(found().rule);
}
END_TEST

/* --- what a rule sets --- */

START_TEST(numbers)
{
    given("retry.max_backoff=9s\nrules[0].mode=standard\nrules[0].behaviour=2.0\n"
          "rules[0].max_attempts=6\nrules[0].base_delay=10ms\nrules[0].base_delay_throttling=0s\n"
          "rules[0].max_backoff=2s\nrules[0].quota.capacity=0\nrules[0].quota.cost_transient=0\n"
          "rules[0].quota.cost_throttling=7\nrules[0].attempt_timeout=3s\n"
          "rules[0].replay_memory=4KiB\nrules[0].replay_disk=0");
    to_service("sqs");
    struct effective e = found();
    ck_assert_int_eq(e.policy.behaviour, RETRY_BEHAVIOUR_20);
    ck_assert_uint_eq(e.policy.max_attempts, 6);
    ck_assert_int_eq(e.policy.base_transient_ns, 10 * NS_PER_MS);
    ck_assert_int_eq(e.policy.base_throttling_ns, 0);
    ck_assert_int_eq(e.policy.max_backoff_ns, 2 * NS_PER_S);
    ck_assert_uint_eq(e.policy.quota_capacity, 0);
    ck_assert_uint_eq(e.policy.cost_transient, 0);
    ck_assert_uint_eq(e.policy.cost_timeout, 0);
    ck_assert_uint_eq(e.policy.cost_throttling, 7);
    ck_assert_int_eq(e.attempt_timeout_ns, 3 * NS_PER_S);
    ck_assert_uint_eq(e.replay_memory_bytes, 4 * KIB);
    ck_assert_uint_eq(e.replay_disk_bytes, 0);
}
END_TEST

START_TEST(null_leaves_it_open)
{
    given("retry.max_attempts=7\nrules[0].max_attempts=\nrules[0].mode=");
    ck_assert_uint_eq(attempts_of("sqs"), 7);
    ck_assert_int_eq(mode_of("sqs"), RETRY_MODE_STANDARD);
}
END_TEST

START_TEST(legacy_by_rule)
{
    given("rules[0].match.service=sqs\nrules[0].mode=legacy\nrules[0].flavour=ruby\n"
          "rules[0].quota.capacity=100\nrules[1].mode=legacy\nrules[1].flavour=python");
    to_service("sqs");
    struct effective e = found();
    ck_assert_uint_eq(e.policy.max_attempts, 4);
    ck_assert_int_eq(e.policy.quota, RETRY_QUOTA_STANDARD);
    ck_assert_uint_eq(e.policy.quota_capacity, 100);
    ck_assert_uint_eq(e.policy.cost_transient, 14);
    ck_assert_uint_eq(e.policy.gain_first, 1);
    to_service("dynamodb");
    e = found();
    ck_assert_uint_eq(e.policy.max_attempts, 10);
    ck_assert_int_eq(e.policy.quota, RETRY_QUOTA_NONE);
    ck_assert(e.aws.crc32);
}
END_TEST

START_TEST(codes_and_statuses)
{
    given("rules[0].retry_codes=Zeta,Beta,Alpha\nrules[0].retry_throttling_codes=Beta,Gamma\n"
          "rules[0].never_retry_codes=Gamma,Alpha\nrules[0].retry_statuses=418,409,500\n"
          "rules[0].retry_throttling_statuses=420,409\nrules[0].never_retry_statuses=500");
    static const struct {
        const char *code;
        enum retry_class class;
    } codes[] = {{"Alpha", RETRY_FINAL},
                 {"Beta", RETRY_THROTTLING},
                 {"Gamma", RETRY_FINAL},
                 {"Zeta", RETRY_TRANSIENT}};
    static const struct retry_status statuses[] = {{409, 409, RETRY_THROTTLING},
                                                   {418, 418, RETRY_TRANSIENT},
                                                   {420, 420, RETRY_THROTTLING},
                                                   {500, 500, RETRY_FINAL}};
    to_service("sqs");
    struct effective e = found();
    ck_assert_ptr_eq(e.policy.override, &config->rules[0].override);
    ck_assert_uint_eq(e.policy.override->codes.n, ARRAY_LEN(codes));
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        const struct retry_code *c = &e.policy.override->codes.v[i];
        ck_assert(slice_eq(c->code, slice_str(codes[i].code)));
        ck_assert(c->class == codes[i].class && c->status == 0);
    }
    ck_assert_uint_eq(e.policy.override->statuses.n, ARRAY_LEN(statuses));
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        const struct retry_status *s = &e.policy.override->statuses.v[i];
        ck_assert(s->first == statuses[i].first && s->last == statuses[i].last);
        ck_assert_int_eq(s->class, statuses[i].class);
    }
}
END_TEST

START_TEST(statuses_alone)
{
    given("rules[0].never_retry_statuses[0]=503");
    to_service("sqs");
    const struct retry_override *o = found().policy.override;
    ck_assert_ptr_nonnull(o);
    ck_assert(o->codes.n == 0 && o->statuses.n == 1);
}
END_TEST

/* --- as text --- */

static void on_line(void *arg, const struct effective_line *line)
{
    ck_assert_ptr_eq(arg, &shown);
    strbuf_printf(&shown, "%s: %s  # %s\n", line->name, line->value, line->origin);
}

static void show(void)
{
    struct effective e = found();
    strbuf_reset(&shown);
    config_effective_show(config, &facts, &e, on_line, &shown);
}

static void shows(const char *line)
{
    ck_assert_msg(memmem(shown.p, shown.n, line, strlen(line)) != NULL, "no %s in\n%.*s", line,
                  (int)shown.n, shown.p);
}

START_TEST(shown_defaults)
{
    given("");
    to_service("dynamodb");
    show();
    shows("rule: none  # default\nprofile: aws  # default\nmode: standard  # default\n"
          "flavour: none  # default\nbehaviour: 2.1  # default\n"
          "max_attempts: 4  # service default\nbase_delay: 25ms  # service default\n"
          "base_delay_throttling: 1s  # default\nmax_backoff: 20s  # default\n"
          "quota.capacity: 500  # default\nquota.cost_transient: 14  # default\n"
          "quota.cost_timeout: 14  # default\nquota.cost_throttling: 5  # default\n"
          "retry_429: true  # default\nmodeled_errors: false  # default\n"
          "crc32: false  # default\ns3_errors: core  # default\n"
          "codes_by_rule: 0  # default\nstatuses_by_rule: 0  # default\n"
          "repeats: true  # default\nattempt_timeout: none  # default\n"
          "client_timeout: none  # default\nmax_elapsed: none  # default\n"
          "max_total_wait: 120s  # default\nmax_signature_age: 240s  # default\n"
          "replay_memory: 1048576  # default\nreplay_disk: 67108864  # default\n");
}
END_TEST

START_TEST(shown_origins)
{
    settings_fini(&settings);
    settings_init(&settings);
    add(SETTING_FILE, "f.yaml",
        "retry.max_backoff=4s\nretry.services.sqs.max_attempts=6\nretry.services.s3.mode=off\n"
        "rules[0].match.service=kinesis\nrules[0].base_delay=1s\nrules[0].retry_codes=A,B");
    settings_add(&settings, SLICE("retry.max_attempts"), SLICE("5"), SETTING_AWS_ENV,
                 "AWS_MAX_ATTEMPTS", 0);
    settings_add(&settings, SLICE("retry.client_timeout"), SLICE("1500ms"), SETTING_FLAG, "--set",
                 0);
    build();
    to_service("dynamodb");
    show();
    shows("max_attempts: 5  # AWS_MAX_ATTEMPTS\n");
    shows("max_backoff: 4s  # f.yaml:1\n");
    shows("client_timeout: 1500ms  # --set\n");
    to_service("sqs");
    show();
    shows("max_attempts: 6  # f.yaml:2\n");
    to_service("s3");
    show();
    shows("mode: off  # f.yaml:3\n");
    to_service("kinesis");
    show();
    shows("rule: rules[0]  # f.yaml:4\n");
    shows("base_delay: 1s  # f.yaml:5\n");
    shows("codes_by_rule: 2  # f.yaml:4\n");
    shows("max_attempts: 5  # AWS_MAX_ATTEMPTS\n");
}
END_TEST

START_TEST(shown_legacy)
{
    given("retry.mode=legacy\nretry.flavour=ruby");
    settings_add(&settings, SLICE("retry.max_attempts"), SLICE("5"), SETTING_PROFILE, "config", 2);
    build();
    to_service("sqs");
    show();
    shows("mode: legacy  # f.yaml:1\nflavour: ruby  # f.yaml:2\nbehaviour: none  # flavour\n"
          "max_attempts: 4  # flavour\n");
    shows("max_backoff: none  # flavour\n");
    to_service("dynamodb");
    show();
    shows("max_attempts: 11  # service default\n");
}
END_TEST

START_TEST(shown_not_eligible)
{
    given("");
    to_plain_host("a.example", HTTP_GET, "GET");
    show();
    shows("mode: off  # neither AWS nor listed\n");
    shows("repeats: false  # ");
    given("rules[0].match.host=a.example\nrules[0].profile=generic");
    show();
    shows("profile: generic  # f.yaml:2\nmode: standard  # default\n");
}
END_TEST

static TCase *tcase_settings(void)
{
    TCase *t = tcase_create("settings");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, unset_leaves_the_service_its_default);
    tcase_add_test(t, general_setting_beats_the_service_default);
    tcase_add_test(t, service_setting_beats_the_general_one);
    tcase_add_test(t, the_rest_is_for_all);
    tcase_add_test(t, behaviour_20);
    tcase_add_test(t, optional_knowledge);
    tcase_add_test(t, legacy_attempts);
    tcase_add_test(t, legacy_keeps_its_cap);
    return t;
}

static TCase *tcase_eligible(void)
{
    TCase *t = tcase_create("eligible");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, eligible);
    tcase_add_test(t, generic);
    tcase_add_test(t, generic_by_consent);
    tcase_add_test(t, generic_on_a_listed_host);
    tcase_add_test(t, generic_is_never_for_aws);
    tcase_add_test(t, generic_can_be_off);
    return t;
}

static TCase *tcase_rules(void)
{
    TCase *t = tcase_create("rules");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, one_condition, 0, (int)ARRAY_LEN(matching));
    tcase_add_test(t, all_conditions);
    tcase_add_test(t, first_match_wins);
    tcase_add_test(t, unsigned_request);
    tcase_add_test(t, numbers);
    tcase_add_test(t, null_leaves_it_open);
    tcase_add_test(t, legacy_by_rule);
    tcase_add_test(t, codes_and_statuses);
    tcase_add_test(t, statuses_alone);
    return t;
}

static TCase *tcase_shown(void)
{
    TCase *t = tcase_create("shown");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, shown_defaults);
    tcase_add_test(t, shown_origins);
    tcase_add_test(t, shown_legacy);
    tcase_add_test(t, shown_not_eligible);
    return t;
}

UNIT_MAIN("config_effective", tcase_settings, tcase_eligible, tcase_rules, tcase_shown)
