/* ca-bundle.pem: the system's certificates and the root, kept in step with both. */
#include "tlsfix.h"

#include "io/tls/bundle.h"

static struct statedir dir;
static struct cert root;
static struct err note, err;

static void setup(void)
{
    fix_setup();
    root = cert_authority("root", NULL);
    ck_assert_msg(statedir_open(&dir, fix_dir, &err), "%s", err.text);
}

static void teardown(void)
{
    statedir_close(&dir);
    cert_free(&root);
    fix_teardown();
}

static char text[65536];

/* The bundle after a refresh, which must be the system's text followed by the root. */
static void refresh(const char *system_file, const char *system_text)
{
    char pem[8192], want[65536];
    fix_write_cert(fix_path("root.pem"), root.x, false);
    fix_read(fix_path("root.pem"), pem, sizeof pem);
    note = err = (struct err){""};
    ck_assert_msg(bundle_refresh(&dir, system_file, root.x, &note, &err), "%s", err.text);
    fix_read(fix_path(BUNDLE_FILE), text, sizeof text);
    snprintf(want, sizeof want, "%s%s", system_text, pem);
    ck_assert_str_eq(text, want);
}

START_TEST(system_and_root)
{
    fix_write(fix_path("system"), "one\n", 4);
    refresh(fix_path("system"), "one\n");
    ck_assert_str_eq(note.text, "");
    fix_write(fix_path("system"), "one\ntwo", 7);
    refresh(fix_path("system"), "one\ntwo\n");
}
END_TEST

START_TEST(no_system_store)
{
    refresh(_i == 0 ? NULL : fix_path("missing"), "");
    ck_assert_ptr_nonnull(strstr(note.text, "no system trust store"));
}
END_TEST

START_TEST(unchanged_is_not_written)
{
    struct stat before, after;
    fix_write(fix_path("system"), "one\n", 4);
    refresh(fix_path("system"), "one\n");
    ck_assert_int_eq(stat(fix_path(BUNDLE_FILE), &before), 0);
    refresh(fix_path("system"), "one\n");
    ck_assert_int_eq(stat(fix_path(BUNDLE_FILE), &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    fix_write(fix_path("system"), "two\n", 4);
    refresh(fix_path("system"), "two\n");
}
END_TEST

static TCase *case_bundle(void)
{
    TCase *tc = tcase_create("bundle");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, system_and_root);
    tcase_add_loop_test(tc, no_system_store, 0, 2);
    tcase_add_test(tc, unchanged_is_not_written);
    return tc;
}

UNIT_MAIN("bundle", case_bundle)
