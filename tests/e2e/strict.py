"""A strict little HTTP/1.1 reader for both ends of a differential test: what the grammar does not allow is a fault.

Independent of the program under test, and of the clients' own libraries (RFC 9110 5, RFC 9112 2-7)."""
import re

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
TEXT = rb"[\t\x20-\x7e\x80-\xff]*"
QUOTED = rb'"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"'
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([\x21-\x7e]+) HTTP/1\.([01])")
STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2}) (" + TEXT + rb")")
FIELD = re.compile(rb"(" + TOKEN + rb"):[ \t]*(" + TEXT + rb"?)[ \t]*")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})((?:[ \t]*;[ \t]*" + TOKEN + rb"(?:[ \t]*=[ \t]*(?:" + TOKEN + rb"|" + QUOTED +
                   rb"))?)*)")

HOP_BY_HOP = {b"connection", b"proxy-connection", b"keep-alive", b"te", b"transfer-encoding", b"trailer", b"upgrade"}


class Malformed(Exception):
    pass


class Ended(Exception):
    """The connection ended inside a message."""


class Part:
    """One message: start (a tuple), fields [(name, value)], body, trailers, framing; whole when it ended as framed."""

    def __init__(self, start, fields):
        self.start, self.fields = start, fields
        self.body, self.trailers, self.framing, self.whole = b"", [], "none", False
        self.extensions = 0           # chunk lines that had any

    def all(self, name):
        return [v for n, v in self.fields if n.lower() == name]

    def get(self, name):
        values = self.all(name)
        return values[0] if values else None

    def tokens(self, name):
        return [t.strip().lower() for v in self.all(name) for t in v.split(b",") if t.strip()]

    def end_to_end(self):
        """The fields that are not between neighbours; without Via, which every proxy adds."""
        gone = HOP_BY_HOP | set(self.tokens(b"connection")) | {b"via"}
        return [(n, v) for n, v in self.fields if n.lower() not in gone]


def field_section(lines):
    fields = []
    for line in lines:
        match = FIELD.fullmatch(line)
        if not match:
            raise Malformed("field line %r" % line[:80])
        fields.append((match[1], match[2].rstrip(b" \t")))
    return fields


def head(wire, start_line):
    data = wire.head()
    if not data:
        return None
    if not data.endswith(b"\r\n\r\n"):
        raise Ended("in a head: %r" % data[:80])
    lines = data[:-4].split(b"\r\n")
    match = start_line.fullmatch(lines[0])
    if not match:
        raise Malformed("start line %r" % lines[0][:80])
    return Part(match.groups(), field_section(lines[1:]))


def exactly(wire, n):
    data = wire.take(n)
    if len(data) < n:
        raise Ended("%d of %d bytes" % (len(data), n))
    return data


def line(wire):
    data = wire.line()
    if not data.endswith(b"\r\n"):
        raise Ended("in a line")
    if b"\n" in data[:-2] or b"\r" in data[:-2]:
        raise Malformed("line %r" % data[:80])
    return data[:-2]


def framing_of(part, request, method=None):
    """(kind, length) by RFC 9112 6.3."""
    coding, lengths = part.all(b"transfer-encoding"), part.all(b"content-length")
    if coding and lengths:
        raise Malformed("both framings")
    if len(lengths) > 1 or any(not re.fullmatch(rb"[0-9]{1,18}", v) for v in lengths):
        raise Malformed("Content-Length %r" % lengths)
    if coding and [v.lower() for v in coding] != [b"chunked"]:
        raise Malformed("Transfer-Encoding %r" % coding)
    if not request:
        status = int(part.start[1])
        if status == 204 and (coding or lengths):
            raise Malformed("framing of a 204")
        if method == b"HEAD" or status in (204, 304):
            return "none", 0
    if coding:
        return "chunked", 0
    if lengths:
        return "length", int(lengths[0])
    return ("none", 0) if request else ("close", 0)


def body(wire, part, kind, length):
    part.framing = kind
    if kind == "length":
        part.body = exactly(wire, length)
    elif kind == "chunked":
        pieces = []
        while True:
            match = CHUNK.fullmatch(line(wire))
            if not match:
                raise Malformed("chunk line")
            part.extensions += bool(match[2])
            size = int(match[1], 16)
            if size == 0:
                break
            pieces.append(exactly(wire, size))
            if exactly(wire, 2) != b"\r\n":
                raise Malformed("no CRLF behind a chunk")
        part.body, lines = b"".join(pieces), []
        while True:
            one = line(wire)
            if not one:
                break
            lines.append(one)
        part.trailers = field_section(lines)
    elif kind == "close":
        while wire.fill():
            pass
        part.body, wire.buffer = wire.buffer, b""
        if wire.broken:
            raise Ended("instead of a close: %r" % wire.broken)
    part.whole = True


def read_request_head(wire):
    """None at the end of the connection."""
    part = head(wire, REQUEST_LINE)
    if part is not None and len(part.all(b"host")) != 1:
        raise Malformed("%d Host fields" % len(part.all(b"host")))
    return part


def read_request_body(wire, part):
    body(wire, part, *framing_of(part, True))


def read_response(wire, method):
    """(final response, [interim responses])."""
    interim = []
    while True:
        part = head(wire, STATUS_LINE)
        if part is None:
            raise Ended("before a response")
        if part.start[1][:1] != b"1":
            break
        if framing_of(part, True) != ("none", 0):
            raise Malformed("an interim response with a body")
        interim.append(part)
    body(wire, part, *framing_of(part, False, method))
    return part, interim
