/* Hop-by-hop fields. A fixed table is never forwarded; others, and what Connection names, are not
 * either, unless a signature covers them: dropping that would break the request, and the signer
 * meant it for the origin. Names that no Connection field may list make the head unacceptable as a
 * whole. */
#include "core/http/hopbyhop.h"
#include "core/base/attr.h"
#include "core/http/uri.h"

static const struct slice connection_name = {"Connection", 10}, upgrade_name = {"Upgrade", 7},
                          http2_settings = {"HTTP2-Settings", 14};

/* Whatever a signature says: credentials for us, this hop's framing, a switch of its protocol. */
static const struct slice never_forwarded[] = {
    {"HTTP2-Settings", 14},     {"Proxy-Connection", 16},    {"Transfer-Encoding", 17},
    {"Proxy-Authenticate", 18}, {"Proxy-Authorization", 19}, {"Proxy-Authentication-Info", 25},
};

static const struct slice dropped_unsigned[] = {{"TE", 2}, {"Trailer", 7}, {"Keep-Alive", 10}};

/* C7: a peer that has these stripped changes what the origin or the client understands. */
static const struct slice essential[] = {
    {"Via", 3},
    {"Host", 4},
    {"Date", 4},
    {"Cookie", 6},
    {"Expect", 6},
    {"Content-Type", 12},
    {"Authorization", 13},
    {"Content-Length", 14},
    {"Transfer-Encoding", 17},
};

/* Connection options that name no field of their own. */
static const struct slice options[] = {{"close", 5}, {"upgrade", 7}, {"keep-alive", 10}};

static const struct slice not_in_trailer[] = {
    {"TE", 2},
    {"Age", 3},
    {"Via", 3},
    {"Date", 4},
    {"Host", 4},
    {"Vary", 4},
    {"Range", 5},
    {"Cookie", 6},
    {"Expect", 6},
    {"Pragma", 6},
    {"Expires", 7},
    {"Trailer", 7},
    {"Upgrade", 7},
    {"Warning", 7},
    {"If-Match", 8},
    {"If-Range", 8},
    {"Location", 8},
    {"Connection", 10},
    {"Keep-Alive", 10},
    {"Set-Cookie", 10},
    {"Retry-After", 11},
    {"Max-Forwards", 12},
    {"Authorization", 13},
    {"Cache-Control", 13},
    {"If-None-Match", 13},
    {"HTTP2-Settings", 14},
    {"WWW-Authenticate", 16},
    {"If-Modified-Since", 17},
    {"Transfer-Encoding", 17},
    {"Authentication-Info", 19},
    {"If-Unmodified-Since", 19},
    {"X-Amz-Security-Token", 20},
};

static bool in_table(const struct slice *table, size_t n, struct slice name)
{
    for (size_t i = 0; i < n; i++)
        if (slice_eq_nocase(table[i], name))
            return true;
    return false;
}

static bool is_essential(struct slice name)
{
    return in_table(essential, ARRAY_LEN(essential), name) ||
           slice_starts_nocase(name, SLICE("x-amz")) ||
           slice_starts_nocase(name, SLICE("amz-sdk-"));
}

/* The value after "SignedHeaders=" in the credentials of AWS Signature Version 4. */
static struct slice signed_in_authorization(struct slice value)
{
    static const struct slice key = {"SignedHeaders=", 14};
    if (!slice_starts(value, SLICE("AWS4-")))
        return SLICE_NONE;
    size_t space = slice_index(value, ' ');
    struct slice rest = slice_of(value.p + space, value.n - space), part;
    for (bool done = false; slice_next(&rest, ',', &part, &done);) {
        part = slice_trim(part);
        if (slice_starts(part, key))
            return slice_of(part.p + key.n, part.n - key.n);
    }
    return SLICE_NONE;
}

/* Names are cut by ";", which a query carries as %3B. */
static bool is_signed(struct slice list, struct slice name)
{
    while (list.n > 0) {
        size_t end = 0;
        while (end < list.n && list.p[end] != ';' && list.p[end] != '%')
            end++;
        if (slice_eq_nocase(slice_of(list.p, end), name))
            return true;
        size_t skip = end == list.n ? end : list.p[end] == ';' ? end + 1 : end + 3;
        if (skip >= list.n)
            return false;
        list = slice_of(list.p + skip, list.n - skip);
    }
    return false;
}

static bool lists_names(const struct header_list *fields)
{
    for (size_t i = 0; i < fields->n; i++) {
        if (!slice_eq_nocase(fields->v[i].name, connection_name))
            continue;
        struct slice rest = fields->v[i].value, part;
        for (bool done = false; slice_next(&rest, ',', &part, &done);) {
            part = slice_trim(part);
            if (part.n > 0 && !in_table(options, ARRAY_LEN(options), part))
                return true;
        }
    }
    return false;
}

void hopbyhop_init(struct hopbyhop *h, const struct header_list *fields, struct slice path_query)
{
    *h = (struct hopbyhop){.fields = fields, .lists_names = lists_names(fields)};
    if (path_query.p == NULL)
        return;
    h->signed_headers = signed_in_authorization(header_get(fields, SLICE("Authorization")));
    if (h->signed_headers.p == NULL)
        h->signed_headers = query_param(target_query(path_query), SLICE("X-Amz-SignedHeaders"));
}

/* A signed Connection field goes on with what it names; one that offers a switch of protocols does
 * so only with the offer (C12). */
static bool keeps_connection(const struct hopbyhop *h)
{
    return h->keep_upgrade || (is_signed(h->signed_headers, connection_name) &&
                               !header_list_has_token(h->fields, connection_name, upgrade_name) &&
                               !header_list_has_token(h->fields, connection_name, http2_settings));
}

bool hopbyhop_keeps(const struct hopbyhop *h, const struct header_field *f)
{
    if (slice_eq_nocase(f->name, connection_name))
        return keeps_connection(h);
    if (slice_eq_nocase(f->name, upgrade_name))
        return h->keep_upgrade;
    if (in_table(never_forwarded, ARRAY_LEN(never_forwarded), f->name))
        return false;
    if (in_table(dropped_unsigned, ARRAY_LEN(dropped_unsigned), f->name))
        return is_signed(h->signed_headers, f->name);
    if (!h->lists_names || !header_list_has_token(h->fields, connection_name, f->name))
        return true;
    return is_essential(f->name) || (!slice_starts_nocase(f->name, SLICE("Proxy-")) &&
                                     is_signed(h->signed_headers, f->name));
}

bool hopbyhop_abused(const struct header_list *fields)
{
    size_t members = 0;
    for (size_t i = 0; i < fields->n; i++) {
        if (!slice_eq_nocase(fields->v[i].name, connection_name))
            continue;
        struct slice rest = fields->v[i].value, part;
        for (bool done = false; slice_next(&rest, ',', &part, &done);) {
            part = slice_trim(part);
            if (++members > HOPBYHOP_NAMES_MAX)
                return true;
            if (part.n > 0 && (!http_is_token(part) || is_essential(part)))
                return true;
        }
    }
    return false;
}

bool hopbyhop_websocket(const struct header_list *fields)
{
    return header_count(fields, upgrade_name) == 1 &&
           slice_eq_nocase(header_get(fields, upgrade_name), SLICE("websocket")) &&
           header_list_has_token(fields, connection_name, upgrade_name);
}

bool hopbyhop_trailer_allowed(struct slice name)
{
    return !in_table(not_in_trailer, ARRAY_LEN(not_in_trailer), name) &&
           !slice_starts_nocase(name, SLICE("Content-")) &&
           !slice_starts_nocase(name, SLICE("Proxy-"));
}
