/* Reading the configuration for the verbs that need one: command line, environment and file.
 *
 * -c FILE, --config FILE: the file; else $RETRYD_CONFIG, else $XDG_CONFIG_HOME/retryd/retryd.yaml
 * (~/.config without that variable) or /etc/retryd/retryd.yaml when there is one; else none.
 * --set PATH=VALUE: one option, repeatable; wins over environment and file.
 * -D NAME=VALUE: a JVM property aws.*, repeatable; weaker than all that speaks to retryd itself,
 * stronger than AWS_* variables and the profile.
 *
 * Options end at the first operand or at "--". */
#ifndef RETRYD_CMD_LOAD_H
#define RETRYD_CMD_LOAD_H

#include "core/config/settings.h"

/* An option of the verb's own: a switch like --show, or one with a value. An array of them ends
 * with name NULL. */
struct load_switch {
    const char *name;   /* "--show" */
    bool *seen;         /* a switch, or NULL */
    const char **value; /* where the value goes (borrowed from argv), or NULL */
};

struct load_result {
    /* Set by the caller before load_config(): NULL or the verb's own switches. */
    const struct load_switch *switches;

    struct config *config;    /* NULL: there are problems */
    struct settings settings; /* what config_show() wants */
    struct problems problems;
    struct problems notes; /* what was passed over with good reason */
    bool usage;            /* the command line is the problem */
    char *file;            /* what was read; NULL: no file */
    int first_operand;     /* argv[first_operand..argc-1] are operands; argc: none */
};

/* argv[0] is the verb. False with problems, all of them at once; finish out either way. */
bool load_config(int argc, char **argv, struct load_result *out);
/* Every note on a line of standard error. */
void load_print_notes(const struct load_result *r);
/* Every problem on a line of standard error. */
void load_print_problems(const struct load_result *r);
/* Frees everything, the config too unless the caller took it and left NULL. */
void load_fini(struct load_result *r);

#endif
