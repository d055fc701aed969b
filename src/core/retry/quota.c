/* The retry quota as arithmetic on a debt (retry-semantics 7.2). */
#include "core/retry/quota.h"

uint32_t quota_tokens(uint32_t debt, uint32_t capacity)
{
    return debt < capacity ? capacity - debt : 0;
}

bool quota_spend(uint32_t debt, uint32_t cost, uint32_t capacity, uint32_t *next)
{
    if (quota_tokens(debt, capacity) < cost)
        return false;
    *next = debt + cost;
    return true;
}

uint32_t quota_refund(uint32_t debt, uint32_t amount)
{
    return debt > amount ? debt - amount : 0;
}
