/* The immutable result of reading every source: what the program runs on. Built whole or not.
 *
 * Times int64 ns, sizes bytes. Strings and arrays live on the arena of the config. Every field has
 * its row in options.def, from which the parser, `config --show`, the manual page and
 * conf/retryd.yaml are checked. What it all comes to for one request says
 * config_effective(). */
#ifndef RETRYD_CORE_CONFIG_CONFIG_H
#define RETRYD_CORE_CONFIG_CONFIG_H

#include "core/aws/aws.h"
#include "core/base/arena.h"
#include "core/base/slice.h"
#include "core/exchange/hold.h"
#include "core/http/message.h"
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

/* Where a value was set. */
struct origin {
    const char *name; /* of a file, a variable or a flag; NULL: it was not set */
    unsigned line;    /* 0: name has no lines */
    bool for_sdks;    /* told to the AWS SDKs in general, not to retryd */
};

/* "conf/retryd.yaml:12", "AWS_MAX_ATTEMPTS" */
enum { ORIGIN_TEXT_MAX = 256 };
void origin_text(const struct origin *o, char out[ORIGIN_TEXT_MAX]);

/* retry.services.NAME: only what was set. */
struct service_retry {
    char *service;
    unsigned max_attempts; /* 0: unset */
    int mode;              /* enum retry_mode, or -1: unset */
    struct origin max_attempts_from, mode_from;
};

/* How a record of a list begins: rules[N], listeners[N], origins[N]. */
#define CONFIG_RECORD                                                                              \
    unsigned number;                                                                               \
    struct origin where;                                                                           \
    struct origin *from; /* by row of its options */
struct config_record {
    CONFIG_RECORD
};

enum rule_profile { RULE_PROFILE_GENERIC };

/* rules[number]. Lists that are empty match every request; of the settings those count that
 * rule_has() says were set. */
struct rule {
    CONFIG_RECORD
    struct slice *services, *operations, *listeners, *regions, *methods;
    struct host_pattern *hosts;
    struct slice *access_keys; /* "*" first: the end of one. Never log */
    size_t n_services, n_operations, n_listeners, n_regions, n_methods, n_hosts, n_access_keys;

    enum rule_profile profile;
    bool any_method;
    enum retry_mode mode;
    char *flavour;
    enum retry_behaviour behaviour;
    unsigned max_attempts;
    int64_t base_delay_ns, base_delay_throttling_ns, max_backoff_ns;
    unsigned quota_capacity, cost_transient, cost_throttling;
    struct slice *retry_codes, *throttling_codes, *never_codes;
    size_t n_retry_codes, n_throttling_codes, n_never_codes;
    uint16_t *retry_statuses, *throttling_statuses, *never_statuses;
    size_t n_retry_statuses, n_throttling_statuses, n_never_statuses;
    int64_t attempt_timeout_ns;
    uint64_t replay_memory_bytes, replay_disk_bytes;

    struct retry_override override; /* the six lists, sorted */
};

/* The rows of a rule, for `from`. */
enum rule_row {
#define RULE(type, path, field, allowed, doc) RULE_ROW_##field,
#define RULE_LIST(type, path, field, doc) RULE_ROW_##field,
#include "core/config/options.def"
    RULE_ROW_COUNT
};
#define rule_has(rule, field) ((rule)->from[RULE_ROW_##field].name != NULL)

enum private_policy { PRIVATE_ALLOW, PRIVATE_DENY };

/* ADDRESS:PORT, or the path of a unix socket. */
struct listen_address {
    struct authority at; /* a literal; when path is NULL */
    char *path;
};

/* listeners[number]; each address of listen becomes one, too, without restrictions. The defaults
 * that hang on the place are filled in (security requirements I1-I3). */
struct listener_config {
    CONFIG_RECORD
    char *name; /* never NULL */
    struct listen_address address;
    bool local; /* clients are of this machine: loopback or a unix socket, no proxy_protocol */
    struct cidr *clients; /* empty: any */
    size_t n_clients;
    struct slice *users; /* names or numbers; empty: any */
    size_t n_users;
    char *credentials_file; /* NULL: none */
    bool aws_only;
    enum private_policy private_addresses;
    char *tls_certificate, *tls_key; /* both or neither */
    struct cidr *proxy_protocol;     /* empty: not spoken */
    size_t n_proxy_protocol;
    unsigned socket_mode;
    char *socket_group; /* NULL: ours */
};
enum listener_row {
#define LISTENER(type, path, field, allowed, doc) LISTENER_ROW_##field,
#define LISTENER_LIST(type, path, field, doc) LISTENER_ROW_##field,
#include "core/config/options.def"
    LISTENER_ROW_COUNT
};
#define listener_has(l, field) ((l)->from[LISTENER_ROW_##field].name != NULL)
struct config;
/* A listener under the rules of an address of listen; the name is borrowed, the address left open.
 */
void config_plain_listener(const struct config *c, char *name, struct listener_config *out);

/* origins[number]: how some hosts are reached. */
enum parent_use { PARENT_USE, PARENT_SKIP };
struct origin_config {
    CONFIG_RECORD
    struct host_pattern *hosts;
    size_t n_hosts;
    char *ca_file;                         /* NULL: the general trust */
    char *client_certificate, *client_key; /* both or neither */
    enum parent_use parent;                /* counts if origin_has(o, parent) */
};
enum origin_row {
#define ORIGIN(type, path, field, allowed, doc) ORIGIN_ROW_##field,
#define ORIGIN_LIST(type, path, field, doc) ORIGIN_ROW_##field,
#include "core/config/options.def"
    ORIGIN_ROW_COUNT
};
#define origin_has(o, field) ((o)->from[ORIGIN_ROW_##field].name != NULL)

/* A proxy by its URL. */
struct proxy_url {
    bool given, tls;
    struct authority at; /* with its port */
};

/* What an upstream client is made of; the order is that of budgets.key in the manual. */
enum budget_part {
    BUDGET_PART_SERVICE,
    BUDGET_PART_REGION,
    BUDGET_PART_ACCESS_KEY,
    BUDGET_PART_OPERATION,
    BUDGET_PART_RESOURCE,
    BUDGET_PART_HOST,
    BUDGET_PART_PEER,
    BUDGET_PART_LISTENER,
};
enum { BUDGET_PARTS = BUDGET_PART_LISTENER + 1 };

enum log_format { LOG_FORMAT_KV, LOG_FORMAT_JSON };
enum s3_errors { S3_ERRORS_CORE, S3_ERRORS_ALL };

struct config {
    /* listen: loopback addresses only; port 0: the kernel picks */
    struct authority *listen;
    size_t n_listen;
    /* One for each of listen, in that order, then those of the record list. */
    struct listener_config *listeners;
    size_t n_listeners;

    char *state_dir; /* CA and bundle; default below */

    /* intercept */
    bool intercept_aws;
    struct host_pattern *intercept_hosts;
    size_t n_intercept_hosts;
    struct host_pattern *bypass_hosts; /* never opened, wins over everything */
    size_t n_bypass_hosts;
    int64_t refusal_memory_ns; /* 0: none */

    /* destinations */
    bool aws_only;
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

    /* ways out */
    struct authority *source_addresses; /* literals, at most one of a family */
    size_t n_source_addresses;
    struct origin_config *origins; /* the first that matches counts */
    size_t n_origins;
    struct proxy_url parent;
    char *parent_credentials_file, *parent_ca_file; /* NULL: none */
    struct slice *no_proxy;                         /* lower case */
    size_t n_no_proxy;

    /* timeouts */
    int64_t connect_timeout_ns, tls_timeout_ns, response_timeout_ns, read_timeout_ns;
    int64_t client_head_timeout_ns, client_idle_timeout_ns, client_body_timeout_ns;
    int64_t client_write_timeout_ns;
    int64_t tunnel_idle_ns, tunnel_life_ns, pool_idle_ns, dns_timeout_ns, drain_timeout_ns;

    /* limits */
    uint64_t replay_memory_bytes; /* per request */
    uint64_t replay_disk_bytes;   /* per request, beyond memory */
    uint64_t replay_memory_total_bytes, replay_disk_total_bytes;
    char *replay_dir; /* where unlinked replay files go; NULL: TMPDIR or /tmp */
    unsigned max_clients, max_clients_per_peer, max_handshakes, max_parked;
    unsigned pool_per_origin, pool_total, upstream_per_origin, upstream_waiters;
    uint64_t min_rate_bytes;     /* a second; 0: no bound */
    uint64_t request_body_bytes; /* 0: no bound */
    struct hold_limits hold;

    /* retry */
    enum retry_mode retry_mode;
    char *retry_flavour; /* NULL: unset, and legacy mode is nowhere used without its own */
    enum retry_behaviour retry_behaviour;
    unsigned max_attempts;                     /* 0: unset, the default of the service acts */
    int64_t max_backoff_ns;                    /* 0: unset */
    int64_t max_total_wait_ns;                 /* sum of waits of one exchange */
    int64_t max_elapsed_ns, client_timeout_ns; /* 0: no bound */
    int64_t max_admission_ns;                  /* adaptive mode; 0: no bound of its own */
    int64_t max_signature_age_ns;
    bool retry_429, modeled_errors, dynamodb_crc32;
    enum s3_errors s3_errors;
    struct service_retry *services;
    size_t n_services;
    struct rule *rules; /* the first that matches counts */
    size_t n_rules;

    /* log */
    enum log_format log_format;
    char *log_file; /* NULL: standard error */
    int log_level;  /* enum log_level of io/obs */

    /* processes, shared state, and the way to look at it */
    unsigned workers;   /* 0: one for each CPU */
    char *budgets_file; /* NULL: anonymous memory */
    unsigned budgets_entries;
    uint16_t *budget_parts; /* enum budget_part */
    size_t n_budget_parts;
    char *admin_socket; /* NULL: admin.sock in state_dir */
    char *admin_group;  /* NULL: none */

    struct origin *from;             /* by row of the option table */
    struct origin max_attempts_from; /* the same of retry.max_attempts */

    struct arena arena;
};

void config_free(struct config *c);

bool host_pattern_match(const struct host_pattern *p, struct slice host);
bool cidr_contains(const struct cidr *c, const unsigned char addr16[16]);

/* True if every name that p stands for is one of wide's. */
bool host_pattern_covers(const struct host_pattern *wide, const struct host_pattern *p);

/* True if some host of AWS matches. */
bool host_pattern_may_be_aws(const struct host_pattern *p);

/* What is to be known about a request before its settings are. */
struct request_facts {
    const struct aws_target *target;
    struct slice host;
    enum http_method method;
    struct slice method_text;
    bool idempotency_key;  /* it has an Idempotency-Key */
    bool intercept_listed; /* the host is one of intercept.hosts */
    struct slice listener; /* its name; empty: not known */
};

/* What the configuration comes to for one request. */
struct effective {
    struct retry_policy policy;
    struct aws_options aws; /* how its responses are to be read */
    /* May be sent again although bytes of an earlier attempt went out (security requirement E2).
     * Else only after a failure to connect. */
    bool may_repeat;
    int64_t attempt_timeout_ns; /* start of an attempt to its response head; 0: no bound */
    uint64_t replay_memory_bytes, replay_disk_bytes;
    int64_t client_timeout_ns, max_elapsed_ns; /* from the start of the request; 0: no bound */
    const struct rule *rule;                   /* the one that matched; NULL: none */
};

/* Of each number the first that is set counts: in the first rule that matches, in retry.services,
 * in retry, else the default of the service. Allocates nothing. */
void config_effective(const struct config *c, const struct request_facts *f, struct effective *out);

/* How a host is reached; NULL: as every other. */
const struct origin_config *config_origin(const struct config *c, struct slice host);

/* The same under a given rule, or NULL for none. */
void config_effective_under(const struct config *c, const struct request_facts *f,
                            const struct rule *rule, struct effective *out);
/* retry.services of the target's service, or NULL. */
const struct service_retry *config_service(const struct config *c, const struct aws_target *t);

/* The numbers of that as text, and where each was set: "max_attempts", "4", "service default". */
struct effective_line {
    const char *name, *value, *origin;
};
void config_effective_show(const struct config *c, const struct request_facts *f,
                           const struct effective *e,
                           void (*emit)(void *arg, const struct effective_line *line), void *arg);

#endif
