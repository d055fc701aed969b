"""The recorded requests of tests/vectors/wire, whole again, and dated anew.

A recording is old, and a signature that is too old is never retried. So a request is given today's date and signed
again with the same (AWS's published example) key; nothing else about it changes."""
import base64
import hashlib
import hmac
import json
import os
import re
import time
import urllib.parse

from faultd import CHECKSUMS, EMPTY_SHA, Verifier, read_capture
from sigv4 import KEY_ID, SECRET, signing_key

WIRE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "vectors", "wire")
FILLER = b"0123456789abcdef"
STAMP = re.compile(r"\b\d{8}T\d{6}Z\b")


def index():
    with open(os.path.join(WIRE, "index.json"), encoding="utf-8") as f:
        return json.load(f)["fixtures"]


def identities():
    """file -> (service, region, operation, access key), "-" for none."""
    with open(os.path.join(WIRE, "identify.tsv"), encoding="ascii") as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    return {row[0]: tuple(row[1:]) for row in rows}


def fields_of(head):
    """(start line, [[name, value]]) of a head's bytes."""
    lines = head.decode("latin-1").split("\r\n")
    return lines[0], [[n, v.strip(" \t")] for n, _, v in (line.partition(":") for line in lines[1:] if line)]


def filler(n):
    return (FILLER * (n // len(FILLER) + 1))[:n]


def whole_body(entry):
    """The body without HTTP chunking; what the file leaves out of a large one is made again, and checked."""
    chunks = entry["aws_chunked"]
    if not entry["body_truncated"]:
        body = read_capture(os.path.join(WIRE, entry["file"]))[0]["body"]
    elif chunks is None:
        body = filler(entry["body_bytes"])
    else:
        data, body = filler(chunks["decoded_bytes"]), b""
        for at in range(0, len(data), chunks["max_chunk"]):
            piece = data[at:at + chunks["max_chunk"]]
            body += b"%x\r\n%s\r\n" % (len(piece), piece)
        crc = base64.b64encode(CHECKSUMS["crc32"](data))
        body += b"0\r\nx-amz-checksum-crc32:%s\r\n\r\n" % crc
    assert len(body) == entry["body_bytes"], entry["file"]
    assert hashlib.sha256(body).hexdigest() == entry["body_sha256"], entry["file"]
    return body


class Recorded:
    """start: the request line in origin-form. fields: [[name, value]] as sent. body: without HTTP chunking."""

    def __init__(self, entry):
        self.name, self.entry = entry["file"], entry
        with open(os.path.join(WIRE, self.name), "rb") as f:
            head = f.read().split(b"\r\n\r\n", 1)[0]
        start, self.fields = fields_of(head)
        self.method, target, self.version = start.split(" ")
        self.host = entry["host"]
        self.clear = entry["scheme"] == "http"
        self.target = target[len("http://" + self.host):] if target.startswith("http://") else target
        self.body = whole_body(entry)

    def get(self, name):
        return next((v for n, v in self.fields if n.lower() == name), None)

    @property
    def chunked(self):
        return (self.get("transfer-encoding") or "").lower() == "chunked"

    def head(self):
        """As a client of the proxy sends it: absolute-form in clear, origin-form in a tunnel."""
        target = "http://" + self.host + self.target if self.clear else self.target
        return ("%s %s %s\r\n" % (self.method, target, self.version) +
                "".join("%s: %s\r\n" % (n, v) for n, v in self.fields) + "\r\n").encode("latin-1")

    def framed_body(self):
        if not self.chunked:
            return self.body
        pieces = [self.body[at:at + 65536] for at in range(0, len(self.body), 65536)]
        return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"

    def as_checked(self):
        """What faultd's verifier wants to know of a request."""
        return as_checked(self.method, self.target, self.fields, self.body, self.host)

    # ---- today's date

    def dated_anew(self):
        """This request, of now."""
        new = Recorded.__new__(Recorded)
        new.__dict__.update(self.__dict__)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        old = self.get("x-amz-date") or urllib.parse.parse_qs(self.target.partition("?")[2]).get("X-Amz-Date", [""])[0]
        if not STAMP.fullmatch(old):
            return new                # version 2 or unsigned: no age is known of it
        later = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + 3600))

        def redate(text):
            return re.sub(r"ttl=\S+?Z", "ttl=" + later, text).replace(old, stamp).replace(
                "%s/%s" % (KEY_ID, old[:8]), "%s/%s" % (KEY_ID, stamp[:8])).replace(
                "%s%%2F%s" % (KEY_ID, old[:8]), "%s%%2F%s" % (KEY_ID, stamp[:8]))

        new.fields = [[n, redate(v)] for n, v in self.fields]
        new.target = redate(self.target)
        new._sign(stamp, self._signed_uri(old))
        return new

    def _parts(self):
        """(signature, names, region, service, presigned)"""
        auth = self.get("authorization") or ""
        text = auth if auth else urllib.parse.unquote(self.target)
        scope = re.search(r"Credential=[^/]+/\d{8}/([^/]+)/([^/]+)/aws4_request", text)
        return (re.search(r"Signature=([0-9a-f]{64})", text)[1], re.search(r"SignedHeaders=([^,&]+)", text)[1],
                scope[1], scope[2], not auth)

    def _signature(self, stamp, uri):
        _, names, region, service, presigned = self._parts()
        query = Verifier.canonical_query(self.target.partition("?")[2], ("X-Amz-Signature",) if presigned else ())
        heads = "".join("%s:%s\n" % (name, ",".join(" ".join(v.split()) for n, v in self.fields if n.lower() == name))
                        for name in names.split(";"))
        payload = self.get("x-amz-content-sha256") or (
            ("UNSIGNED-PAYLOAD" if service == "s3" else EMPTY_SHA) if presigned
            else hashlib.sha256(self.body).hexdigest())
        canonical = "\n".join((self.method, uri, query, heads, names, payload))
        scope = "/".join((stamp[:8], region, service, "aws4_request"))
        to_sign = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode("latin-1")).hexdigest()))
        return hmac.new(signing_key(SECRET, stamp[:8], region, service), to_sign.encode(), hashlib.sha256).hexdigest()

    def _signed_uri(self, stamp):
        """Which spelling of the path the client signed: clients differ."""
        signature, _, _, service, _ = self._parts()
        return next(uri for uri in Verifier.canonical_uris(self.target.partition("?")[0], service)
                    if self._signature(stamp, uri) == signature)

    def _sign(self, stamp, uri):
        old, _, region, service, _ = self._parts()
        new = self._signature(stamp, uri)
        self.fields = [[n, v.replace(old, new)] for n, v in self.fields]
        self.target = self.target.replace(old, new)
        if self.get("x-amz-content-sha256") == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
            self._sign_chunks(stamp, region, service, new)

    def _sign_chunks(self, stamp, region, service, previous):
        scope = "/".join((stamp[:8], region, service, "aws4_request"))
        key, rest, out = signing_key(SECRET, stamp[:8], region, service), self.body, b""
        while rest:
            line, rest = rest.split(b"\r\n", 1)
            size = int(line.split(b";")[0], 16)
            piece, rest = rest[:size], rest[size + 2:]
            to_sign = "\n".join(("AWS4-HMAC-SHA256-PAYLOAD", stamp, scope, previous, EMPTY_SHA,
                                 hashlib.sha256(piece).hexdigest()))
            previous = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
            out += b"%s;chunk-signature=%s\r\n%s\r\n" % (line.split(b";")[0], previous.encode(), piece)
        assert len(out) == len(self.body)
        self.body = out


def as_checked(method, target, fields, body, host):
    hdr = {}
    for n, v in fields:
        hdr.setdefault(n.lower(), v)
    path, _, query = target.partition("?")
    return {"method": method, "target": target, "headers": fields, "hdr": hdr, "host": hdr.get("host") or host,
            "path": path, "query": query, "body": body}
