"""Plays the byte-level HTTP/1.1 cases of tests/vectors/http1.jsonl against a running retryd.

A case is what a client writes or what an origin answers, and which outcomes are right. A Lane is one retryd and one
stub origin, on which cases run one after another; several lanes run side by side. Mode "absolute" sends the case as
it is, mode "intercept" sends it inside CONNECT origin.test:8080 and TLS, with the scheme and authority cut out of the
first target; the stub then speaks TLS as well. With "-bytewise" behind it, whatever is at most 4 KiB is written byte
by byte by both.
"""
import base64
import json
import os
import re
import select
import socket
import ssl
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(os.path.dirname(HERE), "vectors", "http1.jsonl")
HOST, PORT = "origin.test", 8080

QUIET = 0.4        # this long without a byte after a whole answer: nothing more follows
PATIENCE = 12      # for an answer, or for an end that has to come
STUB_PATIENCE = 60

BYTEWISE_MAX = 4096
BYTE_PAUSE = 0.0003


def load():
    with open(CASES) as f:
        return [json.loads(line) for line in f]


def blob(case, key):
    if key + "_b64" in case:
        return base64.b64decode(case[key + "_b64"])
    if key + "_parts" in case:
        return b"".join(base64.b64decode(text) * n for text, n in case[key + "_parts"])
    return None


def latin(text):
    return text.encode("latin-1").lower()


def write(sock, data, bytewise):
    if not bytewise or len(data) > BYTEWISE_MAX:
        sock.sendall(data)
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for at in range(len(data)):
        sock.sendall(data[at:at + 1])
        time.sleep(BYTE_PAUSE)


# ---- the origin

def request_end(data):
    """(bytes of the first request, its head) once it is whole, else None."""
    end, gap = data.find(b"\r\n\r\n"), 4
    bare = data.find(b"\n\n")
    if end < 0 or 0 <= bare < end:
        end, gap = bare, 2
    if end < 0:
        return None
    head, start = data[:end], end + gap
    if re.search(rb"(?im)^transfer-encoding:[ \t]*.*chunked", head):
        n = chunked_end(data, start)
        return n and (n, head)
    length = re.search(rb"(?im)^content-length:[ \t]*(\d+)", head)
    n = start + (int(length[1]) if length else 0)
    return (n, head) if len(data) >= n else None


def chunked_end(data, at):
    while True:
        eol = data.find(b"\n", at)
        if eol < 0:
            return None
        try:
            n = int(data[at:eol].split(b";")[0].strip() or b"x", 16)
        except ValueError:
            return len(data)
        at = eol + 1
        if n == 0:
            break
        if len(data) < at + n + 2:
            return None
        at += n + 2
    while True:
        eol = data.find(b"\n", at)
        if eol < 0:
            return None
        line, at = data[at:eol].strip(b"\r"), eol + 1
        if not line:
            return at


class Stub:
    """The origin of one lane: records what it receives, and answers as the case says, or with a 200 of its own."""

    def __init__(self, tls):
        self.tls = tls
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.case, self.bytewise = None, False
        threading.Thread(target=self.accept, daemon=True).start()

    def begin(self, case, bytewise=False):
        with self.lock:
            self.bytewise = bytewise
            self.case, self.heads, self.requests, self.raw = case, [], 0, bytearray()

    def seen(self):
        with self.lock:
            return bytes(self.raw).lower(), self.requests, list(self.heads)

    def stop(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        sock.settimeout(STUB_PATIENCE)
        try:
            if sock.recv(1, socket.MSG_PEEK) == b"\x16":
                sock = self.tls.wrap_socket(sock, server_side=True)
            self.talk(sock)
        except OSError:
            pass
        finally:
            sock.close()

    def talk(self, sock):
        rest = b""
        while True:
            got = self.receive(sock, rest)
            if got is None:
                return
            case, head, rest = got
            if case and case["where"] == "upstream" and not case.get("origin_sends_when_idle"):
                write(sock, blob(case, "bytes"), self.bytewise)
                if case.get("origin_closes_after"):
                    finish(sock)
                    return
                continue
            body = b"" if head.startswith(b"HEAD ") else b"ok"
            sock.sendall(b"HTTP/1.1 200 OK\r\nX-Stub: 1\r\nContent-Length: 2\r\n\r\n" + body)
            if case and case.get("origin_sends_when_idle") and self.seen()[1] == 1:
                time.sleep(0.15)
                sock.sendall(blob(case, "bytes"))
                if case.get("origin_closes_after"):
                    finish(sock)
                    return

    def receive(self, sock, data):
        """(case, head, what follows) of the next request; a pooled connection may serve a later case."""
        case, continued = self.case, False
        while True:
            found = request_end(data)
            if found:
                break
            if (not continued and b"\r\n\r\n" in data
                    and re.search(rb"(?im)^expect:[ \t]*100-continue", data)):
                continued = True
                sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            more = sock.recv(65536)
            if not more:
                return None
            with self.lock:
                if not data:
                    case = self.case
                if case is self.case:
                    self.raw += more
            data += more
        used, head = found
        with self.lock:
            if case is self.case:
                self.requests += 1
                self.heads.append(head)
        return case, head, data[used:]


def finish(sock):
    """The orderly end of what was sent."""
    if isinstance(sock, ssl.SSLSocket):
        sock.settimeout(0)
        try:
            sock.unwrap()
        except (ssl.SSLError, OSError):
            pass                      # close_notify is out; the peer's is not waited for
    try:
        socket.socket.shutdown(sock, socket.SHUT_WR)
    except OSError:
        pass
    time.sleep(0.05)


# ---- the client

class Plain:
    """One client connection. take() gives bytes, b"" at the end, None when none came in that time."""

    def __init__(self, port, bytewise=False):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.bytewise = bytewise
        self.gone = False             # the proxy ended the connection

    def put(self, data):
        try:
            self.sock.settimeout(PATIENCE)
            write(self.sock, data, self.bytewise)
        except OSError:
            pass                      # refused while we wrote: what it says is still there to be read

    def end(self):
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def take(self, seconds):
        try:
            if not select.select([self.sock], [], [], max(seconds, 0))[0]:
                return None
            data = self.sock.recv(1 << 18)
        except OSError:
            data = b""
        self.gone = self.gone or not data
        return data

    def close(self):
        self.sock.close()


class Tunnelled(Plain):
    """The same inside CONNECT and TLS; TLS runs over memory, so that a half-close can be sent and still be read on."""

    def __init__(self, port, context, host=HOST, host_port=PORT, bytewise=False):
        super().__init__(port)
        name = b"%s:%d" % (host.encode(), host_port)
        super().put(b"CONNECT " + name + b" HTTP/1.1\r\nHost: " + name + b"\r\n\r\n")
        answer = b""
        while b"\r\n\r\n" not in answer:
            more = super().take(PATIENCE)
            assert more, "CONNECT was answered with %r" % answer
            answer += more
        assert answer.startswith(b"HTTP/1.1 200"), answer
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=host)
        self.writing = threading.Lock()
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.flush()
                more = super().take(PATIENCE)
                assert more, "the handshake was cut off"
                self.incoming.write(more)
        self.flush()
        self.records = 1 if bytewise else 16384     # bytes of what is put in one

    def flush(self):
        Plain.put(self, self.outgoing.read())

    def put(self, data):
        size = self.records if len(data) <= BYTEWISE_MAX else 16384
        for at in range(0, len(data), size):
            with self.writing:
                self.tls.write(data[at:at + size])
                self.flush()

    def end(self):
        with self.writing:
            try:
                self.tls.unwrap()
            except ssl.SSLError:
                pass                  # wants the peer's close_notify, which need not come
            self.flush()

    def take(self, seconds):
        deadline = time.monotonic() + seconds
        while True:
            with self.writing:
                try:
                    data = self.tls.read(1 << 18)
                    self.gone = self.gone or not data
                    return data
                except ssl.SSLWantReadError:
                    self.flush()
                except ssl.SSLError:  # an alert, or the end without close_notify
                    self.gone = True
                    return b""
            more = Plain.take(self, deadline - time.monotonic())
            if more is None:
                return None
            if more:
                self.incoming.write(more)
            else:
                self.incoming.write_eof()


def responses(data, heads_only=False):
    """The client's side of the bytes: (status, head, body, whole) one by one; status None: no response at all."""
    out = []
    while data:
        status, end = re.match(rb"HTTP/1\.[01] (\d{3})", data), data.find(b"\r\n\r\n")
        if not status or end < 0:
            out.append((None, data, b"", False))
            break
        status, head, data = int(status[1]), data[:end], data[end + 4:]
        length = re.search(rb"(?im)^content-length:[ \t]*(\d+)", head)
        if heads_only or status // 100 == 1 or status in (204, 304):
            out.append((status, head, b"", True))
        elif re.search(rb"(?im)^transfer-encoding:.*chunked", head):
            body, data, whole = unchunk(data)
            out.append((status, head, body, whole))
            if not whole:
                break
        elif length:
            n = int(length[1])
            out.append((status, head, data[:n], len(data) >= n))
            data = data[n:]
        else:
            out.append((status, head, data, True))
            break
    return out


def unchunk(data):
    body = b""
    while True:
        eol = data.find(b"\r\n")
        try:
            n = int(data[:max(eol, 0)].split(b";")[0], 16)
        except ValueError:
            return body, b"", False
        data = data[eol + 2:]
        if n == 0:
            break
        body += data[:n]
        if len(data) < n + 2:
            return body, b"", False
        data = data[n + 2:]
    if data.startswith(b"\r\n"):
        return body, data[2:], True
    end = data.find(b"\r\n\r\n")
    return (body, data[end + 4:], True) if end >= 0 else (body, b"", False)


def final(found):
    return [r for r in found if r[0] is None or r[0] // 100 != 1]


# ---- one case

class Lane:
    def __init__(self, proxy_port, stub, contexts):
        """contexts: a function that gives the TLS context of clients (it trusts retryd's CA)."""
        self.port, self.stub, self.contexts = proxy_port, stub, contexts

    def connect(self, mode):
        kind, _, how = mode.partition("-")
        if kind == "absolute":
            return Plain(self.port, bool(how))
        return Tunnelled(self.port, self.contexts(), bytewise=bool(how))

    def ask(self, mode, data, case, must_end=False, half_close=False, heads_only=False):
        """(bytes that came back, whether the proxy ended the connection)."""
        conn = self.connect(mode)
        if mode.startswith("intercept"):
            data = data.replace(b"http://%s:%d" % (HOST.encode(), PORT), b"", 1)
        writer = threading.Thread(target=lambda: (conn.put(data), half_close and conn.end()), daemon=True)
        writer.start()
        out, deadline, quiet_at = bytearray(), time.monotonic() + PATIENCE, 0
        if case["class"] == "retry-abuse":
            deadline += case["retry"]["max_delay_ms"] / 1000 * case["retry"]["attempts"]
        while time.monotonic() < deadline:
            more = conn.take(0.1)
            if more:
                out += more
                quiet_at = time.monotonic()
            elif more == b"":
                break
            elif out and time.monotonic() - quiet_at > QUIET:
                found = final(responses(bytes(out), heads_only))
                if found and found[-1][3] and not must_end:
                    break
        writer.join(0.5)
        conn.close()
        return bytes(out), conn.gone

    def run(self, case, mode):
        """What is wrong about the outcome: a list of texts, empty if nothing is."""
        upstream = case["where"] == "upstream"
        self.stub.begin(case, mode.endswith("bytewise"))
        data = blob(case, "request" if upstream else "bytes")
        heads_only = upstream and data.startswith(b"HEAD ")
        began = time.monotonic()
        out, ended = self.ask(mode, data, case, must_end=bool(case.get("client_closed")),
                              half_close=bool(case.get("client_eof_after")), heads_only=heads_only)
        took = time.monotonic() - began
        found = responses(out, heads_only)
        raw, requests, heads = self.stub.seen()
        wrong = self.second(case, mode)
        outcomes = judged(case, requests, found, ended)
        wrong += compare(case, outcomes, Seen(out, found, ended, raw, requests, heads))
        if case.get("retry") and took * 1000 > case["retry"]["max_delay_ms"] * case["retry"]["attempts"] + 5000:
            wrong.append("took %.1f s" % took)
        return wrong

    def second(self, case, mode):
        """A request after the case, on a connection of its own, must have the answer that belongs to it."""
        data, wrong = blob(case, "second_request"), []
        if data is None:
            return wrong
        if case.get("origin_sends_when_idle"):
            time.sleep(0.4)
        else:
            self.stub.begin(dict(case, where="client"))
        out, _ = self.ask(mode, data, case)
        found = final(responses(out))
        if not found or b"x-stub: 1" not in found[0][1].lower() or not found[0][3]:
            wrong.append("second request not answered properly: %r" % out[:60])
        for text in case.get("client_must_not_see", ()):
            if latin(text) in out.lower():
                wrong.append("second response holds %r" % text)
        return wrong


class Seen:
    def __init__(self, out, found, ended, raw, requests, heads):
        self.out, self.found, self.ended = out.lower(), found, ended
        self.raw, self.requests, self.heads = raw, requests, heads


def judged(case, requests, found, ended):
    """The names of all outcomes that what was seen can be called."""
    first = (final(found) or [None])[0]
    status = first and first[0]
    if case["where"] == "client":
        if status is None:
            return {"close"} if ended else set()
        if b"x-stub: 1" in first[1].lower():
            return {"forward-normalised", "forward-as-is"}
        names = {"reject-%d" % status}
        if status < 500 and requests == 0:
            names.add("respond-local")
        if status // 100 == 2 and case["class"] == "connect":
            names |= {"tunnel"} | ({"close"} if ended else set())
        if status in (502, 503, 504):
            names.add("bad-gateway-502")
        return names
    if status is None:
        return {"abort-client"} if ended else set()
    if status in (502, 504):
        return {"bad-gateway-502", "retry-or-502"}
    if not first[3]:
        return {"abort-client"} if ended else set()
    names = {"deliver-normalised", "deliver-then-close", "retry-or-502", "retry-bounded"}
    if ended and not re.search(rb"(?im)^(content-length|transfer-encoding):", first[1]):
        names.add("abort-client")
    return names


def compare(case, outcomes, seen):
    right = [case["expect"]] + case.get("accept_also", [])
    if not set(right) & outcomes:
        return ["outcome %s, not %s: %r" % ("/".join(sorted(outcomes)) or "none", "/".join(right), seen.out[:200])]
    wrong = []
    forwarded = any(name.startswith("forward") for name in outcomes)
    if case["where"] == "client":
        wrong += compare_origin(case, outcomes, forwarded, seen)
        if case.get("client_closed") and not seen.ended and any(name.startswith("reject") for name in outcomes):
            wrong.append("the connection was left open")
    excused = "bad-gateway-502" in outcomes and "bad-gateway-502" in right
    for text in case.get("client_must_see", ()) if case["expect"] in outcomes and not excused else ():
        if latin(text) not in seen.out and not any(latin(text) in r[2].lower() for r in seen.found):
            wrong.append("the client did not see %r" % text)
    for text in case.get("client_must_not_see", ()):
        if latin(text) in seen.out:
            wrong.append("the client saw %r" % text)
    return wrong


def compare_origin(case, outcomes, forwarded, seen):
    wrong = []
    want = case["origin_requests"]
    if want is not None and case["expect"] not in outcomes:
        want = 1 if forwarded else 0
    if want is not None and seen.requests != want:
        wrong.append("the origin saw %d whole requests, not %d" % (seen.requests, want))
    data = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", seen.raw)
    for text in case.get("origin_must_see", ()) if forwarded else ():
        text = latin(text)
        if text not in seen.raw and text not in data and text.replace(b": ", b":") not in seen.raw:
            wrong.append("the origin did not see %r" % text)
    lines = b"\n".join(head.split(b"\r\n")[0] for head in seen.heads).lower()
    for text in case.get("origin_must_not_see", ()):
        if latin(text) in (lines if b"/smuggled" in latin(text) else seen.raw):
            wrong.append("the origin saw %r" % text)
    return wrong
