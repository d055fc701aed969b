/* The properties of one profile of an AWS configuration file (retry-semantics §11).
 *
 * A cursor over the text: bytes in, keys and values with their lines out, nothing copied. Sections
 * are [profile NAME], NAME in quotes when it holds blanks; for "default" also [default], which does
 * not count once [profile default] exists. Any other section is passed over, as are comments and
 * indented lines: those belong to the property above them. */
#ifndef RETRYD_CORE_CONFIG_INI_H
#define RETRYD_CORE_CONFIG_INI_H

#include "core/base/slice.h"

struct ini_property {
    struct slice key, value; /* trimmed, a comment cut off the value; it may be empty */
    unsigned line;
};

struct ini {
    struct slice rest, profile;
    unsigned line;       /* of what was read last, from 1 */
    bool prefixed;       /* only [profile NAME] counts */
    bool started;        /* a section has begun */
    bool inside;         /* and it is the profile's */
    const char *problem; /* why reading ended at `line`, in static text; NULL: it did not */
};

/* False: there is no such profile, or the text is no such file (problem is set). The slices are
 * borrowed. */
bool ini_open(struct ini *in, struct slice text, struct slice profile);
/* The next property in the order of the file: of equal keys the last one counts, letter case aside.
 * False at the end, or at a problem. */
bool ini_next(struct ini *in, struct ini_property *out);

#endif
