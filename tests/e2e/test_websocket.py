"""WebSockets pass through (security requirement C12): the handshake as HTTP, once, then opaque bytes."""
import socket
import threading

import pytest

from wire import until

HANDSHAKE = (b"GET http://ws.example/chat HTTP/1.1\r\nHost: ws.example\r\nConnection: Upgrade\r\n"
             b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")


class Upgrader:
    """Accepts one handshake a connection, then echoes; `answer` is what it says to the handshake."""

    def __init__(self, answer):
        self.answer, self.heads = answer, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(conn,), daemon=True).start()

    def talk(self, conn):
        head = b""
        while b"\r\n\r\n" not in head:
            got = conn.recv(65536)
            if not got:
                return
            head += got
        self.heads.append(head)
        conn.sendall(self.answer)
        while True:
            got = conn.recv(65536)
            if not got:
                break
            conn.sendall(got[::-1])
        conn.sendall(b"bye")
        conn.close()


@pytest.fixture
def upgrader(request):
    u = Upgrader(getattr(request, "param", b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                           b"Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nfirst"))
    yield u
    u.listener.close()


def connect(retryd):
    s = socket.create_connection(("127.0.0.1", retryd.port), timeout=10)
    s.sendall(HANDSHAKE)
    return s


def read_exactly(s, n):
    got = b""
    while len(got) < n:
        piece = s.recv(n - len(got))
        assert piece, got
        got += piece
    return got


def read_head(s):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += read_exactly(s, 1)
    return head


def test_handshake_then_bytes_both_ways(make_retryd, upgrader):
    retryd = make_retryd(resolve={"ws.example": "127.0.0.1:%d" % upgrader.port})
    s = connect(retryd)
    head = read_head(s).lower()
    assert head.startswith(b"http/1.1 101 ") and b"upgrade: websocket" in head
    assert read_exactly(s, 5) == b"first"
    for size in (1, 1000, 200000):
        data = bytes(i * 7 % 251 for i in range(size))
        threading.Thread(target=s.sendall, args=(data,), daemon=True).start()
        got = read_exactly(s, size)
        assert sorted(got) == sorted(data) and (size > 1000 or got == data[::-1])
    s.shutdown(socket.SHUT_WR)  # a half-close passes through: the other side's last word comes
    assert read_exactly(s, 3) == b"bye" and s.recv(1) == b""
    s.close()
    assert len(upgrader.heads) == 1 and b"Upgrade: websocket" in upgrader.heads[0]
    (request,) = until(retryd.requests_logged, "the request's line")
    assert request["status"] == 101 and request["attempts"] == 1


@pytest.mark.parametrize("upgrader", [b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                      b"Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n"], indirect=True)
def test_a_server_that_waits_for_the_client_to_speak(make_retryd, upgrader):
    """The 101 goes out by itself: most servers say nothing behind it."""
    retryd = make_retryd(resolve={"ws.example": "127.0.0.1:%d" % upgrader.port})
    s = connect(retryd)
    assert read_head(s).startswith(b"HTTP/1.1 101 ")
    s.sendall(b"abc")
    assert read_exactly(s, 3) == b"cba"
    s.close()


@pytest.mark.parametrize("upgrader", [b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"], indirect=True)
def test_refused_handshake_is_an_ordinary_answer(make_retryd, upgrader):
    retryd = make_retryd(resolve={"ws.example": "127.0.0.1:%d" % upgrader.port})
    s = connect(retryd)
    assert read_head(s).startswith(b"HTTP/1.1 403 ") and read_exactly(s, 2) == b"no"
    s.close()
    assert len(upgrader.heads) == 1


def test_101_that_nobody_asked_for_is_a_fault(make_retryd, upgrader):
    retryd = make_retryd(resolve={"ws.example": "127.0.0.1:%d" % upgrader.port})
    s = socket.create_connection(("127.0.0.1", retryd.port), timeout=10)
    s.sendall(b"GET http://ws.example/chat HTTP/1.1\r\nHost: ws.example\r\n\r\n")
    head = read_head(s)
    assert head.startswith(b"HTTP/1.1 502 ") and b"malformed_response" in head
    s.close()
