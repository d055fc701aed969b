/* Error codes of responses: cleaning, choice of the reader, JSON and XML, and hostile bodies
 * (retry-semantics §3; security requirement E10). */
#include "core/aws/errcode.h"
#include "core/aws/errjson.h"
#include "core/aws/errxml.h"
#include "core/aws/jsonprefix.h"
#include "core/base/attr.h"
#include "unit.h"

static struct arena arena;

static void setup(void)
{
    arena_init(&arena);
}

static void teardown(void)
{
    arena_fini(&arena);
}

/* type, header: Content-Type and x-amzn-errortype, or NULL. */
static struct errcode read_body(const char *type, const char *header, struct slice body, bool whole)
{
    struct http_resp resp = {.status = 400};
    struct errcode e;
    if (type)
        header_add(&resp.fields, &arena, SLICE("Content-Type"), slice_str(type));
    if (header)
        header_add(&resp.fields, &arena, SLICE("X-Amzn-ErrorType"), slice_str(header));
    errcode_read(&resp, body, whole, true, &arena, &e);
    ck_assert((e.code.n == 0) == (e.source == ERRCODE_NONE));
    return e;
}

static void code_is(struct errcode e, const char *want, const char *body)
{
    ck_assert_msg(slice_eq(e.code, slice_str(want)), "'%.*s' is not '%s' for %.200s",
                  SLICE_FMT(e.code), want, body);
}

struct pair {
    const char *in, *code;
};

START_TEST(cleaning)
{
    static const struct pair cases[] = {
        {"FooError", "FooError"},
        {"FooError:http://internal.amazon.com/coral/x/", "FooError"},
        {"aws.protocoltests#FooError", "FooError"},
        {"aws.protocoltests#FooError:http://internal.amazon.com/coral/x/", "FooError"},
        {"FooError,BarError", "FooError"},
        {"FooError:x,y", "FooError"},
        {"a#b#c", "b#c"},
        {" \tFooError\t ", "FooError"},
        {"ns#  FooError  :x", "FooError"},
        {"", ""},
        {"   ", ""},
        {",FooError", ""},
        {":FooError", ""},
        {"ns#", ""},
        {"Foo Error", ""},
        {"Foo\nError", ""},
        {"Foo\x7f", ""},
        {"Foo\xc3\xa4", ""},
        {"Foo;Sender", ""},
        {"AWS.Simple_Queue-Service/x", "AWS.Simple_Queue-Service/x"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct slice code = errcode_clean(slice_str(cases[i].in));
        ck_assert_msg(slice_eq(code, slice_str(cases[i].code)), "%s: %.*s", cases[i].in,
                      SLICE_FMT(code));
    }
    static char longest[ERRCODE_MAX + 2];
    memset(longest, 'a', ERRCODE_MAX);
    ck_assert_uint_eq(errcode_clean(slice_of(longest, ERRCODE_MAX)).n, ERRCODE_MAX);
    longest[ERRCODE_MAX] = 'a';
    ck_assert_uint_eq(errcode_clean(slice_of(longest, ERRCODE_MAX + 1)).n, 0);
    ck_assert_uint_eq(errcode_clean(slice_of("Foo\0", 4)).n, 0);
}
END_TEST

static const struct pair json_cases[] = {
    {"{\"__type\":\"A\"}", "A"},
    {"  \r\n\t{ \"__type\" : \"A\" } \n", "A"},
    {"{\"code\":\"A\"}", "A"},
    {"{\"Code\":\"A\"}", "A"},
    {"{\"__type\":\"A\",\"Code\":\"B\"}", "B"},
    {"{\"__type\":\"A\",\"Code\":\"B\",\"code\":\"C\"}", "C"},
    {"{\"code\":503,\"__type\":\"A\"}", "A"},
    {"{\"code\":null,\"Code\":{\"x\":\"B\"},\"__type\":\"A\"}", "A"},
    {"{\"code\":\"\",\"__type\":\"A\"}", "A"},
    {"{\"code\":\"two words\",\"__type\":\"A\"}", "A"},
    {"{\"code\":503}", ""},
    {"{\"error\":{\"code\":\"A\"}}", ""},
    {"{\"errors\":[{\"code\":\"A\"}],\"m\":[\"code\",\"B\"]}", ""},
    {"{\"CODE\":\"A\",\"__Type\":\"B\",\"type\":\"C\"}", ""},
    {"{\"m\":\"\\\"code\\\":\\\"A\\\"\",\"__type\":\"B\"}", "B"},
    {"{\"m\":\"}{][\\\\\",\"__type\":\"B\"}", "B"},
    {"{\"m\":{\"a\":[1,{\"b\":\"]}\"}]},\"__type\":\"B\"}", "B"},
    {"{\"__type\":\"ns#A:http://x/\"}", "A"},
    {"{\"__type\":\"\\u0054hrottling\"}", "Throttling"},
    {"{\"\\u0063ode\":\"A\"}", "A"},
    {"{\"\\u005f\\u005f\\u0074\\u0079\\u0070\\u0065\":\"A\"}", "A"},
    {"{\"__type\":\"A\\u0000\"}", ""},
    {"{\"m\":\"\\u0000\",\"__type\":\"A\"}", "A"},
    {"{\"n\":123456789012345678901234567890,\"__type\":\"A\"}", "A"},
    {"{\"__type\":\"A\",\"__type\":\"B\"}", "B"},
    {"{\"__type\":\"A\",\"__type\":1}", ""},
    {"{}", ""},
};

/* The grammar reader and the prefix reader agree on every well-formed body. */
START_TEST(json_bodies)
{
    for (size_t i = 0; i < ARRAY_LEN(json_cases); i++) {
        struct slice body = slice_str(json_cases[i].in);
        code_is(read_body("application/json", NULL, body, true), json_cases[i].code,
                json_cases[i].in);
        code_is(read_body(NULL, NULL, body, false), json_cases[i].code, json_cases[i].in);
    }
}
END_TEST

START_TEST(json_that_is_none)
{
    static const char *const bodies[] = {
        "",
        " ",
        "null",
        "\"A\"",
        "[{\"code\":\"A\"}]",
        "{\"code\":\"A\"",
        "{\"code\":\"A\"}x",
        "{\"code\":\"A\"}{}",
        "{\"code\":\"A\",}",
        "{code:\"A\"}",
        "{'code':'A'}",
        "{\"code\":\"A\xff\"}",
        "{\"code\":\"A\nB\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        code_is(read_body("application/json", NULL, slice_str(bodies[i]), true), "", bodies[i]);
}
END_TEST

START_TEST(json_prefixes)
{
    static const struct pair cases[] = {
        {"{\"__type\":\"A\",\"m\":\"cut off he", "A"},
        {"{\"__type\":\"A\",\"Item\":{\"a\":[1,2", "A"},
        {"{\"__type\":\"A\"", "A"},
        {"{\"__type\":\"A\",", "A"},
        {"{\"__type\":\"A\",\"code\":\"B", "A"},
        {"{\"Item\":{\"__type\":\"X\"},\"__type\":\"A\",", "A"},
        {"{\"__type\":\"A\\", ""},
        {"{\"__type\":\"A", ""},
        {"{\"__type\":", ""},
        {"{\"__type\"", ""},
        {"{\"__typ", ""},
        {"{", ""},
        {"", ""},
        {"[\"__type\":\"A\"", ""},
        {"{\"a\" \"__type\":\"A\"", ""},
        {"{],\"__type\":\"A\"", ""},
        {"{\"a\":],\"__type\":\"A\"", ""},
        {"{\"a\":1}},\"__type\":\"A\"", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        code_is(read_body("application/json", NULL, slice_str(cases[i].in), false), cases[i].code,
                cases[i].in);
}
END_TEST

START_TEST(header_and_body)
{
    struct slice body = SLICE("{\"__type\":\"B\"}");
    struct errcode e = read_body("application/json", "ns#A:x", body, true);
    code_is(e, "A", "header");
    ck_assert_int_eq(e.source, ERRCODE_HEADER);
    e = read_body("application/json", "not a code", body, true);
    code_is(e, "B", "unusable header");
    ck_assert_int_eq(e.source, ERRCODE_JSON_TYPE);
    code_is(read_body("application/json", "A", SLICE("broken"), true), "A", "broken body");
    code_is(read_body("text/plain", "A", SLICE("x"), true), "A", "plain text");
    code_is(read_body(NULL, "A", SLICE_NONE, true), "A", "nothing");
    /* XML and CBOR carry their code in the body alone. */
    code_is(read_body("application/xml", "A", SLICE("<x/>"), true), "", "xml");
    code_is(read_body("application/cbor", "A", SLICE("{\"code\":\"B\"}"), true), "", "cbor");
}
END_TEST

START_TEST(bodies_not_read)
{
    struct slice body = SLICE("{\"__type\":\"B\"}");
    struct http_resp resp = {.status = 400};
    struct errcode e;
    errcode_read(&resp, body, true, false, &arena, &e);
    code_is(e, "", "no body");
    header_add(&resp.fields, &arena, SLICE("content-encoding"), SLICE("br"));
    errcode_read(&resp, body, true, true, &arena, &e);
    code_is(e, "", "unknown coding");
    header_add(&resp.fields, &arena, SLICE("x-amzn-errortype"), SLICE("A"));
    errcode_read(&resp, body, true, true, &arena, &e);
    code_is(e, "A", "header of an unknown coding");
    resp = (struct http_resp){.status = 400};
    header_add(&resp.fields, &arena, SLICE("content-encoding"), SLICE("identity"));
    errcode_read(&resp, body, true, true, &arena, &e);
    code_is(e, "B", "identity");
    resp = (struct http_resp){.status = 400};
    header_add(&resp.fields, &arena, SLICE("smithy-protocol"), SLICE("rpc-v2-cbor"));
    errcode_read(&resp, body, true, true, &arena, &e);
    code_is(e, "", "rpc-v2-cbor");
}
END_TEST

/* The readers told apart, and whether the body was what its reader expects. */
START_TEST(formats)
{
    static const struct {
        const char *type, *body;
        enum errcode_format format;
        bool parsed, parsed_prefix;
    } cases[] = {
        {"application/json", "{\"a\":1}", ERRCODE_FORMAT_JSON, true, true},
        {"application/json", "{\"__type\":\"A\"}", ERRCODE_FORMAT_JSON, true, true},
        {"application/json", "{\"a\":", ERRCODE_FORMAT_JSON, false, true},
        {"application/json", "[]", ERRCODE_FORMAT_JSON, false, false},
        {"application/json", "<html/>", ERRCODE_FORMAT_JSON, false, false},
        {"application/json", "", ERRCODE_FORMAT_JSON, false, false},
        {"text/html", "<html><body/></html>", ERRCODE_FORMAT_XML, true, true},
        {"text/xml", "<Error><Code>A</Code></Error>", ERRCODE_FORMAT_XML, true, true},
        {"text/xml", "<Error></b>", ERRCODE_FORMAT_XML, false, false},
        {"text/xml", "<!DOCTYPE a><a/>", ERRCODE_FORMAT_XML, false, false},
        {"text/xml", "text", ERRCODE_FORMAT_XML, false, false},
        {"application/cbor", "\xa1\x61y\x01", ERRCODE_FORMAT_CBOR, true, true},
        {"application/cbor", "\xa1\x61y", ERRCODE_FORMAT_CBOR, false, true},
        {"application/cbor", "\x01", ERRCODE_FORMAT_CBOR, false, false},
        {"text/plain", "Service Unavailable", ERRCODE_FORMAT_NONE, false, false},
        {NULL, "  {}", ERRCODE_FORMAT_JSON, true, true},
        {NULL, "", ERRCODE_FORMAT_NONE, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct slice body = slice_str(cases[i].body);
        struct errcode whole = read_body(cases[i].type, NULL, body, true);
        struct errcode prefix = read_body(cases[i].type, NULL, body, false);
        ck_assert_msg(whole.format == cases[i].format && prefix.format == cases[i].format, "%s",
                      cases[i].body);
        ck_assert_msg(whole.parsed == cases[i].parsed, "%s", cases[i].body);
        ck_assert_msg(prefix.parsed == cases[i].parsed_prefix, "%s", cases[i].body);
    }
    /* A code in the header does not hide what the body is. */
    ck_assert(read_body("application/json", "A", SLICE("{}"), true).parsed);
    ck_assert(!read_body("application/json", "A", SLICE("{"), true).parsed);
}
END_TEST

static struct errcode read_query(const char *type, const char *body, const char *query,
                                 const char *more)
{
    struct http_resp resp = {.status = 400};
    struct errcode e;
    if (type)
        header_add(&resp.fields, &arena, SLICE("content-type"), slice_str(type));
    header_add(&resp.fields, &arena, SLICE("x-amzn-query-error"), slice_str(query));
    if (more)
        header_add(&resp.fields, &arena, SLICE("x-amzn-query-error"), slice_str(more));
    errcode_read(&resp, slice_str(body), true, true, &arena, &e);
    return e;
}

START_TEST(query_compatibility)
{
    static const struct pair cases[] = {
        {"A;Sender", "A"},
        {"AWS.SimpleQueueService.NonExistentQueue;Sender",
         "AWS.SimpleQueueService.NonExistentQueue"},
        {"A;", "A"},
        {" A ; Sender", "A"},
        {"A", "B"},
        {"", "B"},
        {";", "B"},
        {";Sender", "B"},
        {" ;Sender", "B"},
        {"A;Sender;", "B"},
        {"A;Sender;x", "B"},
        {"A;Sender, C;Sender", "B"},
        {"two words;Sender", "B"},
    };
    const char *json = "application/x-amz-json-1.0", *body = "{\"__type\":\"B\"}";
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct errcode e = read_query(json, body, cases[i].in, NULL);
        code_is(e, cases[i].code, cases[i].in);
        ck_assert_int_eq(e.source, strcmp(cases[i].code, "A") == 0 || i == 1 ? ERRCODE_QUERY_COMPAT
                                                                             : ERRCODE_JSON_TYPE);
    }
    code_is(read_query(json, body, "A;Sender", "A;Sender"), "B", "two lines");
    code_is(read_query("application/cbor", "\xa0", "A;Sender", NULL), "A", "cbor");
    code_is(read_query("application/cbor", "broken", "A;Sender", NULL), "A", "broken cbor");
    code_is(read_query(NULL, "", "A;Sender", NULL), "A", "no body");
    code_is(read_query("text/xml", "<Error><Code>B</Code></Error>", "A;Sender", NULL), "B", "xml");
}
END_TEST

START_TEST(format_names)
{
    ck_assert_str_eq(errcode_format_name(ERRCODE_FORMAT_NONE), "none");
    ck_assert_str_eq(errcode_format_name(ERRCODE_FORMAT_CBOR), "cbor");
    ck_assert_str_eq(errcode_source_name(ERRCODE_QUERY_COMPAT), "x-amzn-query-error");
    ck_assert_str_eq(errcode_source_name(ERRCODE_CBOR), "cbor");
}
END_TEST

static const struct pair xml_cases[] = {
    {"<Error><Code>A</Code></Error>", "A"},
    {"<Error>\n  <Type>Sender</Type>\n  <Code> A\n</Code></Error>", "A"},
    {"\n\n <?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>A</Code></Error>", "A"},
    {"<?xml version=\"1.0\"?><!-- c --><Error><!-- c --><Code>A<!-- c -->B</Code></Error>", "AB"},
    {"<ErrorResponse xmlns=\"http://x/\"><Error><Code>A</Code></Error></ErrorResponse>", "A"},
    {"<a:ErrorResponse xmlns:a=\"u\"><a:Error><a:Code>A</a:Code></a:Error></a:ErrorResponse>", "A"},
    {"<Response><Errors><Error><Code>A</Code></Error></Errors></Response>", "A"},
    {"<Response><Errors><Error><Code>A</Code></Error><Error><Code>B</Code></Error></Errors>"
     "</Response>",
     "A"},
    {"<Response><Errors><Error/><Error><Code>B</Code></Error></Errors></Response>", ""},
    {"<Error><Code><![CDATA[A]]></Code></Error>", "A"},
    {"<Error><Code>&#65;&#x42;</Code></Error>", "AB"},
    {"<Error><Code>InvalidInstanceID.Malformed</Code></Error>", "InvalidInstanceID.Malformed"},
    {"<Error><Code>a:b#c</Code></Error>", "a:b#c"},
    {"<Error><Code>a,b</Code></Error>", ""},
    {"<Error><Code>two words</Code></Error>", ""},
    {"<Error><Code></Code></Error>", ""},
    {"<Error><Code/></Error>", ""},
    {"<Error><Code>A<b/></Code></Error>", ""},
    {"<Error><Message>&lt;Code&gt;B&lt;/Code&gt;</Message><Code>A</Code></Error>", "A"},
    {"<Error><Detail><Code>B</Code></Detail><Code>A</Code></Error>", "A"},
    {"<Error><Detail><Code>B</Code></Detail></Error>", ""},
    {"<ErrorResponse><Code>A</Code></ErrorResponse>", ""},
    {"<Response><Error><Code>A</Code></Error></Response>", ""},
    {"<Error><Error><Code>A</Code></Error></Error>", ""},
    {"<html><body><Error><Code>A</Code></Error></body></html>", ""},
    {"<error><code>A</code></error>", ""},
    {"<Error><Code>A", ""},
    {"<Error><Code>A</Cod", ""},
    {"<Error><Code>A</Code>", "A"},
    {"<Error><Code>A</Code><Message>cut", "A"},
    {"<Error><Code>A</Wrong></Error>", ""},
    {"<Error><Code>&undefined;</Code></Error>", ""},
    {"<!DOCTYPE Error><Error><Code>A</Code></Error>", ""},
    {"<!DOCTYPE Error [<!ENTITY e \"A\">]><Error><Code>&e;</Code></Error>", ""},
    {"<!DOCTYPE e SYSTEM \"file:///etc/passwd\"><Error><Code>A</Code></Error>", ""},
    {"<Error xmlns=\"a\nb\"><Code>A</Code></Error>", "A"},
    {"<", ""},
    {"<Error", ""},
};

START_TEST(xml_bodies)
{
    for (size_t i = 0; i < ARRAY_LEN(xml_cases); i++) {
        struct slice body = slice_str(xml_cases[i].in);
        code_is(read_body("application/xml", NULL, body, true), xml_cases[i].code, xml_cases[i].in);
        code_is(read_body(NULL, NULL, body, false), xml_cases[i].code, xml_cases[i].in);
    }
}
END_TEST

/* A prefix gives no code or the code of the whole. */
START_TEST(xml_prefixes)
{
    for (size_t i = 0; i < ARRAY_LEN(xml_cases); i++) {
        struct slice body = slice_str(xml_cases[i].in);
        for (size_t n = 0; n <= body.n; n++) {
            struct errcode e = read_body("text/xml", NULL, slice_of(body.p, n), false);
            ck_assert_msg(e.code.n == 0 || slice_eq(e.code, slice_str(xml_cases[i].code)),
                          "%zu of %s", n, xml_cases[i].in);
        }
    }
}
END_TEST

START_TEST(s3_roots)
{
    static const struct {
        const char *body;
        enum xml_root root;
        bool complete;
    } cases[] = {
        {"<Error><Code>SlowDown</Code></Error>", XML_ROOT_ERROR, true},
        {"   \n<?xml version=\"1.0\"?>  \n <Error/>  \n", XML_ROOT_ERROR, true},
        {"<?xml version=\"1.0\"?>\n     <R xmlns=\"u\"><A>b</A></R>", XML_ROOT_OTHER, true},
        {"<R><Error><Code>A</Code></Error></R>", XML_ROOT_OTHER, true},
        {"<Error><Code>SlowDown</Code>", XML_ROOT_ERROR, false},
        {"<R><A>b", XML_ROOT_OTHER, false},
        {"<?xml version=\"1.0\"?>\n   ", XML_ROOT_NONE, false},
        {"<Err", XML_ROOT_NONE, false},
        {"   ", XML_ROOT_NONE, false},
        {"", XML_ROOT_NONE, false},
        {"plain text", XML_ROOT_NONE, false},
        {"<R></S>", XML_ROOT_NONE, false},
        {"<R/><R/>", XML_ROOT_NONE, false},
        {"<R/>tail", XML_ROOT_NONE, false},
        {"<!DOCTYPE R><R/>", XML_ROOT_NONE, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool complete = !cases[i].complete;
        ck_assert_msg(errcode_xml_root(slice_str(cases[i].body), &complete) == cases[i].root, "%s",
                      cases[i].body);
        ck_assert_msg(complete == cases[i].complete, "%s", cases[i].body);
    }
}
END_TEST

static char *append(char *p, struct slice s)
{
    if (s.n)
        memcpy(p, s.p, s.n);
    return p + s.n;
}

/* unit repeated depth times, then middle, then close repeated. */
static struct slice nested(struct slice unit, struct slice middle, struct slice close, size_t depth)
{
    char *buf = arena_alloc(&arena, depth * (unit.n + close.n) + middle.n + 1), *p = buf;
    for (size_t i = 0; i < depth; i++)
        p = append(p, unit);
    p = append(p, middle);
    for (size_t i = 0; i < depth; i++)
        p = append(p, close);
    return slice_of(buf, (size_t)(p - buf));
}

static struct slice joined(struct slice a, struct slice b, struct slice c)
{
    char *buf = arena_alloc(&arena, a.n + b.n + c.n + 1);
    append(append(append(buf, a), b), c);
    return slice_of(buf, a.n + b.n + c.n);
}

START_TEST(deep_json)
{
    static const struct {
        size_t depth;
        const char *code;
    } cases[] = {
        {JSONPREFIX_DEPTH_MAX - 1, "A"}, {JSONPREFIX_DEPTH_MAX, ""}, {10000, ""}, {100000, ""}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct slice deep = nested(SLICE("["), SLICE(""), SLICE("]"), cases[i].depth);
        struct slice body = joined(SLICE("{\"__type\":\"A\",\"x\":"), deep, SLICE("}"));
        code_is(read_body("application/json", NULL, body, true), cases[i].code, "arrays");
        code_is(read_body("application/json", NULL, body, false), cases[i].code, "arrays");
        code_is(read_body("application/json", "H", body, true), "H", "header");
    }
    code_is(read_body(NULL, NULL, nested(SLICE("{\"a\":"), SLICE("1"), SLICE("}"), 100000), true),
            "", "objects");
    code_is(read_body(NULL, NULL, nested(SLICE("{\"a\":"), SLICE(""), SLICE(""), 100000), false),
            "", "objects");
}
END_TEST

START_TEST(deep_xml)
{
    struct slice code = SLICE("<Code>A</Code></Error>");
    struct slice root = SLICE("<Error>");
    struct slice body =
        joined(root, nested(SLICE("<a>"), SLICE(""), SLICE("</a>"), ERRXML_DEPTH_MAX - 1), code);
    code_is(read_body("application/xml", NULL, body, true), "A", "deepest allowed");
    body = joined(root, nested(SLICE("<a>"), SLICE(""), SLICE("</a>"), ERRXML_DEPTH_MAX), code);
    code_is(read_body("application/xml", NULL, body, true), "", "too deep");
    bool complete;
    ck_assert_int_eq(errcode_xml_root(body, &complete), XML_ROOT_NONE);
    body = nested(SLICE("<Error>"), SLICE(""), SLICE("</Error>"), 100000);
    code_is(read_body("application/xml", NULL, body, true), "", "far too deep");
    ck_assert_int_eq(errcode_xml_root(body, &complete), XML_ROOT_NONE);
    ck_assert(!complete);
}
END_TEST

START_TEST(bombs_and_nul)
{
    struct slice bomb = SLICE("<!DOCTYPE b [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">"
                              "<!ENTITY c \"&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;\">]>"
                              "<Error><Code>&d;</Code></Error>");
    bool complete;
    code_is(read_body("application/xml", NULL, bomb, true), "", "entities");
    ck_assert_int_eq(errcode_xml_root(bomb, &complete), XML_ROOT_NONE);
    code_is(read_body("application/xml", NULL, SLICE("<Error><Code>A\0B</Code></Error>"), true), "",
            "nul");
    code_is(read_body("application/json", NULL, SLICE("{\"code\":\"A\0B\"}"), true), "", "nul");
    code_is(read_body("application/json", NULL, SLICE("{\"code\":\"A\0B\",\"x\":"), false), "",
            "nul");
    code_is(read_body("application/json", NULL, SLICE("\0{\"code\":\"A\"}"), true), "", "nul");
    code_is(read_body(NULL, "A\x01", SLICE("\0\0\0"), true), "", "nul");
}
END_TEST

static struct slice filled(size_t n)
{
    char *buf = arena_alloc(&arena, n + 1);
    memset(buf, 'x', n);
    return slice_of(buf, n);
}

START_TEST(long_bodies_and_codes)
{
    struct slice open = SLICE("{\"m\":\""), close = SLICE("\",\"__type\":\"A\"}");
    struct slice body = joined(open, filled(ERRCODE_BODY_MAX - open.n - close.n), close);
    code_is(read_body(NULL, NULL, body, true), "A", "at the bound");
    body = joined(open, filled(ERRCODE_BODY_MAX), close);
    code_is(read_body(NULL, NULL, body, true), "", "code beyond the bound");
    body = joined(SLICE("{\"__type\":\"A\",\"m\":\""), filled(ERRCODE_BODY_MAX), SLICE("\"}"));
    code_is(read_body(NULL, NULL, body, true), "A", "cut by the bound");

    struct slice code = filled(ERRCODE_MAX);
    struct slice a = SLICE("<Error><Code>"), b = SLICE("</Code></Error>");
    ck_assert_uint_eq(read_body(NULL, NULL, joined(a, code, b), true).code.n, ERRCODE_MAX);
    code_is(read_body(NULL, NULL, joined(a, filled(ERRCODE_MAX + 1), b), true), "", "xml");
    code_is(read_body(NULL, NULL, joined(a, filled(60000), b), true), "", "xml");
    code_is(read_body(NULL, NULL,
                      joined(SLICE("{\"code\":\""), filled(ERRCODE_MAX + 1), SLICE("\"}")), true),
            "", "json");
    ck_assert_uint_le(arena.total_bytes, 1 << 20);
}
END_TEST

START_TEST(source_names)
{
    for (int s = ERRCODE_NONE; s <= ERRCODE_CBOR; s++)
        ck_assert(errcode_source_name((enum errcode_source)s)[0] != '\0');
}
END_TEST

static TCase *codes(void)
{
    TCase *tc = tcase_create("codes");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, cleaning);
    tcase_add_test(tc, json_bodies);
    tcase_add_test(tc, json_that_is_none);
    tcase_add_test(tc, json_prefixes);
    tcase_add_test(tc, header_and_body);
    tcase_add_test(tc, bodies_not_read);
    tcase_add_test(tc, formats);
    tcase_add_test(tc, query_compatibility);
    tcase_add_test(tc, format_names);
    tcase_add_test(tc, xml_bodies);
    tcase_add_test(tc, xml_prefixes);
    tcase_add_test(tc, s3_roots);
    tcase_add_test(tc, source_names);
    return tc;
}

static TCase *hostile(void)
{
    TCase *tc = tcase_create("hostile");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, deep_json);
    tcase_add_test(tc, deep_xml);
    tcase_add_test(tc, bombs_and_nul);
    tcase_add_test(tc, long_bodies_and_codes);
    return tc;
}

UNIT_MAIN("errcode", codes, hostile)
