/* The table: its rows, the search in it, the names of variables. */
#include "unit.h"

#include "core/config/option.h"

static const char *found(const char *path, struct slice *key)
{
    const struct option *o = option_find(slice_str(path), key);
    return o ? o->path : "";
}

START_TEST(find)
{
    struct slice key;
    ck_assert_str_eq(found("timeouts.connect", &key), "timeouts.connect");
    ck_assert_uint_eq(key.n, 0);
    ck_assert_str_eq(found("listen", &key), "listen");
    ck_assert_uint_eq(key.n, 0);
    ck_assert_str_eq(found("listen[12]", &key), "listen");
    ck_assert(slice_eq(key, SLICE("12")));
    ck_assert_str_eq(found("resolve.*.a.example:443", &key), "resolve.*");
    ck_assert(slice_eq(key, SLICE("*.a.example:443")));
    ck_assert_str_eq(found("retry.services.s3.mode", &key), "retry.services.*.mode");
    ck_assert(slice_eq(key, SLICE("s3")));
}
END_TEST

START_TEST(find_nothing)
{
    static const char *const paths[] = {
        "",
        "timeouts",
        "timeouts.",
        "timeouts.connect.x",
        "timeouts.connect[0]",
        "listen[]",
        "listen[x]",
        "listen[0][0]",
        "listen[0].a",
        "resolve.",
        "resolve",
        "retry.services.mode",
        "retry.services..mode",
        "retry.services.s3",
        "Listen",
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct slice key = SLICE("x");
        ck_assert_str_eq(found(paths[i], &key), "");
        ck_assert_uint_eq(key.n, 0);
    }
}
END_TEST

START_TEST(sections)
{
    ck_assert(option_is_section(SLICE("timeouts")) && option_is_section(SLICE("resolve")));
    ck_assert(option_is_section(SLICE("retry.services")));
    ck_assert(option_is_section(SLICE("retry.services.s3")));
    ck_assert(!option_is_section(SLICE("listen")) && !option_is_section(SLICE("")));
    ck_assert(!option_is_section(SLICE("timeouts.connect")) && !option_is_section(SLICE("time")));
    ck_assert(!option_is_section(SLICE("retry.services.a.b")));
    ck_assert(option_has_free_keys(SLICE("resolve")) &&
              option_has_free_keys(SLICE("retry.services")));
    ck_assert(!option_has_free_keys(SLICE("retry")) && !option_has_free_keys(SLICE("")));
}
END_TEST

START_TEST(in_rules)
{
    static const struct {
        const char *path, *number, *rest;
    } good[] = {
        {"rules[0]", "0", ""},
        {"rules[12].mode", "12", "mode"},
        {"rules[3].match.host[0]", "3", "match.host[0]"},
        {"rules[3].match", "3", "match"},
    };
    static const char *const bad[] = {
        "rule",      "rules[]",      "rules[x].mode",       "rules[0]mode",
        "rules[0].", "rule[0].mode", "retry.rules[0].mode", "",
        "rules[0",   "rules.mode"};
    struct slice number, rest, key;
    const struct option_record *rules = option_record_of(SLICE("rules[0]"), &number, &rest);
    ck_assert_ptr_nonnull(rules);
    ck_assert_str_eq(rules->path, "rules");
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(option_record_of(slice_str(good[i].path), &number, &rest) == rules, "%s",
                      good[i].path);
        ck_assert(slice_eq(number, slice_str(good[i].number)));
        ck_assert(slice_eq(rest, slice_str(good[i].rest)));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!option_record_of(slice_str(bad[i]), &number, &rest), "%s", bad[i]);
    ck_assert_ptr_eq(option_record_of(SLICE("rules"), &number, &rest), rules);
    ck_assert(number.n == 0 && rest.n == 0);
    ck_assert_str_eq(option_find_in(rules, SLICE("match.host[1]"), &key)->path, "match.host");
    ck_assert(slice_eq(key, SLICE("1")));
    ck_assert_ptr_null(option_find_in(rules, SLICE("listen"), &key));
    ck_assert(option_is_section_in(rules, SLICE("match")) &&
              option_is_section_in(rules, SLICE("quota")));
    ck_assert(!option_is_section_in(rules, SLICE("mode")) &&
              !option_is_section_in(rules, SLICE("retry")));
    ck_assert_str_eq(option_nearest_in(rules, SLICE("flavor"))->path, "flavour");
    ck_assert_ptr_ne(option_record_of(SLICE("listeners[0].address"), &number, &rest), rules);
    ck_assert(slice_eq(rest, SLICE("address")));
}
END_TEST

START_TEST(nearest)
{
    static const struct {
        const char *path, *near;
    } cases[] = {
        {"timeout.connect", "timeouts.connect"},       {"listn", "listen"},
        {"retry.max_attemps", "retry.max_attempts"},   {"max_attempts", "retry.max_attempts"},
        {"limits.max_attempts", "retry.max_attempts"}, {"LOG.LEVEL", "log.level"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct option *o = option_nearest(slice_str(cases[i].path));
        ck_assert_msg(o != NULL, "%s", cases[i].path);
        ck_assert_str_eq(o->path, cases[i].near);
    }
    ck_assert_ptr_null(option_nearest(SLICE("")));
    ck_assert_ptr_null(option_nearest(SLICE("qqqqqq")));
    ck_assert_ptr_null(option_nearest(SLICE("a.path.far.longer.than.any.of.the.table.is")));
}
END_TEST

START_TEST(variables)
{
    char a[OPTION_VARIABLE_MAX], b[OPTION_VARIABLE_MAX];
    struct slice key;
    option_variable(option_find(SLICE("retry.max_attempts"), &key), a);
    ck_assert_str_eq(a, "RETRYD_RETRY_MAX_ATTEMPTS");
    option_variable(option_find(SLICE("retry.retry_429"), &key), a);
    ck_assert_str_eq(a, "RETRYD_RETRY_RETRY_429");
    option_variable(option_find(SLICE("resolve.x"), &key), a);
    ck_assert_str_eq(a, "");
    /* Dots and underscores fall together: no two options may. */
    for (size_t i = 0; i < option_table_n; i++) {
        for (size_t j = i + 1; j < option_table_n; j++) {
            option_variable(&option_table[i], a);
            option_variable(&option_table[j], b);
            ck_assert_msg(!a[0] || strcmp(a, b) != 0, "%s", a);
        }
    }
}
END_TEST

START_TEST(rows)
{
    for (size_t i = 0; i < option_table_n; i++) {
        const struct option *o = &option_table[i];
        struct slice key;
        size_t n = strlen(o->doc);
        ck_assert_ptr_eq(option_find(slice_str(o->path), &key), o);
        ck_assert_msg(n > 10 && o->doc[n - 1] == '.', "%s", o->path);
        bool bounded =
            o->type == OPTION_DURATION || o->type == OPTION_SIZE || o->type == OPTION_COUNT;
        ck_assert_msg(!bounded || strstr(o->allowed, ".."), "%s", o->path);
        ck_assert_msg(o->type != OPTION_CHOICE || strchr(o->allowed, '|'), "%s", o->path);
        ck_assert_msg(o->text[0] || o->kind != OPTION_KIND_VALUE || o->type == OPTION_PATH ||
                          o->type == OPTION_COUNT || o->type == OPTION_DURATION ||
                          o->type == OPTION_FLAVOUR || o->type == OPTION_WORD ||
                          o->type == OPTION_PROXY_URL,
                      "%s cannot be unset", o->path);
    }
}
END_TEST

static TCase *tcase_table(void)
{
    TCase *t = tcase_create("table");
    tcase_add_test(t, find);
    tcase_add_test(t, find_nothing);
    tcase_add_test(t, sections);
    tcase_add_test(t, in_rules);
    tcase_add_test(t, nearest);
    tcase_add_test(t, variables);
    tcase_add_test(t, rows);
    return t;
}

UNIT_MAIN("option", tcase_table)
