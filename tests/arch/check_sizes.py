#!/usr/bin/env python3
"""A .c file has at most 600 lines and a function at most 60 (from its opening to its closing brace).

Tables are excepted: lines inside a file-scope initialiser do not count towards the file.
"""
import re

from arch import Check, strip_c

FILE_LINES = 600
FUNCTION_LINES = 60


def top_level_blocks(text):
    """(head, first line, last line) of each brace pair at file scope; the head is what stands before it."""
    depth, head, line, start = 0, "", 1, 0
    for char in text:
        if char == "{":
            if depth == 0:
                start = line
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                yield head, start, line
                head = ""
        elif depth == 0:
            head = "" if char == ";" else head + char
        if char == "\n":
            line += 1
    if depth != 0:
        yield None, start, line


def blank_directives(text):
    """Preprocessor lines blanked, with their continuations: braces in macros are not the file's."""
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group()), text,
                  flags=re.MULTILINE)


def main():
    check = Check()
    functions = 0
    for path in check.files("src", suffixes=(".c",)):
        raw = check.read(path)
        table_lines = 0
        for head, first, last in top_level_blocks(blank_directives(strip_c(raw))):
            where = "%s:%d" % (path, first)
            if head is None:
                check.bad(where, "braces do not match")
                continue
            if re.search(r"=\s*$", head):
                table_lines += last - first + 1
                continue
            name = re.search(r"(\w+)\s*\([^{}]*\)\s*$", head, re.DOTALL)
            if not name:
                continue  # a struct, enum or union
            functions += 1
            if last - first + 1 > FUNCTION_LINES:
                check.bad(where, "a function of %d lines: %s" %
                          (last - first + 1, " ".join(head.split())[-60:]))
        lines = raw.count("\n") - table_lines
        if lines > FILE_LINES:
            check.bad(path, "%d lines without its tables" % lines)
    check.done(functions)


main()
