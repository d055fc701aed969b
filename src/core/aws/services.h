/* The rows of services.def as this room sees them, and the code tables of error_codes.def. */
#ifndef RETRYD_CORE_AWS_SERVICES_H
#define RETRYD_CORE_AWS_SERVICES_H

#include "core/aws/aws.h"
#include "core/aws/errcode.h"

struct service_row {
    struct aws_service
        service;              /* what the rest of the program sees; first, see services_row_of() */
    enum aws_wire wire;       /* when a request does not show it */
    const char *const *hosts; /* patterns (endpoint.h), NULL-terminated */
};

const struct service_row *services_rows(size_t *n);

/* The service a credential scope names: the one of that very name if there is one. NULL: no row. */
const struct aws_service *services_by_signing_name(struct slice signing_name);

/* The row a service is part of. */
static inline const struct service_row *services_row_of(const struct aws_service *s)
{
    return (const struct service_row *)s;
}

#endif
