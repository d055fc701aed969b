/* Settings laid over the policy of a target. What is set for the service wins over what is set for
 * all, and both win over the shipped default of the service (architecture §14: DynamoDB's four
 * attempts act only while nothing is set). */
#include "core/aws/aws.h"
#include "core/config/config.h"

static const struct service_retry *find_service(const struct config *c, struct slice name)
{
    for (size_t i = 0; i < c->n_services; i++) {
        if (slice_eq(slice_str(c->services[i].service), name))
            return &c->services[i];
    }
    return NULL;
}

struct retry_policy config_policy(const struct config *c, const struct aws_target *t)
{
    struct retry_policy p = aws_policy(t);
    const struct service_retry *service = find_service(c, t->service_name);
    unsigned max_attempts = c->max_attempts;
    p.mode = c->retry_mode;
    if (service && service->mode >= 0)
        p.mode = (enum retry_mode)service->mode;
    if (service && service->max_attempts > 0)
        max_attempts = service->max_attempts;
    if (max_attempts > 0)
        p.max_attempts = max_attempts;
    p.max_backoff_ns = c->max_backoff_ns;
    p.retry_429 = c->retry_429;
    return p;
}
