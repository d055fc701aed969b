#!/usr/bin/env python3
"""The tree speaks of the project alone: no paths of the machine it was written on, nothing left open.

Patterns carry a one-letter class so that this file does not match itself.
"""
import os
import re

from arch import Check

EVERYWHERE = {
    r"/wor[k]/(main|shared|steering)|/wor[k]/\.|/far[m]/|\.\./share[d]": "a path outside the project",
    r"(?i)\b(sub[-]?agen[t]s?|helper sessio[n]|this sessio[n]|the CE[O])\b": "about how it was made",
}
IN_CODE = {
    r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b": "left open",
}
CODE = ("src/", "tests/", "CMakeLists.txt", "dev", ".ci/")
SKIP_DIRS = {".git", "build", ".cache", "__pycache__", ".pytest_cache"}


def main():
    check = Check()
    everywhere = [(re.compile(p), why) for p, why in EVERYWHERE.items()]
    in_code = [(re.compile(p), why) for p, why in IN_CODE.items()]
    looked_at = 0
    for base, dirs, names in os.walk(check.source):
        dirs[:] = sorted(d for d in dirs if d not in SKIP_DIRS)
        for name in sorted(names):
            path = os.path.relpath(os.path.join(base, name), check.source)
            with open(os.path.join(base, name), "rb") as f:
                data = f.read()
            if b"\0" in data or path.startswith("tests/fuzz/corpus/"):
                continue
            looked_at += 1
            patterns = everywhere + (in_code if path.startswith(CODE) else [])
            for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
                for pattern, why in patterns:
                    match = pattern.search(line)
                    if match:
                        check.bad("%s:%d" % (path, number), "%r: %s" % (match.group(), why))
    check.done(looked_at)


main()
