/* The knowledge about services as constant data: services.def and error_codes.def become arrays,
 * and three look-ups read them (retry-semantics §2.2, §2.3, §5, §8). */
#include "core/aws/services.h"

#include "core/base/attr.h"
#include "core/base/units.h"

#define TEXT(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

#define GENERAL(code, class) {TEXT(code), RETRY_##class},
#define S3(code, class)
#define STS(code, class)
static const struct retry_code general_v[] = {
#include "core/aws/error_codes.def"
};
#undef GENERAL
#undef S3
#undef STS

#define GENERAL(code, class)
#define S3(code, class) {TEXT(code), RETRY_##class},
#define STS(code, class)
static const struct retry_code s3_v[] = {
#include "core/aws/error_codes.def"
};
#undef S3
#undef STS

#define S3(code, class)
#define STS(code, class) {TEXT(code), RETRY_##class},
static const struct retry_code sts_v[] = {
#include "core/aws/error_codes.def"
};
#undef GENERAL
#undef S3
#undef STS

#define no_codes                                                                                   \
    {                                                                                              \
        NULL, 0                                                                                    \
    }
#define s3_codes                                                                                   \
    {                                                                                              \
        s3_v, ARRAY_LEN(s3_v)                                                                      \
    }
#define sts_codes                                                                                  \
    {                                                                                              \
        sts_v, ARRAY_LEN(sts_v)                                                                    \
    }

#define SPECIAL(name, signing, quirks, codes, wire, ...)                                           \
    {{TEXT(name), TEXT(signing), (quirks), codes},                                                 \
     AWS_WIRE_##wire,                                                                              \
     (const char *const[]){__VA_ARGS__, NULL}},
#define SERVICE(name, wire, ...) SPECIAL(name, name, 0, no_codes, wire, __VA_ARGS__)
static const struct service_row rows[] = {
#include "core/aws/services.def"
};

const struct service_row *services_rows(size_t *n)
{
    *n = ARRAY_LEN(rows);
    return rows;
}

const struct aws_service *aws_service_by_name(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (slice_eq(rows[i].service.name, name))
            return &rows[i].service;
    }
    return NULL;
}

const struct aws_service *services_by_signing_name(struct slice signing_name)
{
    const struct aws_service *found = NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct aws_service *s = &rows[i].service;
        if (!slice_eq(s->signing_name, signing_name))
            continue;
        if (slice_eq(s->name, signing_name))
            return s;
        if (!found)
            found = s;
    }
    return found;
}

struct retry_policy aws_policy(const struct aws_target *t)
{
    struct retry_policy p = retry_policy_standard_21;
    p.codes = (struct retry_codes){general_v, ARRAY_LEN(general_v)};
    p.long_poll = t->long_poll;
    if (t->service) {
        p.service_codes = t->service->codes;
        if (t->service->quirks & AWS_QUIRK_DYNAMODB) {
            p.base_transient_ns = 25 * NS_PER_MS;
            p.max_attempts = 4;
        }
    }
    return p;
}
