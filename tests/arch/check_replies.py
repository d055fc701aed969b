#!/usr/bin/env python3
"""retryd(8) lists every answer of the program's own, word and status as in src/proxy/reply.def, and no other."""
import re

from arch import Check

ROW = re.compile(r'^REPLY\(\w+, (\d+), "(\w+)"', re.MULTILINE)
LISTED = re.compile(r"^\.It (\w+) Ta (\d{3}) Ta", re.MULTILINE)


def main():
    check = Check()
    rows = {(word, status) for status, word in ROW.findall(check.read("src/proxy/reply.def"))}
    listed = set(LISTED.findall(check.read("doc/man/retryd.8")))
    for word, status in sorted(rows - listed):
        check.bad("doc/man/retryd.8", "does not list %s (%s)" % (word, status))
    for word, status in sorted(listed - rows):
        check.bad("doc/man/retryd.8", "lists %s (%s), which is no row of reply.def" % (word, status))
    check.done(len(rows))


main()
