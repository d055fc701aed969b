#!/usr/bin/env python3
"""core/ is pure: no system call, clock, randomness or output.

What the core archives take from outside (nm -u) must be defined by another core archive or stand in the
short list below. Nor may they hold writable data (.data, .bss): no mutable globals. (__unnamed_N is what
the sanitizers keep about a place in the source.)
"""
import glob
import os
import re
import subprocess

from arch import Check

MEMORY = "malloc calloc realloc free aligned_alloc abort memcpy memmove memset memcmp memchr memrchr memmem mempcpy"
STRINGS = ("strlen strnlen strcmp strncmp strcasecmp strncasecmp strchr strrchr strstr strcspn strspn strpbrk "
           "strdup strndup __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc tolower toupper "
           "bsearch qsort")
FORMAT = "snprintf vsnprintf"
MATH = "cbrt cbrtf exp exp2 floor ceil fmin fmax fabs log log2 pow round trunc ldexp frexp lround llround"
COMPILER = "__stack_chk_fail __assert_fail _GLOBAL_OFFSET_TABLE_"
# Civil time from a number and back: arithmetic, though it lives in libc. No clock.
CALENDAR = "timegm gmtime_r"
# Address literals to bytes and back (core/http/uri).
ADDRESSES = "inet_pton inet_ntop"

ALLOWED = set(" ".join([MEMORY, STRINGS, FORMAT, MATH, COMPILER, CALENDAR, ADDRESSES]).split())
LIBRARIES = {"aws": ("json_", "jansson_", "XML_", "inflate", "crc32")}
INSTRUMENTED = re.compile(r"^(__asan_|__ubsan_|__sanitizer_|__lsan_|__sancov|__gcov|__llvm_|_asan|__msan_)")
FORTIFIED = re.compile(r"^__(mem|str|snprintf|vsnprintf)\w*_chk$")


def symbols(archive, *flags):
    """(kind, name); constants that hold addresses (.data.rel.ro) are read-only: kind r."""
    out = subprocess.run(["nm", "--no-sort", "--format=sysv", *flags, archive], check=True,
                         capture_output=True, text=True)
    for line in out.stdout.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) == 7:
            yield "r" if parts[6].startswith(".data.rel.ro") else parts[2], parts[0]


def main():
    check = Check()
    archives = sorted(glob.glob(os.path.join(check.build, "libroom_core_*.a")))
    defined = {name for a in archives for kind, name in symbols(a, "--defined-only", "--extern-only")}
    seen = 0
    for archive in archives:
        room = re.search(r"libroom_core_(\w+)\.a", archive)[1]
        for kind, name in symbols(archive):
            seen += 1
            if INSTRUMENTED.match(name):
                continue
            if kind in "dDbBC" and not name.startswith(("__odr_asan", "__unnamed_", ".L")):
                check.bad("core/" + room, "%s is writable data" % name)
            if kind in "Uw" and name not in defined and name not in ALLOWED and not FORTIFIED.match(name) \
                    and not name.startswith(LIBRARIES.get(room, ("\0",))):
                check.bad("core/" + room, "%s comes from outside" % name)
    check.done(seen)


main()
