/* Arithmetic on a debt (spec 7): 0 owed = full. Pure; whoever stores the word makes it atomic. */
#ifndef RETRYD_CORE_RETRY_QUOTA_H
#define RETRYD_CORE_RETRY_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

/* True iff capacity - debt >= cost; *next is then the new debt. A debt above the capacity (a reload
 * made it smaller) counts as empty. */
bool quota_spend(uint32_t debt, uint32_t cost, uint32_t capacity, uint32_t *next);
/* New debt after giving back; never below 0. */
uint32_t quota_refund(uint32_t debt, uint32_t amount);
uint32_t quota_tokens(uint32_t debt, uint32_t capacity);

#endif
