/* A walk over XML that keeps, for each open element, which of the known shapes the path down to it
 * still fits (one bit a shape). Nothing is stored but the text of Code, up to its bound.
 *
 * The document is handed to expat at once and without declaring its end, so that a prefix is no
 * error. */
#include "core/aws/errxml.h"

#include <expat.h>
#include <limits.h>

#include "core/base/attr.h"

/* Cannot stand in a name or a namespace, so it tells them apart. */
#define NAME_SEPARATOR '\n'

enum { SHAPE_MAX = 4, TEXT_MAX = 2 * ERRCODE_MAX };

/* Where the code is: paths of local names. */
static const char *const shapes[][SHAPE_MAX + 1] = {
    {"Error", "Code"},
    {"ErrorResponse", "Error", "Code"},
    {"Response", "Errors", "Error", "Code"},
};

struct walk {
    XML_Parser parser;
    bool code_only; /* stop when the code is found or cannot come any more */
    bool stopped;   /* expat may still call back after it was told to stop */
    bool refused;   /* stopped by a DOCTYPE or by depth */
    enum xml_root root;
    unsigned depth;
    unsigned fits[ERRXML_DEPTH_MAX + 1]; /* by depth; [0]: all shapes */
    bool in_code, found;
    size_t n; /* of text; TEXT_MAX + 1: too long */
    char text[TEXT_MAX];
};

static void stop(struct walk *w)
{
    w->stopped = true;
    XML_StopParser(w->parser, XML_FALSE);
}

static void refuse(struct walk *w)
{
    w->refused = true;
    stop(w);
}

static void on_doctype(void *arg, const XML_Char *name, const XML_Char *sysid,
                       const XML_Char *pubid, int has_internal_subset)
{
    (void)name, (void)sysid, (void)pubid, (void)has_internal_subset;
    refuse(arg);
}

/* The shapes that still fit with one more element; *complete: one of them ends with it. */
static unsigned shapes_with(unsigned fits, unsigned depth, const char *local, bool *complete)
{
    unsigned left = 0;
    *complete = false;
    for (unsigned s = 0; s < ARRAY_LEN(shapes); s++) {
        const char *const *path = shapes[s];
        if (!(fits & 1u << s) || strcmp(path[depth - 1], local) != 0)
            continue;
        if (path[depth])
            left |= 1u << s;
        else
            *complete = true;
    }
    return left;
}

static void on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct walk *w = arg;
    const char *separator = strrchr(name, NAME_SEPARATOR);
    const char *local = separator ? separator + 1 : name;
    (void)attributes;
    if (w->stopped)
        return;
    if (w->depth == ERRXML_DEPTH_MAX) {
        refuse(w);
        return;
    }
    w->depth++;
    if (w->depth == 1)
        w->root = strcmp(local, "Error") == 0 ? XML_ROOT_ERROR : XML_ROOT_OTHER;
    if (!w->code_only)
        return;
    bool complete, inside_code = w->in_code;
    w->fits[w->depth] = shapes_with(w->fits[w->depth - 1], w->depth, local, &complete);
    w->in_code = complete;
    if (inside_code || (w->depth == 1 && w->fits[1] == 0))
        stop(w); /* a code has no elements in it; an unknown root has no code */
}

static void on_end(void *arg, const XML_Char *name)
{
    struct walk *w = arg;
    (void)name;
    if (w->stopped)
        return;
    if (w->in_code) {
        w->found = true;
        stop(w);
    } else if (w->code_only && w->depth > 1 && w->fits[w->depth]) {
        stop(w); /* the first Error (or what holds it) ended without a code */
    }
    w->depth--;
}

static void on_text(void *arg, const XML_Char *text, int n)
{
    struct walk *w = arg;
    if (w->stopped || !w->in_code)
        return;
    if ((size_t)n > TEXT_MAX - w->n) {
        stop(w); /* longer than any code */
        return;
    }
    memcpy(w->text + w->n, text, (size_t)n);
    w->n += (size_t)n;
}

static struct slice trim(struct slice s)
{
    static const char blanks[] = " \t\r\n";
    while (s.n && memchr(blanks, s.p[0], sizeof blanks - 1)) {
        s.p++;
        s.n--;
    }
    while (s.n && memchr(blanks, s.p[s.n - 1], sizeof blanks - 1))
        s.n--;
    return s;
}

/* False: not well-formed as far as it goes. The parser is left open for the end of the document. */
static bool walk_body(struct walk *w, struct slice body)
{
    body = trim(body); /* expat allows no blanks before an XML declaration, S3 sends them */
    if (body.n == 0 || body.n > INT_MAX)
        return false;
    w->fits[0] = (1u << ARRAY_LEN(shapes)) - 1;
    XML_SetUserData(w->parser, w);
    XML_SetElementHandler(w->parser, on_start, on_end);
    XML_SetCharacterDataHandler(w->parser, on_text);
    XML_SetStartDoctypeDeclHandler(w->parser, on_doctype);
    return XML_Parse(w->parser, body.p, (int)body.n, XML_FALSE) == XML_STATUS_OK;
}

void errxml_read(struct slice body, struct arena *a, struct errcode *out)
{
    struct walk w = {.parser = XML_ParserCreateNS(NULL, NAME_SEPARATOR), .code_only = true};
    if (!w.parser)
        return;
    bool well_formed = walk_body(&w, body) || (w.stopped && !w.refused);
    XML_ParserFree(w.parser);
    out->parsed = well_formed && w.root != XML_ROOT_NONE;
    struct slice code = trim(slice_of(w.text, w.n));
    if (w.found && errcode_allowed(code)) {
        out->code = arena_copy(a, code);
        out->source = ERRCODE_XML;
    }
}

enum xml_root errcode_xml_root(struct slice body, bool *complete)
{
    struct walk w = {.parser = XML_ParserCreateNS(NULL, NAME_SEPARATOR)};
    *complete = false;
    if (!w.parser)
        return XML_ROOT_NONE;
    if (walk_body(&w, body))
        *complete = XML_Parse(w.parser, "", 0, XML_TRUE) == XML_STATUS_OK;
    else
        w.root = XML_ROOT_NONE;
    XML_ParserFree(w.parser);
    return w.root;
}
