"""What the checks in this folder share: the command line, the source files, C without comments."""
import os
import re
import sys


class Check:
    """One check: collects problems, prints them, sets the exit status."""

    def __init__(self):
        if len(sys.argv) != 3:
            sys.exit("usage: %s SOURCE_DIR BUILD_DIR" % sys.argv[0])
        self.source, self.build = sys.argv[1:]
        self.problems = []

    def bad(self, where, what):
        self.problems.append("%s: %s" % (where, what))

    def done(self, looked_at):
        """A check that looked at nothing has not passed."""
        if looked_at == 0:
            self.bad(sys.argv[0], "found nothing to check")
        for line in self.problems:
            print(line)
        print("%d looked at, %d problems" % (looked_at, len(self.problems)))
        sys.exit(1 if self.problems else 0)

    def files(self, *folders, suffixes=(".c", ".h", ".def")):
        """Paths relative to the source directory, sorted."""
        found = []
        for folder in folders:
            for base, dirs, names in os.walk(os.path.join(self.source, folder)):
                dirs.sort()
                found += [os.path.relpath(os.path.join(base, n), self.source)
                          for n in sorted(names) if n.endswith(suffixes)]
        return found

    def read(self, path):
        with open(os.path.join(self.source, path), encoding="utf-8") as f:
            return f.read()


TOKENS = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""",
                    re.DOTALL | re.VERBOSE)


def strip_c(text, keep_strings=False):
    """C with comments (and the insides of strings) blanked; every line break stays in its place."""

    def blank(match):
        token = match.group()
        if token[0] in "\"'":
            return token if keep_strings else token[0] + " " * (len(token) - 2) + token[-1]
        return re.sub(r"[^\n]", " ", token)

    return TOKENS.sub(blank, text)
