#!/usr/bin/env python3
"""doc/tables.md lists every row of the tables in src/core/aws, and the tables are in order.

The document is written from the tables; as a test this compares. After a change of a table run it with --write.
Also checked: tables that are searched or read by people are sorted, and each kind of row has a comment above its
first one that names a source.

usage: check_tables.py SOURCE_DIR [BUILD_DIR] [--write]
"""
import re
import sys
from pathlib import Path

ROOM = "src/core/aws"
DOC = "doc/tables.md"
SOURCE = re.compile(r"[Ss]ource|§|public")

INTRO = """# Tables

What retryd knows about AWS by name, row by row, as it is compiled in. Written from `src/core/aws/*.def` by
`tests/arch/check_tables.py . --write`; the comments there name the sources. What a user adds to these tables, and how,
is in retryd.yaml(5).
"""

QUIRKS = {
    "AWS_QUIRK_DYNAMODB": "25 ms base, 4 attempts",
    "AWS_QUIRK_S3": "error in a 200",
    "AWS_QUIRK_CRC32": "x-amz-crc32",
    "0": "",
}
CODES = {"no_codes": "", "s3_codes": "S3", "sts_codes": "STS"}
FLAGS = {"OP_ERROR_IN_200": "always", "OP_XML_IN_200": "s3_more", "0": ""}


def words(table):
    return lambda text: ", ".join(table.get(part.strip(), part.strip()) for part in text.split("|"))


def lower(text):
    return text.lower()


def code(text):
    return f"`{text}`" if text else ""


def wire(text):
    return text.lower().replace("_", "-")


class Kind:
    """One macro: heading, the table's columns (title, and how a cell is shown), and how many make the sort key."""

    def __init__(self, heading, *columns, key=0, rest=None, before=()):
        self.heading, self.columns, self.key = heading, columns, key
        self.rest = rest      # title of a last column that takes all further arguments
        self.before = before  # cells that the macro leaves out


SECTIONS = [
    ("error_codes.def", "Error codes",
     "Retried under any status. The code decides before the status.", {
         "GENERAL": Kind("Every service", ("code", code), ("class", lower), key=1),
         "S3": Kind("S3", ("code", code), ("class", lower), key=1),
         "STS": Kind("STS", ("code", code), ("class", lower), key=1),
     }),
    ("modeled_errors.def", "Modeled errors",
     "Retryable by the model of their service, and by nothing else. An option.", {
         "MODELED": Kind(None, ("signing name", code), ("code", code), ("class", lower), key=2),
     }),
    ("legacy.def", "Error codes of the legacy strategies",
     "With a status: under that one only. Which strategy uses which table: legacy-modes, `legacy.c`.", {
         "CODE": Kind(None, ("code", code), ("class", lower), key=1, before=("any",)),
         "PAIR": Kind(None, ("status", str), ("code", code), ("class", lower)),
     }),
    ("operations.def", "Operations", None, {
        "TARGET": Kind("Services told apart by X-Amz-Target", ("service", code), ("prefix", code), key=2),
        "LONG_POLL": Kind("Long polling: wait before the error is delivered when the quota refuses",
                          ("service", code), ("operation", code), key=2),
        "REST": Kind("REST paths", ("service", code), ("method", str), ("path", code), ("operation", code)),
        "S3": Kind("S3, first row that fits; the last column says whether a 200 is looked into",
                   ("method", str), ("path names", lower), ("query", code), ("header", code), ("operation", code),
                   ("200 read", words(FLAGS))),
    }),
    ("partitions.def", "Domain suffixes of the partitions", None, {
        "SUFFIX": Kind(None, ("suffix", code)),
    }),
    ("resources.def", "Resources",
     "What a request works on, for `budgets.key`. The first place that holds something counts.", {
         "RESOURCE": Kind(None, ("service", code), ("place", lower), ("name", code)),
     }),
    ("services.def", "Services",
     "Hosts: what stands before region and suffix; `-fips` and `dualstack` forms are understood without a row.", {
         "SPECIAL": Kind("With rules of their own", ("name", code), ("signing name", code), ("special", words(QUIRKS)),
                         ("own codes", words(CODES)), ("protocol", wire), rest="hosts"),
         "SERVICE": Kind("Others, named by their signing name", ("name", code), ("protocol", wire), key=1,
                         rest="hosts"),
     }),
]


class Problems:
    def __init__(self):
        self.n = 0

    def say(self, text):
        print(text)
        self.n += 1


def split_args(body):
    """Adjacent string literals are one; what is no literal is a word."""
    args = []
    for part in re.findall(r'((?:"(?:[^"\\]|\\.)*"\s*)+|[\w|][\w |]*)', body):
        pieces = re.findall(r'"((?:[^"\\]|\\.)*)"', part)
        args.append("".join(pieces) if part.startswith('"') else part.strip())
    return args


def comments(text):
    """Matches of comments; strings are stepped over, since paths hold what begins one."""
    for m in re.finditer(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/', text, flags=re.S):
        if m[0].startswith("/*"):
            yield m


def without_comments(text):
    """Blanked, so that offsets stay."""
    for m in comments(text):
        text = text[: m.start()] + re.sub(r"[^\n]", " ", m[0]) + text[m.end():]
    return text


def read_rows(text):
    """(macro, arguments, offset) in the order of the file; END stands alone."""
    blank = without_comments(text)
    row = re.compile(r"^([A-Z]\w*)(?:\((.*?)\))?[ \t]*$", flags=re.S | re.M)
    rows = [(m[1], split_args(m[2] or ""), m.start()) for m in row.finditer(blank)]
    if len(rows) != len(re.findall(r"^[A-Z]", blank, flags=re.M)):
        sys.exit("a row could not be read")
    return rows


def is_sorted(name, kind, rows, problems):
    keys = [[part.encode() for part in args[: kind.key]] for args in rows]
    for before, after in zip(keys, keys[1:]):
        if kind.key and before >= after:
            problems.say(f"{name}: {b' '.join(after).decode()} is out of order")


def has_source(name, macro, text, first, problems):
    if not any(SOURCE.search(m[0]) for m in comments(text[:first])):
        problems.say(f"{name}: no comment above the first {macro} names a source")


def make_table(kinds_of_rows, titles):
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for kind, args in kinds_of_rows:
        cells = list(kind.before) + [show(arg) for (_, show), arg in zip(kind.columns, args)]
        if kind.rest:
            cells.append(", ".join(code(arg) for arg in args[len(kind.columns):]))
        elif len(args) != len(kind.columns):
            sys.exit(f"a row of {len(args)} columns: {args}")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def titles_of(kind):
    return [title for title, _ in kind.columns] + ([kind.rest] if kind.rest else [])


def flat_section(name, text, rows, kinds, problems):
    lines = []
    for macro, kind in kinds.items():
        mine = [args for m, args, _ in rows if m == macro]
        if not mine:
            problems.say(f"{name}: no row of {macro}")
            continue
        has_source(name, macro, text, next(at for m, _, at in rows if m == macro), problems)
        is_sorted(name, kind, mine, problems)
        lines += ["", f"### {kind.heading}"] if kind.heading else []
        lines += [""] + make_table([(kind, args) for args in mine], titles_of(kind))
    return lines


def named_section(name, text, rows, kinds, problems):
    """Between TABLE(name) and END."""
    lines, table = [], None
    for macro, args, at in rows:
        if macro == "TABLE":
            table, mine = args[0], []
            has_source(name, table, text, at, problems)
        elif macro == "END":
            codes = [row[-2].encode() for _, row in mine]
            if codes != sorted(set(codes)):
                problems.say(f"{name}: {table} is out of order")
            lines += ["", f"### {table}", ""] + make_table(mine, ["status", "code", "class"])
        else:
            mine.append((kinds[macro], args))
    return lines


def make_doc(root, problems):
    lines = [INTRO.rstrip()]
    known = {name for name, *_ in SECTIONS}
    for path in sorted((root / ROOM).glob("*.def")):
        if path.name not in known:
            problems.say(f"{ROOM}/{path.name} has no section in {DOC}")
    for name, heading, note, kinds in SECTIONS:
        text = (root / ROOM / name).read_text()
        rows = read_rows(text)
        strange = {m for m, *_ in rows} - set(kinds) - {"TABLE", "END"}
        if strange:
            problems.say(f"{name}: unknown rows {sorted(strange)}")
            continue
        section = named_section if any(m == "TABLE" for m, *_ in rows) else flat_section
        lines += ["", f"## {heading}"] + (["", note] if note else [])
        lines += section(name, text, rows, kinds, problems)
    return "\n".join(lines) + "\n"


def main():
    root = Path([a for a in sys.argv[1:] if a != "--write"][0])
    problems = Problems()
    text = make_doc(root, problems)
    path = root / DOC
    if "--write" in sys.argv:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        problems.say(f"{DOC} does not agree with {ROOM}/*.def; run tests/arch/check_tables.py . --write")
    return problems.n > 0


if __name__ == "__main__":
    sys.exit(main())
