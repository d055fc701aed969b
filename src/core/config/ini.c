/* Reading an AWS configuration file line by line (retry-semantics §11). What concerns another
 * profile is passed over unread, good or bad; only where it could be unclear whose a line is, or
 * what a line of the profile says, the file is refused. */
#include "core/config/ini.h"

enum section { SECTION_BAD, SECTION_OTHER, SECTION_PLAIN, SECTION_PREFIXED };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool next_line(struct ini *in, struct slice *line)
{
    if (in->rest.n == 0)
        return false;
    size_t end = slice_index(in->rest, '\n');
    size_t used = end < in->rest.n ? end + 1 : end;
    *line = slice_of(in->rest.p, end);
    if (line->n > 0 && line->p[line->n - 1] == '\r')
        line->n--;
    in->rest = slice_of(in->rest.p + used, in->rest.n - used);
    in->line++;
    return true;
}

/* NAME] or "NAME"]; a name without quotes that holds blanks is nobody's. */
static enum section read_name(struct slice s, struct slice *name)
{
    bool quoted = s.n > 0 && (s.p[0] == '"' || s.p[0] == '\'');
    if (quoted) {
        char quote = s.p[0];
        s = slice_of(s.p + 1, s.n - 1);
        size_t end = slice_index(s, quote);
        *name = slice_of(s.p, end);
        s = end < s.n ? slice_trim(slice_of(s.p + end + 1, s.n - end - 1)) : SLICE_NONE;
    }
    size_t close = slice_index(s, ']');
    if (close == s.n)
        return SECTION_BAD;
    if (quoted)
        return close == 0 ? SECTION_PREFIXED : SECTION_OTHER;
    *name = slice_trim(slice_of(s.p, close));
    for (size_t i = 0; i < name->n; i++) {
        if (is_blank(name->p[i]))
            return SECTION_OTHER;
    }
    return SECTION_PREFIXED;
}

/* The line begins with "[". What follows the closing bracket is a comment or means nothing. */
static enum section read_section(struct slice line, struct slice *name)
{
    static const char prefix[] = "profile";
    enum { PREFIX_N = sizeof prefix - 1 };
    struct slice s = slice_trim(slice_of(line.p + 1, line.n - 1));
    if (slice_starts(s, SLICE(prefix)) && s.n > PREFIX_N && is_blank(s.p[PREFIX_N]))
        return read_name(slice_trim(slice_of(s.p + PREFIX_N, s.n - PREFIX_N)), name);
    size_t close = slice_index(s, ']');
    *name = slice_trim(slice_of(s.p, close));
    return close < s.n ? SECTION_PLAIN : SECTION_BAD;
}

static bool stop(struct ini *in, const char *problem)
{
    in->problem = problem;
    return false;
}

/* Whose section begins here. False: that cannot be told. */
static bool enter_section(struct ini *in, struct slice line)
{
    struct slice name;
    enum section section = read_section(line, &name);
    if (section == SECTION_BAD)
        return stop(in, "a section without its closing bracket");
    in->started = true;
    in->inside = slice_eq(name, in->profile) &&
                 (section == SECTION_PREFIXED || (section == SECTION_PLAIN && !in->prefixed));
    return true;
}

/* "[default]" is a profile without the prefix, any other name is not. */
static bool scan_sections(struct ini *in, bool *found)
{
    bool may_be_plain = slice_eq(in->profile, SLICE("default"));
    struct slice line, name;
    *found = false;
    in->prefixed = !may_be_plain;
    while (next_line(in, &line)) {
        if (line.n == 0 || line.p[0] != '[')
            continue;
        enum section section = read_section(line, &name);
        if (section == SECTION_BAD)
            return stop(in, "a section without its closing bracket");
        if (section == SECTION_OTHER || !slice_eq(name, in->profile))
            continue;
        in->prefixed |= section == SECTION_PREFIXED;
        *found |= section == SECTION_PREFIXED || may_be_plain;
    }
    return true;
}

bool ini_open(struct ini *in, struct slice text, struct slice profile)
{
    bool found;
    *in = (struct ini){.rest = text, .profile = profile};
    if (!scan_sections(in, &found))
        return false;
    in->rest = text;
    in->line = 0;
    return found;
}

/* A comment begins with "#" or ";" after a blank; without one they are part of the value. */
static struct slice cut_comment(struct slice value)
{
    for (size_t i = 1; i < value.n; i++) {
        if ((value.p[i] == '#' || value.p[i] == ';') && is_blank(value.p[i - 1]))
            return slice_of(value.p, i);
    }
    return value;
}

/* Nothing, a comment, or more of the property above. */
static bool says_nothing(struct slice line)
{
    return line.n == 0 || is_blank(line.p[0]) || line.p[0] == '#' || line.p[0] == ';';
}

bool ini_next(struct ini *in, struct ini_property *out)
{
    struct slice line;
    if (in->problem)
        return false;
    while (next_line(in, &line)) {
        if (says_nothing(line))
            continue;
        if (line.p[0] == '[') {
            if (!enter_section(in, line))
                return false;
            continue;
        }
        if (!in->started)
            return stop(in, "a setting before the first section");
        if (!in->inside)
            continue;
        size_t eq = slice_index(line, '=');
        struct slice key = slice_trim(slice_of(line.p, eq));
        if (eq == line.n || key.n == 0)
            return stop(in, "not a setting; give NAME = VALUE");
        struct slice value = slice_of(line.p + eq + 1, line.n - eq - 1);
        *out = (struct ini_property){key, slice_trim(cut_comment(value)), in->line};
        return true;
    }
    return false;
}
