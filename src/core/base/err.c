/* Error lines. */
#include "core/base/err.h"

#include <stdarg.h>
#include <stdio.h>

bool err_set(struct err *err, const char *fmt, ...)
{
    if (err == NULL)
        return false;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    return false;
}
