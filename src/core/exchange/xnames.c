/* Names of the machine's states, events and actions: for the trace, playbooks and tools. */
#include "core/base/attr.h"
#include "core/exchange/exchange.h"

const char *xch_state_name(enum xch_state s)
{
    static const char *const names[] = {
        [XST_NEW] = "NEW",         [XST_ADMIT] = "ADMIT",     [XST_DIAL] = "DIAL",
        [XST_SEND] = "SEND",       [XST_WAIT] = "WAIT",       [XST_PEEK] = "PEEK",
        [XST_BACKOFF] = "BACKOFF", [XST_PENALTY] = "PENALTY", [XST_RELAY] = "RELAY",
        [XST_DONE] = "DONE",
    };
    ASSERT((size_t)s < ARRAY_LEN(names));
    return names[s];
}

const char *xch_event_name(enum xch_event_kind e)
{
    static const char *const names[] = {
        [XEV_START] = "start",
        [XEV_TIMER] = "timer",
        [XEV_UP] = "up",
        [XEV_FAIL] = "fail",
        [XEV_SENT] = "sent",
        [XEV_UNREPLAYABLE] = "unreplayable",
        [XEV_HEAD] = "head",
        [XEV_PEEKED] = "peeked",
        [XEV_BROKEN] = "broken",
        [XEV_END] = "end",
        [XEV_CLIENT_GONE] = "client_gone",
    };
    ASSERT((size_t)e < ARRAY_LEN(names));
    return names[e];
}

const char *xch_action_name(enum xch_action_kind a)
{
    static const char *const names[] = {
        [XACT_ARM] = "arm",     [XACT_DISARM] = "disarm", [XACT_DIAL] = "dial",
        [XACT_SEND] = "send",   [XACT_PEEK] = "peek",     [XACT_KEEP] = "keep",
        [XACT_DROP] = "drop",   [XACT_LOSE] = "lose",     [XACT_RELAY] = "relay",
        [XACT_REPLY] = "reply", [XACT_FINISH] = "finish",
    };
    ASSERT((size_t)a < ARRAY_LEN(names));
    return names[a];
}
