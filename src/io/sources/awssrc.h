/* What the AWS SDKs are told about retries -> settings (retry-semantics §11): AWS_* variables, the
 * profile in ~/.aws/config, and JVM properties that people bring along as -D NAME=VALUE.
 *
 * All of it is data (security requirement K6): bounded, never executed; a credentials file is never
 * opened. Modes are read without regard to letter case; an empty mode or number counts as unset.
 * Each function returns false with at least one problem. */
#ifndef RETRYD_IO_SOURCES_AWSSRC_H
#define RETRYD_IO_SOURCES_AWSSRC_H

#include "core/config/settings.h"

/* AWS_RETRY_MODE, AWS_MAX_ATTEMPTS, AWS_NEW_RETRIES_2026 of an environment that ends with NULL.
 *
 * `retryd env` prints AWS_MAX_ATTEMPTS=1 for clients, and RETRYD_CLIENT_ENV with it. Where both
 * have come into our own environment, the 1 is meant for others: it is not read, and a note says
 * so. */
bool awssrc_env(char *const *env, struct settings *s, struct problems *problems,
                struct problems *notes);

/* retry_mode and max_attempts of the profile AWS_PROFILE in the file AWS_CONFIG_FILE, else of
 * "default" in $HOME/.aws/config. What a variable names must be there; a file that none names and
 * that we may not read is worth a note. */
bool awssrc_profile(char *const *env, struct settings *s, struct problems *problems,
                    struct problems *notes);

/* "aws.retryMode=standard", also aws.maxAttempts and aws.newRetries2026. */
bool awssrc_property(struct slice assignment, struct settings *s, struct problems *problems);

#endif
