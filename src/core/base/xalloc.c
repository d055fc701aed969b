/* Memory or death. */
#include "core/base/xalloc.h"
#include "core/base/attr.h"

#include <stdlib.h>
#include <string.h>

void *xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    ASSERT(p != NULL);
    return p;
}

void *xmalloc(size_t size)
{
    void *p = malloc(size ? size : 1);
    ASSERT(p != NULL);
    return p;
}

void *xrealloc(void *old, size_t size)
{
    void *p = realloc(old, size ? size : 1);
    ASSERT(p != NULL);
    return p;
}

char *xstrndup(const char *p, size_t n)
{
    char *s = xmalloc(n + 1);
    if (n)
        memcpy(s, p, n);
    s[n] = '\0';
    return s;
}

char *xstrdup(const char *s)
{
    return xstrndup(s, strlen(s));
}
