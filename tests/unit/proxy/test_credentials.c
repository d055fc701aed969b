/* A credentials file: its lines, and checks against it. The hashes are of crypt(3) itself. */
#include "core/base/units.h"
#include "proxy/credentials.h"
#include "unit.h"

#include <crypt.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char path[64];

static void write_file(const char *text, mode_t mode)
{
    snprintf(path, sizeof path, "/tmp/test_credentials.%d", (int)getpid());
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static void remove_file(void)
{
    unlink(path);
}

static char *hash_of(const char *password, const char *setting)
{
    static struct crypt_data work;
    char *h = crypt_r(password, setting, &work);
    ck_assert_ptr_nonnull(h);
    return h;
}

static const char *basic(const char *pair)
{
    static char value[1024];
    memcpy(value, "Basic ", 6);
    EVP_EncodeBlock((unsigned char *)value + 6, (const unsigned char *)pair, (int)strlen(pair));
    return value;
}

static struct credentials *two(void)
{
    char text[512];
    struct err err = {""};
    int n =
        snprintf(text, sizeof text, "# who may\n\nann:%s\r\n", hash_of("secret", "$6$saltsalt$"));
    snprintf(text + n, sizeof text - (size_t)n, "b%%b b:%s", hash_of("pass:word", "$5$saltsalt$"));
    write_file(text, 0640);
    struct credentials *c = credentials_read(path, &err);
    ck_assert_msg(c != NULL, "%s", err.text);
    return c;
}

static enum credentials_verdict check(struct credentials *c, const char *pair, int64_t now,
                                      const char **name)
{
    *name = NULL;
    return credentials_check(c, slice_str(basic(pair)), now, name);
}

START_TEST(tells_them_apart)
{
    struct credentials *c = two();
    const char *name;
    for (int again = 0; again < 3; again++) {
        ck_assert_int_eq(check(c, "ann:secret", NS_PER_S, &name), CREDENTIALS_GOOD);
        ck_assert_str_eq(name, "ann");
        ck_assert_int_eq(check(c, "b%b b:pass:word", NS_PER_S, &name), CREDENTIALS_GOOD);
        ck_assert_str_eq(name, "b%b b");
        ck_assert_int_eq(check(c, "ann:pass:word", NS_PER_S, &name), CREDENTIALS_WRONG);
        ck_assert_int_eq(check(c, "ann:", NS_PER_S, &name), CREDENTIALS_WRONG);
        ck_assert_int_eq(check(c, "Ann:secret", NS_PER_S, &name), CREDENTIALS_WRONG);
        ck_assert_int_eq(check(c, "eve:secret", NS_PER_S, &name), CREDENTIALS_WRONG);
        ck_assert_int_eq(check(c, ":", NS_PER_S, &name), CREDENTIALS_WRONG);
        ck_assert_ptr_null(name);
    }
    ck_assert_int_eq(credentials_check(c, SLICE_NONE, NS_PER_S, &name), CREDENTIALS_WRONG);
    ck_assert_int_eq(credentials_check(c, SLICE("Bearer x"), NS_PER_S, &name), CREDENTIALS_WRONG);
    credentials_free(c);
}
END_TEST

static int64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* The second check of a pair is a look, good or bad: a thousandth of the hash's time at most. */
START_TEST(a_hash_costs_once)
{
    struct credentials *c = two();
    const char *name, *const pairs[] = {"ann:secret", "ann:wrong"};
    for (size_t p = 0; p < 2; p++) {
        int64_t start = cpu_ns();
        check(c, pairs[p], NS_PER_S, &name);
        int64_t once = cpu_ns() - start;
        start = cpu_ns();
        for (int i = 0; i < 50; i++)
            check(c, pairs[p], NS_PER_S, &name);
        ck_assert_int_lt((cpu_ns() - start) / 50, once / 4);
    }
    credentials_free(c);
}
END_TEST

/* Guessing uses up its share; those that are known go on, and new ones when time has passed. */
START_TEST(guesses_have_a_share)
{
    struct credentials *c = two();
    const char *name;
    char pair[32];
    int64_t start = cpu_ns();
    enum credentials_verdict v = CREDENTIALS_WRONG;
    ck_assert_int_eq(check(c, "ann:secret", NS_PER_S, &name), CREDENTIALS_GOOD);
    unsigned n = 0;
    for (; n < 100000 && v == CREDENTIALS_WRONG; n++) {
        snprintf(pair, sizeof pair, "x%u:y", n);
        v = check(c, pair, NS_PER_S, &name);
    }
    ck_assert_int_eq(v, CREDENTIALS_BUSY);
    ck_assert_int_lt(cpu_ns() - start, 5 * NS_PER_S);
    ck_assert_int_eq(check(c, "ann:secret", NS_PER_S, &name), CREDENTIALS_GOOD);
    ck_assert_int_eq(check(c, "b%b b:pass:word", NS_PER_S, &name), CREDENTIALS_BUSY);
    ck_assert_int_eq(check(c, "b%b b:pass:word", 60 * NS_PER_S, &name), CREDENTIALS_GOOD);
    credentials_free(c);
}
END_TEST

static const struct {
    const char *text;
    mode_t mode;
    const char *said;
} bad[] = {
    {"", 0600, ": no line NAME:HASH"},
    {"# nothing\n", 0600, ": no line NAME:HASH"},
    {"ann\n", 0600, ":1: no NAME:HASH"},
    {"\n:$6$saltsalt$x\n", 0600, ":2: a name has"},
    {"a\tb:$6$saltsalt$x\n", 0600, ":1: a name has"},
    {"ann:secret\n", 0600, ":1: no hash by"},
    {"ann:\n", 0600, ":1: no hash by"},
    {"ann:$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/\n", 0600, ":1: no hash by"},
    {"ann:rqXexS6ZhobKA\n", 0600, ":1: no hash by"},
    {"ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n", 0600, ":1: no hash by"},
    {"ann:$6$s$x\nann:$6$s$y\n", 0600, ":2: this name has a line already"},
    {"ann:$6$s$x\n", 0604, ": others may read or write it"},
    {"ann:$6$s$x\n", 0602, ": others may read or write it"},
};

START_TEST(says_what_is_wrong)
{
    struct err err = {""};
    write_file(bad[_i].text, bad[_i].mode);
    ck_assert_ptr_null(credentials_read(path, &err));
    ck_assert_msg(strstr(err.text, path) == err.text && strstr(err.text, bad[_i].said), "%s",
                  err.text);
    ck_assert_ptr_null(strstr(err.text, "secret"));
}
END_TEST

START_TEST(no_file)
{
    struct err err = {""};
    ck_assert_ptr_null(credentials_read("/nonexistent/file", &err));
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent/file: No such"));
}
END_TEST

static TCase *cases(void)
{
    TCase *tc = tcase_create("credentials");
    tcase_add_checked_fixture(tc, NULL, remove_file);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, tells_them_apart);
    tcase_add_test(tc, a_hash_costs_once);
    tcase_add_test(tc, guesses_have_a_share);
    tcase_add_loop_test(tc, says_what_is_wrong, 0, (int)(sizeof bad / sizeof bad[0]));
    tcase_add_test(tc, no_file);
    return tc;
}

UNIT_MAIN("credentials", cases)
