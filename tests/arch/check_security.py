#!/usr/bin/env python3
"""doc/security.md: each security requirement and each rule that real clients set, its tests, its state.

tests/security.tsv has a line for each point: number, what it asks, and, where something is missing, what. A test names the
points that it proves at the beginning of its comment: "F7: ..." or "J4, J5: ...", in the docstring of a pytest function or
module, or in the comment above a START_TEST. A comment at the head of a C test that says "security requirements B1-B8, D1"
speaks for the whole file. A point without a test must say what is missing.

usage: check_security.py SOURCE_DIR [BUILD_DIR] [--write]
"""
import ast
import re
import sys
from pathlib import Path

POINT = r"(?:CR|[A-L])[0-9]{1,2}"
RANGE = rf"{POINT}(?:-{POINT})?"
LIST = rf"{RANGE}(?:, {RANGE})*"
AT_START = re.compile(rf"^({LIST}):")
ANYWHERE = re.compile(rf"security requirements? ({LIST})")
C_TEST = re.compile(r"/\*((?:(?!\*/).)*)\*/\s*START_TEST\((\w+)\)", re.S)

HEAD = """\
# Security requirements and their tests

What retryd promises, point by point, with the tests that prove it. Written by `tests/arch/check_security.py . --write` from
`tests/security.tsv` and the comments of the tests; `./dev test` fails when a point has neither a test nor a word on what is
missing. A: the corpus. B: parsing. C: forwarding. D: responses. E: retries. F: interception. G: TLS upstream. H: the CA. I: who may reach
what. J: bounds. K: logs and configuration. L: the process. CR: what real clients need of a proxy.

"""


def points_in(text):
    """"B1-B3, D1" -> B1, B2, B3, D1."""
    for part in text.split(", "):
        first, _, last = part.partition("-")
        group = first.rstrip("0123456789")
        for n in range(int(first[len(group):]), int((last or first)[len(group):]) + 1):
            yield group + str(n)


def python_tests(path, name):
    tree = ast.parse(path.read_text())
    module = ast.get_docstring(tree) or ""
    for found in [AT_START.match(module), *ANYWHERE.finditer(module)]:
        if found:
            yield found[1], name
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            doc = AT_START.match(ast.get_docstring(node) or "")
            if doc:
                yield doc[1], f"{name}::{node.name}"


def c_tests(path, name):
    text = path.read_text()
    head = re.sub(r"\s*\n \*\s*", " ", text[: text.index("*/")]) if text.startswith("/*") else ""
    for found in ANYWHERE.finditer(head):
        yield found[1], name
    for comment, test in C_TEST.findall(text):
        doc = AT_START.match(" ".join(comment.replace("\n *", " ").split()).removeprefix("Security requirement "))
        if doc:
            yield doc[1], f"{name}::{test}"


def script_tests(path, name):
    for found in ANYWHERE.finditer(path.read_text()[:2000]):
        yield found[1], name


def collect(root):
    tests = {}
    for pattern, reader in (("unit/**/test_*.c", c_tests), ("e2e/test_*.py", python_tests),
                            ("fuzz/fuzz_*.c", c_tests), ("arch/check_*.py", script_tests), ("e2e/*.sh", script_tests)):
        for path in sorted((root / "tests").glob(pattern)):
            if path.name == Path(__file__).name:
                continue
            for points, test in reader(path, str(path.relative_to(root / "tests"))):
                for point in points_in(points):
                    tests.setdefault(point, []).append(test)
    return tests


def make(root):
    tests = collect(root)
    rows, bad = [], []
    for line in (root / "tests/security.tsv").read_text().splitlines():
        number, title, missing = (line.split("\t") + [""])[:3]
        named = list(dict.fromkeys(tests.pop(number, [])))
        if not named and not missing:
            bad.append(f"{number} ({title}): no test names it, and tests/security.tsv does not say what is missing")
        state = "tested" if not missing else f"{'partly' if named else 'missing'}: {missing}"
        rows.append(f"| {number} | {title} | {state} | {'<br>'.join(f'`{test}`' for test in named)} |")
    bad += [f"{number}: not in tests/security.tsv, but in {where[0]}" for number, where in sorted(tests.items())]
    return HEAD + "| | asked | state | tests |\n|---|---|---|---|\n" + "\n".join(rows) + "\n", bad


def main():
    args = [a for a in sys.argv[1:] if a != "--write"]
    root = Path(args[0]).resolve()
    text, bad = make(root)
    path = root / "doc/security.md"
    if "--write" in sys.argv:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        bad.append("doc/security.md is not what the tests say; run tests/arch/check_security.py . --write")
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
