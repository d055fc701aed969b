/* The budgets as a table for people. */
#ifndef RETRYD_CMD_RETRYCTL_TABLE_H
#define RETRYD_CMD_RETRYCTL_TABLE_H

#include "core/base/slice.h"

#include <stdio.h>

/* json: what GET /budgets answers. False: it is not that. */
bool table_print(FILE *to, struct slice json);

#endif
