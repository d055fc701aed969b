/* The immutable result of reading every source: what the program runs on. Built whole or not.
 *
 * Times int64 ns, sizes bytes. Strings and arrays live on the arena of the config. Every field has
 * its row in options.def, from which the parser, `check --show`, the manual page and
 * conf/retryd.yaml are checked. */
#ifndef RETRYD_CORE_CONFIG_CONFIG_H
#define RETRYD_CORE_CONFIG_CONFIG_H

#include "core/base/arena.h"
#include "core/base/slice.h"
#include "core/exchange/hold.h"
#include "core/http/uri.h"
#include "core/retry/policy.h"

/* An address range: addr/prefix, IPv4 kept as ::ffff:a.b.c.d with prefix + 96. */
struct cidr {
    unsigned char addr[16];
    unsigned prefix;
};

/* "name", "*.suffix" or ".suffix" (both: any name below it, on label boundaries). Lower case. */
struct host_pattern {
    char *text;
    bool suffix; /* text holds the suffix without "*." */
};

/* resolve: "HOST[:PORT]" -> "ADDRESS[:PORT]"; HOST may be a pattern. Port 0: any / unchanged. */
struct resolve_override {
    struct host_pattern host;
    uint16_t port;
    struct authority to; /* a literal; port 0: keep the request's */
};

/* retry.services.NAME: only what was set. */
struct service_retry {
    char *service;
    unsigned max_attempts; /* 0: unset */
    int mode;              /* enum retry_mode, or -1: unset */
};

enum log_format { LOG_FORMAT_KV, LOG_FORMAT_JSON };
enum private_policy { PRIVATE_ALLOW, PRIVATE_DENY };

struct config {
    /* listen: loopback addresses only; port 0: the kernel picks */
    struct authority *listen;
    size_t n_listen;

    char *state_dir; /* CA and bundle; default below */

    /* intercept */
    bool intercept_aws;
    struct host_pattern *intercept_hosts;
    size_t n_intercept_hosts;
    struct host_pattern *bypass_hosts; /* never opened, wins over everything */
    size_t n_bypass_hosts;

    /* destinations */
    uint16_t *connect_ports; /* CONNECT: exactly these; 443 unless set */
    size_t n_connect_ports;
    uint16_t *http_ports; /* absolute-form: exactly these; 80 and 443 unless set */
    size_t n_http_ports;
    struct cidr *allow_addresses; /* allowed although the address rules deny them */
    size_t n_allow_addresses;
    enum private_policy private_addresses;
    struct resolve_override *resolve; /* most specific first: the first that matches counts */
    size_t n_resolve;

    /* upstream trust */
    char *upstream_ca_file; /* extra PEM bundle, or NULL */
    bool upstream_system_trust;

    /* timeouts */
    int64_t connect_timeout_ns, tls_timeout_ns, response_timeout_ns, read_timeout_ns;
    int64_t client_head_timeout_ns, client_idle_timeout_ns, client_body_timeout_ns;
    int64_t client_write_timeout_ns;
    int64_t tunnel_idle_ns, pool_idle_ns, dns_timeout_ns, drain_timeout_ns;

    /* limits */
    uint64_t replay_memory_bytes; /* per request */
    uint64_t replay_disk_bytes;   /* per request, beyond memory */
    uint64_t replay_memory_total_bytes, replay_disk_total_bytes;
    char *replay_dir; /* where unlinked replay files go; NULL: TMPDIR or /tmp */
    unsigned max_clients, max_parked, pool_per_origin, pool_total;
    struct hold_limits hold;

    /* retry */
    enum retry_mode retry_mode;
    enum retry_behaviour retry_behaviour;
    unsigned max_attempts;     /* 0: unset, the default of the service acts */
    int64_t max_total_wait_ns; /* sum of waits of one exchange */
    int64_t max_signature_age_ns;
    int64_t max_backoff_ns;
    bool retry_429;
    struct service_retry *services;
    size_t n_services;

    /* log */
    enum log_format log_format;
    char *log_file; /* NULL: standard error */
    int log_level;  /* enum log_level of io/obs */

    struct arena arena;
};

void config_free(struct config *c);

bool host_pattern_match(const struct host_pattern *p, struct slice host);
bool cidr_contains(const struct cidr *c, const unsigned char addr16[16]);

/* Standard policy of the target, with the settings applied (global, then per service). An attempts
 * setting anywhere beats the default of the service. */
struct aws_target;
struct retry_policy config_policy(const struct config *c, const struct aws_target *t);

#endif
