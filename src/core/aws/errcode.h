/* Response head and a prefix of its body to the AWS error code (spec 3; security requirement E10).
 *
 * JSON through jansson, XML through expat, CBOR by a scanner of our own, by what the response looks
 * like; content codings are undone before, on a copy. */
#ifndef RETRYD_CORE_AWS_ERRCODE_H
#define RETRYD_CORE_AWS_ERRCODE_H

#include "core/http/message.h"

enum { ERRCODE_BODY_MAX = 64 * 1024, ERRCODE_MAX = 256 };

enum errcode_source {
    ERRCODE_NONE,
    ERRCODE_HEADER,       /* x-amzn-errortype */
    ERRCODE_QUERY_COMPAT, /* x-amzn-query-error */
    ERRCODE_JSON_CODE,
    ERRCODE_JSON_TYPE,
    ERRCODE_XML,
    ERRCODE_CBOR,
};

/* The reader that a response calls for: its wire protocol, as far as it shows. */
enum errcode_format {
    ERRCODE_FORMAT_NONE, /* headers only */
    ERRCODE_FORMAT_CBOR,
    ERRCODE_FORMAT_JSON,
    ERRCODE_FORMAT_XML,
};

enum xml_root {
    XML_ROOT_NONE, /* not XML, or incomplete before a root */
    XML_ROOT_ERROR,
    XML_ROOT_OTHER,
};

struct errcode {
    struct slice code; /* on the arena; empty: none */
    enum errcode_source source;
    enum errcode_format format;
    bool parsed; /* the body is what the format says, as far as it is there */
};

/* body: what is held of it, as transferred (at most ERRCODE_BODY_MAX is looked at, and at most
 * CODING_OUT_MAX of what it decodes to); whole: that is all of it. has_body false for HEAD, 204,
 * 304: headers only. */
void errcode_read(const struct http_resp *resp, struct slice body, bool whole, bool has_body,
                  struct arena *a, struct errcode *out);

/* Spec 3.2: before the first ',', then before the first ':', then after the first '#', trimmed.
 * Empty or with bytes outside [A-Za-z0-9._:#/-] or over ERRCODE_MAX: empty. */
struct slice errcode_clean(struct slice raw);
/* 1..ERRCODE_MAX bytes of that set. */
bool errcode_allowed(struct slice code);

/* Spec 3.6, for a 200 of S3: what the root element is, and whether the document is complete. A
 * document that is not well-formed: XML_ROOT_NONE, *complete false. */
enum xml_root errcode_xml_root(struct slice body, bool *complete);

/* For own answers: the protocol a client of this request speaks. */
enum aws_wire {
    AWS_WIRE_JSON,     /* awsJson, restJson and anything unknown */
    AWS_WIRE_QUERY,    /* ErrorResponse/Error/Code */
    AWS_WIRE_EC2,      /* Response/Errors/Error/Code */
    AWS_WIRE_REST_XML, /* Error/Code, S3 */
};
struct aws_target;
enum aws_wire aws_wire_of(const struct http_req *req, const struct aws_target *t);
const char *errcode_source_name(enum errcode_source s);
const char *errcode_format_name(enum errcode_format f);

#endif
