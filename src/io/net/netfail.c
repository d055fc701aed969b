/* Names of the failures, for logs and metrics. */
#include "io/net/netfail.h"

const char *net_fail_name(enum net_fail f)
{
    switch (f) {
    case NET_OK:
        return "ok";
    case NET_DNS:
        return "dns";
    case NET_DENIED:
        return "denied";
    case NET_REFUSED:
        return "refused";
    case NET_CONNECT_TIMEOUT:
        return "connect-timeout";
    case NET_TLS:
        return "tls";
    case NET_TLS_TIMEOUT:
        return "tls-timeout";
    case NET_CERTIFICATE:
        return "certificate";
    case NET_DISTRUSTED:
        return "distrusted";
    case NET_RESET:
        return "reset";
    case NET_TRUNCATED:
        return "truncated";
    case NET_PARENT:
        return "parent";
    case NET_PARENT_REFUSED:
        return "parent-refused";
    case NET_STARVED:
        return "starved";
    case NET_LOCAL:
        return "local";
    }
    return "unknown";
}
