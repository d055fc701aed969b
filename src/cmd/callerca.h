/* The certificates that the caller of `exec` trusts beside the system's: a bundle that a variable
 * names. The command is to go on trusting them, and retryd trusts them upstream in its place. */
#ifndef RETRYD_CMD_CALLERCA_H
#define RETRYD_CMD_CALLERCA_H

#include "core/base/err.h"
#include <stdbool.h>

enum { CALLERCA_PATH_MAX = 4096 };

/* The file that the first of the variables names; NULL: none is set, or to a bundle of ours (`env`
 * gives one), in state_dir. */
const char *callerca_find(const char *state_dir);
/* Writes ours and the caller's into a new file beside ours, for the life of the process: its path
 * is put into path, for callerca_remove(). False with err, and an empty path. */
bool callerca_join(const char *ours, const char *callers, char path[CALLERCA_PATH_MAX],
                   struct err *err);
void callerca_remove(const char *path); /* empty: nothing */

#endif
