/* Outcome to class: the rules of the policy, asked in the policy's order, so that a precedence
 * (retry-semantics 2.1, legacy-modes 2-8) is a list and a list only.
 *
 * A 2xx is success whatever code it carries, unless the body was found to be an S3 error (3.6): it
 * then counts as status 500. What retryd itself refused is final in every strategy. */
#include "core/retry/classify.h"

#include "core/base/attr.h"

/* What the rules look at. */
struct question {
    const struct retry_policy *p;
    const struct retry_outcome *o;
    enum retry_failure failure; /* without a checksum that does not count here */
    unsigned status;            /* 500 for an error within a 200 */
};

/* Each rule says the class, or RETRY_SUCCESS: does not match. */
#define NO_MATCH RETRY_SUCCESS

static enum retry_class in_codes(struct retry_codes t, const struct question *q)
{
    const struct retry_code *row = retry_codes_find(t, q->o->code);
    return row && (row->status == 0 || row->status == q->status) ? row->class : NO_MATCH;
}

static enum retry_class in_statuses(struct retry_statuses t, unsigned status)
{
    const struct retry_status *row = retry_statuses_find(t, status);
    return row ? row->class : NO_MATCH;
}

static enum retry_class throttling_code(const struct question *q)
{
    return in_codes(q->p->codes, q) == RETRY_THROTTLING ? RETRY_THROTTLING : NO_MATCH;
}

static enum retry_class status_429(const struct question *q)
{
    return q->p->retry_429 && q->status == 429 ? RETRY_THROTTLING : NO_MATCH;
}

static enum retry_class code(const struct question *q)
{
    return in_codes(q->p->codes, q);
}

static enum retry_class service_code(const struct question *q)
{
    return in_codes(q->p->service_codes, q);
}

static enum retry_class modeled(const struct question *q)
{
    return in_codes(q->p->modeled_codes, q);
}

static enum retry_class throttling_word(const struct question *q)
{
    return slice_has_nocase(q->o->code, SLICE("throttl")) ? RETRY_THROTTLING : NO_MATCH;
}

static enum retry_class other_code(const struct question *q)
{
    return q->o->code.n > 0 ? RETRY_FINAL : NO_MATCH;
}

static enum retry_class socket_message(const struct question *q)
{
    return q->o->socket_message && q->status >= 400 ? RETRY_TRANSIENT : NO_MATCH;
}

static enum retry_class transport(const struct question *q)
{
    if (q->failure == RETRY_FAIL_NONE)
        return NO_MATCH;
    return q->p->failures & RETRY_FAILURE(q->failure) ? RETRY_TRANSIENT : RETRY_FINAL;
}

static enum retry_class status(const struct question *q)
{
    return in_statuses(q->p->statuses, q->status);
}

static enum retry_class body_status(const struct question *q)
{
    return q->p->bodies & (1u << q->o->body) ? in_statuses(q->p->body_statuses, q->status)
                                             : NO_MATCH;
}

static enum retry_class clock_skew(const struct question *q)
{
    const struct retry_skew *s = q->p->skew;
    if (!q->p->clock_skew || !s)
        return NO_MATCH;
    enum retry_class c = in_codes(s->certain, q);
    if (c != NO_MATCH || q->o->date_skew_ns < s->min_ns)
        return c;
    c = in_codes(s->possible, q);
    return c != NO_MATCH ? c : in_statuses(s->statuses, q->status);
}

/* The user's word on a failed attempt: never first, then the code, then the status. */
static enum retry_class override(const struct question *q)
{
    if (!q->p->override)
        return NO_MATCH;
    enum retry_class by_code = in_codes(q->p->override->codes, q);
    enum retry_class by_status = in_statuses(q->p->override->statuses, q->status);
    if (by_code == RETRY_FINAL || by_code == NO_MATCH)
        return by_code == RETRY_FINAL ? by_code : by_status;
    return by_status == RETRY_FINAL ? by_status : by_code;
}

static enum retry_class ask(enum retry_rule rule, const struct question *q)
{
    static enum retry_class (*const rules[])(const struct question *) = {
        [RETRY_RULE_THROTTLING_CODE] = throttling_code,
        [RETRY_RULE_STATUS_429] = status_429,
        [RETRY_RULE_CODE] = code,
        [RETRY_RULE_SERVICE_CODE] = service_code,
        [RETRY_RULE_MODELED] = modeled,
        [RETRY_RULE_THROTTLING_WORD] = throttling_word,
        [RETRY_RULE_OTHER_CODE] = other_code,
        [RETRY_RULE_SOCKET_MESSAGE] = socket_message,
        [RETRY_RULE_TRANSPORT] = transport,
        [RETRY_RULE_STATUS] = status,
        [RETRY_RULE_BODY_STATUS] = body_status,
        [RETRY_RULE_CLOCK_SKEW] = clock_skew,
    };
    ASSERT((size_t)rule < ARRAY_LEN(rules) && rules[rule]);
    return rules[rule](q);
}

static enum retry_class by(enum retry_rule *rule, enum retry_rule which, enum retry_class c)
{
    *rule = which;
    return c;
}

static bool counts(enum retry_crc32 rule, bool is_2xx)
{
    return rule == RETRY_CRC32_ANY || (rule == RETRY_CRC32_SUCCESS && is_2xx);
}

enum retry_class classify(const struct retry_policy *p, const struct retry_outcome *o,
                          enum retry_rule *rule)
{
    bool is_2xx = o->status >= 200 && o->status <= 299;
    struct question q = {p, o, o->failure, is_2xx && o->error_in_200 ? 500 : o->status};
    if (q.failure == RETRY_FAIL_CHECKSUM && !counts(p->crc32, is_2xx))
        q.failure = RETRY_FAIL_NONE;

    if (q.failure == RETRY_FAIL_POLICY || q.failure == RETRY_FAIL_OVERLOAD ||
        q.failure == RETRY_FAIL_RATE_LIMIT || q.failure == RETRY_FAIL_PARENT_REFUSED)
        return by(rule, RETRY_RULE_REFUSED, RETRY_FINAL);
    if (is_2xx && !o->error_in_200)
        return q.failure == RETRY_FAIL_NONE ? by(rule, RETRY_RULE_SUCCESS, RETRY_SUCCESS)
                                            : by(rule, RETRY_RULE_TRANSPORT, transport(&q));

    enum retry_class c = override(&q);
    if (c != NO_MATCH)
        return by(rule, RETRY_RULE_OVERRIDE, c);
    for (const enum retry_rule *next = p->order; *next != RETRY_RULE_NONE; next++) {
        c = ask(*next, &q);
        if (c != NO_MATCH)
            return by(rule, *next, c);
    }
    return by(rule, RETRY_RULE_NONE, RETRY_FINAL);
}
