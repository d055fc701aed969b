/* rules[N]: what is read, and what is refused. */
#include "unit.h"

#include "core/base/attr.h"
#include "core/base/units.h"
#include "lines.h"

#include <stdio.h>

static struct problems problems;

static void setup(void)
{
    problems = (struct problems){0};
}

static void teardown(void)
{
    problems_fini(&problems);
}

static struct config *good(const char *lines)
{
    struct config *c = lines_build(lines, &problems);
    ck_assert_msg(c != NULL, "%s", problems.n ? problems.v[0].text : "no problem");
    return c;
}

START_TEST(every_field)
{
    struct config *c =
        good("rules[0].match.service=s3\nrules[0].match.operation[0]=GetObject\n"
             "rules[0].match.operation[1]=PutObject\nrules[0].match.region=us-east-1, us-east-2\n"
             "rules[0].match.method=GET\nrules[0].match.host=*.A.example\n"
             "rules[0].match.access_key_id=AKIA1234,*5678\n"
             "rules[0].match={}\nrules[0].quota=\nrules[1].mode=legacy\nrules[1].flavour=java-v1");
    ck_assert_uint_eq(c->n_rules, 2);
    const struct rule *r = &c->rules[0];
    ck_assert_uint_eq(r->number, 0);
    ck_assert_str_eq(r->where.name, "f.yaml");
    ck_assert_uint_eq(r->where.line, 1);
    ck_assert(r->n_services == 1 && slice_eq(r->services[0], SLICE("s3")));
    ck_assert(r->n_operations == 2 && slice_eq(r->operations[1], SLICE("PutObject")));
    ck_assert(r->n_regions == 2 && slice_eq(r->regions[1], SLICE("us-east-2")));
    ck_assert(r->n_methods == 1 && slice_eq(r->methods[0], SLICE("GET")));
    ck_assert(r->n_hosts == 1 && r->hosts[0].suffix);
    ck_assert_str_eq(r->hosts[0].text, "a.example");
    ck_assert(r->n_access_keys == 2 && slice_eq(r->access_keys[1], SLICE("*5678")));
    ck_assert(!rule_has(r, mode) && rule_has(r, operations));
    ck_assert_uint_eq(r->from[RULE_ROW_operations].line, 3);
    r = &c->rules[1];
    ck_assert(r->number == 1 && r->where.line == 10 && rule_has(r, mode));
    ck_assert(r->mode == RETRY_MODE_LEGACY && strcmp(r->flavour, "java-v1") == 0);
    config_free(c);
}
END_TEST

START_TEST(a_list_is_given_whole_or_by_item)
{
    struct config *c = good("rules[0].retry_codes=A,B\nrules[0].retry_codes=C\n"
                            "rules[0].never_retry_codes[0]=D\nrules[0].never_retry_codes[0]=E\n"
                            "rules[0].retry_statuses=[]\nrules[0].never_retry_statuses=");
    ck_assert(c->rules[0].n_retry_codes == 1 && slice_eq(c->rules[0].retry_codes[0], SLICE("C")));
    ck_assert(c->rules[0].n_never_codes == 1 && slice_eq(c->rules[0].never_codes[0], SLICE("E")));
    ck_assert_uint_eq(c->rules[0].n_retry_statuses + c->rules[0].n_never_statuses, 0);
    config_free(c);
}
END_TEST

/* Rules of a higher rank replace all of a lower one: their numbers mean nothing to each other. */
START_TEST(ranks)
{
    struct settings s;
    settings_init(&s);
    lines_add(&s, "rules[0].max_attempts=7", SETTING_FLAG, "--set");
    lines_add(&s, "rules[0].mode=off\nrules[1].mode=off", SETTING_FILE, "f.yaml");
    struct config *c = config_build(&s, NULL, &problems);
    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->n_rules, 1);
    ck_assert(rule_has(&c->rules[0], max_attempts) && !rule_has(&c->rules[0], mode));
    config_free(c);
    lines_add(&s, "rules=[]", SETTING_FLAG, "--set");
    c = config_build(&s, NULL, &problems);
    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->n_rules, 0);
    config_free(c);
    settings_fini(&s);
}
END_TEST

static const struct {
    const char *lines, *problem;
} bad[] = {
    {"rules=x", "f.yaml:1: rules: is a list of rules; give each its settings below it"},
    {"rules.x=1", "f.yaml:1: rules.x: rules is a list; begin each of its entries with \"- \""},
    {"rules[0]=x", "f.yaml:1: rules[0]: is not a rule; give its settings below it"},
    {"rules[0]={}", "f.yaml:1: rules[0]: is not a rule; give its settings below it"},
    {"rules[0]=", "f.yaml:1: rules[0]: is not a rule; give its settings below it"},
    {"rules[1].mode=off", "f.yaml:1: rules[1].mode: rules are numbered from 0, without gaps"},
    {"rules[x].mode=off", "f.yaml:1: rules[x].mode: unknown option; did you mean retry.mode?"},
    {"rules[0].match=x", "f.yaml:1: rules[0].match: is a section; give its options below it"},
    {"rules[0].mod=off", "f.yaml:1: rules[0].mod: unknown option of a rule; did you mean mode?"},
    {"rules[0].match.services=s3",
     "f.yaml:1: rules[0].match.services: unknown option of a rule; did you mean match.service?"},
    {"rules[0].service=s3",
     "f.yaml:1: rules[0].service: unknown option of a rule; did you mean match.service?"},
    {"rules[0].qqq.zzz=1",
     "f.yaml:1: rules[0].qqq.zzz: unknown option of a rule; retryd.yaml(5) lists all"},
    {"rules[0].mode[0]=off",
     "f.yaml:1: rules[0].mode[0]: a list is not allowed here; give one value"},
    {"rules[0].mode=on",
     "f.yaml:1: rules[0].mode: \"on\" is not one of off|standard|adaptive|legacy"},
    {"rules[0].mode=legacy",
     "f.yaml:1: rules[0].mode: legacy mode needs a flavour, here or in retry.flavour"},
    {"rules[0].max_attempts=101",
     "f.yaml:1: rules[0].max_attempts: \"101\" is out of bounds; give 1..100"},
    {"rules[0].base_delay=fast",
     "f.yaml:1: rules[0].base_delay: \"fast\" is not a duration; give a number with ms, s, m or h, "
     "0s..5m"},
    {"rules[0].behaviour=2", "f.yaml:1: rules[0].behaviour: \"2\" is not one of 2.1|2.0"},
    {"rules[0].profile=aws", "f.yaml:1: rules[0].profile: \"aws\" is not one of generic"},
    {"rules[0].match.service=a b",
     "f.yaml:1: rules[0].match.service: \"a b\" is not a name; give letters, digits, \".\", \"_\" "
     "and \"-\""},
    {"rules[0].retry_codes[0]=",
     "f.yaml:1: rules[0].retry_codes[0]: \"\" is not a name; give letters, digits, \".\", \"_\" "
     "and \"-\""},
    {"rules[0].match.host=a:80",
     "f.yaml:1: rules[0].match.host: \"a:80\": a port does not belong here; give a host name or "
     "*.suffix"},
    {"rules[0].match.access_key_id=*ABC",
     "f.yaml:1: rules[0].match.access_key_id: is not an access key id; give letters and digits, "
     "or \"*\" and at least the last four of them"},
    {"rules[0].match.listener=lan",
     "f.yaml:1: rules[0].match.listener: no listener has the name \"lan\""},
    {"rules[0].retry_statuses=200",
     "f.yaml:1: rules[0].retry_statuses: \"200\" is not the status of a failure; give 300..599"},
    {"rules[0].replay_memory=512MiB",
     "f.yaml:1: rules[0].replay_memory does not fit in limits.replay_memory_total"},
    {"rules[0].replay_disk=2GiB",
     "f.yaml:1: rules[0].replay_disk does not fit in limits.replay_disk_total"},
    {"rules[0].profile=generic",
     "f.yaml:1: rules[0].profile: generic needs match.host, with hosts outside AWS"},
    {"rules[0].match.host=a.example,sts.amazonaws.com\nrules[0].profile=generic",
     "f.yaml:2: rules[0].profile: generic is never for AWS, but match.host has "
     "sts.amazonaws.com; name hosts outside AWS"},
    {"rules[0].match.host=*.com\nrules[0].profile=generic",
     "f.yaml:2: rules[0].profile: generic is never for AWS, but match.host has *.com; name hosts "
     "outside AWS"},
    {"rules[0].match.host=*.amazonaws.com\nrules[0].profile=generic",
     "f.yaml:2: rules[0].profile: generic is never for AWS, but match.host has *.amazonaws.com; "
     "name hosts outside AWS"},
    {"retry.mode=legacy",
     "f.yaml:1: retry.mode: legacy mode needs retry.flavour, as each SDK has a legacy mode of its "
     "own; give cli-v1, cpp, java, java-v1, php, python or ruby"},
    {"retry.services.s3.mode=legacy",
     "f.yaml:1: retry.services.s3.mode: legacy mode needs retry.flavour, as each SDK has a legacy "
     "mode of its own; give cli-v1, cpp, java, java-v1, php, python or ruby"},
};

START_TEST(one_problem)
{
    ck_assert_ptr_null(lines_build(bad[_i].lines, &problems));
    ck_assert_msg(problems.n == 1, "%zu problems: %s", problems.n, problems.v[0].text);
    ck_assert_str_eq(problems.v[0].text, bad[_i].problem);
}
END_TEST

/* Flavours are asked of whoever knows them; here it matters where the words go. */
START_TEST(unknown_flavours)
{
    static const char *const lines[] = {"retry.flavour=cli-v2", "rules[0].flavour=go"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        problems_fini(&problems);
        ck_assert_ptr_null(lines_build(lines[i], &problems));
        ck_assert_uint_eq(problems.n, 1);
        ck_assert(strncmp(problems.v[0].text,
                          i ? "f.yaml:1: rules[0].flavour: " : "f.yaml:1: retry.flavour: ", 24) ==
                  0);
    }
}
END_TEST

START_TEST(keys_are_not_repeated)
{
    ck_assert_ptr_null(lines_build("rules[0].match.access_key_id=AKIA_SECRET", &problems));
    ck_assert_uint_eq(problems.n, 1);
    ck_assert_ptr_null(strstr(problems.v[0].text, "SECRET"));
}
END_TEST

START_TEST(number_is_bounded)
{
    struct settings s;
    char path[64];
    settings_init(&s);
    for (unsigned i = 0; i < 256; i++) {
        snprintf(path, sizeof path, "rules[%u].max_attempts", i);
        settings_add(&s, slice_str(path), SLICE("2"), SETTING_FILE, "f.yaml", 1);
    }
    struct config *c = config_build(&s, NULL, &problems);
    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->n_rules, 256);
    config_free(c);
    settings_add(&s, SLICE("rules[256].mode"), SLICE("off"), SETTING_FILE, "f.yaml", 2);
    ck_assert_ptr_null(config_build(&s, NULL, &problems));
    ck_assert_str_eq(problems.v[0].text, "f.yaml:2: rules[256].mode: more than 256 rules");
    settings_fini(&s);
}
END_TEST

/* One flavour for all: of a service, of a rule. */
START_TEST(general_flavour)
{
    config_free(good("retry.flavour=cli\nretry.services.s3.mode=legacy\nrules[0].mode=legacy"));
}
END_TEST

static TCase *tcase_rules(void)
{
    TCase *t = tcase_create("rules");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, every_field);
    tcase_add_test(t, a_list_is_given_whole_or_by_item);
    tcase_add_test(t, ranks);
    tcase_add_test(t, general_flavour);
    tcase_add_test(t, number_is_bounded);
    return t;
}

static TCase *tcase_problems(void)
{
    TCase *t = tcase_create("problems");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, one_problem, 0, (int)ARRAY_LEN(bad));
    tcase_add_test(t, unknown_flavours);
    tcase_add_test(t, keys_are_not_repeated);
    return t;
}

UNIT_MAIN("build_rule", tcase_rules, tcase_problems)
