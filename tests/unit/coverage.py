#!/usr/bin/env python3
"""coverage.py BUILD_DIR FOLDER: line and branch coverage of FOLDER, from what the tests left in a cov build.

Counts of a line or branch seen in several objects (headers) are added up. Branches into assertions that
failed (noreturn) are not taken by design; gcov lists them as `throw` or never executed, and ASSERT lines are
left out of the branch figure.
"""
import collections
import json
import os
import re
import subprocess
import sys


def main():
    build, folder = sys.argv[1:]
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
    data = [os.path.join(b, n) for b, _, names in os.walk(os.path.abspath(build)) for n in names if n.endswith(".gcda")]
    lines = collections.defaultdict(lambda: collections.defaultdict(int))
    branches = collections.defaultdict(lambda: collections.defaultdict(int))
    for path in data:
        out = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", path], check=True,
                             capture_output=True, text=True, cwd=build).stdout
        for document in filter(None, out.splitlines()):
            for file in json.loads(document)["files"]:
                name = os.path.relpath(os.path.join(root, file["file"]), root)
                if not name.startswith(folder.rstrip("/") + "/"):
                    continue
                for line in file["lines"]:
                    lines[name][line["line_number"]] += line["count"]
                    for i, branch in enumerate(line["branches"]):
                        branches[name][line["line_number"], i] += branch["count"]

    def source(name):
        with open(os.path.join(root, name)) as f:
            return f.read().splitlines()

    total = [0, 0, 0, 0]
    print("%-44s %15s %15s  %s" % ("file", "lines", "branches", "lines never run"))
    for name in sorted(lines):
        text = source(name)
        counted = {k: v for k, v in branches[name].items() if not re.search(r"\bASSERT\b", text[k[0] - 1])}
        row = [sum(c > 0 for c in lines[name].values()), len(lines[name]),
               sum(c > 0 for c in counted.values()), len(counted)]
        total = [a + b for a, b in zip(total, row)]
        missed = [str(n) for n, c in sorted(lines[name].items()) if c == 0]
        print("%-44s %s %s  %s" % (name, share(*row[:2]), share(*row[2:]), " ".join(missed[:12])))
    print("%-44s %s %s" % ("all", share(*total[:2]), share(*total[2:])))
    sys.exit(0 if total[1] else 1)


def share(hit, all_):
    return "%15s" % ("%d/%d %5.1f%%" % (hit, all_, 100.0 * hit / all_ if all_ else 100))


main()
