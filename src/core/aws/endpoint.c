/* Host names: suffixes on label boundaries, then the host patterns of services.def (endpoint.h).
 * Invariant: is_aws depends on the suffix alone, an endpoint always lies under one. */
#include "core/aws/endpoint.h"

#include "core/base/attr.h"

#define SUFFIX(s) {(s), sizeof(s) - 1},
static const struct slice suffixes[] = {
#include "core/aws/partitions.def"
};

#define REGION_MARK "{region}"

const struct slice *aws_suffixes(size_t *n)
{
    *n = ARRAY_LEN(suffixes);
    return suffixes;
}

/* Leaves in *rest what stands before ".<suffix>". */
static bool cut_suffix(struct slice host, struct slice *rest)
{
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        size_t n = suffixes[i].n;
        if (host.n > n + 1 && host.p[host.n - n - 1] == '.' &&
            slice_ends_nocase(host, suffixes[i])) {
            *rest = slice_of(host.p, host.n - n - 1);
            return true;
        }
    }
    return false;
}

/* Cuts the last label off. */
static struct slice pop_label(struct slice *rest)
{
    const char *dot = rest->n ? memrchr(rest->p, '.', rest->n) : NULL;
    struct slice label = *rest;
    if (!dot) {
        rest->n = 0;
        return label;
    }
    label.p = dot + 1;
    label.n = (size_t)(rest->p + rest->n - label.p);
    rest->n = (size_t)(dot - rest->p);
    return label;
}

/* Cuts the last label off if it is this one. */
static bool pop_if(struct slice *rest, struct slice name)
{
    struct slice before = *rest;
    if (slice_eq_nocase(pop_label(&before), name)) {
        *rest = before;
        return true;
    }
    return false;
}

/* us-east-1, us-gov-west-1, eusc-de-east-1: two to four letters, more words, a number of one or two
 * digits. Tells regions of tomorrow too, which a list would not. */
static bool is_region(struct slice s)
{
    size_t words = 0, length = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '-') {
            if (length == 0 || (words == 0 && (length < 2 || length > 4)))
                return false;
            words++;
            length = 0;
        } else if (ascii_is_alpha(s.p[i])) {
            length++;
        } else {
            size_t digits = s.n - i;
            return words >= 2 && length == 0 && digits <= 2 && ascii_is_digit(s.p[i]) &&
                   ascii_is_digit(s.p[s.n - 1]);
        }
    }
    return false;
}

static bool label_fits(struct slice pattern, struct slice label, struct slice *region)
{
    static const struct slice fips = {"-fips", 5}, mark = {REGION_MARK, sizeof REGION_MARK - 1};
    if (slice_ends_nocase(pattern, mark)) {
        struct slice head = slice_of(pattern.p, pattern.n - mark.n);
        if (!slice_starts_nocase(label, head))
            return false;
        *region = slice_of(label.p + head.n, label.n - head.n);
        return is_region(*region);
    }
    if (pattern.n && pattern.p[pattern.n - 1] == '*')
        return slice_starts_nocase(label, slice_of(pattern.p, pattern.n - 1));
    return slice_starts_nocase(label, pattern) &&
           (label.n == pattern.n ||
            (label.n == pattern.n + fips.n && slice_ends_nocase(label, fips)));
}

static bool pattern_fits(struct slice pattern, struct slice rest, struct slice *region)
{
    bool more = slice_starts(pattern, SLICE("*."));
    if (more)
        pattern = slice_of(pattern.p + 2, pattern.n - 2);
    while (pattern.n && rest.n) {
        if (!label_fits(pop_label(&pattern), pop_label(&rest), region))
            return false;
    }
    return pattern.n == 0 && (rest.n > 0) == more;
}

/* An exact pattern beats one with "*.", whatever the order of the rows. The first letter rules out
 * most of them at the price of a byte. */
static bool find_row(struct slice rest, struct endpoint *out)
{
    size_t n;
    const struct service_row *rows = services_rows(&n);
    if (rest.n == 0)
        return false;
    char first = ascii_lower(rest.p[0]);
    for (size_t i = 0; i < n; i++) {
        for (const char *const *host = rows[i].hosts; *host; host++) {
            bool wild = (*host)[0] == '*';
            if (wild ? out->row != NULL : (*host)[0] != first && (*host)[0] != '{')
                continue;
            struct slice region = out->region;
            if (!pattern_fits(slice_str(*host), rest, &region))
                continue;
            out->row = &rows[i];
            out->resource_in_host = wild;
            out->region = region;
            if (!wild)
                return true;
        }
    }
    return out->row != NULL;
}

/* Drops all up to the label "vpce-<id>" of a VPC endpoint. */
static bool cut_vpc_endpoint(struct slice *rest)
{
    struct slice left = *rest, part;
    bool done = false;
    while (slice_next(&left, '.', &part, &done)) {
        if (slice_starts_nocase(part, SLICE("vpce-")) && left.n) {
            *rest = left;
            return true;
        }
    }
    return false;
}

void endpoint_read(struct slice host, struct endpoint *out)
{
    struct slice rest;
    memset(out, 0, sizeof *out);
    out->is_aws = cut_suffix(host, &rest);
    if (!out->is_aws)
        return;
    bool vpce = pop_if(&rest, SLICE("vpce"));
    struct slice before = rest, last = pop_label(&before);
    if (is_region(last)) {
        out->region = last;
        rest = before;
    }
    pop_if(&rest, SLICE("dualstack"));
    if (!find_row(rest, out) && vpce && cut_vpc_endpoint(&rest))
        find_row(rest, out);
}

bool aws_host(struct slice host)
{
    struct slice rest;
    return cut_suffix(host, &rest);
}

bool aws_service_endpoint(struct slice host)
{
    struct endpoint e;
    endpoint_read(host, &e);
    return e.row != NULL;
}
