#!/usr/bin/env python3
"""Writes http1_parser.tsv, the cases of http1.jsonl that a codec decides alone, for test_corpus.c.

usage: tests/vectors/http1_parser.py   (run it again after a change to http1.jsonl)

Columns, separated by tabs: id; side (client, upstream); method of the request that an upstream case
answers, or -; expected verdict; bytes as a list of BASE64 or BASE64*REPEAT, separated by spaces.

Verdicts: "bad" refused; "ok N" N whole messages and nothing left over; "ok N+" the same with bytes left
over behind the last (a client that asked to close, an origin that said too much); "more N" N whole
messages and a part of another.
"""
import base64
import json
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))

# Not decided by the codec, with the reason.
ELSEWHERE = {
    "SC-144": "whether origin-form is served depends on the listener",
    "SC-146": "asterisk-form with another method: routing",
    "SC-173": "a path that starts with // is origin-form",
    "SC-221": "Max-Forwards: proxy",
    "SC-223": "TRACE: proxy",
    "SC-232": "ports: policy",
    "SC-234": "addresses: policy",
    "SC-235": "addresses: policy",
    "SC-239": "what follows a CONNECT belongs to the tunnel",
    "SU-260": "idle connections: pool",
    "SU-261": "idle connections: pool",
    "SU-269": "whether a 101 was asked for: attempt",
    "SU-270": "the number of interim responses: attempt",
}

# Where the corpus leaves a choice or names the outcome of the whole proxy: what the codec says.
VERDICT = {
    "SC-004": "bad",  # one Content-Length only
    "SC-005": "bad",
    "SC-048": "ok 1+",  # nothing behind Connection: close is read
    "SC-050": "more 0",
    "SC-076": "more 0",
    "SC-079": "ok 1",  # forbidden trailer fields are dropped
    "SC-080": "ok 1",
    "SC-081": "ok 1",
    "SC-082": "ok 1",
    "SC-145": "ok 1",
    "SC-219": "bad",
    "SC-238": "ok 1",  # CONNECT may lack Host
    "SU-256": "more 0",
    "SU-257": "more 0",
    "SU-258": "ok 1+",
    "SU-259": "ok 1+",
    "SU-262": "ok 1+",
    "SU-264": "ok 1+",
    "SU-266": "ok 1+",
    "SU-271": "ok 1",  # the CL of an interim response is ignored, the final one follows at once
}

# Spellings of addresses that are refused as text, before any address rule.
NUMBERS = {"SC-194", "SC-195", "SC-196", "SC-197", "SC-201", "SC-203", "SC-204"}


def verdict(case):
    if case["id"] in VERDICT:
        return VERDICT[case["id"]]
    outcome = case["expect"]
    if case["class"] == "ssrf":
        return "bad" if case["id"] in NUMBERS else "ok 1"
    if outcome.startswith("reject") or outcome in ("bad-gateway-502", "abort-client"):
        return "bad"
    return "ok %d" % (case["origin_requests"] if case["where"] == "client" else 1)


def parts(case):
    if "bytes_b64" in case:
        return case["bytes_b64"]
    return " ".join("%s*%d" % (text, times) for text, times in case["bytes_parts"])


def method(case):
    if case["where"] == "client":
        return "-"
    return re.match(rb"\S+", base64.b64decode(case["request_b64"]))[0].decode()


def main():
    with open(os.path.join(HERE, "http1.jsonl")) as source, \
            open(os.path.join(HERE, "http1_parser.tsv"), "w") as out:
        for case in map(json.loads, source):
            if case["id"] in ELSEWHERE or case["class"] == "retry-abuse":
                continue
            out.write("\t".join((case["id"], case["where"], method(case), verdict(case),
                                 parts(case))) + "\n")


main()
