/* YAML -> settings: paths and lines, what is refused, which files are trusted, and that the shipped
 * file gives the defaults. */
#include "unit.h"

#include "core/config/option.h"
#include "io/sources/yamlsrc.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct settings settings;
static struct problems problems;

static void setup(void)
{
    settings_init(&settings);
    problems = (struct problems){0};
}

static void teardown(void)
{
    settings_fini(&settings);
    problems_fini(&problems);
}

static bool read_text(const char *text)
{
    return yamlsrc_text(slice_str(text), "f.yaml", &settings, &problems);
}

static void assert_setting(size_t i, const char *path, const char *value, unsigned line)
{
    ck_assert_uint_lt(i, settings.n);
    const struct setting *s = &settings.v[i];
    ck_assert_msg(slice_eq(s->path, slice_str(path)), "%.*s", SLICE_FMT(s->path));
    ck_assert_msg(slice_eq(s->value, slice_str(value)), "%s: %.*s", path, SLICE_FMT(s->value));
    ck_assert_uint_eq(s->line, line);
    ck_assert_int_eq(s->rank, SETTING_FILE);
    ck_assert(slice_eq(s->origin, SLICE("f.yaml")));
}

START_TEST(paths_and_lines)
{
    ck_assert(read_text("# comment\n"
                        "listen: [127.0.0.1:8199, '[::1]:0']\n"
                        "timeouts:\n"
                        "  connect: 5s   # fast\n"
                        "  tls: \"10s\"\n"
                        "resolve:\n"
                        "  a.example:443: 127.0.0.1\n"
                        "  \"*.b\": \"127.0.0.1:80\"\n"
                        "intercept:\n"
                        "  hosts:\n"
                        "    - a\n"
                        "    - b\n"
                        "retry: {services: {s3: {mode: off}}}\n"));
    assert_setting(0, "listen[0]", "127.0.0.1:8199", 2);
    assert_setting(1, "listen[1]", "[::1]:0", 2);
    assert_setting(2, "timeouts.connect", "5s", 4);
    assert_setting(3, "timeouts.tls", "10s", 5);
    assert_setting(4, "resolve.a.example:443", "127.0.0.1", 7);
    assert_setting(5, "resolve.*.b", "127.0.0.1:80", 8);
    assert_setting(6, "intercept.hosts[0]", "a", 11);
    assert_setting(7, "intercept.hosts[1]", "b", 12);
    assert_setting(8, "retry.services.s3.mode", "off", 13);
    ck_assert_uint_eq(settings.n, 9);
}
END_TEST

START_TEST(nothing_and_null)
{
    ck_assert(read_text("") && read_text("# only this\n") && read_text("---\n") && read_text("{}"));
    ck_assert_uint_eq(settings.n, 0);
    ck_assert(read_text("a:\nb: ~\nc: null\nd: \"null\"\ne: []\nf: {}\ng: ''\n"));
    assert_setting(0, "a", "", 1);
    assert_setting(1, "b", "", 2);
    assert_setting(2, "c", "", 3);
    assert_setting(3, "d", "null", 4);
    assert_setting(4, "e", "[]", 5);
    assert_setting(5, "f", "{}", 6);
    assert_setting(6, "g", "", 7);
}
END_TEST

static const struct {
    const char *text, *problem;
} refused[] = {
    {"a: 1\nb: 2\na: 3\n", "f.yaml:3: a: given twice; keep one"},
    {"t:\n  a: 1\n  a: 2\n", "f.yaml:3: t.a: given twice; keep one"},
    {"a: &x 1\n", "f.yaml:1: a: anchors (&) are not allowed; write it out"},
    {"a: &x [1]\n", "f.yaml:1: a: anchors (&) are not allowed; write it out"},
    {"a: &x {b: 1}\n", "f.yaml:1: a: anchors (&) are not allowed; write it out"},
    {"&x a: 1\n", "f.yaml:1: a: anchors (&) are not allowed; write it out"},
    {"b: *x\n", "f.yaml:1: b: aliases (*) are not allowed; write it out"},
    {"a: !!str 1\n", "f.yaml:1: a: tags (!) are not allowed; give the value alone"},
    {"a: !x [1]\n", "f.yaml:1: a: tags (!) are not allowed; give the value alone"},
    {"a: 1\n---\nb: 2\n", "f.yaml:2: a second document; one is allowed"},
    {"[a]\n", "f.yaml:1: the file must be a mapping, one \"key: value\" a line"},
    {"a\n", "f.yaml:1: the file must be a mapping, one \"key: value\" a line"},
    {"? [a]\n: b\n", "f.yaml:1: a key must be a word"},
    {"a.b: 1\n", "f.yaml:1: not a key: letters, digits, \"_\" and \"-\" only"},
    {"'a[0]': 1\n", "f.yaml:1: not a key: letters, digits, \"_\" and \"-\" only"},
    {"'': 1\n", "f.yaml:1: not a key: letters, digits, \"_\" and \"-\" only"},
    {"resolve: {'a b': 1}\n", "f.yaml:1: not a key: letters, digits, \"_\" and \"-\" only"},
    {"a: [1\nb: 2\n", "f.yaml:2: not YAML: did not find expected ',' or ']'"},
    {"a: 1\n b: 2\n", "f.yaml:2: not YAML: mapping values are not allowed in this context"},
    {"a: \xff\n", "f.yaml: not a text in UTF-8: invalid leading UTF-8 octet at byte 3"},
    {"a: [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]\n", "f.yaml:1: nested too deeply; 16 levels at most"},
};

START_TEST(refuses)
{
    ck_assert(!read_text(refused[_i].text));
    ck_assert_uint_eq(problems.n, 1);
    ck_assert_str_eq(problems.v[0].text, refused[_i].problem);
}
END_TEST

START_TEST(sixteen_levels_are_fine)
{
    ck_assert(read_text("a: [[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]\n"));
    ck_assert_uint_eq(settings.n, 1);
}
END_TEST

START_TEST(several_problems_at_once)
{
    ck_assert(!read_text("a: &x 1\nb: *x\nb: !t 2\n"));
    ck_assert_uint_eq(problems.n, 4);
    /* and the values are there to be checked, too */
    ck_assert_uint_eq(settings.n, 2);
}
END_TEST

/* An alias bomb costs nothing: aliases are never followed. */
START_TEST(alias_bomb)
{
    ck_assert(!read_text("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n"
                         "c: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c]\n"));
    ck_assert_uint_eq(settings.n, 9);
}
END_TEST

START_TEST(too_much)
{
    enum { BYTES = 1024 * 1024 };
    char *text = malloc(BYTES + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, '\n', BYTES + 1);
    ck_assert(yamlsrc_text(slice_of(text, BYTES), "f.yaml", &settings, &problems));
    ck_assert(!yamlsrc_text(slice_of(text, BYTES + 1), "f.yaml", &settings, &problems));
    ck_assert_str_eq(problems.v[0].text, "f.yaml: larger than 1 MiB");
    /* many small values */
    memcpy(text, "a: [", 4);
    for (size_t i = 4; i < BYTES; i += 2)
        memcpy(text + i, "1,", 2);
    text[BYTES - 1] = ']';
    ck_assert(!yamlsrc_text(slice_of(text, BYTES), "f.yaml", &settings, &problems));
    ck_assert_str_eq(problems.v[1].text, "f.yaml:1: too many values");
    ck_assert_uint_le(settings.n, SETTINGS_MAX);
    free(text);
}
END_TEST

START_TEST(too_many_keys)
{
    char *text = malloc(3000 * 20), *p = text;
    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < 3000; i++)
        p += snprintf(p, 20, "k%d: {a: 1}\n", i);
    ck_assert(!yamlsrc_text(slice_of(text, (size_t)(p - text)), "f.yaml", &settings, &problems));
    ck_assert_str_eq(problems.v[0].text, "f.yaml:2049: too many keys");
    free(text);
}
END_TEST

START_TEST(too_long_a_key)
{
    char text[600];
    memset(text, 'k', sizeof text);
    memcpy(text + 511, ": 1", 4);
    ck_assert(read_text(text));
    memcpy(text + 511, "k: 1", 5);
    ck_assert(!read_text(text));
    ck_assert_str_eq(problems.v[0].text, "f.yaml:1: a key too long");
}
END_TEST

/* --- files --- */

static char directory[64], path[96];

static void make_directory(void)
{
    setup();
    snprintf(directory, sizeof directory, "/tmp/retryd-yamlsrc.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/f.yaml", directory);
}

static void remove_directory(void)
{
    unlink(path);
    rmdir(directory);
    teardown();
}

static void write_file(const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static const char *file_problem(void)
{
    ck_assert(!yamlsrc_file(path, &settings, &problems));
    ck_assert_uint_eq(problems.n, 1);
    ck_assert_uint_eq(settings.n, 0);
    ck_assert(strncmp(problems.v[0].text, path, strlen(path)) == 0);
    return problems.v[0].text + strlen(path);
}

START_TEST(reads_a_file)
{
    write_file("log: {level: warn}\n", 0640);
    ck_assert(yamlsrc_file(path, &settings, &problems));
    ck_assert_uint_eq(settings.n, 1);
    ck_assert(slice_eq(settings.v[0].origin, slice_str(path)));
}
END_TEST

START_TEST(refuses_a_writable_file)
{
    write_file("log: {level: warn}\n", 0646);
    ck_assert_str_eq(file_problem(), ": anyone may write it; chmod o-w");
}
END_TEST

START_TEST(refuses_a_foreign_file)
{
    if (geteuid() != 0)
        return; /* only root can give a file away */
    write_file("log: {level: warn}\n", 0644);
    ck_assert_int_eq(chown(path, 12345, 0), 0);
    ck_assert_str_eq(file_problem(),
                     ": belongs to another user; root or the user of retryd must own it");
}
END_TEST

START_TEST(refuses_what_is_no_file)
{
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_str_eq(file_problem(), ": not a regular file");
}
END_TEST

START_TEST(says_what_is_missing)
{
    ck_assert_str_eq(file_problem(), ": No such file or directory");
}
END_TEST

START_TEST(refuses_a_huge_file)
{
    write_file("", 0600);
    ck_assert_int_eq(truncate(path, 1024 * 1024 + 1), 0);
    ck_assert_str_eq(file_problem(), ": larger than 1 MiB");
}
END_TEST

/* --- conf/retryd.yaml --- */

static size_t element_bytes(enum option_type type)
{
    switch (type) {
    case OPTION_LISTEN:
        return sizeof(struct authority);
    case OPTION_PORTS:
    case OPTION_BUDGET_PARTS:
        return sizeof(uint16_t);
    default:
        return 0; /* empty by default: the count says all */
    }
}

static void assert_same(const struct option *o, const struct config *a, const struct config *b)
{
    const char *x = (const char *)a + o->offset, *y = (const char *)b + o->offset;
    if (o->kind != OPTION_KIND_VALUE) {
        size_t n = *(const size_t *)((const char *)a + o->n_offset);
        ck_assert_uint_eq(n, *(const size_t *)((const char *)b + o->n_offset));
        ck_assert(n == 0 || element_bytes(o->type) > 0);
        if (n)
            ck_assert_mem_eq(*(const void *const *)x, *(const void *const *)y,
                             n * element_bytes(o->type));
    } else if (o->type == OPTION_PATH) {
        ck_assert_pstr_eq(*(char *const *)x, *(char *const *)y);
    } else if (o->type == OPTION_DURATION || o->type == OPTION_SIZE) {
        ck_assert_msg(memcmp(x, y, sizeof(int64_t)) == 0, "%s", o->path);
    } else {
        ck_assert_msg(memcmp(x, y, o->type == OPTION_BOOL ? sizeof(bool) : sizeof(int)) == 0, "%s",
                      o->path);
    }
}

START_TEST(shipped_file_gives_the_defaults)
{
    static char text[256 * 1024];
    FILE *f = fopen(TEST_DATA_DIR "/../conf/retryd.yaml", "r");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    struct settings none;
    settings_init(&none);
    ck_assert(yamlsrc_text(slice_of(text, n), "conf/retryd.yaml", &settings, &problems));
    struct config *shipped = config_build(&settings, "/state", &problems);
    struct config *built_in = config_build(&none, "/state", &problems);
    ck_assert_ptr_nonnull(shipped);
    ck_assert_ptr_nonnull(built_in);
    for (size_t i = 0; i < option_table_n; i++)
        assert_same(&option_table[i], shipped, built_in);
    config_free(shipped);
    config_free(built_in);
    settings_fini(&none);
}
END_TEST

static TCase *tcase_text(void)
{
    TCase *t = tcase_create("text");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, paths_and_lines);
    tcase_add_test(t, nothing_and_null);
    tcase_add_loop_test(t, refuses, 0, (int)(sizeof refused / sizeof refused[0]));
    tcase_add_test(t, sixteen_levels_are_fine);
    tcase_add_test(t, several_problems_at_once);
    tcase_add_test(t, alias_bomb);
    tcase_add_test(t, too_much);
    tcase_add_test(t, too_many_keys);
    tcase_add_test(t, too_long_a_key);
    tcase_add_test(t, shipped_file_gives_the_defaults);
    return t;
}

static TCase *tcase_file(void)
{
    TCase *t = tcase_create("file");
    tcase_add_checked_fixture(t, make_directory, remove_directory);
    tcase_add_test(t, reads_a_file);
    tcase_add_test(t, refuses_a_writable_file);
    tcase_add_test(t, refuses_a_foreign_file);
    tcase_add_test(t, refuses_what_is_no_file);
    tcase_add_test(t, says_what_is_missing);
    tcase_add_test(t, refuses_a_huge_file);
    return t;
}

UNIT_MAIN("yamlsrc", tcase_text, tcase_file)
