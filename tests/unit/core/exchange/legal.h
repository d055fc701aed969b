/* The events that each state is defined for, by the table in exchange.h: what the walk must have
 * met, and what must end the process otherwise. */
#ifndef RETRYD_TESTS_LEGAL_H
#define RETRYD_TESTS_LEGAL_H

#include "core/exchange/exchange.h"

static inline bool legal_event(enum xch_state s, enum xch_event_kind e)
{
    static const unsigned late_news = 1u << XEV_SENT | 1u << XEV_UNREPLAYABLE;
    static const unsigned answer = 1u << XEV_HEAD | 1u << XEV_BROKEN;
    const unsigned legal[] = {
        [XST_NEW] = 1u << XEV_START,
        [XST_ADMIT] = 1u << XEV_TIMER,
        [XST_DIAL] = 1u << XEV_UP | 1u << XEV_FAIL,
        [XST_SEND] = 1u << XEV_SENT | 1u << XEV_UNREPLAYABLE | answer,
        [XST_WAIT] = answer,
        [XST_PEEK] = 1u << XEV_PEEKED | 1u << XEV_BROKEN | late_news,
        [XST_BACKOFF] = 1u << XEV_TIMER,
        [XST_PENALTY] = 1u << XEV_TIMER | 1u << XEV_BROKEN | late_news,
        [XST_RELAY] = 1u << XEV_END | 1u << XEV_BROKEN | late_news,
        [XST_DONE] = 0,
    };
    return e == XEV_CLIENT_GONE || (legal[s] >> e & 1);
}

#endif
