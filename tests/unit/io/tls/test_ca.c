/* The authority's directory: what is made, what is kept, what is refused, and what survives damage,
 * crashes and company (security requirements H1-H6). */
#include "tlsfix.h"

#include <signal.h>
#include <sys/wait.h>

static time_t now;
static struct err note, err;

static void setup(void)
{
    fix_setup();
    now = time(NULL);
}

/* Opens fix_dir/ca with the usual names. NULL is for the caller to judge. */
static struct ca *try_open(time_t at)
{
    note = err = (struct err){""};
    return ca_open(fix_path("ca"), fix_names, 2, false, at, &note, &err);
}

/* A working authority, whatever was there before. */
static struct ca *must_open(time_t at)
{
    struct ca *ca = try_open(at);
    ck_assert_msg(ca != NULL, "%s", err.text);
    ck_assert_int_eq(fix_verify(ca_intermediate(ca), NULL, ca_root(ca), at), X509_V_OK);
    ck_assert_int_eq(X509_check_private_key(ca_intermediate(ca), ca_key(ca)), 1);
    return ca;
}

/* The root that is in force after opening, to be freed by the caller. */
static X509 *open_for_root(void)
{
    struct ca *ca = must_open(now);
    X509 *root = X509_dup(ca_root(ca));
    ca_free(ca);
    return root;
}

static unsigned mode_of(const char *name)
{
    struct stat st;
    ck_assert_msg(lstat(fix_path(name), &st) == 0, "%s", name);
    ck_assert_uint_eq(st.st_uid, geteuid());
    return st.st_mode & 07777;
}

START_TEST(modes_whatever_the_umask)
{
    static const mode_t masks[] = {0, 022, 077};
    umask(masks[_i]);
    ca_free(must_open(now));
    ck_assert_uint_eq(mode_of("ca"), 0755);
    ck_assert_uint_eq(mode_of("ca/ca.pem"), 0644);
    ck_assert_uint_eq(mode_of("ca/chain.pem"), 0644);
    ck_assert_uint_eq(mode_of("ca/ca-bundle.pem"), 0644);
    ck_assert_uint_eq(mode_of("ca/names"), 0644);
    ck_assert_uint_eq(mode_of("ca/private"), 0700);
    ck_assert_uint_eq(mode_of("ca/private/intermediate.key"), 0600);
}
END_TEST

START_TEST(paths_and_parents)
{
    struct ca *ca = ca_open(fix_path("x/y/ca"), fix_names, 2, false, now, &note, &err);
    ck_assert_msg(ca != NULL, "%s", err.text);
    ck_assert_str_eq(ca_root_path(ca), fix_path("x/y/ca/ca.pem"));
    ck_assert_str_eq(ca_bundle_path(ca), fix_path("x/y/ca/ca-bundle.pem"));
    ck_assert_int_eq(access(ca_bundle_path(ca), R_OK), 0);
    ca_free(ca);
}
END_TEST

START_TEST(names_file_is_for_people)
{
    char text[256];
    ca_free(must_open(now));
    fix_read(fix_path("ca/names"), text, sizeof text);
    ck_assert_str_eq(text, "DNS:amazonaws.com\nDNS:api.aws\nIP:none\n");
}
END_TEST

/* --- the certificates --- */

static void has_critical(X509 *x, int nid)
{
    int critical = -1;
    void *ext = X509_get_ext_d2i(x, nid, &critical, NULL);
    ck_assert_msg(ext != NULL && critical == 1, "%s", OBJ_nid2sn(nid));
    if (nid == NID_basic_constraints)
        BASIC_CONSTRAINTS_free(ext);
    else if (nid == NID_name_constraints)
        NAME_CONSTRAINTS_free(ext);
    else
        ASN1_BIT_STRING_free(ext);
}

static void check_life(X509 *x)
{
    int days, seconds;
    ck_assert_int_eq(ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(x), X509_get0_notAfter(x)),
                     1);
    ck_assert_int_le(days * DAY_S + seconds, 397 * DAY_S);
    ck_assert_int_ge(days, 390);
}

START_TEST(root_fields)
{
    char cn[80], host[64], date[16];
    struct tm tm;
    struct ca *ca = must_open(now);
    X509 *root = ca_root(ca);
    has_critical(root, NID_basic_constraints);
    has_critical(root, NID_key_usage);
    ck_assert_uint_eq(X509_get_key_usage(root), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
    ck_assert_ptr_nonnull(X509_get0_subject_key_id(root));
    ck_assert_int_eq(EVP_PKEY_get_bits(X509_get0_pubkey(root)), 256);
    ck_assert_int_eq(X509_get_signature_nid(root), NID_ecdsa_with_SHA256);
    check_life(root);
    /* H6: what, where, when. */
    X509_NAME_get_text_by_NID(X509_get_subject_name(root), NID_commonName, cn, sizeof cn);
    gethostname(host, sizeof host);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &tm));
    ck_assert_msg(strncmp(cn, "retryd root ", 12) == 0, "%s", cn);
    size_t n = strlen(host) < 41 ? strlen(host) : 41; /* as much as fits */
    ck_assert_msg(strncmp(cn + 12, host, n) == 0, "%s", cn);
    ck_assert_str_eq(cn + strlen(cn) - strlen(date), date);
    ca_free(ca);
}
END_TEST

START_TEST(intermediate_fields)
{
    struct ca *ca = must_open(now);
    X509 *im = ca_intermediate(ca);
    has_critical(im, NID_basic_constraints);
    has_critical(im, NID_key_usage);
    has_critical(im, NID_name_constraints);
    ck_assert_int_eq(X509_get_pathlen(im), 0);
    ck_assert_uint_eq(X509_get_key_usage(im), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
    ck_assert_uint_eq(X509_get_extended_key_usage(im), XKU_SSL_SERVER);
    ck_assert_int_eq(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(im),
                                           X509_get0_subject_key_id(ca_root(ca))),
                     0);
    check_life(im);
    ck_assert_int_eq(ASN1_STRING_cmp(X509_get0_notAfter(im), X509_get0_notAfter(ca_root(ca))), 0);
    ck_assert_int_eq(X509_cmp_time(X509_get0_notAfter(im), &(time_t){ca_end(ca) + 1}), -1);
    ck_assert_int_eq(X509_cmp_time(X509_get0_notBefore(im), &(time_t){ca_begin(ca) - 1}), 1);
    ca_free(ca);
}
END_TEST

static int count_subtrees(STACK_OF(GENERAL_SUBTREE) * list, int type)
{
    int n = 0;
    for (int i = 0; i < sk_GENERAL_SUBTREE_num(list); i++)
        n += sk_GENERAL_SUBTREE_value(list, i)->base->type == type;
    return n;
}

START_TEST(constraints_with_and_without_addresses)
{
    struct ca *ca = fix_ca("c", _i == 1, now);
    NAME_CONSTRAINTS *nc = X509_get_ext_d2i(ca_intermediate(ca), NID_name_constraints, NULL, NULL);
    ck_assert_int_eq(count_subtrees(nc->permittedSubtrees, GEN_DNS), 2);
    ck_assert_int_eq(count_subtrees(nc->excludedSubtrees, GEN_IPADD), _i == 1 ? 0 : 2);
    NAME_CONSTRAINTS_free(nc);
    ca_free(ca);
}
END_TEST

/* Only addresses are intercepted: then no name at all may be signed for. */
START_TEST(addresses_alone)
{
    struct ca *ca = ca_open(fix_path("c"), NULL, 0, true, now, &note, &err);
    ck_assert_msg(ca != NULL, "%s", err.text);
    NAME_CONSTRAINTS *nc = X509_get_ext_d2i(ca_intermediate(ca), NID_name_constraints, NULL, NULL);
    ck_assert_int_eq(count_subtrees(nc->permittedSubtrees, GEN_DNS), 1);
    ck_assert(ca_permits(ca, "10.0.0.1", true));
    ck_assert(!ca_permits(ca, "amazonaws.com", false));
    NAME_CONSTRAINTS_free(nc);
    ca_free(ca);
}
END_TEST

START_TEST(two_installs_share_nothing)
{
    struct ca *a = fix_ca("a", false, now), *b = fix_ca("b", false, now);
    ck_assert_int_ne(EVP_PKEY_eq(ca_key(a), ca_key(b)), 1);
    ck_assert_int_ne(EVP_PKEY_eq(X509_get0_pubkey(ca_root(a)), X509_get0_pubkey(ca_root(b))), 1);
    ck_assert_int_ne(
        ASN1_INTEGER_cmp(X509_get0_serialNumber(ca_root(a)), X509_get0_serialNumber(ca_root(b))),
        0);
    ca_free(a);
    ca_free(b);
}
END_TEST

static int keys_seen;

static int on_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    static char text[1 << 20];
    (void)st, (void)ftw;
    if (type == FTW_F) {
        fix_read(path, text, sizeof text);
        keys_seen += strstr(text, "PRIVATE KEY-----\n") != NULL;
    }
    return 0;
}

START_TEST(root_key_is_nowhere)
{
    struct ca *ca = must_open(now);
    keys_seen = 0;
    ck_assert_int_eq(nftw(fix_path("ca"), on_file, 8, FTW_PHYS), 0);
    ck_assert_int_eq(keys_seen, 1);
    ck_assert_int_ne(X509_check_private_key(ca_root(ca), ca_key(ca)), 1);
    ca_free(ca);
}
END_TEST

/* --- kept or made anew --- */

static void expect_root(X509 *before, const char *dir, const struct slice *names, size_t n, bool ip,
                        time_t at, bool same)
{
    note = err = (struct err){""};
    struct ca *ca = ca_open(fix_path(dir), names, n, ip, at, &note, &err);
    ck_assert_msg(ca != NULL, "%s", err.text);
    ck_assert_int_eq(X509_cmp(before, ca_root(ca)) == 0, same);
    ck_assert_msg((note.text[0] == '\0') == same, "note: %s", note.text);
    ca_free(ca);
}

START_TEST(same_names_keep_it)
{
    static const struct slice again[] = {{"API.aws", 7}, {"amazonaws.com", 13}, {"api.aws", 7}};
    X509 *root = open_for_root();
    expect_root(root, "ca", fix_names, 2, false, now, true);
    expect_root(root, "ca", again, 3, false, now + DAY_S, true);
    X509_free(root);
}
END_TEST

START_TEST(other_names_renew_it)
{
    static const struct slice more[] = {{"amazonaws.com", 13}, {"api.aws", 7}, {"s3.test", 7}};
    X509 *root = open_for_root();
    if (_i == 0)
        expect_root(root, "ca", more, 3, false, now, false);
    else if (_i == 1)
        expect_root(root, "ca", more, 1, false, now, false);
    else
        expect_root(root, "ca", fix_names, 2, true, now, false);
    ck_assert_ptr_nonnull(strstr(note.text, "names changed"));
    ck_assert_ptr_nonnull(strstr(note.text, "ca.pem"));
    X509_free(root);
}
END_TEST

START_TEST(near_the_end_renews_it)
{
    X509 *root = open_for_root();
    expect_root(root, "ca", fix_names, 2, false, now + (time_t)365 * DAY_S, true);
    expect_root(root, "ca", fix_names, 2, false, now + (time_t)367 * DAY_S, false);
    ck_assert_ptr_nonnull(strstr(note.text, "expire"));
    X509_free(root);
}
END_TEST

/* --- refused --- */

static void expect_refused(struct ca *ca, const char *word)
{
    ck_assert_ptr_null(ca);
    ck_assert_msg(strstr(err.text, word) != NULL, "\"%s\" not in: %s", word, err.text);
    ck_assert_ptr_null(strchr(err.text, '\n'));
}

/* Clients trust the root of a running retryd: another one with other names must not take it away.
 */
START_TEST(in_use_is_not_replaced)
{
    struct ca *user = must_open(now);
    X509 *root = X509_dup(ca_root(user));
    struct slice other[] = {SLICE("example.com")};
    note = err = (struct err){""};
    ck_assert_ptr_null(ca_open(fix_path("ca"), other, 1, false, now, &note, &err));
    ck_assert_msg(strstr(err.text, "a running retryd uses it") != NULL, "%s", err.text);
    struct ca *second = must_open(now); /* the same names: company is welcome */
    ck_assert_int_eq(X509_cmp(ca_root(second), root), 0);
    ca_free(second);
    /* Near its end it will do, until nobody uses it. */
    second = must_open(ca_end(user) - 86400);
    ck_assert_int_eq(X509_cmp(ca_root(second), root), 0);
    ca_free(second);
    ca_free(user);
    second = ca_open(fix_path("ca"), other, 1, false, now, &note, &err);
    ck_assert_msg(second != NULL, "%s", err.text);
    ck_assert_int_ne(X509_cmp(ca_root(second), root), 0);
    ck_assert_str_ne(note.text, "");
    ca_free(second);
    X509_free(root);
}
END_TEST

START_TEST(clock_off)
{
    X509 *root = open_for_root();
    expect_refused(try_open(now - DAY_S), "clock");
    expect_refused(try_open(1000000000), "clock");
    expect_root(root, "ca", fix_names, 2, false, now, true);
    X509_free(root);
}
END_TEST

START_TEST(open_hands)
{
    static const struct {
        const char *name;
        mode_t mode, good;
        const char *advice;
    } cases[] = {
        {"ca/private/intermediate.key", 0640, 0600, "chmod go-rwx"},
        {"ca/private/intermediate.key", 0604, 0600, "chmod go-rwx"},
        {"ca/private", 0750, 0700, "chmod go-rwx"},
        {"ca", 0775, 0755, "chmod go-w"},
        {"ca", 0757, 0755, "chmod go-w"},
    };
    X509 *root = open_for_root();
    ck_assert_int_eq(chmod(fix_path(cases[_i].name), cases[_i].mode), 0);
    expect_refused(try_open(now), cases[_i].advice);
    ck_assert_ptr_nonnull(strstr(err.text, fix_path(cases[_i].name)));
    ck_assert_int_eq(chmod(fix_path(cases[_i].name), cases[_i].good), 0);
    expect_root(root, "ca", fix_names, 2, false, now, true);
    X509_free(root);
}
END_TEST

/* A key that is no plain file of ours is not followed, and nothing is made in its place. */
START_TEST(key_is_a_link)
{
    const char *key = fix_path("ca/private/intermediate.key");
    X509_free(open_for_root());
    ck_assert_int_eq(rename(key, fix_path("elsewhere")), 0);
    ck_assert_int_eq(symlink(fix_path("elsewhere"), key), 0);
    expect_refused(try_open(now), "intermediate.key");
    ck_assert_int_eq(unlink(key), 0);
    ck_assert_int_eq(mkfifo(key, 0600), 0);
    expect_refused(try_open(now), "intermediate.key");
}
END_TEST

/* Only root can give a file away; others see the same rule with root's own directory. */
START_TEST(foreign_owner)
{
    X509_free(open_for_root());
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(fix_path("ca/private/intermediate.key"), 12345, 12345), 0);
        expect_refused(try_open(now), "belongs to user 12345");
    } else {
        note = err = (struct err){""};
        expect_refused(ca_open("/", fix_names, 2, false, now, &note, &err), "/");
    }
}
END_TEST

START_TEST(bad_names)
{
    static const struct slice bad[] = {
        {"", 0},
        {".amazonaws.com", 14},
        {"amazonaws.com.", 14},
        {"*.amazonaws.com", 15},
        {"a..b", 4},
        {"a b", 3},
        {"a,DNS:b", 7},
        {"a\0b", 3},
        {"\xc3\xa9", 2},
    };
    note = err = (struct err){""};
    expect_refused(ca_open(fix_path("ca"), &bad[_i], 1, false, now, &note, &err),
                   "not a host name");
    expect_refused(ca_open(fix_path("ca"), NULL, 0, false, now, &note, &err), "at least one name");
    ck_assert_int_ne(access(fix_path("ca"), F_OK), 0);
}
END_TEST

START_TEST(no_place_for_it)
{
    fix_write(fix_path("ca"), "x", 1);
    expect_refused(try_open(now), "/ca");
}
END_TEST

/* --- damage --- */

enum damage { REMOVED, EMPTY, HALVED, FOREIGN, N_DAMAGES };

static const char *const files[] = {"ca.pem", "chain.pem", "private/intermediate.key", "names",
                                    "ca-bundle.pem"};
#define N_FILES 5

static void damage(const char *file, enum damage how)
{
    static char text[1 << 20];
    char path[160], other[160];
    snprintf(path, sizeof path, "%s/ca/%s", fix_dir, file);
    snprintf(other, sizeof other, "%s/other/%s", fix_dir, file);
    if (how == REMOVED) {
        ck_assert_int_eq(unlink(path), 0);
        return;
    }
    size_t n = fix_read(how == FOREIGN ? other : path, text, sizeof text);
    fix_write(path, text, how == EMPTY ? 0 : how == HALVED ? n / 2 : n);
}

/* Every file, every damage: afterwards there is a whole authority, and it stays. A new root is
 * announced; files that only repeat what is known are repaired in silence. */
START_TEST(damaged_file)
{
    const char *file = files[_i / N_DAMAGES];
    bool fatal = _i / N_DAMAGES < 3;
    X509 *root = open_for_root();
    ca_free(fix_ca("other", true, now));
    damage(file, (enum damage)(_i % N_DAMAGES));
    expect_root(root, "ca", fix_names, 2, false, now, !fatal);
    if (fatal)
        ck_assert_ptr_nonnull(strstr(note.text, "trust the new"));
    X509_free(root);
    root = open_for_root();
    expect_root(root, "ca", fix_names, 2, false, now, true);
    /* Repaired files say what they should. */
    static char bundle[1 << 20], pem[65536];
    fix_read(fix_path("ca/ca.pem"), pem, sizeof pem);
    fix_read(fix_path("ca/ca-bundle.pem"), bundle, sizeof bundle);
    ck_assert_ptr_nonnull(strstr(bundle, pem));
    fix_read(fix_path("ca/names"), bundle, sizeof bundle);
    ck_assert_str_eq(bundle, "DNS:amazonaws.com\nDNS:api.aws\nIP:none\n");
    X509_free(root);
}
END_TEST

START_TEST(leftovers_of_a_crash)
{
    X509 *root = open_for_root();
    fix_write(fix_path("ca/ca.pem.tmp"), "junk", 4);
    ck_assert_int_eq(symlink("/etc/passwd", fix_path("ca/private/intermediate.key.tmp")), 0);
    expect_root(root, "ca", fix_names, 2, true, now, false);
    ck_assert_int_ne(access(fix_path("ca/ca.pem.tmp"), F_OK), 0);
    ck_assert_uint_eq(mode_of("ca/private/intermediate.key"), 0600);
    X509_free(root);
}
END_TEST

/* Killed after a growing number of microseconds, somewhere in the middle of making an authority. */
START_TEST(killed_at_any_moment)
{
    enum { KILLS = 60, STEP_US = 150 };
    for (int i = 0; i < KILLS; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            try_open(now);
            _exit(0);
        }
        usleep((useconds_t)(i * STEP_US));
        kill(child, SIGKILL);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        ca_free(must_open(now));
        ck_assert_uint_eq(mode_of("ca/private/intermediate.key"), 0600);
        fix_remove(fix_path("ca"));
    }
}
END_TEST

/* Four processes that start together agree on one authority. */
START_TEST(started_together)
{
    enum { STARTERS = 4 };
    unsigned char prints[STARTERS][32];
    int go[2], result[2];
    char byte;
    ck_assert_int_eq(pipe(go), 0);
    ck_assert_int_eq(pipe(result), 0);
    for (int i = 0; i < STARTERS; i++) {
        if (fork() != 0)
            continue;
        unsigned char print[32] = {0};
        unsigned n = sizeof print;
        close(go[1]);
        if (read(go[0], &byte, 1) == 0) {
            struct ca *ca = try_open(now);
            if (ca != NULL && X509_check_private_key(ca_intermediate(ca), ca_key(ca)) == 1)
                X509_digest(ca_root(ca), EVP_sha256(), print, &n);
        }
        _exit(write(result[1], print, sizeof print) != sizeof print);
    }
    close(go[1]); /* everybody reads the end of the pipe at once */
    for (int i = 0; i < STARTERS; i++) {
        ck_assert_int_eq(read(result[0], prints[i], 32), 32);
        ck_assert_int_eq(memcmp(prints[i], prints[0], 32), 0);
    }
    ck_assert_int_ne(memcmp(prints[0], (unsigned char[32]){0}, 32), 0);
    while (wait(NULL) > 0)
        ;
    ca_free(must_open(now));
    ck_assert_str_eq(note.text, "");
}
END_TEST

START_TEST(permits_on_label_boundaries)
{
    struct ca *ca = must_open(now);
    static const char *const good[] = {"amazonaws.com", "s3.amazonaws.com", "a.b_c.d-e.api.aws"};
    static const char *const bad[] = {"evilamazonaws.com",
                                      "amazonaws.com.evil.test",
                                      "com",
                                      "xapi.aws",
                                      "*.amazonaws.com",
                                      "",
                                      ".amazonaws.com",
                                      "S3.amazonaws.com",
                                      "a..api.aws",
                                      "s3.amazonaws.com.",
                                      "a b.api.aws",
                                      "a/b.api.aws"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        ck_assert_msg(ca_permits(ca, good[i], false), "%s", good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(!ca_permits(ca, bad[i], false), "%s", bad[i]);
    ck_assert(!ca_permits(ca, "10.0.0.1", true));
    ca_free(ca);
}
END_TEST

static TCase *case_ca(void)
{
    TCase *tc = tcase_create("ca");
    tcase_add_checked_fixture(tc, setup, fix_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, modes_whatever_the_umask, 0, 3);
    tcase_add_test(tc, paths_and_parents);
    tcase_add_test(tc, names_file_is_for_people);
    tcase_add_test(tc, root_fields);
    tcase_add_test(tc, intermediate_fields);
    tcase_add_loop_test(tc, constraints_with_and_without_addresses, 0, 2);
    tcase_add_test(tc, addresses_alone);
    tcase_add_test(tc, two_installs_share_nothing);
    tcase_add_test(tc, root_key_is_nowhere);
    tcase_add_test(tc, same_names_keep_it);
    tcase_add_loop_test(tc, other_names_renew_it, 0, 3);
    tcase_add_test(tc, near_the_end_renews_it);
    tcase_add_test(tc, in_use_is_not_replaced);
    tcase_add_test(tc, clock_off);
    tcase_add_loop_test(tc, open_hands, 0, 5);
    tcase_add_test(tc, key_is_a_link);
    tcase_add_test(tc, foreign_owner);
    tcase_add_loop_test(tc, bad_names, 0, 9);
    tcase_add_test(tc, no_place_for_it);
    tcase_add_loop_test(tc, damaged_file, 0, N_FILES * N_DAMAGES);
    tcase_add_test(tc, leftovers_of_a_crash);
    tcase_add_test(tc, killed_at_any_moment);
    tcase_add_test(tc, started_together);
    tcase_add_test(tc, permits_on_label_boundaries);
    return tc;
}

UNIT_MAIN("ca", case_ca)
