/* The variables that point a program at retryd: one list for `env`, `run` and `exec` (clients:
 * section 3). */
#ifndef RETRYD_CMD_ENVIRON_H
#define RETRYD_CMD_ENVIRON_H

#include <stddef.h>

enum { ENVIRON_MAX = 16 };

struct environ_list {
    struct {
        const char *name;
        char *value;
    } v[ENVIRON_MAX];
    size_t n;
};

/* url: of the proxy; root and bundle: the CA files. NO_PROXY keeps what is set
 * already and gains the metadata and loopback addresses; AWS_MAX_ATTEMPTS is 1 unless set (two
 * layers of retries multiply). */
void environ_build(struct environ_list *l, const char *url, const char *root, const char *bundle);
/* The variables that name a bundle, the one with the last word first. */
const char *const *environ_bundles(size_t *n);
void environ_fini(struct environ_list *l);

#endif
