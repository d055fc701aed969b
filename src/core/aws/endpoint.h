/* Host name to service endpoint (retry-semantics §4; security requirements F1, I3).
 *
 * A host under an AWS suffix is taken apart from the right: suffix, "vpce" of a VPC endpoint,
 * region, "dualstack". What is left is compared with the host patterns of services.def, label by
 * label:
 *
 *   dynamodb           exactly that; the label may also end in -fips
 *   *.s3               one or more labels before it (a bucket, an account)
 *   s3express-*        any end of this label
 *   {region}.queue     a region stands here (at the end of a label) instead of its usual place
 *
 * Names that customers choose (load balancers, instances, clusters, databases) fit no pattern. */
#ifndef RETRYD_CORE_AWS_ENDPOINT_H
#define RETRYD_CORE_AWS_ENDPOINT_H

#include "core/aws/services.h"

/* Slices borrow the host. */
struct endpoint {
    bool is_aws;                   /* under a suffix of partitions.def */
    const struct service_row *row; /* NULL: no endpoint of the table */
    struct slice region;           /* empty: none in the name */
    bool resource_in_host;         /* S3: the name carries the bucket (virtual-host style) */
};

void endpoint_read(struct slice host, struct endpoint *out);

#endif
