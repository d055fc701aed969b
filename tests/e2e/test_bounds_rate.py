"""J4, J5, J10: how slow a client may be, how long its body, and how long a tunnel lives."""
import socket
import threading
import time

import pytest

from daemons import elapsed, sanitized
from hostile import RawOrigin, read_head, read_request, request, response, rss_bytes, stands_still
from test_hostile_reader import reluctant
from wire import until

MIB = 1 << 20


@pytest.fixture
def origin():
    """Takes every request whole and says how long its body was."""
    seen = []

    def script(wire, n):
        while True:
            message = read_head(wire)
            seen.append(message.target)
            if message.target == "/big":
                wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (64 * MIB))
                for _ in range(64):
                    wire.send(b"x" * MIB)
                continue
            wire.buffer = message.head + wire.buffer
            wire.send(response(200, b"%d" % len(read_request(wire).body)))

    one = RawOrigin(script)
    one.seen = seen
    yield one
    one.stop()


def test_slow_bodies_and_slow_readers(origin, make_retryd):
    """J4, J5: one that drips its body gets 408 soon after 10 s, one that sips its response is cut; at twice the rate
    either may go on, and everybody else is served meanwhile."""
    retryd = make_retryd(None, **origin.config(limits={"min_rate": "256"}))
    results, over = {}, threading.Event()

    def upload(name, pause):
        wire = retryd.plain()
        data = request("PUT", target="/" + name, body=b"d" * 9000)
        wire.send(data[:-9000])
        began = time.monotonic()
        for n in range(0, 9000, 600 if name == "steady" else 1):
            try:
                wire.send(data[len(data) - 9000 + n:][:600 if name == "steady" else 1])
            except OSError:
                break
            time.sleep(pause)
            if elapsed(began) > 25:
                break
            if name == "drips" and wire.buffer == b"" and not wire.silent(0.01):
                break
        results[name] = wire.response(), elapsed(began)
        wire.close()

    def sip():
        wire = reluctant(retryd)
        wire.send(request(target="/big"))
        try:
            while not over.wait(0.25) and wire.sock.recv(20):
                pass
        except OSError:
            pass
        wire.close()

    threads = [threading.Thread(target=upload, args=a) for a in (("drips", 0.1), ("steady", 0.9))]
    threads.append(threading.Thread(target=sip))
    for thread in threads:
        thread.start()
    for _ in range(10):
        wire = retryd.plain()
        wire.send(request())
        assert wire.response().status == 200
        wire.close()
        time.sleep(0.1)
    ends = lambda: sorted(r["end"] for r in retryd.log("request") if r["end"] != "delivered")  # noqa: E731
    until(lambda: ends() == ["client_error", "client_slow"], "both slow ones are found out", 40)
    over.set()
    for thread in threads:
        thread.join()
    answer, seconds = results["drips"]
    assert answer.status == 408 and answer.get("X-Retryd-Error") == "request_timeout"
    assert 10 < seconds < 25
    answer, seconds = results["steady"]
    assert answer.status == 200 and answer.body == b"9000" and seconds > 12
    assert all(r["took_ms"] > 10000 for r in retryd.log("request") if r["end"] != "delivered")


def test_slow_reader_of_the_last_answer(origin, make_retryd):
    """J5: also when the exchange is over and the connection only lingers to hand out the rest."""
    def script(wire, n):
        while True:
            read_request(wire)
            wire.send(response(200, b"x" * 50000))

    answers = RawOrigin(script)
    retryd = make_retryd(None, **answers.config(limits={"min_rate": "1MiB"}))
    wire = reluctant(retryd)
    wire.send(request() * 1000)       # as many as it takes until the answers wait inside the daemon
    until(lambda: stands_still(retryd.process), "the daemon is at rest")
    wire.sock.shutdown(socket.SHUT_WR)
    began, sock = time.monotonic(), wire.sock
    sock.settimeout(1)
    try:
        while elapsed(began) < 40 and sock.recv(100):
            time.sleep(0.05)
        assert False, "it was left to read on, or was cut without being told"
    except ConnectionResetError:
        pass
    finally:
        sock.close()
        answers.stop()
    assert elapsed(began) > 9


def test_longest_body(origin, make_retryd):
    """J4: more than limits.request_body is 413: by its length at once, chunked when it has passed it."""
    retryd = make_retryd(None, **origin.config(limits={"request_body": "10KiB"}))
    wire = retryd.plain()
    wire.send(request("PUT", target="/fits", body=b"x" * 10240))
    assert wire.response().body == b"10240"
    wire.send(request("PUT", target="/long", body=b"x" * 10241)[:-10241])
    answer = wire.response()
    assert answer.status == 413 and answer.get("X-Retryd-Error") == "body_too_large"
    assert answer.get("Connection") == "close" and wire.ended()
    assert origin.seen == ["/fits"]

    chunked = request("PUT", target="/chunked", headers=[("Transfer-Encoding", "chunked")])
    chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
    wire = retryd.plain()
    wire.send(chunked + chunk * 2 + b"800\r\n" + b"x" * 2048 + b"\r\n0\r\n\r\n")
    assert wire.response().body == b"10240"
    wire.send(chunked + chunk * 2)
    assert wire.silent(0.2)
    wire.send(chunk)
    answer = wire.response()
    assert answer.status == 413 and answer.get("X-Retryd-Error") == "body_too_large" and wire.ended()
    wire = retryd.plain()
    wire.send(chunked + chunk * 4 + b"0\r\n\r\n")         # all at once
    assert wire.response().status == 413
    # None of these bodies ended for the origin: it answered those that fit.
    assert [r["end"] for r in retryd.requests_logged(3)] == ["delivered", "delivered", "client_error"]


def test_life_of_a_tunnel(make_retryd):
    """J10: a tunnel ends at the end of its life, however busy it is."""
    server = socket.create_server(("127.0.0.1", 0))

    def echo():
        try:
            while True:
                one, _ = server.accept()
                threading.Thread(target=talk, args=(one,), daemon=True).start()
        except OSError:
            pass

    def talk(one):
        with one:
            try:
                while True:
                    data = one.recv(100)
                    if not data:
                        break
                    one.sendall(data)
            except OSError:
                pass

    threading.Thread(target=echo, daemon=True).start()
    retryd = make_retryd(None, resolve={"raw.example:443": "127.0.0.1:%d" % server.getsockname()[1]},
                         timeouts={"tunnel_life": "2s"})
    wire = retryd.tunnel("raw.example")
    began = time.monotonic()
    try:
        while elapsed(began) < 20:
            wire.send(b"x")
            if not wire.fill():
                break
            time.sleep(0.05)
    except OSError:
        pass
    assert 1.5 < elapsed(began) < 15
    until(lambda: [t["end"] for t in retryd.log("tunnel")] == ["life"], "its record")
    server.close()


def test_what_a_stalled_tunnel_holds(make_retryd):
    """J10: 64 KiB each way, however much either end sends."""
    server = socket.create_server(("127.0.0.1", 0), backlog=100)
    retryd = make_retryd(None, resolve={"raw.example:443": "127.0.0.1:%d" % server.getsockname()[1]})
    before = rss_bytes(retryd.process)
    ends = []
    for _ in range(40):
        wire = retryd.tunnel("raw.example")
        ends += [wire.sock, server.accept()[0]]
    for end in ends:
        end.setblocking(False)
    for _ in range(3):                # until nothing more goes anywhere
        for end in ends:
            try:
                while True:
                    end.send(b"x" * 65536)
            except BlockingIOError:
                pass
        time.sleep(0.2)
    grown = rss_bytes(retryd.process) - before
    for end in ends:
        end.close()
    server.close()
    # Sanitizers keep 256 MiB of what was freed.
    assert grown < 40 * 2 * 65536 + (512 if sanitized() else 8) * MIB
