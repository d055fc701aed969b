/* Names of the engine's vocabulary, as logs, `simulate` and the vector files spell them. */
#include "core/retry/retry.h"

#include "core/base/attr.h"

const char *retry_class_name(enum retry_class c)
{
    static const char *const names[] = {
        [RETRY_SUCCESS] = "success",
        [RETRY_FINAL] = "none",
        [RETRY_TRANSIENT] = "transient",
        [RETRY_THROTTLING] = "throttling",
    };
    ASSERT((size_t)c < ARRAY_LEN(names));
    return names[c];
}

const char *retry_failure_name(enum retry_failure f)
{
    static const char *const names[RETRY_FAIL_COUNT] = {
        [RETRY_FAIL_NONE] = "",
        [RETRY_FAIL_DNS] = "dns_failure",
        [RETRY_FAIL_CONNECT_REFUSED] = "connect_refused",
        [RETRY_FAIL_CONNECT_TIMEOUT] = "connect_timeout",
        [RETRY_FAIL_TLS] = "tls",
        [RETRY_FAIL_TLS_TIMEOUT] = "tls_timeout",
        [RETRY_FAIL_CERTIFICATE] = "certificate",
        [RETRY_FAIL_POLICY] = "policy",
        [RETRY_FAIL_PARENT] = "parent",
        [RETRY_FAIL_PARENT_REFUSED] = "parent_refused",
        [RETRY_FAIL_SEND] = "send",
        [RETRY_FAIL_RESET] = "reset",
        [RETRY_FAIL_CLOSED] = "closed",
        [RETRY_FAIL_READ_TIMEOUT] = "read_timeout",
        [RETRY_FAIL_MALFORMED] = "malformed",
        [RETRY_FAIL_TRUNCATED] = "truncated_body",
        [RETRY_FAIL_BODY_RESET] = "reset_mid_body",
        [RETRY_FAIL_CHECKSUM] = "checksum",
        [RETRY_FAIL_OVERLOAD] = "overload",
        [RETRY_FAIL_RATE_LIMIT] = "rate_limit",
    };
    ASSERT(f < RETRY_FAIL_COUNT);
    return names[f];
}

const char *retry_rule_name(enum retry_rule r)
{
    static const char *const names[] = {
        [RETRY_RULE_NONE] = "none",
        [RETRY_RULE_SUCCESS] = "success",
        [RETRY_RULE_REFUSED] = "refused",
        [RETRY_RULE_OVERRIDE] = "override",
        [RETRY_RULE_THROTTLING_CODE] = "throttling_code",
        [RETRY_RULE_STATUS_429] = "status_429",
        [RETRY_RULE_CODE] = "code",
        [RETRY_RULE_SERVICE_CODE] = "service_code",
        [RETRY_RULE_MODELED] = "modeled",
        [RETRY_RULE_THROTTLING_WORD] = "throttling_word",
        [RETRY_RULE_OTHER_CODE] = "other_code",
        [RETRY_RULE_SOCKET_MESSAGE] = "socket_message",
        [RETRY_RULE_TRANSPORT] = "transport",
        [RETRY_RULE_STATUS] = "status",
        [RETRY_RULE_BODY_STATUS] = "body_status",
        [RETRY_RULE_CLOCK_SKEW] = "clock_skew",
    };
    ASSERT((size_t)r < ARRAY_LEN(names));
    return names[r];
}
