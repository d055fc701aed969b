#!/usr/bin/env python3
"""index.json -> identify.tsv: what each recorded request must be identified as.

Columns: file, service, region, operation, access key ("-": none). Region and key are read off the request
by a regular expression, so that they do not come from the code under test. Run it here after the index
has changed; the result is checked in."""
import json
import os
import re
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
SCOPE = re.compile(r"Credential=([^/]+)/\d{8}/([^/]+)/[^/]+/aws4_request")
VERSION_2 = re.compile(r"Authorization: AWS ([^:]+):")
REGION = re.compile(r"\.([a-z]{2}-[a-z]+-\d)\.amazonaws\.com$")


def row(entry):
    with open(os.path.join(HERE, entry["file"]), "rb") as f:
        head = urllib.parse.unquote(f.read().split(b"\r\n\r\n")[0].decode("latin-1"))
    scope, version_2, region = SCOPE.search(head), VERSION_2.search(head), REGION.search(entry["host"])
    operation = entry["op"]
    if operation == "ListObjects" and "list-type=2" in entry["target"]:
        operation = "ListObjectsV2"  # the index has one name for both versions
    key = scope or version_2
    return [entry["file"], entry["service"],
            scope[2] if scope else region[1] if region else "-", operation, key[1] if key else "-"]


def main():
    with open(os.path.join(HERE, "index.json"), encoding="utf-8") as f:
        entries = json.load(f)["fixtures"]
    with open(os.path.join(HERE, "identify.tsv"), "w", encoding="ascii") as out:
        for entry in sorted(entries, key=lambda e: e["file"]):
            out.write("\t".join(row(entry)) + "\n")


main()
