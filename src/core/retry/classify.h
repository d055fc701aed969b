/* Outcome to class, by the precedence of spec 2.1. */
#ifndef RETRYD_CORE_RETRY_CLASSIFY_H
#define RETRYD_CORE_RETRY_CLASSIFY_H

#include "core/retry/policy.h"

enum retry_class classify(const struct retry_policy *p, const struct retry_outcome *o,
                          enum retry_rule *rule);

#endif
