"""Clocks, ends and limits in phases that meet rarely: early answers, long waits before 100 Continue, drains with slow
readers, half-closed tunnels, too many connections (security requirements C11, C14, J2, J10)."""
import signal
import socket
import threading
import time

import pytest

from daemons import elapsed
from hostile import RawOrigin, read_head, read_request, request, response, stands_still
from wire import until

MIB = 1 << 20


@pytest.fixture
def raw_origin():
    made = []

    def make(script, **how):
        made.append(RawOrigin(script, **how))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def test_early_answer_that_stalls_is_cut_in_time(raw_origin, make_retryd):
    """The response has begun and stops, while the request body still arrives: the response's clock decides."""
    over = threading.Event()

    def script(wire, n):
        read_head(wire)
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + b"x" * 1000)
        over.wait(20)

    origin = raw_origin(script)
    retryd = make_retryd(None, **origin.config(timeouts={"read": "500ms", "response": "30s"}))
    wire = retryd.plain()
    body = b"b" * 1000
    wire.send(request("PUT", body=body)[:-500])
    answer = wire.response("PUT", body=False)
    assert answer.status == 200
    wire.send(body[-500:-100])
    began = time.monotonic()
    while wire.fill():
        pass
    assert elapsed(began) < 5 and len(wire.buffer) <= 1000
    over.set()


def test_client_that_reads_late_is_not_the_origins_stall(raw_origin, make_retryd):
    """An early answer is longer than all buffers, and the client first sends its body: no clock of the origin runs
    while the client is the one who waits."""
    data = bytes(range(256)) * (24 * MIB // 256)
    taken = threading.Event()

    def script(wire, n):
        message = read_head(wire)
        sender = threading.Thread(target=ignore_end, args=(wire.send, response(200, data)))
        sender.start()
        wire.take(int(message.headers["content-length"]))
        taken.set()
        sender.join()

    origin = raw_origin(script)
    retryd = make_retryd(None, **origin.config(timeouts={"read": "400ms", "response": "400ms", "client_write": "20s"}))
    wire = retryd.plain()
    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    body = b"b" * 1000
    wire.send(request("PUT", body=body)[:-1])
    answer = wire.response("PUT", body=False)
    until(lambda: stands_still(retryd.process), "everything is full")
    wire.send(body[-1:])
    assert taken.wait(10)
    time.sleep(1)                     # longer than both clocks of the origin
    pieces = [wire.buffer]
    while sum(map(len, pieces)) < len(data):
        piece = wire.sock.recv(1 << 20)
        assert piece, "the answer was cut"
        pieces.append(piece)
    assert answer.status == 200 and b"".join(pieces) == data


def ignore_end(action, *args):
    try:
        action(*args)
    except OSError:
        pass


def test_wait_for_100_continue_is_no_stall(raw_origin, make_retryd):
    """The client may not send before the word, and the word comes after a wait longer than client_body."""
    def script(wire, n):
        message = read_head(wire)
        if n == 1:
            wire.send(response(503, headers=[("x-amz-retry-after", "2500"), ("Connection", "close")]))
            return
        assert int(message.headers["content-length"]) == len(wire.take(5))
        wire.send(response(200))

    origin = raw_origin(script)
    retryd = make_retryd(None, **origin.config(timeouts={"client_body": "500ms"}))
    wire = retryd.plain()
    wire.send(request("PUT", headers=[("Expect", "100-continue"), ("Content-Length", "5")]))
    assert wire.head().startswith(b"HTTP/1.1 100 ")
    wire.send(b"12345")
    assert wire.response("PUT").status == 200


def test_word_that_was_given_starts_the_clock(raw_origin, make_retryd):
    """After 100 Continue a client that sends nothing has stalled."""
    origin = raw_origin(lambda wire, n: (read_head(wire), wire.send(b"HTTP/1.1 100 C\r\n\r\n"), wire.take(5)))
    retryd = make_retryd(None, **origin.config(timeouts={"client_body": "500ms"}))
    wire = retryd.plain()
    wire.send(request("PUT", headers=[("Expect", "100-continue"), ("Content-Length", "5")]))
    answer = wire.response("PUT")
    assert (answer.status, len(answer.interim)) == (408, 1)


def test_body_that_comes_without_the_word_is_sent_at_once(raw_origin, make_retryd):
    """Nothing is recorded where retries are off, so the body waits in the connection: it is there all the same."""
    origin = raw_origin(lambda wire, n: (read_request(wire), wire.send(response(200))))
    retryd = make_retryd(None, **origin.config(retry={"mode": "off"}))
    wire = retryd.plain()
    began = time.monotonic()
    wire.send(request("PUT", body=b"12345", headers=[("Expect", "100-continue")]))
    assert wire.response("PUT").status == 200
    assert elapsed(began) < 0.9


def test_failure_after_an_interim_answer_has_no_status(raw_origin, make_retryd):
    origin = raw_origin(lambda wire, n: (read_request(wire), wire.send(b"HTTP/1.1 103 Early\r\n\r\n")))
    retryd = make_retryd(None, **origin.config(retry={"max_attempts": 1}))
    wire = retryd.plain()
    wire.send(request())
    assert wire.response().status == 502
    (attempt,) = retryd.attempts_logged()
    assert not attempt.get("status")


def test_slow_reader_does_not_outlast_the_drain(raw_origin, make_retryd):
    """A long answer, of which the client takes nothing: the end of the drain cuts it."""
    origin = raw_origin(lambda wire, n: (read_request(wire), wire.send(response(200, bytes(64 * MIB)))))
    retryd = make_retryd(None, **origin.config(timeouts={"drain": "500ms", "client_write": "60s"}))
    wire = retryd.plain()
    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.send(request(headers=[("Connection", "close")]))
    until(lambda: stands_still(retryd.process), "the buffers are full")
    began = time.monotonic()
    retryd.stop(signal.SIGTERM)
    assert elapsed(began) < 6


def test_tunnel_half_closed_while_it_is_dialled(make_retryd):
    listener = socket.create_server(("127.0.0.1", 0))
    retryd = make_retryd(resolve={"raw.example:443": "127.0.0.1:%d" % listener.getsockname()[1]})
    wire = retryd.plain()
    wire.send(b"CONNECT raw.example:443 HTTP/1.1\r\nHost: raw.example:443\r\n\r\nquestion")
    wire.sock.shutdown(socket.SHUT_WR)
    listener.settimeout(10)
    with listener, listener.accept()[0] as server:
        server.settimeout(10)
        got = b""
        while len(got) < 8:
            data = server.recv(100)
            assert data, "the tunnel ended"
            got += data
        assert server.recv(100) == b""
        server.sendall(b"answer")
    assert wire.response("CONNECT", body=False).status == 200
    assert wire.take(6) == b"answer" and wire.ended()


def test_max_clients_counts_tunnels(make_retryd):
    """J1: max clients counts tunnels."""
    listener = socket.create_server(("127.0.0.1", 0))
    retryd = make_retryd(limits={"max_clients": 3},
                         resolve={"raw.example:443": "127.0.0.1:%d" % listener.getsockname()[1]})
    tunnels = [retryd.tunnel("raw.example") for _ in range(3)]
    assert retryd.plain().ended(5)
    servers = [listener.accept()[0] for _ in range(3)]
    servers.pop().close()
    tunnels.pop().close()

    def again():
        try:
            tunnels.append(retryd.tunnel("raw.example"))
            return True
        except (AssertionError, OSError):
            return False

    with listener:
        until(again, "a closed tunnel makes room")
    for one in tunnels + servers:
        one.close()
