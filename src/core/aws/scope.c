/* Reads the credential scope of signature version 4 (and 4a, which names no region) from
 * Authorization or X-Amz-Credential, and the bare access key of version 2. Nothing is verified
 * here: the scope only chooses a policy and a budget. What comes out is bounded and made of token
 * characters, because it ends up in logs and keys. */
#include "core/aws/scope.h"

#include "core/aws/plain.h"
#include "core/http/uri.h"

/* Credential=AKID/date/region/service/aws4_request: fits with room for any key. */
enum { CREDENTIAL_MAX = 512 };

/* Cuts the part after the last '/' off *rest. */
static struct slice pop_part(struct slice *rest)
{
    const char *slash = rest->n ? memrchr(rest->p, '/', rest->n) : NULL;
    if (!slash)
        return SLICE_NONE;
    struct slice part = slice_of(slash + 1, (size_t)(rest->p + rest->n - slash - 1));
    rest->n = (size_t)(slash - rest->p);
    return part;
}

/* From the right, since a key may hold a slash. */
static void read_credential(struct slice credential, bool has_region, struct arena *a,
                            struct scope *out)
{
    if (credential.n > CREDENTIAL_MAX || !slice_eq(pop_part(&credential), SLICE("aws4_request")))
        return;
    struct slice service = pop_part(&credential);
    struct slice region = has_region ? pop_part(&credential) : SLICE_NONE;
    pop_part(&credential);
    if (!plain_name(service) || !plain_name(credential) || (has_region && !plain_name(region)))
        return;
    out->is_signed = true;
    out->signing_name = arena_copy(a, service);
    out->region = arena_copy(a, region);
    out->access_key = arena_copy(a, credential);
}

static void read_v2_key(struct slice key, struct arena *a, struct scope *out)
{
    if (!plain_name(key))
        return;
    out->is_signed = true;
    out->access_key = arena_copy(a, key);
}

/* The algorithm and whether its scope names a region. */
static bool algorithm_known(struct slice algorithm, bool *has_region)
{
    *has_region = slice_eq(algorithm, SLICE("AWS4-HMAC-SHA256"));
    return *has_region || slice_eq(algorithm, SLICE("AWS4-ECDSA-P256-SHA256"));
}

static void read_authorization(struct slice value, struct arena *a, struct scope *out)
{
    size_t space = slice_index(value, ' ');
    if (space == value.n)
        return;
    struct slice scheme = slice_of(value.p, space);
    struct slice rest = slice_of(value.p + space + 1, value.n - space - 1);
    bool has_region;
    if (slice_eq(scheme, SLICE("AWS"))) {
        struct slice key = slice_trim(rest);
        read_v2_key(slice_of(key.p, slice_index(key, ':')), a, out);
        return;
    }
    if (!algorithm_known(scheme, &has_region))
        return;
    struct slice part, name = SLICE("Credential=");
    bool done = false;
    while (slice_next(&rest, ',', &part, &done)) {
        part = slice_trim(part);
        if (slice_starts(part, name)) {
            read_credential(slice_of(part.p + name.n, part.n - name.n), has_region, a, out);
            return;
        }
    }
}

static void read_query(struct slice query, struct arena *a, struct scope *out)
{
    struct slice credential = query_param(query, SLICE("X-Amz-Credential"));
    char text[CREDENTIAL_MAX];
    bool has_region;
    if (credential.p) {
        if (algorithm_known(query_param(query, SLICE("X-Amz-Algorithm")), &has_region))
            read_credential(plain_decode(credential, text, sizeof text), has_region, a, out);
    } else if (query_param(query, SLICE("Signature")).p) {
        struct slice key = query_param(query, SLICE("AWSAccessKeyId"));
        read_v2_key(plain_decode(key, text, sizeof text), a, out);
    }
    out->presigned = out->is_signed;
}

void scope_read(const struct http_req *req, struct slice query, struct arena *a, struct scope *out)
{
    memset(out, 0, sizeof *out);
    read_authorization(header_get(&req->fields, SLICE("authorization")), a, out);
    if (!out->is_signed)
        read_query(query, a, out);
}
