/* RETRYD_* variables -> settings: RETRYD_TIMEOUTS_CONNECT=5s sets timeouts.connect, RETRYD_LISTEN a
 * whole list, comma separated. Maps (resolve, retry.services) have no variables.
 *
 * A RETRYD_ variable that is no option is a problem: a misspelt limit must not pass in silence. */
#ifndef RETRYD_IO_SOURCES_ENVSRC_H
#define RETRYD_IO_SOURCES_ENVSRC_H

#include "core/config/settings.h"

/* Reads an environment that ends with NULL. False with at least one problem. RETRYD_CONFIG is the
 * caller's. */
bool envsrc_read(char *const *env, struct settings *s, struct problems *problems);

#endif
