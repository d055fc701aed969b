/* Outcome to class: the first match of retry-semantics 2.1 decides, so a code beats a status.
 *
 * A 2xx is success whatever code it carries, unless the body was found to be an S3 error (3.6): it
 * then counts as status 500. A response that broke off is judged by its code or 429 if that much
 * arrived, else as the transport failure it is (2.4), never by its other statuses. */
#include "core/retry/classify.h"

static bool is_final_failure(enum retry_failure f)
{
    return f == RETRY_FAIL_CERTIFICATE || f == RETRY_FAIL_POLICY || f == RETRY_FAIL_OVERLOAD;
}

static bool is_transient_status(unsigned status)
{
    return status == 500 || status == 502 || status == 503 || status == 504;
}

static enum retry_class by(enum retry_rule *rule, enum retry_rule which, enum retry_class c)
{
    *rule = which;
    return c;
}

enum retry_class classify(const struct retry_policy *p, const struct retry_outcome *o,
                          enum retry_rule *rule)
{
    bool is_2xx = o->status >= 200 && o->status <= 299;
    unsigned status = is_2xx && o->error_in_200 ? 500 : o->status;

    if (is_final_failure(o->failure))
        return by(rule, RETRY_RULE_TRANSPORT, RETRY_FINAL);
    if (is_2xx && !o->error_in_200)
        return o->failure == RETRY_FAIL_NONE ? by(rule, RETRY_RULE_SUCCESS, RETRY_SUCCESS)
                                             : by(rule, RETRY_RULE_TRANSPORT, RETRY_TRANSIENT);

    const struct retry_code *general = retry_codes_find(p->codes, o->code);
    if (general && general->class == RETRY_THROTTLING)
        return by(rule, RETRY_RULE_THROTTLING_CODE, RETRY_THROTTLING);
    if (status == 429 && p->retry_429)
        return by(rule, RETRY_RULE_STATUS_429, RETRY_THROTTLING);
    if (general)
        return by(rule, RETRY_RULE_TRANSIENT_CODE, general->class);
    const struct retry_code *service = retry_codes_find(p->service_codes, o->code);
    if (service)
        return by(rule, RETRY_RULE_SERVICE_CODE, service->class);
    if (o->failure != RETRY_FAIL_NONE)
        return by(rule, RETRY_RULE_TRANSPORT, RETRY_TRANSIENT);
    if (is_transient_status(status))
        return by(rule, RETRY_RULE_STATUS_5XX, RETRY_TRANSIENT);
    return by(rule, RETRY_RULE_NONE, RETRY_FINAL);
}
