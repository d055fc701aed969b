"""2,000 random valid exchanges, each directly and through retryd (absolute-form, and in a TLS that it opens): both
ends must see the same.

The origin: method, target, end-to-end fields in order, body, trailers, on every attempt. The client: status, reason,
end-to-end fields in order, body, trailers, 100 (Continue), that it is whole. Both ends read strictly, so that
nothing malformed passes as the same. RETRYD_DIFFERENTIAL_SEED makes other exchanges, RETRYD_DIFFERENTIAL_CASES more."""
import os
import queue
import random
import socket
import ssl
import threading
import time

import pytest

import strict
from faultd import Authority
from hostile import RawOrigin
from wire import dial

SEED = os.environ.get("RETRYD_DIFFERENTIAL_SEED", "1")
CASES = int(os.environ.get("RETRYD_DIFFERENTIAL_CASES", "2000"))
THREADS = 16
# Held and retried, in two ways; and passed on once.
HOSTS = ["bucket.s3.us-east-1.amazonaws.com", "dynamodb.us-east-1.amazonaws.com", "plain.example"]
NOISE = random.Random("noise").randbytes(1 << 18)
TCHAR = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
TARGET = "".join(chr(c) for c in range(0x21, 0x7f) if chr(c) not in "#\\")
TEXT = bytes([9]) + bytes(range(0x20, 0x7f)) + bytes(range(0x80, 0x100))
METHODS = ["GET"] * 6 + ["POST"] * 5 + ["PUT"] * 4 + ["HEAD"] * 3 + ["DELETE", "PATCH", "OPTIONS", "PROPFIND", "get",
                                                                  "M-SEARCH", "!#$%&'*+.^_`|~1"]
NAMES = ["Accept", "Accept-Encoding", "User-Agent", "Cookie", "Range", "If-Match", "Content-Type", "Content-MD5", "Pragma",
         "Cache-Control", "Authorization", "X-Forwarded-For", "Forwarded", "Origin", "Referer", "From", "x-amz-meta-a",
         "X_Under", "Date", "Set-Cookie", "ETag", "Vary", "Server", "Location", "Content-Encoding", "Content-Range",
         "Age", "Warning", "WWW-Authenticate", "Link", "Last-Modified", "Content-Disposition", "Priority", "a"]
STATUSES = [200] * 12 + [201, 202, 203, 204, 204, 205, 206, 207, 299, 300, 301, 302, 303, 304, 304, 307, 308, 400, 401,
                         403, 404, 404, 409, 410, 412, 416, 418, 422, 451, 499, 500, 501, 503, 599]


def some_size(rng):
    return rng.choice([0, 1, 2, rng.randrange(64), rng.randrange(64), rng.randrange(2000), rng.randrange(2000),
                       rng.randrange(70000), rng.randrange(1 + 200 * 1024)])


def some_value(rng):
    kind = rng.random()
    if kind < 0.1:
        return b""
    n = rng.randrange(1, 40) if kind < 0.97 else rng.randrange(2000, 8000)
    return bytes(rng.choices(TEXT, k=n)).strip(b" \t")


def some_name(rng):
    if rng.random() < 0.3:
        return "x-" + "".join(rng.choices(TCHAR, k=rng.randrange(1, 20)))
    name = rng.choice(NAMES)
    return rng.choice([name, name, name.lower(), name.upper(), name.swapcase()])


def some_fields(rng):
    """Some of them more than once. What would make somebody wait (Retry-After), or is of one hop, is not among them."""
    fields = [(some_name(rng).encode(), some_value(rng)) for _ in range(rng.choice([0, 1, 3, 3, 8, 8, 40]))]
    for _ in range(rng.choice([0, 0, 1, 3])):
        if fields:
            fields.insert(rng.randrange(len(fields) + 1), (rng.choice(fields)[0], some_value(rng)))
    return fields


def hop_fields(rng):
    """Fields of this hop, and one that Connection makes such."""
    if rng.random() < 0.8:
        return []
    return rng.choice([[(b"Connection", b"keep-alive")], [(b"connection", b"Keep-Alive, X-Hop"), (b"X-Hop", b"1")],
                       [(b"Keep-Alive", b"timeout=5"), (b"Connection", b"keep-alive")],
                       [(b"Connection", b"x-hop"), (b"X-HOP", b"2"), (b"x-hop", b"3")],
                       [(b"Connection", b"TE"), (b"TE", b"trailers")]])


def some_target(rng):
    kind = rng.random()
    n = rng.randrange(1, 30) if kind < 0.9 else rng.randrange(2000, 8000)
    if kind < 0.4:
        return "/" + "".join(rng.choices("abc/.%20?&=~;:@", k=n)).replace("%", "%2")
    if kind < 0.5:
        return rng.choice(["/", "//", "/?", "/..//./../a", "/a?b?c=/d//", "/%00%ff%2F%2f", "/a;b=c;d", "/http://x.example/",
                           "/?" + "&" * 30, "/[x]{y}|z^`\"<>", "/@host/:80", "/%", "/%zz"])
    return "/" + "".join(rng.choices(TARGET, k=n))


def section(fields, rng):
    return b"".join(n + b":" + rng.choice([b" ", b" ", b"", b"\t ", b"   "]) + v + rng.choice([b"", b"", b" ", b"\t"]) + b"\r\n"
                    for n, v in fields)


def some_extension(rng):
    return rng.choice([b"", b"", b"", b";a", b";a=b", b';a="b;\\"c, d"', b";a;b=c;d", b';x="' + b"y" * 60 + b'"'])


def some_trailers(rng):
    if rng.random() < 0.6:
        return []
    return [(b"x-t-" + rng.choice([b"crc", b"Sum", b"A"]), some_value(rng)[:200].rstrip(b" \t")) for _ in range(rng.randrange(1, 5))]


def chunked(body, trailers, rng):
    out = []
    while body:
        n = rng.choice([1, 2, 15, 16, 17, 255, 1000, 16384, 70000, len(body)]) if len(out) < 60 else len(body)
        size = rng.choice([b"%x", b"%X", b"0%x", b"000%X"]) % len(body[:n])
        out.append(size + some_extension(rng) + b"\r\n" + body[:n] + b"\r\n")
        body = body[n:]
    return b"".join(out) + rng.choice([b"0", b"00"]) + some_extension(rng) + b"\r\n" + section(trailers, rng) + b"\r\n"


class Case:
    """One exchange: the bytes of both messages, for each way."""

    def __init__(self, number, small):
        rng = random.Random("%s case %d" % (SEED, number))
        self.number, self.host = number, rng.choice(HOSTS)
        self.method = rng.choice(METHODS)
        self.target = some_target(rng)
        if self.method == "OPTIONS" and rng.random() < 0.5:
            self.target = "*"
        self.minor = 0 if not small and rng.random() < 0.04 else 1
        self._request(rng, small)
        self._response(rng, small)
        self.last = self.minor == 0 or self.closes
        self.seed = rng.random()      # of how it is sent

    def _body(self, rng, small):
        n = min(some_size(rng), 3000) if small else some_size(rng)
        at = rng.randrange(len(NOISE) - n)
        return NOISE[at:at + n]

    def _request(self, rng, small):
        framing = rng.choice(["none", "length", "chunked"] if self.method not in ("GET", "HEAD", "DELETE")
                             else ["none"] * 8 + ["length", "chunked"])
        framing = "length" if framing == "chunked" and self.minor == 0 else framing
        data = self._body(rng, small) if framing != "none" else b""
        fields = some_fields(rng) + (hop_fields(rng) if self.minor else [])
        rng.shuffle(fields)
        place = rng.randrange(len(fields) + 1)
        self.expects = data != b"" and self.minor == 1 and not small and rng.random() < 0.15
        own = [(b"Host", self.host.encode()), (b"X-Case", b"%d" % self.number)]
        if framing == "length":
            own.append((rng.choice([b"Content-Length", b"content-length"]), b"%d" % len(data)))
        if framing == "chunked":
            own.append((b"Transfer-Encoding", rng.choice([b"chunked", b"Chunked"])))
        if self.expects:
            own.append((b"Expect", rng.choice([b"100-continue", b"100-Continue"])))
        rng.shuffle(own)
        self.request_fields = section(fields[:place] + own + fields[place:], rng) + b"\r\n"
        self.request_body = chunked(data, some_trailers(rng), rng) if framing == "chunked" else data

    def _response(self, rng, small):
        status = rng.choice(STATUSES)
        data = self._body(rng, small)
        framing = rng.choice(["length", "length", "chunked", "close"])
        if small and framing == "close":
            framing = "length"
        if self.minor == 0 and framing == "chunked":
            framing = "close"
        fields = some_fields(rng) + (hop_fields(rng) if self.minor else [])
        rng.shuffle(fields)
        if framing == "length" and (status != 304 or rng.random() < 0.5):
            fields.insert(rng.randrange(len(fields) + 1), (b"Content-Length", b"%d" % len(data)))
        if framing == "chunked":
            fields.insert(rng.randrange(len(fields) + 1), (b"Transfer-Encoding", b"chunked"))
        if status == 204:
            fields = [f for f in fields if f[0] not in (b"Content-Length", b"Transfer-Encoding")]
        bare = status in (204, 304) or self.method == "HEAD"
        self.closes = framing == "close" and not bare
        if self.closes or (not small and rng.random() < 0.1):
            self.closes = True
            if rng.random() < 0.5:
                fields.append((b"Connection", b"close"))
        reason = rng.choice([b"OK", b"", b"Not  Really", b"\xe9t\xe9", b"a\tb"])
        interim = b""
        if self.minor == 1 and rng.random() < 0.15:
            for _ in range(rng.randrange(1, 4)):
                interim += b"HTTP/1.1 %d Early\r\n%s\r\n" % (rng.choice([102, 103]), section([(b"Link", b"</a>")] * rng.randrange(3), rng))
        body = b"" if bare else chunked(data, some_trailers(rng), rng) if framing == "chunked" else data
        self.response = interim + b"HTTP/1.1 %d %s\r\n%s\r\n" % (status, reason, section(fields, rng)) + body

    def request_head(self, absolute):
        target = self.target
        if absolute:
            target = "http://" + self.host + ("" if target == "*" else target)
        return ("%s %s HTTP/1.%d\r\n" % (self.method, target, self.minor)).encode() + self.request_fields


def build_sessions():
    """[(pipelined, [case])]: what shares a client connection."""
    sessions, number = [], 0
    while number < CASES:
        rng = random.Random("%s session %d" % (SEED, number))
        pipelined = rng.random() < 0.2
        cases, host = [], None
        for _ in range(rng.choice([1, 1, 2, 3, 6])):
            case = Case(number, pipelined)
            host = host or case.host
            if host != case.host:     # a TLS connection has one
                break
            cases.append(case)
            number += 1
            if case.last:
                break
        sessions.append((pipelined, cases))
    return sessions


def say(wire, data, rng):
    """In pieces: whole, at random places, or each byte by itself."""
    how = rng.random()
    if how < 0.15 and len(data) < 700:
        for n in range(len(data)):
            wire.send(data[n:n + 1])
        return
    if how < 0.5:
        wire.send(data)
        return
    pieces = 0
    while data:
        n = rng.choice([1, 2, 3, 100, 1000, 16384, 65536]) if pieces < 40 else len(data)
        wire.send(data[:n])
        data, pieces = data[n:], pieces + 1
        if rng.random() < 0.05:
            time.sleep(rng.random() * 0.02)


class Book:
    def __init__(self, sessions):
        self.cases = {case.number: case for _, cases in sessions for case in cases}
        self.lock = threading.Lock()
        self.at_origin = {}           # (way, number) -> [Part]
        self.at_client = {}           # (way, number) -> (Part, [Part])
        self.faults = []

    def fault(self, *words):
        with self.lock:
            self.faults.append(" ".join(map(str, words)))


def origin_script(book, way):
    def serve(wire, _):
        wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = None
        try:
            while True:
                part = strict.read_request_head(wire)
                if part is None:
                    return
                number = int(part.get(b"x-case"))
                case = book.cases[number]
                if part.get(b"expect"):
                    wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
                strict.read_request_body(wire, part)
                with book.lock:
                    book.at_origin.setdefault((way, number), []).append(part)
                say(wire, case.response, random.Random("%s %s" % (case.seed, way)))
                if case.closes or part.start[2] == b"0":
                    if isinstance(wire.sock, ssl.SSLSocket):
                        wire.sock.unwrap()
                    return
        except (strict.Malformed, strict.Ended, AttributeError, KeyError) as e:
            book.fault(way, "origin, case", number, repr(e))

    return serve


def exchange(book, way, wire, session):
    pipelined, cases = session
    absolute = way == "plain"
    wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if pipelined:
        say(wire, b"".join(c.request_head(absolute) + c.request_body for c in cases), random.Random(cases[0].seed))
    for case in cases:
        rng, early = random.Random(case.seed), []
        if case.expects:
            say(wire, case.request_head(absolute), rng)
            early = [strict.head(wire, strict.STATUS_LINE)]
            say(wire, case.request_body, rng)
        elif not pipelined:
            say(wire, case.request_head(absolute) + case.request_body, rng)
        final, interim = strict.read_response(wire, case.method.encode())
        with book.lock:
            book.at_client[way, case.number] = final, early + interim


def work(book, todo, openers):
    while True:
        try:
            session = todo.get_nowait()
        except queue.Empty:
            return
        for way, opener in openers.items():
            wire = None
            try:
                wire = opener(session[1][0].host)
                exchange(book, way, wire, session)
            except (strict.Malformed, strict.Ended, OSError) as e:
                book.fault(way, "client, cases", [c.number for c in session[1]], repr(e))
            finally:
                if wire:
                    wire.close()


def seen_by_origin(part):
    return part.start[:2], part.end_to_end(), part.framing, part.body, part.trailers


def seen_by_client(answer):
    final, interim = answer
    continues = [i.fields for i in interim if i.start[1] == b"100"]
    return final.start[1:], final.end_to_end(), final.body, final.trailers, final.whole, continues


def hints(answer):
    """Interim responses that say something. They are passed on bare, each status once."""
    return [(i.start[1], i.fields) for i in answer[1] if i.start[1] != b"100"]


def compare(book, way, number):
    """What differs, in words; nothing when nothing does."""
    direct = book.at_origin.get(("direct", number), [])
    if len(direct) != 1 or ("direct", number) not in book.at_client:
        return ["direct: not to be compared with"]
    attempts = book.at_origin.get((way, number), [])
    differences = [] if attempts else ["it never came to the origin"]
    for n, part in enumerate(attempts, 1):
        pairs = zip(("line", "fields", "framing", "body", "trailers"), seen_by_origin(direct[0]), seen_by_origin(part))
        differences += ["origin, attempt %d, %s: %.300r, not %.300r" % (n, what, b, a) for what, a, b in pairs if a != b]
        differences += ["origin: chunk extensions were passed on"] * bool(part.extensions)
    if (way, number) not in book.at_client:
        return differences + ["no answer"]
    bare = [(status, []) for status in dict.fromkeys(status for status, _ in hints(book.at_client["direct", number]))]
    if hints(book.at_client[way, number]) != bare:
        differences.append("client, interim: %.300r, not %.300r" % (hints(book.at_client[way, number]), bare))
    pairs = zip(("status", "fields", "body", "trailers", "whole", "100"),
                seen_by_client(book.at_client["direct", number]), seen_by_client(book.at_client[way, number]))
    return differences + ["client, %s: %.300r, not %.300r" % (what, b, a) for what, a, b in pairs if a != b]


def test_both_ends_see_the_same(make_retryd, origin_ca):
    """B13, C1, C2, D2: nothing is invented, lost or changed but what is between neighbours."""
    sessions = build_sessions()
    book = Book(sessions)
    context, contexts = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), {}
    for host in HOSTS:
        contexts[host] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[host].load_cert_chain(Authority(str(origin_ca)).leaf(host))
    context.sni_callback = lambda tls, name, _: setattr(tls, "context", contexts[name])
    origins = {way: RawOrigin(origin_script(book, way), tls=context if way == "tls" else None)
               for way in ("direct", "plain", "tls")}
    try:
        retryd = make_retryd(
            None, upstream={"ca_file": str(origin_ca / "ca.pem")}, intercept={"hosts": ["plain.example"]},
            resolve={"*.amazonaws.com:80": "127.0.0.1:%d" % origins["plain"].port,
                     "*.amazonaws.com:443": "127.0.0.1:%d" % origins["tls"].port,
                     "plain.example:80": "127.0.0.1:%d" % origins["plain"].port,
                     "plain.example:443": "127.0.0.1:%d" % origins["tls"].port},
            retry={"max_backoff": "2ms"}, rules=[{"match": {"host": ["*.amazonaws.com"]}, "quota": {"capacity": 1000000}}])
        todo = queue.Queue()
        for session in sessions:
            todo.put(session)
        openers = {"direct": lambda _: dial(origins["direct"].port), "plain": lambda _: retryd.plain(),
                   "tls": retryd.open}
        threads = [threading.Thread(target=work, args=(book, todo, openers)) for _ in range(THREADS)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        for way in ("plain", "tls"):
            for number in book.cases:
                for difference in compare(book, way, number):
                    book.fault("case", number, way, difference)
        assert not book.faults, "RETRYD_DIFFERENTIAL_SEED=%s: %d differences\n%s" % (
            SEED, len(book.faults), "\n".join(book.faults[:25]))
        attempts = [len(parts) for (way, _), parts in book.at_origin.items() if way != "direct"]
        assert len(book.cases) >= CASES and max(attempts) == 4
        print("seed", SEED, len(book.cases), "cases,", len(sessions), "connections each way,", sum(attempts), "attempts")
    finally:
        for one in origins.values():
            one.stop()
