/* The ways out: for each origin what is trusted, who we are, from where we come and through which
 * parent proxy (security requirements G5, G7, G8, G10, I8). Read once; asked for each request. */
#ifndef RETRYD_PROXY_WAYS_H
#define RETRYD_PROXY_WAYS_H

#include "core/config/config.h"
#include "io/net/dial.h"

struct ways;

struct way {
    struct tlsclient *tls;
    unsigned profile; /* which of them: a part of the key of pooled connections */
    const struct race_source *source;
    const struct parent *parent; /* NULL: directly */
    struct slice authorization;  /* for the parent, in requests of absolute-form; may be empty */
};

/* own_root: never trusted, also not in a parent. The files that the configuration names are read
 * here; NULL with *err when one is not what it should be. */
struct ways *ways_new(const struct config *c, X509 *own_root, struct err *err);
void ways_free(struct ways *w);

/* Borrowed for the life of w. */
void ways_find(const struct ways *w, const struct authority *to, struct way *out);

#endif
