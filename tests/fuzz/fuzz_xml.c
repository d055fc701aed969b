/* XML error bodies, against a plain run of expat over the same document.
 *
 * Oracles: a document called complete is one for expat too, with the same root, without a DOCTYPE
 * and within the depth; every such document is called complete; a code found in a prefix is the
 * code of the whole; a code stands in the text of the document. */
#include "core/aws/errxml.h"
#include "core/base/attr.h"

#include <expat.h>

struct plain {
    XML_Parser parser;
    unsigned depth, deepest;
    bool doctype, error_root;
};

static void on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct plain *p = arg;
    (void)attributes;
    if (p->depth == 0) {
        const char *colon = strrchr(name, '|');
        p->error_root = strcmp(colon ? colon + 1 : name, "Error") == 0;
    }
    if (++p->depth > p->deepest)
        p->deepest = p->depth;
}

static void on_end(void *arg, const XML_Char *name)
{
    struct plain *p = arg;
    (void)name;
    p->depth--;
}

static void on_doctype(void *arg, const XML_Char *name, const XML_Char *sysid,
                       const XML_Char *pubid, int internal)
{
    struct plain *p = arg;
    (void)name, (void)sysid, (void)pubid, (void)internal;
    p->doctype = true;
    XML_StopParser(p->parser, XML_FALSE);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct slice trimmed(struct slice s)
{
    while (s.n > 0 && is_blank(s.p[0]))
        s = slice_of(s.p + 1, s.n - 1);
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* True: a complete document, and *p says what it is like. */
static bool parse_plain(struct slice body, struct plain *p)
{
    body = trimmed(body);
    *p = (struct plain){.parser = XML_ParserCreateNS(NULL, '|')};
    XML_SetUserData(p->parser, p);
    XML_SetElementHandler(p->parser, on_start, on_end);
    XML_SetStartDoctypeDeclHandler(p->parser, on_doctype);
    bool ok = body.n > 0 && XML_Parse(p->parser, body.p, (int)body.n, XML_TRUE) == XML_STATUS_OK;
    XML_ParserFree(p->parser);
    return ok && !p->doctype && p->deepest <= ERRXML_DEPTH_MAX;
}

static struct errcode code_of(struct slice body, struct arena *a)
{
    struct errcode e = {.source = ERRCODE_NONE};
    errxml_read(body, a, &e);
    ASSERT((e.code.n > 0) == (e.source == ERRCODE_XML));
    ASSERT(e.code.n == 0 || (errcode_allowed(e.code) && e.parsed));
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > ERRCODE_BODY_MAX)
        return 0;
    struct arena a;
    struct plain plain;
    bool complete;
    struct slice body = slice_of((const char *)data, size);
    arena_init(&a);
    enum xml_root root = errcode_xml_root(body, &complete);
    ASSERT(complete == parse_plain(body, &plain));
    if (complete)
        ASSERT(root == (plain.error_root ? XML_ROOT_ERROR : XML_ROOT_OTHER));

    struct errcode whole = code_of(body, &a);
    for (size_t part = 1; part < 8; part++) {
        struct errcode e = code_of(slice_of(body.p, body.n * part / 8), &a);
        if (e.code.n > 0)
            ASSERT(slice_eq(e.code, whole.code));
    }
    arena_fini(&a);
    return 0;
}
