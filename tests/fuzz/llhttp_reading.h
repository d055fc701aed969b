/* How a parser read one connection's bytes, as a text that can be compared. llhttp.h and our own
 * headers use the same names, so the two readers are two files. */
#ifndef RETRYD_FUZZ_LLHTTP_READING_H
#define RETRYD_FUZZ_LLHTTP_READING_H

#include "core/base/strbuf.h"

enum { READING_TEXT_MAX = 4 << 20, READING_ENDS_MAX = 4096 };

/* The method that responses answer. */
enum answers { ANSWERS_GET, ANSWERS_HEAD, ANSWERS_CONNECT, ANSWERS_POST };

/* The text of a message: "METHOD target" or the status, then "name:value" for each field, an empty
 * line, the body, and the number of its bytes. */
struct reading {
    bool response;
    enum answers answers;
    struct strbuf text;
    size_t n;                      /* complete messages */
    size_t ends[READING_ENDS_MAX]; /* where in the text each of them ends */
    size_t body;                   /* bytes of the present body */
};

void reading_line(struct reading *r, struct slice a, char sep, struct slice b);
void reading_body(struct reading *r, struct slice data);
void reading_end(struct reading *r);

/* llhttp's reading of the whole wire, into an empty r. False when it refused; r has what it read
 * before. */
bool reading_by_llhttp(struct reading *r, struct slice wire);

#endif
