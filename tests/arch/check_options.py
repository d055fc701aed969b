#!/usr/bin/env python3
"""conf/retryd.yaml and retryd.yaml(5) name every row of options.def with its default.

Both are written from the table: the whole of conf/retryd.yaml, and the option list of the manual page between its
two markers. As a test this compares; after a change of the table run it with --write.

usage: check_options.py SOURCE_DIR [BUILD_DIR] [--write]
"""
import re
import sys
import textwrap
from pathlib import Path

TABLE = "src/core/config/options.def"
CONF = "conf/retryd.yaml"
MAN = "doc/man/retryd.yaml.5"
BEGIN, END = '.\\" options.def: begin\n', '.\\" options.def: end\n'

# What a type is called in the manual.
TYPES = {
    "BOOL": "boolean", "DURATION": "duration", "SIZE": "size", "COUNT": "number", "CHOICE": "word",
    "PATH": "path", "LISTEN": "list of addresses", "HOSTS": "list of hosts", "OPEN_HOSTS": "list of hosts",
    "PORTS": "list of ports", "CIDRS": "list of ranges", "RESOLVE": "address", "SERVICE_MODE": "word",
    "SERVICE_ATTEMPTS": "number", "MODE": "word", "FLAVOUR": "word", "WORDS": "list of words", "FILE_MODE": "file mode",
    "ENDPOINT": "address or unix:/path", "PROXY_URL": "URL", "ADDRESSES": "list of addresses",
    "NO_PROXY": "list of hosts and ranges", "BUDGET_PARTS": "list of words",
    "KEYS": "list of access key ids", "WORD": "name", "WORKERS": "number or auto", "STATUSES": "list of statuses",
}
# The name that "*" stands for, and a line that shows the map in use.
MAPS = {
    "resolve.*": ("HOST", '"s3.eu-central-1.amazonaws.com:443": "127.0.0.1:9000"'),
    "retry.services.*.mode": ("SERVICE", "dynamodb: {mode: standard, max_attempts: 10}"),
    "retry.services.*.max_attempts": ("SERVICE", None),
}
# What AWS SDKs can be told, too: the shipped file leaves it to them.
SHARED = ("retry.mode", "retry.behaviour", "retry.max_attempts")
# Lists of records: what conf/retryd.yaml says of them before it names their options, and an example.
RECORDS = {
    "LISTENER": ("listeners", "listener", """\
More places to listen on, each with a policy of its own. One that is no loopback address needs clients or \
credentials_file.""", """\
- {name: pod, address: "unix:/run/retryd/proxy.sock", socket_group: app}
- name: lan
  address: 10.0.0.5:8443
  clients: [10.0.0.0/24]
  credentials_file: /etc/retryd/users
  tls_certificate: /etc/retryd/proxy.pem
  tls_key: /etc/retryd/proxy.key
"""),
    "ORIGIN": ("origins", "origin", """\
How some hosts are reached: a list, the first whose hosts match counts.""", """\
- hosts: ["*.internal.example"]
  ca_file: /etc/retryd/internal-ca.pem
  client_certificate: /etc/retryd/client.pem
  client_key: /etc/retryd/client.key
"""),
    "RULE": ("rules", "rule", """\
Settings for some requests: a list of rules, each with what it matches and what it sets. The first rule \
that matches a request counts, alone; what it does not set is as above. Below match, a request must meet \
every line, and one value of each. `retryd check` warns of rules that can never match.""", """\
- match: {service: dynamodb, operation: [GetItem, Query], region: eu-central-1}
  max_attempts: 8
  base_delay: 20ms
  quota: {capacity: 1000}
- match: {host: api.example.com}
  profile: generic
  retry_statuses: [500]
  never_retry_codes: [PaymentRequired]
"""),
}
MACROS = ["OPTION", "LIST", "MAP"] + [name + end for name in RECORDS for end in ("_LIST", "")]


class Option:
    def __init__(self, macro, args):
        self.kind, self.type, self.path = macro, args[0], args[1]
        if macro == "OPTION":
            self.default, self.allowed, self.doc = args[3:]
        elif macro == "LIST":
            self.default, self.allowed, self.doc = args[3], "", args[4]
        elif macro.endswith("_LIST"):
            self.default, self.allowed, self.doc = "", "", args[3]
        else:
            self.default, self.allowed, self.doc = "", args[3], args[4]

    def record(self):
        """The macro of the record that holds it, or None."""
        name = self.kind.removesuffix("_LIST")
        return name if name in RECORDS else None

    def yaml_value(self):
        if self.kind == "LIST":
            return f"[{self.default}]"
        return self.default or "null"


def read_table(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    options = []
    for macro, body in re.findall(rf"^({'|'.join(MACROS)})\((.*?)\)$", text, flags=re.S | re.M):
        args = []
        for words in re.findall(r'((?:"(?:[^"\\]|\\.)*"\s*)+|[\w.]+)', body):
            parts = re.findall(r'"((?:[^"\\]|\\.)*)"', words)
            args.append("".join(parts) if words.startswith('"') else words)
        options.append(Option(macro, args))
    rows = len(re.findall(rf"^(?:{'|'.join(MACROS)})\(", text, flags=re.M))
    if rows != len(options) or not options:
        sys.exit(f"{TABLE}: {rows} rows, but {len(options)} could be read")
    return options


def comment(text, indent):
    lines = textwrap.wrap(text, 98 - len(indent), break_long_words=False, break_on_hyphens=False)
    return [f"{indent}# {line}" for line in lines]


def doc_of(option):
    return f"{option.doc} ({option.allowed})" if option.allowed else option.doc


def make_records(macro, options):
    """The list of records with an example and a line for each option, all in comments."""
    path, noun, doc, example = RECORDS[macro]
    article = "An" if noun[0] in "aeiou" else "A"
    lines = [""] + comment(doc, "") + ["#"]
    lines += [f"#   {line}" for line in example.splitlines()] + ["#", f"# {article} {noun} may have:"]
    for option in options:
        text = textwrap.wrap(f"{option.path}: {doc_of(option)}", 94, break_long_words=False, break_on_hyphens=False)
        lines += [f"#   {text[0]}"] + [f"#     {line}" for line in text[1:]]
    return lines + [f"{path}: []"]


def make_conf(options):
    lines = [
        "# Configuration of retryd. All of this is the default: keep what you change, drop the rest.",
        "# What begins with # and no blank can be set in AWS_* variables and ~/.aws/config as well.",
        "# Manual: retryd.yaml(5). `retryd config -c FILE` says what a file comes to.",
    ]
    open_sections = []
    for option in options:
        if option.record():
            rows = [row for row in options if row.record() == option.record()]
            lines += make_records(option.record(), rows) if option is rows[0] else []
            open_sections = []
            continue
        *sections, key = option.path.split(".")
        if option.kind == "MAP":
            at = option.path.split(".").index("*")
            sections, key = option.path.split(".")[: at - 1], option.path.split(".")[at - 1]
        if sections != open_sections or not sections:
            lines.append("")
        for depth, section in enumerate(sections):
            if open_sections[: depth + 1] != sections[: depth + 1]:
                lines.append("  " * depth + f"{section}:")
        open_sections = sections
        indent = "  " * len(sections)
        if option.kind != "MAP":
            off = "#" if option.path in SHARED else ""
            lines += comment(doc_of(option), indent) + [f"{indent}{off}{key}: {option.yaml_value()}"]
        elif f"{indent}{key}: {{}}" not in lines:
            example = MAPS[option.path][1]
            lines += comment(doc_of(option), indent)
            lines += [f"{indent}#   {example}", f"{indent}{key}: {{}}"]
        else:
            lines[-2:-2] = comment(doc_of(option), indent)
    return "\n".join(lines) + "\n"


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def make_man_list(options):
    lines = [".Bl -tag -width Ds"]
    for option in options:
        path = option.path.replace("*", MAPS[option.path][0]) if option.kind == "MAP" else option.path
        path = f"{RECORDS[option.record()][0]}[].{path}" if option.record() else path
        lines.append(f".It Cm {path} : Ar {TYPES[option.type]}")
        for sentence in re.split(r"(?<=\.) (?=[A-Z0-9])", option.doc):
            lines += [roff(line) for line in textwrap.wrap(sentence, 78, break_on_hyphens=False)]
        if option.allowed:
            lines.append(f"Allowed: {roff(option.allowed.replace('|', ', '))}.")
        if option.kind != "MAP" and not option.record():
            default = option.default or ("none" if option.kind == "LIST" else "unset")
            lines.append(f"Default: {roff(default)}.")
    lines.append(".El")
    return "\n".join(lines) + "\n"


def make_man(old, options):
    if old.count(BEGIN) != 1 or old.count(END) != 1:
        sys.exit(f"{MAN}: the markers around the option list are missing")
    head, tail = old.split(BEGIN)[0], old.split(END)[1]
    return head + BEGIN + make_man_list(options) + END + tail


def main():
    args = [a for a in sys.argv[1:] if a != "--write"]
    root = Path(args[0])
    options = read_table((root / TABLE).read_text())
    man = (root / MAN).read_text()
    wanted = {CONF: make_conf(options), MAN: make_man(man, options)}
    bad = 0
    for name, text in wanted.items():
        path = root / name
        if "--write" in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{name} does not agree with {TABLE}; run tests/arch/check_options.py . --write")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
