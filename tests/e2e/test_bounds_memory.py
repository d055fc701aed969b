"""J11, J12: what one connection may cost the others: memory while it idles, time while it floods."""
import threading
import time

import pytest

from daemons import elapsed, sanitized
from hostile import RawOrigin, read_request, request, response, rss_bytes
from wire import until

KIB = 1024
HOST = "sts.us-east-1.amazonaws.com"


@pytest.fixture
def origin():
    def script(wire, n):
        while True:
            read_request(wire)
            wire.send(response(200, b"fine"))

    one = RawOrigin(script)
    yield one
    one.stop()


def plain(retryd):
    wire = retryd.plain()
    wire.send(request())
    assert wire.response().status == 200
    return wire


def intercepted(retryd):
    return retryd.open(HOST)


@pytest.mark.parametrize("make, count, most", [(plain, 1000, 16 * KIB), (intercepted, 400, 48 * KIB)])
def test_an_idle_connection(make_retryd, origin, make, count, most, record_property):
    """J12: an idle connection costs at most 16 KiB plain, 48 KiB under TLS."""
    retryd = make_retryd(None, **origin.config(limits={"max_clients_per_peer": 4096}))
    crowd = [make(retryd) for _ in range(50)]     # what is made once is made
    before = rss_bytes(retryd.process)
    crowd += [make(retryd) for _ in range(count)]
    each = (rss_bytes(retryd.process) - before) / count
    print("%s: %.1f KiB for an idle connection" % (make.__name__, each / KIB))
    record_property("bytes_per_connection", each)
    for wire in crowd:
        wire.close()
    assert each < (most if not sanitized() else 8 * most)


def flood(retryd, stop, data):
    """One client that sends as fast as it can, and takes all answers."""
    wire = retryd.plain()
    wire.sock.settimeout(30)

    def drain():
        try:
            while wire.sock.recv(1 << 20):
                pass
        except OSError:
            pass

    reader = threading.Thread(target=drain)
    reader.start()
    try:
        while not stop.is_set():
            wire.send(data)
    except OSError:
        pass
    wire.reset()
    reader.join()


CHUNKS = (request("PUT", headers=[("Transfer-Encoding", "chunked")]) + b"1\r\nx\r\n" * 50000 + b"0\r\n\r\n")


@pytest.mark.parametrize("data", [request() * 2000, CHUNKS], ids=["requests", "chunks"])
def test_a_flooding_client(make_retryd, origin, data):
    """J11: one message, and 64 KiB, of a connection in a turn: a flood delays the others by a moment only."""
    retryd = make_retryd(None, **origin.config(log={"level": "error"}))
    stop = threading.Event()
    flooder = threading.Thread(target=flood, args=(retryd, stop, data))
    flooder.start()
    until(lambda: origin.accepted >= 1, "the flood has begun")
    took = []
    try:
        for _ in range(100):
            began = time.monotonic()
            wire = retryd.plain()
            wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")      # answered by the daemon itself: not the origin's pace
            assert wire.response().status == 400
            wire.close()
            took.append(elapsed(began))
    finally:
        stop.set()
        flooder.join()
    took.sort()
    print("p50 %.1f ms, p90 %.1f ms, most %.1f ms" % (took[50] * 1e3, took[90] * 1e3, took[-1] * 1e3))
    assert took[50] < 0.1 and took[90] < 0.5
