/* Proxy and CA variables. */
#include "cmd/environ.h"
#include "core/base/attr.h"
#include "core/base/xalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Instance and container metadata are link-local: the proxy never relays them (security requirement
 * I3). */
static const char no_proxy[] =
    "169.254.169.254,169.254.170.2,fd00:ec2::254,localhost,127.0.0.1,::1";

/* These replace the program's own store, so they get the system's certificates and our root. */
static const char *const bundles[] = {"AWS_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
                                      "CURL_CA_BUNDLE", "PERL_LWP_SSL_CA_FILE"};

const char *const *environ_bundles(size_t *n)
{
    *n = ARRAY_LEN(bundles);
    return bundles;
}

static void add(struct environ_list *l, const char *name, const char *value)
{
    ASSERT(l->n < ENVIRON_MAX);
    l->v[l->n].name = name;
    l->v[l->n].value = xstrdup(value);
    l->n++;
}

/* What is set already, in either spelling, and ours behind it; the same for both spellings. */
static void add_no_proxy(struct environ_list *l)
{
    const char *old = getenv("NO_PROXY");
    if (old == NULL || old[0] == '\0')
        old = getenv("no_proxy");
    size_t n = (old ? strlen(old) : 0) + sizeof no_proxy + 1;
    char *all = xmalloc(n);
    if (old == NULL || old[0] == '\0')
        snprintf(all, n, "%s", no_proxy);
    else if (strstr(old, no_proxy) != NULL)
        snprintf(all, n, "%s", old);
    else
        snprintf(all, n, "%s,%s", old, no_proxy);
    add(l, "NO_PROXY", all);
    add(l, "no_proxy", all);
    free(all);
}

void environ_build(struct environ_list *l, const char *url, const char *root, const char *bundle)
{
    static const char *const proxies[] = {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"};
    *l = (struct environ_list){.n = 0};
    for (size_t i = 0; i < ARRAY_LEN(proxies); i++)
        add(l, proxies[i], url);
    add_no_proxy(l);
    for (size_t i = 0; i < ARRAY_LEN(bundles); i++)
        add(l, bundles[i], bundle);
    add(l, "NODE_EXTRA_CA_CERTS", root); /* adds to the store that Node brings along */
    const char *attempts = getenv("AWS_MAX_ATTEMPTS");
    if (attempts == NULL || (getenv("RETRYD_CLIENT_ENV") != NULL && strcmp(attempts, "1") == 0)) {
        /* For clients; a retryd that is started in the same shell is not to take it for its own. */
        add(l, "AWS_MAX_ATTEMPTS", "1");
        add(l, "RETRYD_CLIENT_ENV", "1");
    }
}

void environ_fini(struct environ_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i].value);
    l->n = 0;
}
