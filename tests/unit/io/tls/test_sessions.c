/* Resumption towards origins, client certificates, and what keeps the ways of being a client apart
 * (security requirements G7, G8). */
#include "tlsfix.h"

#include "io/tls/sessions.h"
#include "io/tls/tlsclient.h"
#include <time.h>

#include <sys/stat.h>

static struct cert root, other_root, leaf, mine;
static struct err err;

static void write_key(const char *path, EVP_PKEY *key, char *password)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(
        PEM_write_PrivateKey(f, key, password ? EVP_aes_128_cbc() : NULL, NULL, 0, NULL, password),
        1);
    fclose(f);
    ck_assert_int_eq(chmod(path, 0600), 0);
}

static void setup(void)
{
    char secret[] = "secret";
    fix_setup();
    root = cert_authority("good root", NULL);
    other_root = cert_authority("other root", NULL);
    leaf = cert_make(&(struct cert_spec){.san = "DNS:origin.test,DNS:second.test,IP:192.0.2.1"},
                     &root);
    mine = cert_make(&(struct cert_spec){.cn = "client 7", .eku = "clientAuth"}, &other_root);
    fix_write_cert(fix_path("roots.pem"), root.x, false);
    fix_write_cert(fix_path("both.pem"), root.x, false);
    fix_write_cert(fix_path("both.pem"), other_root.x, true);
    fix_write_cert(fix_path("mine.pem"), mine.x, false);
    write_key(fix_path("mine.key"), mine.key, NULL);
    write_key(fix_path("locked.key"), mine.key, secret);
    write_key(fix_path("leaf.key"), leaf.key, NULL);
    write_key(fix_path("open.key"), mine.key, NULL);
    ck_assert_int_eq(chmod(fix_path("open.key"), 0604), 0);
}

static void teardown(void)
{
    cert_free(&root);
    cert_free(&other_root);
    cert_free(&leaf);
    cert_free(&mine);
    fix_teardown();
}

static SSL_CTX *server_new(int version)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    SSL_CTX_set_max_proto_version(ctx, version);
    ck_assert_int_eq(SSL_CTX_use_certificate(ctx, leaf.x), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, leaf.key), 1);
    SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"x", 1);
    return ctx;
}

static struct tlsclient *client_new(const char *file)
{
    struct tlsclient *t = tlsclient_new(&(struct tlsclient_spec){.ca_file = fix_path(file)}, &err);
    ck_assert_msg(t != NULL, "%s", err.text);
    return t;
}

/* One connection, orderly closed; true: it was resumed. */
static bool meet(struct tlsclient *t, SSL_CTX *ctx, const char *host, bool is_ip, uint16_t port)
{
    SSL *client = tlsclient_ssl(t, host, is_ip, port, &err), *server = SSL_new(ctx);
    ck_assert_msg(client != NULL, "%s", err.text);
    SSL_set_accept_state(server);
    struct shake s = shake(client, server);
    ck_assert_msg(s.client_ok && s.server_ok, "%s / %s", s.client_err.text, s.server_err.text);
    char byte;
    SSL_read(client, &byte, 1); /* the tickets of TLS 1.3 */
    ERR_clear_error();
    bool resumed = SSL_session_reused(client);
    ck_assert_int_eq(resumed, SSL_session_reused(server));
    ck_assert_int_eq(SSL_get_verify_result(client), X509_V_OK);
    ck_assert_msg(tlsclient_verified(client, &err), "%s", err.text);
    SSL_shutdown(client);
    SSL_free(client);
    SSL_free(server);
    return resumed;
}

/* Everybody's clock in this program, OpenSSL's as well. */
static time_t clock_ahead_s;

time_t time(time_t *out)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_sec += clock_ahead_s;
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

START_TEST(resumed_for_the_same_origin_only)
{
    SSL_CTX *ctx = server_new(versions[_i]);
    struct tlsclient *t = client_new("roots.pem");
    ck_assert(!meet(t, ctx, "origin.test", false, 443));
    ck_assert(meet(t, ctx, "ORIGIN.test.", false, 443)); /* the same name */
    ck_assert(meet(t, ctx, "origin.test", false, 443));
    ck_assert(!meet(t, ctx, "origin.test", false, 8443));
    ck_assert(!meet(t, ctx, "second.test", false, 443));
    ck_assert(!meet(t, ctx, "192.0.2.1", true, 443));
    ck_assert(meet(t, ctx, "192.0.2.1", true, 443));
    tlsclient_free(t);
    SSL_CTX_free(ctx);
}
END_TEST

/* G7: each resumption brings a new ticket, which says that it begins now. The chain is verified
 * anew all the same, an hour after it was. */
START_TEST(renewed_tickets_do_not_put_off_verification)
{
    SSL_CTX *ctx = server_new(versions[_i]);
    SSL_CTX_set_timeout(ctx, 86400);
    struct tlsclient *t = client_new("roots.pem");
    clock_ahead_s = 0;
    ck_assert(!meet(t, ctx, "origin.test", false, 443));
    clock_ahead_s = SESSIONS_LIFE_S * 2 / 3;
    ck_assert(meet(t, ctx, "origin.test", false, 443));
    clock_ahead_s = SESSIONS_LIFE_S * 4 / 3;
    ck_assert(!meet(t, ctx, "origin.test", false, 443));
    ck_assert(meet(t, ctx, "origin.test", false, 443));
    clock_ahead_s = 0;
    tlsclient_free(t);
    SSL_CTX_free(ctx);
}
END_TEST

/* A store that was changed and read again is a new client: nothing verified before is resumed. */
START_TEST(never_across_trust_settings)
{
    SSL_CTX *ctx = server_new(versions[_i]);
    struct tlsclient *before = client_new("roots.pem");
    ck_assert(!meet(before, ctx, "origin.test", false, 443));
    struct tlsclient *after = client_new("both.pem");
    ck_assert(!meet(after, ctx, "origin.test", false, 443));
    ck_assert(meet(before, ctx, "origin.test", false, 443));
    tlsclient_free(before);
    tlsclient_free(after);
    SSL_CTX_free(ctx);
}
END_TEST

/* A connection that was cut is not resumed (RFC 5246 7.2.1): it may not have been the origin's. */
START_TEST(cut_connections_of_tls12_are_not_resumed)
{
    SSL_CTX *ctx = server_new(TLS1_2_VERSION);
    struct tlsclient *t = client_new("roots.pem");
    SSL *client = tlsclient_ssl(t, "origin.test", false, 443, &err), *server = SSL_new(ctx);
    SSL_set_accept_state(server);
    ck_assert(shake(client, server).client_ok);
    SSL_free(client);
    SSL_free(server);
    ck_assert(!meet(t, ctx, "origin.test", false, 443));
    tlsclient_free(t);
    SSL_CTX_free(ctx);
}
END_TEST

/* The client may go before its connections do: sessions still find a place, or none. */
START_TEST(connections_outlive_the_client)
{
    SSL_CTX *ctx = server_new(TLS1_3_VERSION);
    struct tlsclient *t = client_new("roots.pem");
    SSL *client = tlsclient_ssl(t, "origin.test", false, 443, &err), *server = SSL_new(ctx);
    SSL_set_accept_state(server);
    ck_assert(shake(client, server).client_ok);
    tlsclient_free(t);
    char byte;
    ck_assert_int_le(SSL_read(client, &byte, 1), 0);
    ERR_clear_error();
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(ctx);
}
END_TEST

static SSL_SESSION *session_of(int version, long begun)
{
    SSL_SESSION *session = SSL_SESSION_new();
    SSL_SESSION_set_protocol_version(session, version);
    SSL_SESSION_set_time(session, begun);
    SSL_SESSION_set_timeout(session, 7200);
    SSL_SESSION_set1_id(session, (const unsigned char *)"id", 2);
    return session;
}

static bool has(struct sessions *s, const char *origin, int64_t now)
{
    int64_t verified_s;
    SSL_SESSION *session = sessions_take(s, origin, now, &verified_s);
    SSL_SESSION_free(session);
    return session != NULL;
}

START_TEST(cache_rules)
{
    struct sessions *s = sessions_new();
    sessions_put(s, "a:1", session_of(TLS1_2_VERSION, 1000), 1000);
    ck_assert(has(s, "a:1", 1000) && has(s, "a:1", 1001)); /* stays */
    ck_assert(!has(s, "a:2", 1000));
    ck_assert(!has(s, "a:1", 1000 + SESSIONS_LIFE_S));
    ck_assert_uint_eq(sessions_count(s), 0);
    sessions_put(s, "a:1", session_of(TLS1_3_VERSION, 1000), 1000);
    ck_assert(!has(s, "a:1", 999)); /* the clock was set back */
    sessions_put(s, "a:1", session_of(TLS1_3_VERSION, 1000), 1000);
    ck_assert(has(s, "a:1", 1000));
    ck_assert(!has(s, "a:1", 1000)); /* once */
    SSL_SESSION *brief = session_of(TLS1_3_VERSION, 1000);
    SSL_SESSION_set_timeout(brief, 5);
    sessions_put(s, "a:1", brief, 1000);
    ck_assert(!has(s, "a:1", 1005));
    sessions_put(s, "a:1", session_of(TLS1_3_VERSION, 1000), 900); /* a ticket of a later day */
    ck_assert(!has(s, "a:1", 900 + SESSIONS_LIFE_S));
    for (int i = 0; i < 10; i++)
        sessions_put(s, "b:1", session_of(TLS1_3_VERSION, 1000), 1000);
    ck_assert_uint_eq(sessions_count(s), SESSIONS_PER_ORIGIN);
    char name[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "n%d:1", i);
        sessions_put(s, name, session_of(TLS1_3_VERSION, 1000), 1000);
    }
    ck_assert_uint_eq(sessions_count(s), SESSIONS_MAX);
    ck_assert(!has(s, "n743:1", 1000) && has(s, "n744:1", 1000) && has(s, "n999:1", 1000));
    sessions_free(s);
}
END_TEST

/* G7: a session whose certificate has ended meanwhile is not offered: the origin has a new one by
 * then, which only a full handshake shows. */
START_TEST(no_session_outlives_its_certificate)
{
    struct cert brief =
        cert_make(&(struct cert_spec){.san = "DNS:origin.test", .end_s = 600}, &root);
    SSL_CTX *ctx = server_new(versions[_i]);
    ck_assert_int_eq(SSL_CTX_use_certificate(ctx, brief.x), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey(ctx, brief.key), 1);
    struct tlsclient *t = client_new("roots.pem");
    SSL *client = tlsclient_ssl(t, "origin.test", false, 443, &err), *server = SSL_new(ctx);
    SSL_set_accept_state(server);
    ck_assert(shake(client, server).client_ok);
    char byte;
    SSL_read(client, &byte, 1);
    ERR_clear_error();
    struct sessions *s = sessions_new();
    int64_t now = (int64_t)time(NULL);
    sessions_put(s, "a:1", SSL_get1_session(client), now);
    ck_assert(!has(s, "a:1", now + 700));
    sessions_put(s, "a:1", SSL_get1_session(client), now);
    ck_assert(has(s, "a:1", now + 500));
    sessions_free(s);
    SSL_shutdown(client);
    SSL_free(client);
    SSL_free(server);
    SSL_CTX_free(ctx);
    tlsclient_free(t);
    cert_free(&brief);
}
END_TEST

/* --- client certificates --- */

static int accept_any(int ok, X509_STORE_CTX *ctx)
{
    (void)ok, (void)ctx;
    return 1;
}

START_TEST(client_certificate_is_shown_by_its_client_only)
{
    SSL_CTX *ctx = server_new(versions[_i]);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, accept_any);
    struct tlsclient_spec with;
    char certificate[256], key[256];
    snprintf(certificate, sizeof certificate, "%s", fix_path("mine.pem"));
    snprintf(key, sizeof key, "%s", fix_path("mine.key"));
    struct tlsclient *plain = client_new("roots.pem");
    with = (struct tlsclient_spec){.same_trust = plain};
    with.certificate = certificate;
    with.key = key;
    struct tlsclient *named = tlsclient_new(&with, &err);
    ck_assert_msg(named != NULL, "%s", err.text);
    for (int round = 0; round < 2; round++) {
        SSL *client = tlsclient_ssl(round ? plain : named, "origin.test", false, 443, &err);
        SSL *server = SSL_new(ctx);
        SSL_set_accept_state(server);
        struct shake s = shake(client, server);
        ck_assert_msg(s.client_ok && s.server_ok, "%s / %s", s.client_err.text, s.server_err.text);
        X509 *shown = SSL_get0_peer_certificate(server);
        if (round)
            ck_assert_ptr_null(shown);
        else
            ck_assert_int_eq(X509_cmp(shown, mine.x), 0);
        SSL_free(client);
        SSL_free(server);
    }
    tlsclient_free(named);
    tlsclient_free(plain);
    SSL_CTX_free(ctx);
}
END_TEST

START_TEST(files_that_do_not_fit)
{
    static const struct {
        const char *certificate, *key, *blamed;
    } table[] = {
        {"missing.pem", "mine.key", "missing.pem"},
        {"mine.pem", "missing.key", "missing.key"},
        {"mine.key", "mine.key", "mine.key: no certificate or key in PEM"},
        {"mine.pem", "open.key", "open.key: others may read or write this key; chmod o= it"},
        {"mine.pem", "leaf.key", "leaf.key"},
        {"mine.pem", "locked.key", "locked.key"}, /* nobody is asked for a password */
        {"mine.pem", NULL, "mine.pem"},
    };
    char certificate[256], key[256], roots[256];
    snprintf(roots, sizeof roots, "%s", fix_path("roots.pem"));
    snprintf(certificate, sizeof certificate, "%s", fix_path(table[_i].certificate));
    snprintf(key, sizeof key, "%s", fix_path(table[_i].key ? table[_i].key : "x"));
    const struct tlsclient_spec spec = {
        .ca_file = roots, .certificate = certificate, .key = table[_i].key ? key : NULL};
    err.text[0] = '\0';
    ck_assert_ptr_null(tlsclient_new(&spec, &err));
    ck_assert_msg(strstr(err.text, table[_i].blamed) != NULL, "%s", err.text);
    ck_assert_uint_eq(ERR_peek_error(), 0);
}
END_TEST

static TCase *tcase_sessions(void)
{
    TCase *tc = tcase_create("sessions");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, resumed_for_the_same_origin_only, 0, 2);
    tcase_add_loop_test(tc, renewed_tickets_do_not_put_off_verification, 0, ARRAY_LEN(versions));
    tcase_add_loop_test(tc, never_across_trust_settings, 0, 2);
    tcase_add_test(tc, cut_connections_of_tls12_are_not_resumed);
    tcase_add_test(tc, connections_outlive_the_client);
    tcase_add_test(tc, cache_rules);
    tcase_add_loop_test(tc, no_session_outlives_its_certificate, 0, 2);
    tcase_add_loop_test(tc, client_certificate_is_shown_by_its_client_only, 0, 2);
    tcase_add_loop_test(tc, files_that_do_not_fit, 0, 6);
    return tc;
}

UNIT_MAIN("sessions", tcase_sessions)
