#!/usr/bin/env python3
"""Banned calls, and number parsing beside core/base/num.h (security requirements L4, K7)."""
import re

from arch import Check, strip_c

BANNED = {
    r"(?:str|stp|wcs)cpy": "unbounded copy",
    r"(?:str|wcs)cat": "unbounded copy",
    r"v?sprintf": "unbounded copy",
    r"gets": "unbounded read",
    r"alloca|__builtin_alloca": "stack of a size chosen at run time",
    r"strtok": "hidden state",
    r"system|popen": "runs a shell",
    r"mktemp|tempnam|tmpnam": "a name that somebody else can take first",
    r"ato(?:i|l|ll|f)": "numbers from outside go through core/base/num.h",
    r"strto(?:l|ul|ll|ull|imax|umax|d|f|ld)": "numbers from outside go through core/base/num.h",
    r"v?s?f?scanf": "numbers from outside go through core/base/num.h",
    r"rand|srand|random|drand48": "randomness comes from core/base/rng.h",
}
CALL = {re.compile(r"(?<![\w.>])(%s)\s*\(" % names): why for names, why in BANNED.items()}
NO_VLA = "-Wvla"


def main():
    check = Check()
    files = check.files("src")
    for path in files:
        text = strip_c(check.read(path))
        for pattern, why in CALL.items():
            for match in pattern.finditer(text):
                check.bad("%s:%d" % (path, text.count("\n", 0, match.start()) + 1),
                          "%s: %s" % (match[1], why))
    if NO_VLA not in check.read("CMakeLists.txt"):
        check.bad("CMakeLists.txt", "%s is gone: variable-length arrays are banned" % NO_VLA)
    check.done(len(files))


main()
