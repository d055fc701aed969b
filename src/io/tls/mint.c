/* The contents of certificates, as tables of extensions (RFC 5280; security requirements F4, H2,
 * H5, H6).
 *
 * A leaf has exactly one SAN and no pointers to anything outside. Its subject repeats a name that
 * fits (64 bytes); longer names and addresses have an empty subject and a critical SAN instead (an
 * address as CN would be held against the DNS constraints by OpenSSL). */
#include "io/tls/mint.h"

#include "core/base/attr.h"
#include "core/base/slice.h"
#include "io/tls/tlserr.h"
#include <openssl/bn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SERIAL_BITS 128
#define COMMON_NAME_MAX 64 /* RFC 5280, ub-common-name */
#define HOUR_S ((time_t)3600)
#define LEAF_LIFE_S (HOUR_S * 24 * 7)
#define INTERMEDIATE_NAME "retryd intermediate "

struct extension {
    int nid;
    const char *value; /* in the words of x509v3_config(5) */
};

static const struct extension root_extensions[] = {
    {NID_basic_constraints, "critical,CA:TRUE"},
    {NID_key_usage, "critical,keyCertSign,cRLSign"},
    {NID_subject_key_identifier, "hash"},
};

static const struct extension intermediate_extensions[] = {
    {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
    {NID_key_usage, "critical,keyCertSign,cRLSign"},
    {NID_ext_key_usage, "serverAuth"},
    {NID_subject_key_identifier, "hash"},
    {NID_authority_key_identifier, "keyid:always"},
};

static const struct extension leaf_extensions[] = {
    {NID_basic_constraints, "critical,CA:FALSE"},
    {NID_key_usage, "critical,digitalSignature"},
    {NID_ext_key_usage, "serverAuth"},
    {NID_subject_key_identifier, "hash"},
    {NID_authority_key_identifier, "keyid:always"},
};

EVP_PKEY *mint_key(struct err *err)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    if (key == NULL)
        tlserr_set(err, "making a key");
    return key;
}

static bool add_extensions(X509 *cert, X509 *issuer, const struct extension *table, size_t n)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    for (size_t i = 0; i < n; i++) {
        X509_EXTENSION *ext = X509V3_EXT_nconf_nid(NULL, &ctx, table[i].nid, table[i].value);
        bool ok = ext != NULL && X509_add_ext(cert, ext, -1) == 1;
        X509_EXTENSION_free(ext);
        if (!ok)
            return false;
    }
    return true;
}

static bool set_serial(X509 *cert)
{
    BIGNUM *bn = BN_new();
    bool ok = bn != NULL && BN_rand(bn, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
              BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert)) != NULL;
    BN_free(bn);
    return ok;
}

/* All that certificates of the three kinds have in common. common_name NULL: empty subject. */
static X509 *draft(EVP_PKEY *key, const char *common_name, time_t begin, time_t end)
{
    X509 *cert = X509_new();
    bool ok = cert != NULL && X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
              X509_set_pubkey(cert, key) == 1 &&
              ASN1_TIME_set(X509_getm_notBefore(cert), begin) != NULL &&
              ASN1_TIME_set(X509_getm_notAfter(cert), end) != NULL;
    if (ok && common_name != NULL)
        ok = X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                                        (const unsigned char *)common_name, -1, -1, 0) == 1;
    if (!ok) {
        X509_free(cert);
        return NULL;
    }
    return cert;
}

static bool sign(X509 *cert, X509 *issuer, EVP_PKEY *issuer_key)
{
    return X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1 &&
           X509_sign(cert, issuer_key, EVP_sha256()) > 0;
}

/* Takes base. */
static bool add_subtree(STACK_OF(GENERAL_SUBTREE) * *list, GENERAL_NAME *base)
{
    GENERAL_SUBTREE *tree = GENERAL_SUBTREE_new();
    if (*list == NULL)
        *list = sk_GENERAL_SUBTREE_new_null();
    if (tree == NULL || *list == NULL || base == NULL ||
        sk_GENERAL_SUBTREE_push(*list, tree) <= 0) {
        GENERAL_SUBTREE_free(tree);
        GENERAL_NAME_free(base);
        return false;
    }
    GENERAL_NAME_free(tree->base);
    tree->base = base;
    return true;
}

/* A dNSName or iPAddress. */
static GENERAL_NAME *general_name(int type, const void *p, size_t n)
{
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_STRING *value =
        ASN1_STRING_type_new(type == GEN_DNS ? V_ASN1_IA5STRING : V_ASN1_OCTET_STRING);
    if (name == NULL || value == NULL || ASN1_STRING_set(value, p, (int)n) != 1) {
        GENERAL_NAME_free(name);
        ASN1_STRING_free(value);
        return NULL;
    }
    GENERAL_NAME_set0_value(name, type, value);
    return name;
}

NAME_CONSTRAINTS *mint_constraints(const struct slice *names, size_t n_names, bool ip_literals)
{
    /* Address and mask, all zero: every address. */
    static const unsigned char every_v4[8], every_v6[32];
    /* Nothing permitted would mean everything is; this name is nobody's (RFC 6761 6.4). */
    static const struct slice nobody = {"invalid", 7};
    NAME_CONSTRAINTS *nc = NAME_CONSTRAINTS_new();
    bool ok = nc != NULL;
    if (n_names == 0) {
        names = &nobody;
        n_names = 1;
    }
    for (size_t i = 0; ok && i < n_names; i++)
        ok = add_subtree(&nc->permittedSubtrees, general_name(GEN_DNS, names[i].p, names[i].n));
    if (ok && !ip_literals)
        ok = add_subtree(&nc->excludedSubtrees,
                         general_name(GEN_IPADD, every_v4, sizeof every_v4)) &&
             add_subtree(&nc->excludedSubtrees, general_name(GEN_IPADD, every_v6, sizeof every_v6));
    if (!ok) {
        NAME_CONSTRAINTS_free(nc);
        return NULL;
    }
    return nc;
}

/* "PREFIX HOST DATE": what it is, where and when it was made (H6). The host is cut so that all
 * fits. */
static void authority_name(char out[COMMON_NAME_MAX + 1], const char *prefix, time_t now)
{
    char host[COMMON_NAME_MAX] = "", date[16] = "";
    struct tm tm;
    gethostname(host, sizeof host - 1);
    for (char *p = host; *p != '\0'; p++)
        if (!ascii_is_alpha(*p) && !ascii_is_digit(*p) && *p != '.' && *p != '-')
            *p = '_';
    if (gmtime_r(&now, &tm) != NULL)
        strftime(date, sizeof date, "%Y-%m-%d", &tm);
    int room = COMMON_NAME_MAX - (int)strlen(prefix) - (int)strlen(date) - 1;
    snprintf(out, COMMON_NAME_MAX + 1, "%s%.*s %s", prefix, room, host, date);
}

static X509 *mint_root(EVP_PKEY *key, time_t now, time_t begin, time_t end)
{
    char name[COMMON_NAME_MAX + 1];
    authority_name(name, MINT_ROOT_NAME, now);
    X509 *root = draft(key, name, begin, end);
    if (root != NULL && add_extensions(root, root, root_extensions, ARRAY_LEN(root_extensions)) &&
        sign(root, root, key))
        return root;
    X509_free(root);
    return NULL;
}

bool mint_authority(EVP_PKEY *intermediate_key, NAME_CONSTRAINTS *constraints, time_t now,
                    int64_t life_s, X509 **root, X509 **intermediate, struct err *err)
{
    char name[COMMON_NAME_MAX + 1];
    time_t begin = now - HOUR_S, end = now + (time_t)life_s;
    EVP_PKEY *root_key = mint_key(err);
    if (root_key == NULL)
        return false;
    authority_name(name, INTERMEDIATE_NAME, now);
    *root = mint_root(root_key, now, begin, end);
    *intermediate = *root ? draft(intermediate_key, name, begin, end) : NULL;
    bool ok = *intermediate != NULL &&
              add_extensions(*intermediate, *root, intermediate_extensions,
                             ARRAY_LEN(intermediate_extensions)) &&
              X509_add1_ext_i2d(*intermediate, NID_name_constraints, constraints, 1, 0) == 1 &&
              sign(*intermediate, *root, root_key);
    EVP_PKEY_free(root_key);
    if (!ok) {
        X509_free(*root);
        X509_free(*intermediate);
        *root = *intermediate = NULL;
        return tlserr_set(err, "making the authority");
    }
    return true;
}

/* The one SAN; critical when there is no subject beside it (RFC 5280 4.2.1.6). */
static bool add_san(X509 *cert, const char *host, bool is_ip, bool critical)
{
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    GENERAL_NAME *name = NULL;
    if (is_ip) {
        ASN1_OCTET_STRING *addr = a2i_IPADDRESS(host);
        if (addr != NULL)
            name = general_name(GEN_IPADD, ASN1_STRING_get0_data(addr),
                                (size_t)ASN1_STRING_length(addr));
        ASN1_OCTET_STRING_free(addr);
    } else {
        name = general_name(GEN_DNS, host, strlen(host));
    }
    bool ok = names != NULL && name != NULL && sk_GENERAL_NAME_push(names, name) > 0;
    if (!ok)
        GENERAL_NAME_free(name);
    ok = ok && X509_add1_ext_i2d(cert, NID_subject_alt_name, names, critical, 0) == 1;
    GENERAL_NAMES_free(names);
    return ok;
}

X509 *mint_leaf(const struct ca *ca, EVP_PKEY *key, const char *host, bool is_ip, time_t now,
                time_t *end, struct err *err)
{
    if (!ca_permits(ca, host, is_ip)) {
        err_set(err, "%s is not among the names that the local authority may sign for", host);
        return NULL;
    }
    if (now < ca_begin(ca) || now >= ca_end(ca)) {
        err_set(err, "the clock is outside the life of the local authority: no certificate for %s",
                host);
        return NULL;
    }
    time_t begin = now - HOUR_S > ca_begin(ca) ? now - HOUR_S : ca_begin(ca);
    /* With what was taken off at the beginning, 7 days in all. */
    *end = begin + LEAF_LIFE_S < ca_end(ca) ? begin + LEAF_LIFE_S : ca_end(ca);
    bool subject = !is_ip && strlen(host) <= COMMON_NAME_MAX;
    X509 *leaf = draft(key, subject ? host : NULL, begin, *end);
    X509 *issuer = ca_intermediate(ca);
    if (leaf != NULL && add_extensions(leaf, issuer, leaf_extensions, ARRAY_LEN(leaf_extensions)) &&
        add_san(leaf, host, is_ip, !subject) && sign(leaf, issuer, ca_key(ca)))
        return leaf;
    X509_free(leaf);
    tlserr_set(err, host);
    return NULL;
}
