/* Memory or death, for bookkeeping of bounded size. Out of memory ends the worker by policy: code
 * that recovers from it is code nobody tests. Anything a peer can grow has a cap before it gets
 * here. */
#ifndef RETRYD_CORE_BASE_XALLOC_H
#define RETRYD_CORE_BASE_XALLOC_H

#include <stddef.h>

/* Zeroed. Freed with free(). */
void *xcalloc(size_t n, size_t size);
/* Not zeroed. */
void *xmalloc(size_t size);
void *xrealloc(void *p, size_t size);
/* NUL-terminated copy of n bytes. */
char *xstrndup(const char *p, size_t n);
char *xstrdup(const char *s);

#endif
