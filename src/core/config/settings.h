/* Raw settings with provenance, and the one function that turns them into a config.
 *
 * A source (YAML file, environment, command line) yields settings; build() checks all of them and
 * reports every problem at once. Nothing is half-applied: a whole config comes out or none. */
#ifndef RETRYD_CORE_CONFIG_SETTINGS_H
#define RETRYD_CORE_CONFIG_SETTINGS_H

#include "core/base/arena.h"
#include "core/base/err.h"
#include "core/config/config.h"

/* Higher wins, setting by setting. What AWS SDKs are told is weaker than what retryd is told. */
enum setting_rank {
    SETTING_DEFAULT,
    SETTING_PROFILE,  /* ~/.aws/config */
    SETTING_AWS_ENV,  /* AWS_* */
    SETTING_AWS_FLAG, /* -D aws.* */
    SETTING_FILE,
    SETTING_ENV,
    SETTING_FLAG,
};

/* One scalar at a path: "timeouts.connect", "listen[0]", "retry.services.dynamodb.max_attempts",
 * "resolve.NAME". A path without index gives a whole list, comma separated. The empty value stands
 * for null, "[]" and "{}" for the empty list and mapping. Slices live on the settings' arena. */
struct setting {
    struct slice path, value;
    enum setting_rank rank;
    struct slice origin; /* "conf/retryd.yaml", "RETRYD_LISTEN", "--set" */
    unsigned line;       /* 0: the origin has no lines */
};

/* More than that in one source is a problem: sources stop there. */
enum { SETTINGS_MAX = 4096 };

struct settings {
    struct arena arena;
    struct setting *v;
    size_t n, cap;
};

void settings_init(struct settings *s);
void settings_fini(struct settings *s);
void settings_add(struct settings *s, struct slice path, struct slice value, enum setting_rank rank,
                  const char *origin, unsigned line);

/* One problem: "conf/retryd.yaml:12: timeouts.connect: \"5 parsecs\" is not a duration; give a
 * number with ms, s, m or h, 1ms..10m". */
struct problem {
    char text[512];
};

struct problems {
    struct problem *v;
    size_t n, cap; /* at most 64 kept */
};

/* Control bytes of the text become "?": a problem is one line whatever a file holds. */
void problems_add(struct problems *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
void problems_fini(struct problems *p);

/* NULL and at least one problem, or a config and none. default_state_dir fills state_dir when
 * unset. */
struct config *config_build(const struct settings *s, const char *default_state_dir,
                            struct problems *problems);

/* What is allowed and yet looks wrong: rules that never match, names that nothing has. One line
 * each, "conf/retryd.yaml:12: <what>". */
void config_warn(const struct config *c, struct problems *out);
/* False: there is no such service in the tables (a request may still name it); *near is the one
 * that looks most like it, or empty. */
bool config_service_known(struct slice name, struct slice *near);

/* Walks every option with its effective value and origin, in table order, for `config --show`. */
void config_show(const struct settings *s, void (*line)(void *arg, const char *text), void *arg);

#endif
