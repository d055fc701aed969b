/* Methods (RFC 9110 9). */
#include "core/http/message.h"
#include "core/base/attr.h"

static const struct {
    struct slice name;
    enum http_method id;
    bool idempotent;
} methods[] = {
    {{"GET", 3}, HTTP_GET, true},          {{"HEAD", 4}, HTTP_HEAD, true},
    {{"POST", 4}, HTTP_POST, false},       {{"PUT", 3}, HTTP_PUT, true},
    {{"DELETE", 6}, HTTP_DELETE, true},    {{"OPTIONS", 7}, HTTP_OPTIONS, true},
    {{"CONNECT", 7}, HTTP_CONNECT, false}, {{"TRACE", 5}, HTTP_TRACE, true},
    {{"PATCH", 5}, HTTP_PATCH, false},
};

enum http_method http_method_of(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (slice_eq(methods[i].name, name))
            return methods[i].id;
    return HTTP_OTHER;
}

bool http_method_idempotent(enum http_method m)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (methods[i].id == m)
            return methods[i].idempotent;
    return false;
}
