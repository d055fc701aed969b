/* NO_PROXY: what curl matches is matched, and nothing else. */
#include "unit.h"

#include "core/base/attr.h"
#include "core/config/noproxy.h"

static const struct {
    const char *words; /* separated by spaces */
    const char *to;
    bool match;
} table[] = {
    /* names */
    {"example.com", "example.com:443", true},
    {"example.com", "www.example.com:443", true},
    {"example.com", "a.b.example.com:443", true},
    {"example.com", "EXAMPLE.COM:443", true},
    {"EXAMPLE.com", "example.com:443", true},
    {"example.com", "example.com.:443", true},
    {"example.com.", "example.com:443", true},
    {".example.com", "example.com:443", true}, /* curl since 7.86 */
    {".example.com", "www.example.com:443", true},
    {".example.com.", "www.example.com:443", true},
    {"example.com", "badexample.com:443", false},
    {".example.com", "badexample.com:443", false},
    {"example.com", "example.com.evil.test:443", false},
    {"example.com", "example.co:443", false},
    {"www.example.com", "example.com:443", false},
    {"example.com", "com:443", false},
    {"com", "example.com:443", true},
    {"localhost", "localhost:80", true},
    {"localhost", "notlocalhost:80", false},
    {"localhost", "a.localhost:80", true},
    {"*", "anything.test:443", true},
    {"*", "192.0.2.1:443", true},
    {"*", "[2001:db8::1]:443", true},
    {"*.example.com", "www.example.com:443", true},
    {"*.example.com", "example.com:443", false},
    {"*.example.com", "badexample.com:443", false},
    {"a*.example.com", "ab.example.com:443", false}, /* no other wildcards */
    {".", "example.com:443", false},
    {"", "example.com:443", false},
    /* several */
    {"one.test two.test", "two.test:443", true},
    {"one.test two.test", "three.test:443", false},
    /* addresses */
    {"192.0.2.1", "192.0.2.1:443", true},
    {"192.0.2.1", "192.0.2.10:443", false},
    {"2.1", "192.0.2.1:443", false}, /* no suffixes of addresses */
    {"192.0.2.1", "a.192.0.2.1.test:443", false},
    {"2001:db8::1", "[2001:db8::1]:443", true},
    {"[2001:db8::1]", "[2001:db8::1]:443", true},
    {"2001:DB8:0::1", "[2001:db8::1]:443", true},
    {"2001:db8::2", "[2001:db8::1]:443", false},
    {"[192.0.2.1]", "192.0.2.1:443", false},
    {"[2001:db8::1", "[2001:db8::1]:443", false},
    {"::1", "127.0.0.1:443", false},
    /* ranges */
    {"192.0.2.0/24", "192.0.2.255:443", true},
    {"192.0.2.0/24", "192.0.3.0:443", false},
    {"192.0.2.77/24", "192.0.2.1:443", true}, /* bits beyond the prefix do not matter */
    {"10.0.0.0/9", "10.127.0.1:443", true},
    {"10.0.0.0/9", "10.128.0.1:443", false},
    {"192.0.2.1/32", "192.0.2.1:443", true},
    {"192.0.2.1/32", "192.0.2.2:443", false},
    {"0.0.0.0/0", "192.0.2.1:443", true},
    {"0.0.0.0/0", "[2001:db8::1]:443", false},
    {"192.0.2.0/33", "192.0.2.0:443", false},
    {"192.0.2.0/", "192.0.2.0:443", false},
    {"192.0.2.0/x", "192.0.2.0:443", false},
    {"192.0.2.0/24", "host192.test:443", false},
    {"2001:db8::/32", "[2001:db8:1::1]:443", true},
    {"[2001:db8::]/32", "[2001:db8:1::1]:443", true},
    {"[2001:db8::/32]", "[2001:db8:1::1]:443", true},
    {"2001:db8::/32", "[2001:db9::1]:443", false},
    {"2001:db8::/129", "[2001:db8::]:443", false},
    {"example.com/24", "example.com:443", false},
    /* ports */
    {"example.com:8443", "example.com:8443", true},
    {"example.com:8443", "www.example.com:8443", true},
    {"example.com:8443", "example.com:443", false},
    {"192.0.2.1:8443", "192.0.2.1:8443", true},
    {"192.0.2.1:8443", "192.0.2.1:443", false},
    {"[2001:db8::1]:8443", "[2001:db8::1]:8443", true},
    {"[2001:db8::1]:8443", "[2001:db8::1]:443", false},
    {"*:8443", "example.com:8443", true},
    {"*:8443", "example.com:443", false},
    {"example.com:0", "example.com:443", false},
    {"example.com:x", "example.com:443", false},
    {"example.com:70000", "example.com:443", false},
    {":443", "example.com:443", false},
};

START_TEST(words)
{
    struct noproxy_rule rules[4];
    size_t n = 0;
    struct slice rest = slice_str(table[_i].words), word;
    for (bool done = false; slice_next(&rest, ' ', &word, &done);)
        n += noproxy_parse(word, &rules[n]);
    struct authority to;
    const char *why;
    ck_assert(authority_parse(slice_str(table[_i].to), 0, &to, &why));
    ck_assert_msg(noproxy_match(rules, n, &to) == table[_i].match, "\"%s\" and %s", table[_i].words,
                  table[_i].to);
}
END_TEST

static TCase *tcase_noproxy(void)
{
    TCase *tc = tcase_create("noproxy");
    tcase_add_loop_test(tc, words, 0, ARRAY_LEN(table));
    return tc;
}

UNIT_MAIN("noproxy", tcase_noproxy)
