/* Methods. */
#include "unit.h"

#include "core/http/message.h"

static const struct {
    const char *name;
    enum http_method id;
    bool idempotent;
} rows[] = {
    {"GET", HTTP_GET, true},          {"HEAD", HTTP_HEAD, true},
    {"POST", HTTP_POST, false},       {"PUT", HTTP_PUT, true},
    {"DELETE", HTTP_DELETE, true},    {"OPTIONS", HTTP_OPTIONS, true},
    {"CONNECT", HTTP_CONNECT, false}, {"TRACE", HTTP_TRACE, true},
    {"PATCH", HTTP_PATCH, false},     {"get", HTTP_OTHER, false},
    {"GETS", HTTP_OTHER, false},      {"", HTTP_OTHER, false},
};

START_TEST(methods)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum http_method m = http_method_of(slice_str(rows[i].name));
        ck_assert_int_eq(m, rows[i].id);
        ck_assert_int_eq(http_method_idempotent(m), rows[i].idempotent);
    }
}
END_TEST

static TCase *messages(void)
{
    TCase *tc = tcase_create("message");
    tcase_add_test(tc, methods);
    return tc;
}

UNIT_MAIN("message", messages)
