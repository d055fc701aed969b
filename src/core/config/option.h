/* The table of options, made from options.def: what exists, of which type, where it goes in struct
 * config. */
#ifndef RETRYD_CORE_CONFIG_OPTION_H
#define RETRYD_CORE_CONFIG_OPTION_H

#include "core/base/slice.h"

enum option_type {
    /* one value */
    OPTION_BOOL,
    OPTION_DURATION,
    OPTION_SIZE,
    OPTION_COUNT,
    OPTION_CHOICE,
    OPTION_MODE,    /* enum retry_mode */
    OPTION_FLAVOUR, /* of legacy mode */
    OPTION_PATH,
    OPTION_WORD,      /* a name of the system's */
    OPTION_WORKERS,   /* a count; 0 stands for auto */
    OPTION_FILE_MODE, /* octal */
    OPTION_ENDPOINT,  /* ADDRESS:PORT or unix:/PATH */
    OPTION_PROXY_URL,
    /* lists */
    OPTION_LISTEN,
    OPTION_HOSTS,
    OPTION_OPEN_HOSTS, /* hosts whose TLS is opened: no whole top-level domain */
    OPTION_PORTS,
    OPTION_CIDRS,
    OPTION_WORDS,
    OPTION_KEYS, /* access key ids: a value is not repeated anywhere */
    OPTION_STATUSES,
    OPTION_ADDRESSES,
    OPTION_NO_PROXY,
    OPTION_BUDGET_PARTS,
    /* maps */
    OPTION_RESOLVE,
    OPTION_SERVICE_MODE,
    OPTION_SERVICE_ATTEMPTS,
};

enum option_kind { OPTION_KIND_VALUE, OPTION_KIND_LIST, OPTION_KIND_MAP };

struct option {
    const char *path; /* "timeouts.connect"; "*" stands for a name of the user's */
    enum option_type type;
    enum option_kind kind;
    size_t offset, n_offset; /* in struct config or struct rule; n_offset for lists and maps */
    const char *text;        /* the default; "": unset */
    const char *allowed;     /* "1ms..10m", "off|standard" or "" */
    const char *doc;
};

extern const struct option option_table[];
extern const size_t option_table_n;
/* A list of records of the user's: rules[N], listeners[N], origins[N]. */
struct option_record {
    const char *path, *noun;
    const char *after;         /* the option that it follows where all are shown */
    const struct option *rows; /* by enum rule_row and so on; paths are relative to the record */
    size_t n_rows;
    size_t offset, n_offset; /* of the array in struct config */
    size_t bytes;            /* of one, which begins as struct config_record does */
};
extern const struct option_record option_records[];
extern const size_t option_records_n;

/* The option of a path, or NULL. *key gets the user's name in a map, the index in a list
 * ("listen[2]" gives "2"), else the empty slice. */
const struct option *option_find(struct slice path, struct slice *key);

/* "rules[3].match.host[0]" -> "3", "match.host[0]"; the rest of "rules[3]" is empty; of "rules"
 * both are. NULL for any other path. */
const struct option_record *option_record_of(struct slice path, struct slice *number,
                                             struct slice *rest);
/* The row of such a rest, or NULL; *key as above. */
const struct option *option_find_in(const struct option_record *r, struct slice rest,
                                    struct slice *key);
bool option_is_section_in(const struct option_record *r, struct slice rest); /* "match", "quota" */
const struct option *option_nearest_in(const struct option_record *r, struct slice rest);

/* True for "timeouts", "retry.services", "retry.services.NAME": options live below it. */
bool option_is_section(struct slice path);
/* True if the keys below this section are names of the user's, which may hold dots. */
bool option_has_free_keys(struct slice section);

/* The option whose path looks most like this one; NULL if none is near. */
const struct option *option_nearest(struct slice path);

/* How many letters two names differ by, the case of a's aside; a large number if one is long. */
size_t option_distance(struct slice a, struct slice b);

/* The environment variable of the option: "RETRYD_TIMEOUTS_CONNECT". Maps have none: "". */
enum { OPTION_VARIABLE_MAX = 64 };
void option_variable(const struct option *o, char out[OPTION_VARIABLE_MAX]);

#endif
