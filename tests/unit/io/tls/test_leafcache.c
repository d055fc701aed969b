/* The client's side of interception (security requirements F2, F4-F8): handshakes in memory with
 * the leaf of a host, every kind of SNI and ALPN, resumption, and the bounds of the cache. */
#include "tlsfix.h"

#include "io/tls/leafcache.h"

static struct ca *ca;
static struct leafcache *lc;
static SSL_CTX *client_ctx;
static time_t now;
static struct err err;

#define S3 "s3.us-east-1.amazonaws.com"
#define CAPACITY 4

static void setup(void)
{
    fix_setup();
    now = time(NULL);
    ca = fix_ca("ca", true, now);
    lc = leafcache_new(ca, CAPACITY, &err);
    ck_assert_msg(lc != NULL, "%s", err.text);
    /* A client as strict as they come, which trusts the root and nothing else. */
    client_ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(client_ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_security_level(client_ctx, 2);
    ck_assert_int_eq(X509_STORE_add_cert(SSL_CTX_get_cert_store(client_ctx), ca_root(ca)), 1);
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(client_ctx), X509_V_FLAG_X509_STRICT);
}

static void teardown(void)
{
    SSL_CTX_free(client_ctx);
    leafcache_free(lc);
    ca_free(ca);
    fix_teardown();
}

static SSL *server_for(const char *host, bool is_ip, time_t at)
{
    SSL *ssl = leafcache_ssl(lc, host, is_ip, at, &err);
    ck_assert_msg(ssl != NULL, "%s", err.text);
    ck_assert(SSL_is_server(ssl));
    return ssl;
}

/* sni NULL: none. */
static SSL *client_for(const char *sni)
{
    SSL *ssl = SSL_new(client_ctx);
    SSL_set_connect_state(ssl);
    if (sni)
        ck_assert_int_eq(SSL_set_tlsext_host_name(ssl, sni), 1);
    return ssl;
}

/* --- who is accepted --- */

static const struct {
    const char *host;
    bool is_ip;
    const char *sni;
    bool ok;
} snis[] = {
    {S3, false, S3, true},
    {S3, false, NULL, true},
    {S3, false, "S3.US-East-1.amazonaws.com", true},
    {S3, false, S3 ".", true},
    {S3, false, "s3.us-east-2.amazonaws.com", false},
    {S3, false, "bucket." S3, false},
    {S3, false, "us-east-1.amazonaws.com", false},
    {S3, false, "*.us-east-1.amazonaws.com", false},
    {S3, false, "10.0.0.1", false},
    {"10.0.0.1", true, NULL, true},
    {"10.0.0.1", true, "10.0.0.1", true},
    {"10.0.0.1", true, "10.0.0.2", false},
    {"10.0.0.1", true, S3, false},
    {"2001:db8::1", true, NULL, true},
};

START_TEST(sni)
{
    SSL *server = server_for(snis[_i].host, snis[_i].is_ip, now),
        *client = client_for(snis[_i].sni);
    struct shake s = shake(client, server);
    ck_assert_msg(s.client_ok == snis[_i].ok && s.server_ok == snis[_i].ok, "client %s server %s",
                  s.client_err.text, s.server_err.text);
    if (snis[_i].ok) {
        X509 *leaf = SSL_get0_peer_certificate(client);
        ck_assert_int_eq(snis[_i].is_ip ? X509_check_ip_asc(leaf, snis[_i].host, 0)
                                        : X509_check_host(leaf, snis[_i].host, 0, 0, NULL),
                         1);
        ck_assert_int_eq(sk_X509_num(SSL_get_peer_cert_chain(client)), 2);
    } else {
        ck_assert_ptr_nonnull(strstr(s.client_err.text, "unrecognized name"));
        ck_assert_str_eq(s.server_err.text, "handshake: tlsv1 unrecognized name");
    }
    SSL_free(client);
    SSL_free(server);
}
END_TEST

static const struct {
    const char *offer;
    bool ok;
} alpns[] = {
    {"\x08http/1.1", true},
    {"\x02h2\x08http/1.1", true},
    {"\x08http/1.1\x02h2", true},
    {"", true}, /* none offered */
    {"\x02h2", false},
    {"\x08http/1.0", false},
    {"\x02h2\x07http/1.", false},
};

START_TEST(alpn)
{
    const unsigned char *chosen;
    unsigned n;
    const char *offer = alpns[_i].offer;
    SSL *server = server_for(S3, false, now), *client = client_for(S3);
    if (offer[0])
        SSL_set_alpn_protos(client, (const unsigned char *)offer, (unsigned)strlen(offer));
    struct shake s = shake(client, server);
    ck_assert_int_eq(s.client_ok, alpns[_i].ok);
    if (!s.client_ok)
        ck_assert_msg(strstr(s.client_err.text, "no application protocol") != NULL, "%s",
                      s.client_err.text);
    SSL_get0_alpn_selected(client, &chosen, &n);
    if (alpns[_i].ok && offer[0])
        ck_assert_mem_eq(chosen, "http/1.1", 8);
    else
        ck_assert_uint_eq(n, 0);
    SSL_free(client);
    SSL_free(server);
}
END_TEST

START_TEST(versions)
{
    static const struct {
        int version;
        bool ok;
    } cases[] = {{TLS1_VERSION, false},
                 {TLS1_1_VERSION, false},
                 {TLS1_2_VERSION, true},
                 {TLS1_3_VERSION, true}};
    SSL *server = server_for(S3, false, now), *client = client_for(S3);
    SSL_set_security_level(client, 0);
    SSL_set_min_proto_version(client, cases[_i].version);
    SSL_set_max_proto_version(client, cases[_i].version);
    struct shake s = shake(client, server);
    ck_assert_int_eq(s.client_ok, cases[_i].ok);
    ck_assert_int_eq(s.server_ok, cases[_i].ok);
    if (cases[_i].ok)
        ck_assert_int_eq(SSL_version(client), cases[_i].version);
    else
        ck_assert_msg(strstr(s.server_err.text, "unsupported protocol") != NULL, "%s",
                      s.server_err.text);
    SSL_free(client);
    SSL_free(server);
}
END_TEST

/* A client that trusts somebody else says so, and it is not the server's peer that is to blame. */
START_TEST(root_not_installed)
{
    SSL_CTX *stranger = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(stranger, SSL_VERIFY_PEER, NULL);
    SSL *server = server_for(S3, false, now), *client = SSL_new(stranger);
    SSL_set_connect_state(client);
    /* In TLS 1.3 the server is done before the client has looked at the certificate. */
    SSL_set_max_proto_version(client, TLS1_2_VERSION);
    struct shake s = shake(client, server);
    ck_assert(!s.client_ok && !s.server_ok);
    ck_assert_str_eq(s.server_err.text, "handshake: tlsv1 alert unknown ca");
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(stranger);
}
END_TEST

START_TEST(settings)
{
    SSL *ssl = server_for(S3, false, now);
    ck_assert_int_eq(SSL_get_security_level(ssl), 2);
    ck_assert_int_eq(SSL_get_min_proto_version(ssl), TLS1_2_VERSION);
    uint64_t options = SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION;
    ck_assert_uint_eq(SSL_get_options(ssl) & options, options);
    ck_assert_uint_eq(SSL_get_max_early_data(ssl), 0);
    long modes = SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                 SSL_MODE_RELEASE_BUFFERS;
    ck_assert_int_eq(SSL_get_mode(ssl) & modes, modes);
    /* Forward secrecy and AEAD, whatever the version. */
    STACK_OF(SSL_CIPHER) *suites = SSL_get1_supported_ciphers(ssl);
    ck_assert_int_gt(sk_SSL_CIPHER_num(suites), 3);
    for (int i = 0; i < sk_SSL_CIPHER_num(suites); i++) {
        const SSL_CIPHER *suite = sk_SSL_CIPHER_value(suites, i);
        int kx = SSL_CIPHER_get_kx_nid(suite);
        ck_assert_int_eq(SSL_CIPHER_is_aead(suite), 1);
        ck_assert_msg(kx == NID_kx_ecdhe || kx == NID_kx_any, "%s", SSL_CIPHER_get_name(suite));
    }
    sk_SSL_CIPHER_free(suites);
    SSL_free(ssl);
}
END_TEST

START_TEST(outside_the_names)
{
    err.text[0] = '\0';
    ck_assert_ptr_null(leafcache_ssl(lc, "example.com", false, now, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "example.com"));
    ck_assert_ptr_null(leafcache_ssl(lc, "evilamazonaws.com", false, now, &err));
    ck_assert_ptr_null(leafcache_ssl(lc, "*.amazonaws.com", false, now, &err));
    ck_assert_ptr_null(leafcache_ssl(lc, S3, true, now, &err));
}
END_TEST

/* --- resumption (F8) --- */

/* A session of host, as the client has it after the first bytes. */
static SSL_SESSION *session_of(const char *host, int version)
{
    char byte;
    SSL *server = server_for(host, false, now), *client = client_for(host);
    SSL_set_min_proto_version(client, version);
    SSL_set_max_proto_version(client, version);
    ck_assert(shake(client, server).client_ok);
    ck_assert_int_eq(SSL_write(server, "x", 1), 1);
    ck_assert_int_eq(SSL_read(client, &byte, 1), 1);
    SSL_SESSION *session = SSL_get1_session(client);
    ck_assert_int_eq(SSL_SESSION_is_resumable(session), 1);
    SSL_shutdown(client);
    SSL_free(client);
    SSL_free(server);
    return session;
}

static bool resumes(SSL_SESSION *session, const char *host, time_t at)
{
    SSL *server = server_for(host, false, at), *client = client_for(host);
    SSL_set_max_proto_version(client, SSL_SESSION_get_protocol_version(session));
    ck_assert_int_eq(SSL_set_session(client, session), 1);
    struct shake s = shake(client, server);
    ck_assert_msg(s.client_ok && s.server_ok, "%s", s.client_err.text);
    bool reused = SSL_session_reused(client);
    SSL_shutdown(client); /* else the session counts as spoilt, and is not offered again */
    SSL_free(client);
    SSL_free(server);
    return reused;
}

START_TEST(same_host_resumes_and_others_do_not)
{
    SSL_SESSION *session = session_of(S3, _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION);
    ck_assert(resumes(session, S3, now));
    ck_assert(!resumes(session, "sqs.us-east-1.amazonaws.com", now));
    SSL_SESSION_free(session);
}
END_TEST

/* F8: the keys of the hour before still open tickets, those before that do not. */
START_TEST(ticket_keys_change_every_hour)
{
    SSL_SESSION *session = session_of(S3, _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION);
    const time_t next = (now / 3600 + 1) * 3600;
    ck_assert(resumes(session, S3, next - 1));
    ck_assert(resumes(session, S3, next));
    ck_assert(resumes(session, S3, next + 3599));
    ck_assert(!resumes(session, S3, next + 3600));
    ck_assert(resumes(session, S3, now)); /* a clock that was put back */
    SSL_SESSION_free(session);
}
END_TEST

/* F8: another worker has the same keys; another authority has others. */
START_TEST(workers_share_ticket_keys)
{
    SSL_SESSION *session = session_of(S3, _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION);
    struct leafcache *mine = lc;
    lc = leafcache_new(ca, CAPACITY, &err);
    ck_assert(resumes(session, S3, now));
    ck_assert(!resumes(session, "sqs.us-east-1.amazonaws.com", now));
    leafcache_free(lc);
    lc = mine;
    SSL_SESSION_free(session);
}
END_TEST

/* --- the cache --- */

/* Serial number of the leaf served, to tell one from another. */
static const ASN1_INTEGER *serial_of(const char *host, time_t at)
{
    static X509 *kept[64];
    static unsigned n;
    SSL *ssl = server_for(host, false, at);
    X509 **slot = &kept[n++ % ARRAY_LEN(kept)];
    X509_free(*slot);
    *slot = SSL_get_certificate(ssl);
    X509_up_ref(*slot);
    SSL_free(ssl);
    return X509_get0_serialNumber(*slot);
}

static bool same(const ASN1_INTEGER *a, const ASN1_INTEGER *b)
{
    return ASN1_INTEGER_cmp(a, b) == 0;
}

/* CR14, F5: a name is minted once. */
START_TEST(hit)
{
    const ASN1_INTEGER *first = serial_of(S3, now);
    ck_assert(same(first, serial_of(S3, now)));
    ck_assert(same(first, serial_of(S3, now + 6 * DAY_S)));
    ck_assert(!same(first, serial_of("api.aws", now)));
}
END_TEST

START_TEST(one_key_for_all)
{
    SSL *a = server_for(S3, false, now), *b = server_for("api.aws", false, now);
    ck_assert_int_eq(EVP_PKEY_eq(X509_get0_pubkey(SSL_get_certificate(a)),
                                 X509_get0_pubkey(SSL_get_certificate(b))),
                     1);
    struct leafcache *other = leafcache_new(ca, 1, &err);
    SSL *c = leafcache_ssl(other, S3, false, now, &err);
    ck_assert_int_ne(EVP_PKEY_eq(X509_get0_pubkey(SSL_get_certificate(a)),
                                 X509_get0_pubkey(SSL_get_certificate(c))),
                     1);
    SSL_free(a);
    SSL_free(b);
    SSL_free(c);
    leafcache_free(other);
}
END_TEST

/* Least recently used goes first; what was used stays. */
START_TEST(bounded_lru)
{
    static const char *const hosts[] = {"a.api.aws", "b.api.aws", "c.api.aws", "d.api.aws",
                                        "e.api.aws"};
    const ASN1_INTEGER *serials[5];
    for (int i = 0; i < CAPACITY; i++)
        serials[i] = serial_of(hosts[i], now);
    ck_assert(same(serials[0], serial_of(hosts[0], now)));
    serials[4] = serial_of(hosts[4], now); /* b gives way */
    ck_assert(same(serials[0], serial_of(hosts[0], now)));
    ck_assert(same(serials[2], serial_of(hosts[2], now)));
    ck_assert(same(serials[3], serial_of(hosts[3], now)));
    ck_assert(same(serials[4], serial_of(hosts[4], now)));
    ck_assert(!same(serials[1], serial_of(hosts[1], now)));
}
END_TEST

/* An SSL goes on with its leaf after the cache has forgotten it. */
START_TEST(eviction_under_way)
{
    char host[64];
    SSL *server = server_for(S3, false, now), *client = client_for(S3);
    for (int i = 0; i < 2 * CAPACITY; i++) {
        snprintf(host, sizeof host, "n%d.api.aws", i);
        SSL_free(server_for(host, false, now));
    }
    ck_assert(shake(client, server).client_ok);
    SSL_free(client);
    SSL_free(server);
}
END_TEST

/* Many more names than places: each gets its own certificate. */
START_TEST(never_the_wrong_name)
{
    char host[64];
    for (int i = 0; i < 1000; i++) {
        snprintf(host, sizeof host, "bucket-%d.s3.amazonaws.com", i * 7919 % 40);
        SSL *ssl = server_for(host, false, now + i / 100);
        ck_assert_int_eq(X509_check_host(SSL_get_certificate(ssl), host, 0, 0, NULL), 1);
        SSL_free(ssl);
    }
}
END_TEST

START_TEST(old_leaf_is_replaced)
{
    const ASN1_INTEGER *first = serial_of(S3, now);
    time_t last_hour = now - 3600 + 7 * DAY_S - 3600;
    ck_assert(same(first, serial_of(S3, last_hour - 1)));
    const ASN1_INTEGER *second = serial_of(S3, last_hour);
    ck_assert(!same(first, second));
    /* And one from the future, when the clock is put back. */
    ck_assert(!same(second, serial_of(S3, now)));
}
END_TEST

START_TEST(minting_is_limited)
{
    char host[64];
    int made = 0;
    for (int i = 0; i < 250; i++) {
        snprintf(host, sizeof host, "n%d.api.aws", i);
        SSL *ssl = leafcache_ssl(lc, host, false, now, &err);
        made += ssl != NULL;
        SSL_free(ssl);
    }
    ck_assert_int_eq(made, 200);
    ck_assert_ptr_nonnull(strstr(err.text, "200 new certificates a second"));
    SSL_free(server_for("n199.api.aws", false, now)); /* known names are served all the same */
    SSL_free(server_for("later.api.aws", false, now + 1));
}
END_TEST

static TCase *case_handshake(void)
{
    TCase *tc = tcase_create("handshake");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, sni, 0, (int)ARRAY_LEN(snis));
    tcase_add_loop_test(tc, alpn, 0, (int)ARRAY_LEN(alpns));
    tcase_add_loop_test(tc, versions, 0, 4);
    tcase_add_test(tc, root_not_installed);
    tcase_add_test(tc, settings);
    tcase_add_test(tc, outside_the_names);
    tcase_add_loop_test(tc, same_host_resumes_and_others_do_not, 0, 2);
    tcase_add_loop_test(tc, ticket_keys_change_every_hour, 0, 2);
    tcase_add_loop_test(tc, workers_share_ticket_keys, 0, 2);
    return tc;
}

static TCase *case_cache(void)
{
    TCase *tc = tcase_create("cache");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, hit);
    tcase_add_test(tc, one_key_for_all);
    tcase_add_test(tc, bounded_lru);
    tcase_add_test(tc, eviction_under_way);
    tcase_add_test(tc, never_the_wrong_name);
    tcase_add_test(tc, old_leaf_is_replaced);
    tcase_add_test(tc, minting_is_limited);
    return tc;
}

UNIT_MAIN("leafcache", case_handshake, case_cache)
