/* Who is this request for and from, and what is special about that service: the AWS knowledge of
 * the program, all of it rows in the .def tables beside this file (spec 3, 4, 5, 8). */
#ifndef RETRYD_CORE_AWS_AWS_H
#define RETRYD_CORE_AWS_AWS_H

#include "core/http/message.h"
#include "core/http/uri.h"
#include "core/retry/policy.h"

/* Quirks of a service, by row of services.def. */
enum aws_quirk {
    AWS_QUIRK_DYNAMODB = 1 << 0, /* 25 ms transient base, 4 attempts unless configured */
    AWS_QUIRK_S3 = 1 << 1,       /* 200 with an error body; XML bodies */
    AWS_QUIRK_CRC32 = 1 << 2,    /* x-amz-crc32 on responses (spec 13.4) */
};

struct aws_service {
    struct slice name;         /* retryd's name: "dynamodb", "dynamodb-streams", "s3", … */
    struct slice signing_name; /* credential scope */
    unsigned quirks;           /* enum aws_quirk */
    struct retry_codes codes;  /* additions of the service (spec 2.3) */
};

/* Identification of one request. Slices are on the arena or static. */
struct aws_target {
    bool is_aws; /* host in an AWS partition, or signed with a whole credential scope */
    /* The host is one of the endpoint table (I3), not just under an AWS suffix. */
    bool is_service_endpoint;
    /* NULL: no row for it (then service_name may still be set). */
    const struct aws_service *service;
    /* For logs and keys: row name, else signing name, else first label of an AWS host; "-". */
    struct slice service_name;
    struct slice signing_name; /* credential scope; empty for unsigned requests */
    struct slice region;       /* empty when unknown */
    struct slice operation;    /* "PutItem", "ReceiveMessage", "UploadPartCopy"; empty */
    struct slice access_key;   /* from the credential scope; empty when unsigned. Never log */
    bool presigned;
    bool long_poll;    /* spec 8 */
    bool error_in_200; /* spec 3.6: the three S3 operations */
    bool xml_in_200;   /* spec 3.6, the option: other S3 operations that answer in XML */
};

/* What of the AWS knowledge is optional. */
struct aws_options {
    bool modeled_errors; /* aws_modeled_codes() in the policy (spec 2.5) */
    bool s3_more;        /* the operations of xml_in_200 are read like those of error_in_200 */
    bool crc32;          /* x-amz-crc32 is checked (spec 13.4) */
    bool socket_message; /* RETRY_SOCKET_MESSAGE is looked for */
};

/* Host under a suffix of an AWS partition, on label boundaries (evilamazonaws.com is not). */
bool aws_host(struct slice host);
/* The suffixes themselves ("amazonaws.com", …), for name constraints and lists; n of them. */
const struct slice *aws_suffixes(size_t *n);
/* The host names an AWS service endpoint (regional, dualstack, fips, bucket of S3, VPC endpoint),
 * not a customer's own name such as elb or compute ones. */
bool aws_service_endpoint(struct slice host);

/* Credential scope first, host second. body_prefix: the first bytes of the body, for query protocol
 * Action= (may be empty: the operation is then taken from the headers and target alone). */
void aws_identify(const struct http_req *req, struct slice host, struct slice path_query,
                  struct slice body_prefix, struct arena *a, struct aws_target *out);

/* The service of that name (its row in services.def); NULL: no such row. */
const struct aws_service *aws_service_by_name(struct slice name);

/* Standard mode 2.1 for this target, before settings: base delays, attempts, code tables,
 * long_poll. */
struct retry_policy aws_policy(const struct aws_target *t);
/* Errors retryable by the service's model (spec 2.5): for modeled_codes of a policy, where the
 * option is on. */
struct retry_codes aws_modeled_codes(const struct aws_target *t);

#endif
