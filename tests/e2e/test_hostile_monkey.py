"""Many clients and an origin that split, pause, cut, reset and half-close at random bytes, from a seed, with oracles:

- a whole answer is the answer to its own request, byte for byte, and one that the origin finished;
- the origin never sees a whole request that its client did not finish;
- every attempt of a request is the same bytes, and there are no more of them than allowed;
- the daemon lives, its descriptors go back to where they were, and nobody waits longer than the timeouts allow.

RETRYD_MONKEY_SEED and RETRYD_MONKEY_SECONDS make another, longer walk."""
import hashlib
import os
import random
import socket
import ssl
import threading
import time

import pytest

from faultd import Authority
from hostile import (RawOrigin, back_to, descriptors, exactly, read_body, read_head, reset_on_close)
from wire import dial

SEED = int(os.environ.get("RETRYD_MONKEY_SEED", "1"))
SECONDS = float(os.environ.get("RETRYD_MONKEY_SECONDS", "9"))
CLIENTS = 16
MAX_ATTEMPTS = 3
AWS = ".s3.us-east-1.amazonaws.com"   # retried; each host has a quota of its own
POLLED = "sqs.us-east-1.amazonaws.com"  # retried; all share a quota that is soon used up: errors then wait
OTHER = "plain.example"               # passed through once
TIMEOUTS = {"connect": "2s", "response": "400ms", "read": "300ms", "client_head": "1s", "client_idle": "2s",
            "client_body": "600ms", "client_write": "2s", "drain": "2s"}
PATIENCE = 25                         # seconds; above the sum of everything that may be waited for


def noise(*key, n):
    return hashlib.shake_128(repr(key).encode()).digest(n)


def size(rng):
    return rng.choice([0, 1, 7, rng.randrange(300), rng.randrange(20000), rng.randrange(120000)])


def dribble(wire, data, rng):
    """All of it, in pieces."""
    while data:
        n = len(data) if rng.random() < 0.3 else rng.choice([1, 2, 5, 100, 5000, 60000])
        wire.send(data[:n])
        data = data[n:]
        if rng.random() < 0.2:
            time.sleep(rng.random() * 0.01)


def part(sock, how):
    """Ends a connection, or its sending half."""
    if how == "half":
        sock.shutdown(socket.SHUT_WR)
    else:
        if how == "reset":
            reset_on_close(sock)
        sock.close()


def chunked(body, rng, trailers=b""):
    out = b""
    while body:
        n = rng.choice([1, 3, 1000, 16384, 70000])
        out += b"%x%s\r\n%s\r\n" % (len(body[:n]), rng.choice([b"", b";a=b"]), body[:n])
        body = body[n:]
    return out + b"0\r\n" + trailers + b"\r\n"


class Book:
    """What really happened: written by clients and origin, read by the oracles."""

    def __init__(self):
        self.lock = threading.Lock()
        self.finishing = set()        # ids whose client sent, or is about to send, its last byte
        self.whole = {}               # id -> [(head, body, trailers)] complete requests at the origin
        self.answers = {}             # (id, serial) -> body of an answer that the origin finished, or is about to
        self.serial = 0
        self.faults = []
        self.counts = {}

    def fault(self, text):
        with self.lock:
            self.faults.append(text)

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1


def build_answer(book, ident, method, rng):
    """(bytes before the last one, the last, body, how it ends): an answer, and where it is whole."""
    with book.lock:
        book.serial += 1
        serial = book.serial
    status = rng.choice([200] * 6 + [503, 500, 400, 429, 404, 204, 304, 301])
    body = noise(ident, serial, n=size(rng))
    framing = rng.choice(["length", "length", "chunked", "close"])
    head = b"".join(b"HTTP/1.1 %d Maybe\r\n\r\n" % rng.choice([100, 102, 103]) for _ in range(rng.choice([0, 0, 0, 1, 3])))
    head += b"HTTP/1.1 %d Yes\r\nX-Id: %s\r\nX-Serial: %d\r\n" % (status, ident.encode(), serial)
    close = framing == "close" or rng.random() < 0.2
    if status >= 400 and rng.random() < 0.3:
        head += b"x-amz-retry-after: %d\r\n" % rng.randrange(100)
    if close:
        head += b"Connection: close\r\n"
    if status in (204, 304) or method == "HEAD":
        if status != 204:
            head += b"Content-Length: %d\r\n" % len(body)
        data, body = head + b"\r\n", b""
    elif framing == "length":
        data = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    elif framing == "chunked":
        data = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(body, rng, rng.choice([b"", b"X-Trailer: 1\r\n"]))
    else:
        data = head + b"\r\n" + body
    return serial, data, body, close, framing == "close"


def say_goodbye(sock):
    """The end of a stream: TLS has a word for it, without which it is a cut."""
    if isinstance(sock, ssl.SSLSocket):
        sock.settimeout(1)
        sock.unwrap()
    else:
        sock.shutdown(socket.SHUT_WR)


def origin_script(book):
    def serve(wire, n):
        rng = random.Random("%d origin %d" % (SEED, n))
        wire.sock.settimeout(5)
        if rng.random() < 0.03:
            part(wire.sock, rng.choice(["reset", "close"]))
            return
        while one(wire, rng):
            pass

    def one(wire, rng):
        message = read_head(wire)
        ident = message.headers["x-id"]
        whim = rng.random()
        early = whim < 0.12
        if whim < 0.06:               # leaves, somewhere in the request
            exactly(wire, rng.randrange(max(1, int(message.headers.get("content-length", "1")))))
            part(wire.sock, rng.choice(["reset", "close"]))
            return False
        if not early:
            if message.headers.get("expect") and rng.random() < 0.6:
                wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            read_body(wire, message)
            with book.lock:
                if ident not in book.finishing:
                    book.faults.append("%s: whole at the origin, not at its client" % ident)
                book.whole.setdefault(ident, []).append((message.head, message.body, message.trailers))
        if rng.random() < 0.08:
            part(wire.sock, rng.choice(["reset", "close"]))
            return False
        if rng.random() < 0.03:
            wire.sock.settimeout(1)
            wire.fill()               # says nothing until the other side gives up
            return False
        serial, data, body, close, until_close = build_answer(book, ident, message.method, rng)
        if rng.random() < 0.2 and len(data) > 1:
            dribble(wire, data[:rng.randrange(len(data))], rng)
            if until_close or rng.random() < 0.5:
                part(wire.sock, "reset")
            elif rng.random() < 0.7:
                part(wire.sock, rng.choice(["close", "half"]))
            else:
                wire.sock.settimeout(1)
                wire.fill()
            return False
        with book.lock:
            book.answers[ident, serial] = body
        dribble(wire, data, rng)
        if early or close:
            if rng.random() < 0.5:
                say_goodbye(wire.sock)
                wire.sock.settimeout(1)
                while wire.fill():
                    wire.buffer = b""
            return False
        return True

    return serve


def build_request(ident, rng, tls):
    method = rng.choice(["GET", "GET", "HEAD", "PUT", "POST", "POST", "DELETE"])
    number, serial = map(int, ident.split("-"))
    host = "b%d-%d%s" % (number, serial // 8, AWS) if rng.random() < 0.8 else OTHER
    more = ""
    if not tls and rng.random() < 0.15:
        method, host, more = "POST", POLLED, "X-Amz-Target: AmazonSQS.ReceiveMessage\r\n"
    target = "/" + ident + ("?uploadId=1" if rng.random() < 0.1 else "")   # POST: its 200 may be an error
    head = "%s http://%s%s HTTP/1.1\r\nHost: %s\r\nX-Id: %s\r\n%s" % (method, host, target, host, ident, more)
    body = b""
    if method in ("PUT", "POST"):
        body = noise(ident, n=size(rng))
        if rng.random() < 0.15:
            head += "Expect: 100-continue\r\n"
        if rng.random() < 0.3:
            data = chunked(body, rng, rng.choice([b"", b"X-Check: %s\r\n" % ident.encode()]))
            head += "Transfer-Encoding: chunked\r\n\r\n"
            return method, host, head.encode(), data
        head += "Content-Length: %d\r\n" % len(body)
    return method, host, head.encode() + b"\r\n", body


def check_answer(book, ident, answer, method):
    if answer is None or not answer.whole:
        book.count("cut")
        return False
    if answer.get("X-Retryd-Error"):
        book.count(answer.get("X-Retryd-Error"))
        return answer.get("Connection") != "close"
    book.count("whole")
    key = ident, int(answer.get("X-Serial") or 0)
    with book.lock:
        if answer.get("X-Id") != ident:
            book.faults.append("%s: the answer is for %s" % (ident, answer.get("X-Id")))
        elif key not in book.answers:
            book.faults.append("%s: a whole answer that the origin did not finish" % ident)
        elif method != "HEAD" and answer.body != book.answers[key]:
            book.faults.append("%s: %d bytes instead of %d" % (ident, len(answer.body), len(book.answers[key])))
    return answer.get("Connection") != "close"


def client(book, retryd, number, until, tls):
    rng = random.Random("%d client %d" % (SEED, number))
    wire, serial, there = None, 0, None
    while time.monotonic() < until:
        serial += 1
        ident = "%d-%d" % (number, serial)
        method, host, head, body = build_request(ident, rng, tls)
        began = time.monotonic()
        try:
            if tls and host != OTHER:
                head = head.replace(b"http://%s/" % host.encode(), b"/", 1)
            if wire and tls and host != there:
                wire.close()
                wire = None
            if wire is None:
                wire = retryd.open(host) if tls and host != OTHER else dial(retryd.port)
                wire.sock.settimeout(PATIENCE)
                there = host
            data = head + body
            whim = rng.random()
            if whim < 0.12:           # never finishes its request
                dribble(wire, data[:rng.randrange(len(data))], rng)
                part(wire.sock, rng.choice(["close", "reset", "half"]))
                if wire.sock.fileno() >= 0:
                    while wire.fill():
                        wire.buffer = b""
                raise EOFError
            with book.lock:
                book.finishing.add(ident)
            sender = threading.Thread(target=quietly, args=(dribble, wire, data, random.Random(rng.random())))
            sender.start()
            if tls:                   # one thread at a time may use a TLS connection
                sender.join()
            if whim < 0.2:            # leaves while it is served
                time.sleep(rng.random() * 0.1)
                sender.join()
                part(wire.sock, rng.choice(["close", "reset"]))
                raise EOFError
            half = whim < 0.28 and not tls
            if half:
                sender.join()
                wire.sock.shutdown(socket.SHUT_WR)
            answer = wire.response(method)
            on = check_answer(book, ident, answer, method)
            sender.join()
            if not on or half:
                raise EOFError
        except socket.timeout:
            book.fault("%s: nothing for %d s" % (ident, PATIENCE))
            wire = None
        except (EOFError, OSError):
            if wire:
                wire.close()
            wire = None
            if retryd.process.poll() is not None:
                return
        if time.monotonic() - began > PATIENCE:
            book.fault("%s: took %.1f s" % (ident, time.monotonic() - began))
    if wire:
        wire.close()


def quietly(action, *args):
    try:
        action(*args)
    except OSError:
        pass


def judge(book, retryd):
    attempts = {}
    for ident, seen in book.whole.items():
        if any(one != seen[0] for one in seen):
            book.faults.append("%s: attempts differ" % ident)
        method = seen[0][0].split(b" ")[0]
        most = 2 * MAX_ATTEMPTS if b".amazonaws.com" in seen[0][0] else 1 if method == b"POST" else 2
        if len(seen) > most:
            book.faults.append("%s: sent %d times" % (ident, len(seen)))
        attempts[len(seen)] = attempts.get(len(seen), 0) + 1
    for line in retryd.log("request"):
        if line.get("attempts", 0) > MAX_ATTEMPTS:
            book.faults.append("xid %s: %d attempts" % (line["xid"], line["attempts"]))
    return attempts


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_monkey(make_retryd, origin_ca, tls):
    book, context = Book(), None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Authority(str(origin_ca)).leaf("*" + AWS))
    origin, plain = RawOrigin(origin_script(book), tls=context), RawOrigin(origin_script(book))
    try:
        retryd = make_retryd(None, resolve={"*.amazonaws.com:80": "127.0.0.1:%d" % origin.port,
                                            "*.amazonaws.com:443": "127.0.0.1:%d" % origin.port,
                                            OTHER + ":80": "127.0.0.1:%d" % plain.port},
                             upstream={"ca_file": str(origin_ca / "ca.pem")},
                             timeouts=TIMEOUTS, retry={"max_attempts": MAX_ATTEMPTS, "max_backoff": "30ms"},
                             limits={"replay_memory": "32KiB", "replay_disk": "48KiB", "replay_memory_total": "256KiB"})
        baseline = descriptors(retryd.process)
        until = time.monotonic() + SECONDS
        clients = [threading.Thread(target=client, args=(book, retryd, n, until, tls)) for n in range(CLIENTS)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        assert retryd.process.poll() is None, retryd.said()[-6000:]
        attempts = judge(book, retryd)
        print("seed", SEED, "tls" if tls else "plain", book.counts, "times at the origin:", attempts)
        assert not book.faults, (len(book.faults), book.faults[:20])
        assert book.counts.get("whole", 0) > 100 and attempts.get(3, 0) > 0
        assert tls or [a for a in retryd.attempts_logged() if a["decision"] == "penalty"]
        # Idle upstream connections end with the origin.
        origin.stop()
        plain.stop()
        back_to(retryd.process, baseline)
    finally:
        origin.stop()
        plain.stop()
