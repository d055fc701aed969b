/* What a ClientHello comes to (security requirements F2, F6, F7). */
#include "unit.h"

#include "core/tls/opening.h"

static const struct {
    struct clienthello hello;
    enum opening_kind kind;
    const char *reason;
} cases[] = {
    {{.modern = true}, OPENING_OPEN, NULL},
    {{.modern = true, .name = "sts.amazonaws.com"}, OPENING_OPEN, NULL},
    {{.modern = true, .alpn = HELLO_ALPN_HTTP11}, OPENING_OPEN, NULL},
    {{.modern = true, .name = "sqs.amazonaws.com"}, OPENING_REFUSE, "sni"},
    {{.modern = true, .name = "a.sts.amazonaws.com"}, OPENING_REFUSE, "sni"},
    {{.modern = true, .name = "sqs.amazonaws.com", .alpn = HELLO_ALPN_H2}, OPENING_REFUSE, "sni"},
    {{.modern = true, .alpn = HELLO_ALPN_H2}, OPENING_TUNNEL, "h2_only"},
    {{.modern = true, .alpn = HELLO_ALPN_OTHER}, OPENING_TUNNEL, "alpn"},
    {{.modern = false}, OPENING_TUNNEL, "old_tls"},
    {{.modern = true, .ech = true, .name = "public.example"}, OPENING_TUNNEL, "ech"},
    {{.modern = true, .ech = true, .name = "sts.amazonaws.com"}, OPENING_OPEN, NULL},
    {{.modern = true, .ech = true}, OPENING_OPEN, NULL},
};

START_TEST(table)
{
    struct opening o = opening_of(&cases[_i].hello, SLICE("sts.amazonaws.com"));
    ck_assert_int_eq(o.kind, cases[_i].kind);
    if (cases[_i].reason == NULL)
        ck_assert_ptr_null(o.reason);
    else
        ck_assert_str_eq(o.reason, cases[_i].reason);
}
END_TEST

static TCase *openings(void)
{
    TCase *tc = tcase_create("opening");
    tcase_add_loop_test(tc, table, 0, sizeof cases / sizeof cases[0]);
    return tc;
}

UNIT_MAIN("opening", openings)
