"""The origin, or the client, resets, closes or falls silent at every byte of an exchange, in both directions.

One exchange is a PUT of about 300 bytes answered with about 300. For every byte k of either message the origin takes k
bytes of the request, or writes k bytes of the response, and then resets, closes or stalls; and the client likewise
(without stalling: its silence has tests of its own). In clear and in TLS, with retries off and on, with both framings.

- The client has the right answer, which the origin finished; or a marked 502 or 504; or an answer that visibly ends
  too early. Never another one, never a wait beyond the timeouts.
- With retries on and a fault in attempt 1 alone, it has the right answer, unless the first one had begun to stream.
- The origin never sees a whole request that the client did not finish.
- Afterwards the daemon has the descriptors it had, and about the memory."""
import contextlib
import functools
import os
import queue
import socket
import ssl
import threading
import time

import pytest

import strict
from daemons import sanitized
from faultd import Authority
from hostile import RawOrigin, back_to, descriptors, reset_on_close, rss_bytes
from wire import TIMEOUT, Wire

SANITIZED = sanitized()
# Each byte, and with the sanitizers, which are slow, each seventh: RETRYD_FAULT_STEP says otherwise.
STEP = int(os.environ.get("RETRYD_FAULT_STEP", "7" if SANITIZED else "1"))
WORKERS = 48
SILENCE = 0.4                         # seconds until the origin is taken to be silent
TIMEOUTS = {"connect": "2s", "tls": "2s", "response": "400ms", "read": "400ms", "client_head": "2s",
            "client_body": "500ms", "client_idle": "5s", "client_write": "2s", "drain": "1s"}
PATIENCE = 20                         # seconds: a busy machine; the timeouts of all attempts are below 3
RSS_GROWTH = 6 << 20

DATA = b"what is put: " + b"p" * 57
ANSWER = b"<Answer>" + b"a" * 90 + b"</Answer>"


def chunks(data, size):
    return b"".join(b"%x\r\n%s\r\n" % (len(data[at:at + size]), data[at:at + size])
                    for at in range(0, len(data), size)) + b"0\r\n\r\n"


def request(host, chunked, absolute, cell=0):
    """The bytes that the client sends; their number is always the same."""
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(DATA)
    return b"PUT %s/fault/matrix HTTP/1.1\r\nHost: %s\r\nX-Cell: %06d\r\nX-Filler: %s\r\n%s\r\n\r\n%s" % (
        b"http://" + host if absolute else b"", host, cell, b"f" * 70, framing, chunks(DATA, 30) if chunked else DATA)


def response(chunked):
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(ANSWER)
    return b"HTTP/1.1 200 Fine\r\nX-Filler: %s\r\nETag: \"e\"\r\n%s\r\n\r\n%s" % (
        b"r" * 80, framing, chunks(ANSWER, 40) if chunked else ANSWER)


def at_once(sock):
    """Without this, small records wait for the acknowledgement of earlier ones, and a reset takes them back."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def part(sock, how):
    """Ends the connection. An orderly TLS end says so first: every other close does without."""
    if how == "reset":
        reset_on_close(sock)
    elif how == "close" and isinstance(sock, ssl.SSLSocket):
        try:
            sock.settimeout(0.05)
            sock.unwrap()
        except (OSError, ValueError):
            pass
    sock.close()


class Lane:
    """One worker: an origin and a host of its own, so that it knows whose exchange arrives there."""

    def __init__(self, number, tls, authority):
        self.host = b"lane%02d.s3.us-east-1.amazonaws.com" % number
        self.lock = threading.Lock()
        self.plan = None              # (side, how, k) or None
        self.every, self.cell, self.tries, self.finished, self.whole = False, 0, 0, 0, 0
        context = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(authority)
        self.origin = RawOrigin(self.serve, tls=context)

    def prepare(self, plan, every, chunked):
        with self.lock:
            self.plan, self.every, self.answer = plan, every, response(chunked)
            self.tries = self.finished = self.whole = 0
            self.cell += 1

    def serve(self, wire, _):
        wire.sock.settimeout(TIMEOUT)
        at_once(wire.sock)
        try:
            while wire.fill():
                if not self.one(wire):
                    return
        except strict.Ended:          # the client's fault, passed on
            pass

    def one(self, wire):
        with self.lock:
            self.tries += 1
            plan = self.plan if self.every or self.tries == 1 else None
            answer = self.answer
        side, how, k = plan or (None, None, None)
        if side == "request":
            wire.buffer = wire.take(k) if k else b""
            self.end(wire, how)
            return False
        part_ = strict.read_request_head(wire)
        strict.read_request_body(wire, part_)
        if part_.body != DATA:
            raise AssertionError("the request came as %r" % part_.body)
        with self.lock:
            mine = int(part_.get(b"x-cell")) == self.cell  # or still of a client that left
            self.whole += mine
            self.finished += mine and (side != "response" or k == len(answer))
        wire.send(answer[:k])     # all of it, without a plan
        if side == "response":
            self.end(wire, how)
            return False
        return True

    @staticmethod
    def end(wire, how):
        if how == "stall":
            while wire.fill():
                wire.buffer = b""
        else:
            part(wire.sock, how)


class Heard(Wire):
    heard = False

    def fill(self):
        more = super().fill()
        self.heard = self.heard or more
        return more


class Matrix:
    def __init__(self, retryd, lanes, tls, retries, chunked):
        self.retryd, self.lanes, self.tls, self.retries, self.chunked = retryd, lanes, tls, retries, chunked
        self.todo, self.lock, self.faults, self.came = queue.Queue(), threading.Lock(), [], {}
        if tls:
            self.context = retryd.tls_context()

    def fill(self):
        """The origin's faults in attempt 1 alone, or (retries off) in all."""
        asked = {"origin": len(request(self.lanes[0].host, self.chunked, False)),
                 "client": len(request(self.lanes[0].host, self.chunked, not self.tls))}
        said = len(response(self.chunked))
        for who, hows in (("origin", ("reset", "close", "stall")), ("client", ("reset", "close"))):
            for side, size in (("request", asked[who]), ("response", said + (who == "origin"))):
                for k in sorted({*range(0, size, STEP), size - 1}):
                    for how in hows:
                        self.todo.put((who, side, how, k))
        return self.todo.qsize()

    def count(self, what):
        with self.lock:
            self.came[what] = self.came.get(what, 0) + 1

    def open(self, host):
        if not self.tls:
            return Heard(self.retryd.plain().sock)
        return Heard(self.context.wrap_socket(self.retryd.tunnel(host.decode()).sock, server_hostname=host.decode()))

    def work(self, lane):
        while True:
            try:
                cell = self.todo.get_nowait()
            except queue.Empty:
                return
            try:
                (self.origin_fails if cell[0] == "origin" else self.client_fails)(lane, *cell[1:])
            except Exception as e:    # whatever it is, it belongs to this cell
                with self.lock:
                    self.faults.append("%s: %r" % (cell, e))

    def origin_fails(self, lane, side, how, k):
        lane.prepare((side, how, k), not self.retries, self.chunked)
        began = time.monotonic()
        wire = self.open(lane.host)
        wire.sock.settimeout(PATIENCE)
        wire.send(request(lane.host, self.chunked, not self.tls, lane.cell))
        came = self.judge(wire)
        wire.close()
        took = time.monotonic() - began
        assert took < PATIENCE, "took %.1f s" % took
        assert came != "right" or lane.finished > 0, "a whole answer that the origin did not finish"
        assert came != "nothing", "the connection ended without a word"
        # A machine so busy that the origin, in good health, is taken to be silent may do worse than this.
        assert came == "right" or side != "response" or k < len(lane.answer) or took >= SILENCE, \
            "a finished answer is not passed on"
        if self.retries:
            assert came == "right" or came == "cut" and self.chunked and side == "response" or took >= 2 * SILENCE, \
                "%s after %d tries" % (came, lane.tries)
        self.count(came)

    def judge(self, wire):
        """"right", "failure" or "cut"; anything else is a fault."""
        try:
            final, interim = strict.read_response(wire, b"PUT")
        except strict.Ended:
            return "cut" if wire.heard else "nothing"
        assert not interim
        status = int(final.start[1])
        if status == 200:
            assert final.body == ANSWER and final.get(b"etag") == b'"e"' and final.whole
            return "right"
        assert status in (502, 504) and final.get(b"x-retryd-error"), "status %d" % status
        return "failure"

    def client_fails(self, lane, side, how, k):
        lane.prepare(None, False, self.chunked)
        wire = self.open(lane.host)
        wire.sock.settimeout(PATIENCE)
        at_once(wire.sock)
        data = request(lane.host, self.chunked, not self.tls, lane.cell)
        if side == "request":
            wire.send(data[:k])
            part(wire.sock, how)
            # What never came can have had no effect; what comes later would belong to the next cell.
            time.sleep(0.01)
            assert lane.whole == 0, "the origin has a whole request"
        else:
            wire.send(data)
            wire.take(k)
            part(wire.sock, how)
        self.count("client")


def play(retryd, lanes, tls, retries, chunked):
    matrix = Matrix(retryd, lanes, tls, retries, chunked)
    cells = matrix.fill()
    threads = [threading.Thread(target=matrix.work, args=(lane,)) for lane in lanes]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert retryd.process.poll() is None, retryd.said()[-6000:]
    assert not matrix.faults, "%d of %d cells, %s\n%s" % (
        len(matrix.faults), cells, matrix.came, "\n".join(matrix.faults[:20]))
    return cells, matrix.came


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("retries", [False, True], ids=["off", "on"])
def test_every_byte(make_retryd, origin_ca, tls, retries):
    """B13, D5, E3, J13: half a message is never a whole one, whoever leaves where, and nothing is left behind."""
    authority = Authority(str(origin_ca)).leaf("*.s3.us-east-1.amazonaws.com")
    lanes = [Lane(n, tls, authority) for n in range(WORKERS)]
    try:
        retryd = make_retryd(
            None, timeouts=TIMEOUTS, upstream={"ca_file": str(origin_ca / "ca.pem")},
            resolve={"%s:%d" % (lane.host.decode(), 443 if tls else 80): "127.0.0.1:%d" % lane.origin.port
                     for lane in lanes},
            retry={"mode": "standard" if retries else "off", "max_backoff": "2ms"},
            rules=[{"match": {"service": "s3"}, "quota": {"capacity": 1000000}, "base_delay": "1ms"}] if retries else [])
        baseline = descriptors(retryd.process)
        total, memory = 0, None
        for chunked in (False, True):
            cells, came = play(retryd, lanes, tls, retries, chunked)
            total += cells
            print("tls" if tls else "plain", "on" if retries else "off", "chunked" if chunked else "length", cells, came)
            assert came["right"] > 0 and came["client"] > 0
            memory = memory or rss_bytes(retryd.process)
        growth = rss_bytes(retryd.process) - memory
        assert SANITIZED or growth < RSS_GROWTH, "%d exchanges, memory grew by %d bytes" % (total, growth)
        for lane in lanes:            # idle upstream connections end with their origin
            lane.origin.stop()
        back_to(retryd.process, baseline)
        print(total, "exchanges, memory grew by", growth)
    finally:
        for lane in lanes:
            lane.origin.problems.clear()
            lane.origin.stop()


class Cutter:
    """A relay before a TLS origin that cuts its first connection at byte k of what goes up, or down: within records,
    within the handshake."""

    def __init__(self, number, port):
        self.host = b"lane%02d.s3.us-east-1.amazonaws.com" % number
        self.port, self.plan, self.every, self.tries, self.lock = port, None, False, 0, threading.Lock()
        self.origin = RawOrigin(self.serve)

    def prepare(self, plan, every):
        with self.lock:
            self.plan, self.every, self.tries = plan, every, 0

    def serve(self, wire, _):
        with self.lock:
            self.tries += 1
            plan = self.plan if self.every or self.tries == 1 else None
        side, how, k = plan or (None, None, None)
        down = wire.sock
        with socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT) as up:
            for sock in (down, up):
                sock.settimeout(TIMEOUT)
                at_once(sock)
            back = threading.Thread(target=self.pump, args=(up, down, how, k if side == "response" else None))
            back.start()
            self.pump(down, up, how, k if side == "request" else None)
            back.join()

    @staticmethod
    def pump(source, sink, how, left):
        """Until an end, which is passed on, or a cut, which ends both."""
        try:
            while left is None or left > 0:
                data = source.recv(65536 if left is None else left)
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
                left = None if left is None else left - len(data)
            if how == "stall":        # until the other side leaves
                while source.recv(65536):
                    pass
                sink.shutdown(socket.SHUT_WR)
                return
            for sock in (source, sink):
                if how == "reset":
                    reset_on_close(sock)
                    sock.shutdown(socket.SHUT_RD)
                else:
                    sock.shutdown(socket.SHUT_RDWR)
        except OSError:               # a reset from either side: neither goes on
            for sock in (source, sink):
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)


def cut_one(matrix, lane, side, how, k):
    lane.prepare((side, how, k), not matrix.retries)
    began = time.monotonic()
    wire = matrix.open(lane.host)
    wire.sock.settimeout(PATIENCE)
    wire.send(request(lane.host, False, False))
    came = matrix.judge(wire)
    wire.close()
    took = time.monotonic() - began
    assert took < PATIENCE and came != "nothing", (came, took)
    assert not matrix.retries or came == "right" or took >= 2 * SILENCE, came
    matrix.count(came)


@pytest.mark.parametrize("retries", [False, True], ids=["off", "on"])
def test_within_the_records_of_tls(make_retryd, origin_ca, retries):
    """About 2,000 bytes go down and 1,000 up, most of them a handshake: each 11th is tried, and far more with none."""
    lane = Lane(99, True, Authority(str(origin_ca)).leaf("*.s3.us-east-1.amazonaws.com"))
    lane.prepare(None, False, False)
    lane.answer = lane.answer.replace(b"X-Filler", b"Connection: close\r\nX-Filler")  # each exchange shakes hands
    cutters = [Cutter(n, lane.origin.port) for n in range(WORKERS)]
    try:
        retryd = make_retryd(
            None, timeouts=dict(TIMEOUTS, tls="400ms"), upstream={"ca_file": str(origin_ca / "ca.pem")},
            resolve={"%s:443" % one.host.decode(): "127.0.0.1:%d" % one.origin.port for one in cutters},
            retry={"mode": "standard" if retries else "off", "max_backoff": "2ms"},
            rules=[{"match": {"service": "s3"}, "quota": {"capacity": 1000000}, "base_delay": "1ms"}] if retries else [])
        baseline = descriptors(retryd.process)
        matrix = Matrix(retryd, cutters, True, retries, False)
        matrix.origin_fails = functools.partial(cut_one, matrix)
        for side, size in (("request", 1100), ("response", 2400)):
            for k in range(0, size, 11 * STEP):
                for how in ("reset", "close", "stall"):
                    matrix.todo.put(("origin", side, how, k))
        threads = [threading.Thread(target=matrix.work, args=(one,)) for one in cutters]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        print("on" if retries else "off", matrix.came)
        assert not matrix.faults, "%d faults, %s\n%s" % (len(matrix.faults), matrix.came, "\n".join(matrix.faults[:20]))
        assert matrix.came["right"] > 0 and (retries or matrix.came["failure"] > 0)
        for one in cutters:
            one.origin.stop()
        back_to(retryd.process, baseline)
    finally:
        for one in cutters + [lane]:
            one.origin.problems.clear()
            one.origin.stop()
