/* What `retryd check` warns of: rules that never match, and settings that do nothing. */
#include "unit.h"

#include "core/base/attr.h"
#include "lines.h"

static struct problems problems, warnings;

static void setup(void)
{
    problems = warnings = (struct problems){0};
}

static void teardown(void)
{
    problems_fini(&problems);
    problems_fini(&warnings);
}

static void warn(const char *lines)
{
    struct config *c = lines_build(lines, &problems);
    ck_assert_msg(c != NULL, "%s", problems.n ? problems.v[0].text : "");
    config_warn(c, &warnings);
    config_free(c);
}

/* Earlier rule, later rule (N in the lines is its number), and whether the first hides the second.
 */
static const struct {
    const char *first, *second;
    bool hidden;
} pairs[] = {
    {"mode=off", "match.service=s3", true},
    {"mode=off", "mode=off", true},
    {"match.service=s3", "mode=off", false},
    {"match.service=s3", "match.service=s3", true},
    {"match.service=s3,sqs", "match.service=s3", true},
    {"match.service=s3", "match.service=s3,sqs", false},
    {"match.service=s3", "match.service=s3\nrules[N].match.region=us-east-1", true},
    {"match.service=s3\nrules[N].match.region=us-east-1", "match.service=s3", false},
    {"match.operation=PutItem", "match.operation=GetItem", false},
    {"match.operation=PutItem", "match.operation=PutItem", true},
    {"match.method=GET", "match.method=GET,HEAD", false},
    {"match.method=GET,HEAD", "match.method=HEAD", true},
    {"match.region=eu-west-1", "match.region=eu-west-1", true},
    {"match.host=*.amazonaws.com", "match.host=sts.amazonaws.com", true},
    {"match.host=*.amazonaws.com", "match.host=*.eu-west-1.amazonaws.com", true},
    {"match.host=*.amazonaws.com", "match.host=sts.amazonaws.com,a.amazonaws.com.cn", false},
    {"match.host=sts.amazonaws.com", "match.host=*.amazonaws.com", false},
    {"match.access_key_id=*WXYZ", "match.access_key_id=AKIAEXAMPLEWXYZ", true},
    {"match.access_key_id=*WXYZ", "match.access_key_id=*EWXYZ", true},
    {"match.access_key_id=*EWXYZ", "match.access_key_id=*WXYZ", false},
    {"match.access_key_id=AKIAEXAMPLEWXYZ", "match.access_key_id=*WXYZ", false},
    {"match.access_key_id=*WXYZ,*ABCD", "match.access_key_id=*ABCD", true},
    {"match.host=a.example\nrules[N].profile=generic",
     "match.host=a.example\nrules[N].profile=generic", true},
    {"match.host=a.example\nrules[N].profile=generic",
     "match.host=a.example\nrules[N].match.service=s3", false},
};

/* "rules[N]." before the line, and N replaced. */
static void add_rule(struct settings *s, const char *line, char number)
{
    char text[256] = "rules[N].";
    size_t n = strlen(text);
    for (; *line && n < sizeof text - 1; line++)
        text[n++] = *line;
    text[n] = '\0';
    for (char *c = text; *c; c++) {
        if (c[0] == 'N' && c[1] == ']')
            *c = number;
    }
    lines_add(s, text, SETTING_FILE, number == '0' ? "first.yaml" : "second.yaml");
}

START_TEST(shadowed)
{
    struct settings s;
    size_t hidden = 0;
    settings_init(&s);
    add_rule(&s, pairs[_i].first, '0');
    add_rule(&s, pairs[_i].second, '1');
    struct config *c = config_build(&s, NULL, &problems);
    ck_assert_msg(c != NULL, "%s", problems.n ? problems.v[0].text : "");
    config_warn(c, &warnings);
    for (size_t i = 0; i < warnings.n; i++)
        hidden += strcmp(warnings.v[i].text, "second.yaml:1: rules[1] never matches: rules[0] "
                                             "(first.yaml:1) takes all its requests") == 0;
    ck_assert_msg(hidden == pairs[_i].hidden, "%s / %s", pairs[_i].first, pairs[_i].second);
    config_free(c);
    settings_fini(&s);
}
END_TEST

static const struct {
    const char *lines, *warning; /* NULL: none */
} single[] = {
    {"", NULL},
    {"retry.services.dynamodb.max_attempts=5", NULL},
    {"retry.services.dynamo-db.max_attempts=5",
     "f.yaml:1: retry.services.dynamo-db: no service is known as \"dynamo-db\"; did you mean "
     "dynamodb?"},
    {"rules[0].match.service=s3,qsq",
     "f.yaml:1: rules[0].match.service: no service is known as \"qsq\""},
    {"rules[0].match.service=DynamoDB",
     "f.yaml:1: rules[0].match.service: no service is known as \"DynamoDB\"; did you mean "
     "dynamodb?"},
    {"rules[0].match.method=get",
     "f.yaml:1: rules[0].match.method: \"get\" is not what clients send; methods are in upper "
     "case"},
    {"rules[0].match.method=M-SEARCH", NULL},
    {"rules[0].match.service=s3\nrules[0].match.host=dynamodb.us-east-1.amazonaws.com",
     "f.yaml:2: rules[0] never matches: the hosts of match.host belong to another service than "
     "match.service, dynamodb for one"},
    {"rules[0].match.service=s3\n"
     "rules[0].match.host=dynamodb.us-east-1.amazonaws.com,a.s3.amazonaws.com",
     NULL},
    {"rules[0].match.service=s3\nrules[0].match.host=minio.example", NULL},
    {"rules[0].match.host=minio.example",
     "f.yaml:1: rules[0].match.host: minio.example is neither AWS nor in intercept.hosts: only "
     "plain requests with an AWS signature are retried; list it, or give profile: generic"},
    {"intercept.hosts=*.b.example\nrules[0].match.host=minio.b.example", NULL},
    {"intercept.hosts=minio.a.example\nrules[0].match.host=*.a.example", NULL},
    {"rules[0].match.host=minio.example\nrules[0].profile=generic", NULL},
    {"http_ports=[]\nrules[0].match.host=minio.example\nrules[0].profile=generic",
     "f.yaml:2: rules[0].match.host: requests to minio.example are never seen: it is not opened, "
     "and http_ports is empty"},
    {"http_ports=[]\nintercept.aws=false\nrules[0].match.host=*.amazonaws.com",
     "f.yaml:3: rules[0].match.host: requests to *.amazonaws.com are never seen: it is not opened, "
     "and http_ports is empty"},
    {"http_ports=[]\nrules[0].match.host=sts.amazonaws.com", NULL},
    {"http_ports=[]\nintercept.bypass=*.amazonaws.com\nrules[0].match.host=sts.amazonaws.com",
     "f.yaml:3: rules[0].match.host: requests to sts.amazonaws.com are never seen: it is not "
     "opened, and http_ports is empty"},
    {"rules[0].match.host=a.example\nrules[0].match.region=us-east-1\nrules[0].profile=generic",
     "f.yaml:3: rules[0] never matches: only requests for AWS have a service, region, operation "
     "or access key id, and profile generic is never for AWS"},
    {"rules[0].any_method=true",
     "f.yaml:1: rules[0].any_method does nothing without profile: generic"},
    {"rules[0].flavour=ruby", "f.yaml:1: rules[0].flavour does nothing without mode: legacy"},
    {"retry.mode=legacy\nretry.flavour=java\nrules[0].flavour=ruby", NULL},
    {"rules[0].mode=legacy\nrules[0].flavour=ruby\nrules[0].behaviour=2.0",
     "f.yaml:3: rules[0].behaviour does nothing with profile: generic or mode: legacy"},
    {"rules[0].retry_codes=A,B\nrules[0].never_retry_codes=B",
     "f.yaml:2: rules[0]: B is both to be retried and never to be retried; never wins"},
};

START_TEST(one_warning)
{
    warn(single[_i].lines);
    ck_assert_msg(warnings.n == (single[_i].warning != NULL), "%zu warnings: %s", warnings.n,
                  warnings.n ? warnings.v[0].text : single[_i].warning);
    if (single[_i].warning)
        ck_assert_str_eq(warnings.v[0].text, single[_i].warning);
}
END_TEST

START_TEST(keys_are_not_repeated)
{
    warn("rules[0].match.access_key_id=AKIASECRET\nrules[1].match.access_key_id=AKIASECRET");
    ck_assert_uint_eq(warnings.n, 1);
    ck_assert_ptr_null(strstr(warnings.v[0].text, "SECRET"));
}
END_TEST

static const char *const unguarded[][2] = {
    {"listeners[0].address=0.0.0.0:1\nlisteners[0].credentials_file=/x",
     "f.yaml:2: listeners[0].credentials_file: the passwords cross the network in the clear; give "
     "tls_certificate and tls_key, too"},
    {"listeners[0].address=0.0.0.0:1\nlisteners[0].clients=0.0.0.0/0",
     "f.yaml:2: listeners[0].clients: anybody who reaches 0.0.0.0:1 may use it; name the networks, "
     "or give credentials_file"},
    {"listeners[0].address=0.0.0.0:1\nlisteners[0].clients=::/0",
     "f.yaml:2: listeners[0].clients: anybody who reaches 0.0.0.0:1 may use it; name the networks, "
     "or give credentials_file"},
    {"listeners[0].address=0.0.0.0:1\nlisteners[0].clients=10.0.0.0/8", NULL},
    {"listeners[0].address=127.0.0.1:1\nlisteners[0].credentials_file=/x", NULL},
    {"listeners[0].address=unix:/x\nlisteners[0].credentials_file=/x", NULL},
    {"listeners[0].address=0.0.0.0:1\nlisteners[0].credentials_file=/"
     "x\nlisteners[0].tls_certificate="
     "/c\nlisteners[0].tls_key=/k\nlisteners[0].clients=0.0.0.0/0",
     NULL},
};

START_TEST(unguarded_listeners)
{
    warn(unguarded[_i][0]);
    ck_assert_uint_eq(warnings.n, unguarded[_i][1] != NULL);
    if (warnings.n > 0)
        ck_assert_str_eq(warnings.v[0].text, unguarded[_i][1]);
}
END_TEST

START_TEST(service_names)
{
    struct slice near;
    ck_assert(config_service_known(SLICE("dynamodb-streams"), &near) && near.n == 0);
    ck_assert(!config_service_known(SLICE("dynamodb-stream"), &near));
    ck_assert(slice_eq(near, SLICE("dynamodb-streams")));
    ck_assert(!config_service_known(SLICE(""), &near) && near.n == 0);
    ck_assert(!config_service_known(
        SLICE("a-name-that-is-longer-than-that-of-any-service-there-is"), &near));
    ck_assert_uint_eq(near.n, 0);
}
END_TEST

static TCase *tcase_warn(void)
{
    TCase *t = tcase_create("warn");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, shadowed, 0, (int)ARRAY_LEN(pairs));
    tcase_add_loop_test(t, one_warning, 0, (int)ARRAY_LEN(single));
    tcase_add_test(t, keys_are_not_repeated);
    tcase_add_test(t, service_names);
    tcase_add_loop_test(t, unguarded_listeners, 0, (int)ARRAY_LEN(unguarded));
    return t;
}

UNIT_MAIN("config_warn", tcase_warn)
