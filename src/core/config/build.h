/* Between config_build.c and what it is made of: the setting being read, and how to complain about
 * it. */
#ifndef RETRYD_CORE_CONFIG_BUILD_H
#define RETRYD_CORE_CONFIG_BUILD_H

#include "core/config/option.h"
#include "core/config/settings.h"

enum {
    BUILD_LIST_MAX = 256, /* entries of a list or a map */
    BUILD_SHOWN_MAX = 64, /* bytes of a bad value that a problem repeats */
    BUILD_RECORD_KINDS = 3,
};

/* What became of an option so far. */
struct progress {
    const struct setting *from; /* what set it last */
    bool bad;                   /* some value of it could not be read */
};

struct build {
    struct config *config;
    struct problems *problems;
    struct progress *progress;     /* by option */
    const struct setting *setting; /* the one being read, */
    const struct option *option;   /* its option or NULL, */
    void *base;                    /* and whose field that sets: the config's or a rule's */
    enum setting_rank record_rank[BUILD_RECORD_KINDS]; /* of the records so far */
    char shown[BUILD_SHOWN_MAX + 8];
};

/* "conf/retryd.yaml:12: timeouts.connect: <what>" */
void build_complain(struct build *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The value in quotes, cut when long; good until the next call. */
const char *build_shown(struct build *b, struct slice value);

/* Complains about a value that was set there. */
void build_complain_at(struct build *b, const struct origin *at, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

/* A number within the bounds of the option; a mode. False after a complaint. */
bool build_number(struct build *b, struct slice value, uint64_t *out);
bool build_mode(struct build *b, struct slice value, enum retry_mode *out);
/* Empty: back to unset, which all-zero means for the optional types. */
void build_value(struct build *b, struct slice value);
/* With an index one more entry, of a list begun anew or not; without one the whole list. */
void build_list(struct build *b, bool anew, struct slice index, struct slice value);
/* Appends a copy of item to the option's list; NULL after a complaint when it is full. */
void *build_push(struct build *b, const void *item, size_t bytes);

/* Where the setting being read comes from, on the config's arena. */
struct origin build_origin(struct build *b);

/* One setting below a record; or the one that says of the whole list that it is empty: both slices
 * are empty then. */
void build_record(struct build *b, const struct option_record *kind, struct slice number,
                  struct slice rest);

/* What must hold in the end: of every listener and origin (build_reach.c), of every rule
 * (build_rule.c, which asks for the names of the listeners). */
void build_listeners_end(struct build *b);
void build_origins_end(struct build *b);
void build_rule_end(struct build *b);

#endif
