/* The texts of single values: how each type is written, and nothing about where a value comes from.
 *
 * All are strict: no spaces inside, no sign, no fraction, no repair. False leaves *out alone. */
#ifndef RETRYD_CORE_CONFIG_VALUE_H
#define RETRYD_CORE_CONFIG_VALUE_H

#include "core/config/config.h"

bool value_bool(struct slice s, bool *out);       /* true, false */
bool value_duration(struct slice s, int64_t *ns); /* digits with ms, s, m or h */
bool value_size(struct slice s, uint64_t *bytes); /* digits, alone or with KiB, MiB, GiB or TiB */
bool value_port(struct slice s, uint16_t *port);  /* 1..65535 */
/* choices: names separated by "|"; *out is the position. */
bool value_choice(struct slice s, struct slice choices, int *out);
bool value_mode(struct slice s, enum retry_mode *out); /* off, standard, legacy */
/* An absolute path without control bytes, shorter than PATH_MAX. */
bool value_path(struct slice s);
/* Lower-case name of a service: letters, digits and "-", at most 63. */
bool value_service(struct slice s);

/* Letters, digits, ".", "_" and "-", at most 128: names of the AWS world. */
bool value_word(struct slice s);
/* Letters and digits, at least four and at most 128; a leading "*" stands for what precedes them.
 */
bool value_key(struct slice s);
bool value_status(struct slice s, uint16_t *status); /* of a failure: 300..599 */

bool value_file_mode(struct slice s, unsigned *mode); /* four octal digits, 0600..0777 */

/* The rest say why not, in static text. */

/* ADDRESS, ADDRESS/PREFIX; IPv6 with or without brackets. No bits beyond the prefix. */
bool value_cidr(struct slice s, struct cidr *out, const char **why);
/* A loopback address with a port; 0 is a port here. */
bool value_listen(struct slice s, struct authority *out, const char **why);
bool value_is_loopback(const struct authority *a);
/* ADDRESS:PORT, 0 being a port, or unix:/PATH, which fits a sockaddr_un. */
bool value_endpoint(struct slice s, struct arena *a, struct listen_address *out, const char **why);
/* http://HOST:PORT or https://HOST:PORT, a "/" behind it allowed. */
bool value_proxy_url(struct slice s, struct proxy_url *out, const char **why);
/* An entry of NO_PROXY: *, NAME, .NAME, ADDRESS or ADDRESS/PREFIX, and perhaps a port; lower-cased
 * onto the arena. */
bool value_no_proxy(struct slice s, struct arena *a, struct slice *out, const char **why);
/* An address, its port optional: 0 then. */
bool value_address(struct slice s, struct authority *out, const char **why);
/* NAME, *.SUFFIX or .SUFFIX, lower-cased onto the arena; port NULL: none may follow, else 0 for
 * none. */
bool value_host(struct slice s, struct arena *a, struct host_pattern *out, uint16_t *port,
                const char **why);

#endif
