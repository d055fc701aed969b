/* Settings from lines of text, "path=value" each, as a source would have made them. */
#ifndef RETRYD_TESTS_LINES_H
#define RETRYD_TESTS_LINES_H

#include "core/config/settings.h"

/* Line n of text becomes a setting at origin:n. */
static inline void lines_add(struct settings *s, const char *text, enum setting_rank rank,
                             const char *origin)
{
    struct slice rest = slice_str(text), line;
    bool done = false;
    for (unsigned n = 1; slice_next(&rest, '\n', &line, &done); n++) {
        size_t eq = slice_index(line, '=');
        if (eq < line.n)
            settings_add(s, slice_of(line.p, eq), slice_of(line.p + eq + 1, line.n - eq - 1), rank,
                         origin, n);
    }
}

/* The config of a file with these lines. */
static inline struct config *lines_build(const char *text, struct problems *problems)
{
    struct settings s;
    settings_init(&s);
    lines_add(&s, text, SETTING_FILE, "f.yaml");
    struct config *c = config_build(&s, "/state", problems);
    settings_fini(&s);
    return c;
}

#endif
