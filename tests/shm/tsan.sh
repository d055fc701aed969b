#!/bin/sh
# tsan.sh [CC]: the shared region under ThreadSanitizer. The stress test's worker runs in threads, each with a
# seat of its own, on the same mapping. The tool sees that whatever two of them touch is atomic and, where other
# data hangs on it, ordered; it does not explore what a weaker machine might do with the orders that are asked
# for: that is argued where they are asked for (cow.c, budgets.c).
set -eu
cd "$(dirname "$0")/../.."
CC=${1:-clang-14}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2046 # flags and file names without blanks
$CC -std=c17 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror -Wno-missing-field-initializers -fsanitize=thread -Isrc -Itests/unit \
    -o "$work/stress" tests/unit/io/shm/test_stress.c src/io/shm/*.c src/io/obs/log.c \
    src/core/retry/limiter.c src/core/retry/quota.c src/core/base/*.c \
    $(pkg-config --cflags --libs check) -lm
# ThreadSanitizer wants its part of the address space free, which a large randomisation may take.
TSAN_OPTIONS="halt_on_error=1 exitcode=66" CK_FORK=no CK_RUN_CASE=threads setarch "$(uname -m)" -R "$work/stress"
