/* The legacy retry strategies, one for each SDK that has one (legacy-modes): a name, and a target,
 * become a policy. All figures and lists are rows of legacy.def. */
#ifndef RETRYD_CORE_AWS_LEGACY_H
#define RETRYD_CORE_AWS_LEGACY_H

#include "core/aws/aws.h"
#include "core/base/err.h"

/* "cli-v1", "cpp", "java", "java-v1", "php", "python", "ruby"; n of them. The alias "cli" is
 * understood but not listed. */
const char *const *legacy_flavour_names(size_t *n);

/* Whether there is such a flavour; false with a line for the user, which for "cli-v2" says that
 * this one has no legacy mode. */
bool legacy_flavour_known(struct slice flavour, struct err *why);

/* The flavour's strategy for the target. max_attempts_setting: what the user set, 0 for nothing;
 * each flavour honours it where its SDK does. Retries that only help when the request is signed
 * again are there but off (clock_skew). False: no such flavour. */
bool legacy_policy(struct slice flavour, const struct aws_target *t, unsigned max_attempts_setting,
                   struct retry_policy *out);

#endif
