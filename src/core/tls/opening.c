/* The rows are asked in their order. */
#include "core/tls/opening.h"

static bool other_name(const struct clienthello *h, struct slice host)
{
    return h->name[0] != '\0' && !slice_eq(slice_str(h->name), host);
}

/* A client with a real ECH wants to be seen at the public name, and would take our certificate for
 * that name's only. Under the name of the CONNECT it is GREASE, or the same to us. */
static bool hidden_name(const struct clienthello *h, struct slice host)
{
    return h->ech && other_name(h, host);
}

static bool old_versions(const struct clienthello *h, struct slice host)
{
    (void)host;
    return !h->modern;
}

static bool only_h2(const struct clienthello *h, struct slice host)
{
    (void)host;
    return h->alpn == HELLO_ALPN_H2;
}

static bool other_protocol(const struct clienthello *h, struct slice host)
{
    (void)host;
    return h->alpn == HELLO_ALPN_OTHER;
}

static const struct {
    bool (*applies)(const struct clienthello *h, struct slice host);
    struct opening opening;
} rows[] = {
    {hidden_name, {OPENING_TUNNEL, "ech"}},      {other_name, {OPENING_REFUSE, "sni"}},
    {old_versions, {OPENING_TUNNEL, "old_tls"}}, {only_h2, {OPENING_TUNNEL, "h2_only"}},
    {other_protocol, {OPENING_TUNNEL, "alpn"}},
};

struct opening opening_of(const struct clienthello *h, struct slice host)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].applies(h, host))
            return rows[i].opening;
    return (struct opening){OPENING_OPEN, NULL};
}
