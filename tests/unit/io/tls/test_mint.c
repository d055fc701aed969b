/* Leaves: what stands in them, who accepts them, for whom they are not made (security requirements
 * F4, H2, H5; RFC 5280). */
#include "tlsfix.h"

#include "io/tls/mint.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static struct ca *ca;
static EVP_PKEY *key;
static time_t now;
static struct err err;

static void setup(void)
{
    fix_setup();
    now = time(NULL);
    ca = fix_ca("ca", false, now);
    key = mint_key(&err);
    ck_assert_msg(key != NULL, "%s", err.text);
}

static void setup_with_addresses(void)
{
    fix_setup();
    now = time(NULL);
    ca = fix_ca("ca", true, now);
    key = mint_key(&err);
    ck_assert_msg(key != NULL, "%s", err.text);
}

static void teardown(void)
{
    EVP_PKEY_free(key);
    ca_free(ca);
    fix_teardown();
}

static X509 *leaf_for(const char *host, bool is_ip)
{
    time_t end;
    X509 *leaf = mint_leaf(ca, key, host, is_ip, now, &end, &err);
    ck_assert_msg(leaf != NULL, "%s", err.text);
    ck_assert_int_eq(fix_verify(leaf, ca_intermediate(ca), ca_root(ca), now), X509_V_OK);
    return leaf;
}

/* The one SAN. */
static GENERAL_NAMES *only_san(X509 *leaf, int *critical)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(leaf, NID_subject_alt_name, critical, NULL);
    ck_assert_ptr_nonnull(names);
    ck_assert_int_eq(sk_GENERAL_NAME_num(names), 1);
    return names;
}

START_TEST(leaf_fields)
{
    static const int expected[] = {NID_basic_constraints,
                                   NID_key_usage,
                                   NID_ext_key_usage,
                                   NID_subject_key_identifier,
                                   NID_authority_key_identifier,
                                   NID_subject_alt_name};
    const char *host = "examplebucket.s3.us-east-1.amazonaws.com";
    X509 *leaf = leaf_for(host, false);
    ck_assert_int_eq(X509_get_version(leaf), X509_VERSION_3);
    ck_assert_int_eq(X509_get_signature_nid(leaf), NID_ecdsa_with_SHA256);
    ck_assert_int_eq(EVP_PKEY_eq(X509_get0_pubkey(leaf), key), 1);
    ck_assert_int_eq(X509_check_ca(leaf), 0);
    ck_assert_uint_eq(X509_get_key_usage(leaf), KU_DIGITAL_SIGNATURE);
    ck_assert_uint_eq(X509_get_extended_key_usage(leaf), XKU_SSL_SERVER);
    ck_assert_int_eq(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(leaf),
                                           X509_get0_subject_key_id(ca_intermediate(ca))),
                     0);
    ck_assert_ptr_nonnull(X509_get0_subject_key_id(leaf));
    /* These extensions and no others: nothing points outside. */
    ck_assert_int_eq(X509_get_ext_count(leaf), (int)ARRAY_LEN(expected));
    for (size_t i = 0; i < ARRAY_LEN(expected); i++)
        ck_assert_int_ge(X509_get_ext_by_NID(leaf, expected[i], -1), 0);

    int critical;
    GENERAL_NAMES *names = only_san(leaf, &critical);
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, 0);
    ck_assert_int_eq(name->type, GEN_DNS);
    ck_assert_int_eq(critical, 0);
    ck_assert_str_eq((const char *)ASN1_STRING_get0_data(name->d.dNSName), host);
    GENERAL_NAMES_free(names);

    char cn[80];
    X509_NAME_get_text_by_NID(X509_get_subject_name(leaf), NID_commonName, cn, sizeof cn);
    ck_assert_str_eq(cn, host);
    X509_free(leaf);
}
END_TEST

/* More labels, more than 64 bytes: the subject is empty, the SAN critical. */
START_TEST(long_name)
{
    const char *host =
        "a.very.long.bucket.name.that.does.not.fit.into.a.common.name.s3.amazonaws.com";
    int critical;
    X509 *leaf = leaf_for(host, false);
    ck_assert_int_eq(X509_NAME_entry_count(X509_get_subject_name(leaf)), 0);
    GENERAL_NAMES_free(only_san(leaf, &critical));
    ck_assert_int_eq(critical, 1);
    ck_assert_int_eq(X509_check_host(leaf, host, 0, 0, NULL), 1);
    X509_free(leaf);
}
END_TEST

START_TEST(names_accepted)
{
    static const char *const hosts[] = {"a.b.c.s3.amazonaws.com", "api.aws", "under_score.api.aws",
                                        "xn--bcher-kva.amazonaws.com", "1.2.3.4.amazonaws.com"};
    X509 *leaf = leaf_for(hosts[_i], false);
    ck_assert_int_eq(X509_check_host(leaf, hosts[_i], 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL),
                     1);
    X509_free(leaf);
}
END_TEST

START_TEST(address)
{
    static const char *const hosts[] = {"10.0.0.1", "2001:db8::1"};
    int critical;
    X509 *leaf = leaf_for(hosts[_i], true);
    GENERAL_NAMES *names = only_san(leaf, &critical);
    ck_assert_int_eq(sk_GENERAL_NAME_value(names, 0)->type, GEN_IPADD);
    ck_assert_int_eq(critical, 1);
    ck_assert_int_eq(X509_check_ip_asc(leaf, hosts[_i], 0), 1);
    ck_assert_int_eq(X509_NAME_entry_count(X509_get_subject_name(leaf)), 0);
    GENERAL_NAMES_free(names);
    X509_free(leaf);
}
END_TEST

START_TEST(not_an_address)
{
    time_t end;
    ck_assert_ptr_null(mint_leaf(ca, key, "10.0.0.1.2", true, now, &end, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "10.0.0.1.2"));
    ck_assert_ptr_null(mint_leaf(ca, key, "amazonaws.com", true, now, &end, &err));
}
END_TEST

START_TEST(outside_the_names)
{
    static const char *const hosts[] = {
        "evilamazonaws.com",      "example.com", "com", "*.amazonaws.com", "",
        "amazonaws.com.evil.test"};
    time_t end;
    ck_assert_ptr_null(mint_leaf(ca, key, hosts[_i], false, now, &end, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "not among the names"));
    ck_assert_ptr_null(mint_leaf(ca, key, "10.0.0.1", true, now, &end, &err));
}
END_TEST

START_TEST(serials)
{
    enum { N = 50 };
    BIGNUM *seen[N];
    int longest = 0;
    for (int i = 0; i < N; i++) {
        X509 *leaf = leaf_for("api.aws", false);
        seen[i] = ASN1_INTEGER_to_BN(X509_get0_serialNumber(leaf), NULL);
        ck_assert_int_eq(BN_is_negative(seen[i]), 0);
        ck_assert_int_eq(BN_is_zero(seen[i]), 0);
        ck_assert_int_le(BN_num_bits(seen[i]), 128);
        longest = BN_num_bits(seen[i]) > longest ? BN_num_bits(seen[i]) : longest;
        for (int k = 0; k < i; k++)
            ck_assert_int_ne(BN_cmp(seen[i], seen[k]), 0);
        X509_free(leaf);
    }
    ck_assert_int_gt(longest, 120);
    for (int i = 0; i < N; i++)
        BN_free(seen[i]);
}
END_TEST

static time_t time_of(const ASN1_TIME *t)
{
    struct tm tm;
    ck_assert_int_eq(ASN1_TIME_to_tm(t, &tm), 1);
    return timegm(&tm);
}

START_TEST(life)
{
    time_t end;
    X509 *leaf = mint_leaf(ca, key, "api.aws", false, now + 10 * DAY_S, &end, &err);
    ck_assert_ptr_nonnull(leaf);
    time_t begin = time_of(X509_get0_notBefore(leaf));
    ck_assert_int_eq(begin, now + 10 * DAY_S - 3600);
    ck_assert_int_eq(end, time_of(X509_get0_notAfter(leaf)));
    ck_assert_int_eq(end - begin, 7 * DAY_S);
    X509_free(leaf);
}
END_TEST

START_TEST(never_outlives_the_authority)
{
    time_t end;
    X509 *leaf = mint_leaf(ca, key, "api.aws", false, ca_end(ca) - 60, &end, &err);
    ck_assert_ptr_nonnull(leaf);
    ck_assert_int_eq(end, ca_end(ca));
    X509_free(leaf);
    leaf = mint_leaf(ca, key, "api.aws", false, ca_begin(ca), &end, &err);
    ck_assert_ptr_nonnull(leaf);
    ck_assert_int_eq(time_of(X509_get0_notBefore(leaf)), ca_begin(ca));
    X509_free(leaf);
    ck_assert_ptr_null(mint_leaf(ca, key, "api.aws", false, ca_end(ca), &end, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "clock"));
    ck_assert_ptr_null(mint_leaf(ca, key, "api.aws", false, ca_begin(ca) - 1, &end, &err));
}
END_TEST

/* What a thief of the key could sign, and what OpenSSL thinks of it. */
START_TEST(stolen_key)
{
    static const struct {
        struct cert_spec spec;
        int verdict;
    } cases[] = {
        {{.cn = "s3.amazonaws.com", .san = "DNS:s3.amazonaws.com"}, X509_V_OK},
        {{.cn = "x", .san = "DNS:example.com"}, X509_V_ERR_PERMITTED_VIOLATION},
        {{.cn = "x", .san = "DNS:evilamazonaws.com"}, X509_V_ERR_PERMITTED_VIOLATION},
        {{.cn = "x", .san = "DNS:api.aws,DNS:example.com"}, X509_V_ERR_PERMITTED_VIOLATION},
        {{.cn = "example.com"}, X509_V_ERR_PERMITTED_VIOLATION},
        {{.cn = "x", .san = "IP:10.0.0.1"}, X509_V_ERR_EXCLUDED_VIOLATION},
        {{.cn = "x", .san = "IP:2001:db8::1"}, X509_V_ERR_EXCLUDED_VIOLATION},
        {{.cn = "api.aws", .san = "DNS:api.aws", .eku = "clientAuth"}, X509_V_ERR_INVALID_PURPOSE},
        {{.cn = "api.aws", .san = "DNS:api.aws", .eku = "codeSigning"}, X509_V_ERR_INVALID_PURPOSE},
    };
    struct cert by = {ca_intermediate(ca), ca_key(ca)};
    struct cert forged = cert_make(&cases[_i].spec, &by);
    ck_assert_int_eq(fix_verify(forged.x, by.x, ca_root(ca), now), cases[_i].verdict);
    cert_free(&forged);
}
END_TEST

START_TEST(no_authority_below)
{
    struct cert_spec spec = {.cn = "api.aws", .san = "DNS:api.aws"};
    struct cert by = {ca_intermediate(ca), ca_key(ca)};
    struct cert sub = cert_authority("sub", &by);
    struct cert leaf = cert_make(&spec, &sub);
    X509 *chain[] = {sub.x, by.x};
    ck_assert_int_eq(fix_verify_chain(leaf.x, chain, 2, ca_root(ca), now),
                     X509_V_ERR_PATH_LENGTH_EXCEEDED);
    cert_free(&sub);
    cert_free(&leaf);
}
END_TEST

/* The same, by the command that users will reach for. */
START_TEST(openssl_command_agrees)
{
    pid_t child;
    int status;
    X509 *leaf = leaf_for("examplebucket.s3.us-east-1.amazonaws.com", false);
    fix_write_cert(fix_path("leaf.pem"), leaf, false);
    const char *argv[] = {"openssl",
                          "verify",
                          "-x509_strict",
                          "-purpose",
                          "sslserver",
                          "-verify_hostname",
                          "examplebucket.s3.us-east-1.amazonaws.com",
                          "-CAfile",
                          ca_root_path(ca),
                          "-untrusted",
                          fix_path("ca/chain.pem"),
                          fix_path("leaf.pem"),
                          NULL};
    ck_assert_int_eq(posix_spawnp(&child, argv[0], NULL, NULL, (char *const *)argv, environ), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    X509_free(leaf);
}
END_TEST

static TCase *case_mint(void)
{
    TCase *tc = tcase_create("mint");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, leaf_fields);
    tcase_add_test(tc, long_name);
    tcase_add_loop_test(tc, names_accepted, 0, 5);
    tcase_add_loop_test(tc, outside_the_names, 0, 6);
    tcase_add_test(tc, serials);
    tcase_add_test(tc, life);
    tcase_add_test(tc, never_outlives_the_authority);
    tcase_add_loop_test(tc, stolen_key, 0, 9);
    tcase_add_test(tc, no_authority_below);
    tcase_add_test(tc, openssl_command_agrees);
    return tc;
}

static TCase *case_addresses(void)
{
    TCase *tc = tcase_create("addresses");
    tcase_add_checked_fixture(tc, setup_with_addresses, teardown);
    tcase_add_loop_test(tc, address, 0, 2);
    tcase_add_test(tc, not_an_address);
    return tc;
}

UNIT_MAIN("mint", case_mint, case_addresses)
