"""Crowds: more clients than descriptors, clients that come and go by the thousand, and ends in the middle of it."""
import random
import resource
import signal
import socket
import threading
import time

import pytest

from daemons import elapsed
from hostile import (RawOrigin, back_to, cpu_seconds, descriptors, read_head, read_request, request, reset_on_close,
                     response, rss_bytes)
from wire import dial, until

MIB = 1 << 20


def polite(wire, n):
    while True:
        read_request(wire)
        wire.send(response(200, b"fine"))


@pytest.fixture
def raw_origin():
    made = []

    def make(script, **how):
        made.append(RawOrigin(script, **how))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def test_no_descriptors_left(raw_origin, make_retryd):
    """Clients wait, nothing spins, nothing ends; and all is well again once there is room."""
    origin = raw_origin(polite)
    retryd = make_retryd(None, **origin.config(retry={"max_attempts": 1}))
    held = descriptors(retryd.process)
    resource.prlimit(retryd.process.pid, resource.RLIMIT_NOFILE, (held + 20, held + 20))
    crowd = [dial(retryd.port) for _ in range(100)]
    for wire in crowd:
        wire.send(request("PUT", body=b"x" * 100)[:-50])      # an attempt begins: it needs a descriptor, too
    until(lambda: descriptors(retryd.process) == held + 20, "all descriptors are used")
    before = cpu_seconds(retryd.process)
    time.sleep(1)
    assert cpu_seconds(retryd.process) - before < 0.2
    for wire in crowd:
        wire.close()
    back_to(retryd.process, held + 2)
    wire = retryd.plain()
    wire.send(request())
    assert wire.response().status == 200


def test_two_thousand_come_and_go(raw_origin, make_retryd):
    """Each leaves at a random moment: before a byte, in the head, in the body, in the wait, in the answer."""
    rng = random.Random(5)

    def script(wire, n):
        how = random.Random(n).random()
        message = read_head(wire)
        if how < 0.3:
            return
        wire.take(int(message.headers.get("content-length", "0")))
        wire.send(response(503 if how < 0.6 else 200, b"y" * 30000)[:20000 if how < 0.8 else None])

    origin = raw_origin(script)
    retryd = make_retryd(None, **origin.config(retry={"max_backoff": "200ms"}, timeouts={"response": "1s"}))
    wire = retryd.plain()
    wire.send(request())
    wire.response()
    wire.close()
    baseline, live, size = descriptors(retryd.process), [], 0
    for n in range(2000):
        wire = dial(retryd.port)
        data = request("PUT", body=b"x" * rng.choice([0, 100, 5000, 30000]))
        wire.send(data[:rng.choice([0, rng.randrange(300), len(data)])])
        live.append(wire)
        if len(live) > 100:
            wire = live.pop(rng.randrange(len(live)))
            if rng.random() < 0.5:
                reset_on_close(wire.sock)
            wire.close()
        if n == 1000:
            size = rss_bytes(retryd.process)
    for wire in live:
        wire.close()
    back_to(retryd.process, baseline)
    assert rss_bytes(retryd.process) - size < 64 * MIB        # a sanitizer keeps what was freed for a while
    wire = retryd.plain()
    wire.send(request())
    assert wire.response().status in (200, 502, 503)


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGTERM, signal.SIGINT]], ids=["one", "two"])
def test_end_in_the_middle(raw_origin, make_retryd, signals):
    """Clients in every phase; the process ends in time, with status 0, and nothing is leaked."""
    over = threading.Event()

    def script(wire, n):
        message = read_head(wire)
        target = message.target
        if target == "/no-answer":
            over.wait(20)
        elif target == "/half":
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + b"z" * 100000)
            over.wait(20)
        elif target == "/again":
            wire.send(response(503, headers=[("x-amz-retry-after", "4000")]))
        elif target == "/held":
            wire.send(b"HTTP/1.1 503 No\r\nContent-Length: 900\r\n\r\n" + b"z" * 100)
            over.wait(20)
        elif target == "/idle":
            wire.send(response(200))
            read_head(wire)

    blind = socket.create_server(("127.0.0.1", 0))
    origin = raw_origin(script)
    config = origin.config(timeouts={"drain": "1s"})
    config["resolve"]["raw.example:443"] = "127.0.0.1:%d" % blind.getsockname()[1]
    retryd = make_retryd(None, **config)
    crowd = []
    for target in ("/no-answer", "/half", "/again", "/held", "/idle"):
        for _ in range(3):
            wire = retryd.plain()
            wire.send(request(target=target))
            crowd.append(wire)
    for data in (b"", b"GET http://", request("PUT", target="/no-answer", body=b"12345")[:-2]):
        wire = retryd.plain()
        wire.send(data)
        crowd.append(wire)
    crowd += [retryd.tunnel("raw.example"), retryd.tunnel("sts.us-east-1.amazonaws.com")]
    until(lambda: origin.accepted >= 14 and len(retryd.attempts_logged()) >= 3, "all are where they should be")
    began = time.monotonic()
    for one in signals:               # the first asks, the second insists
        retryd.tell(one)
    try:
        retryd.stop()
        assert elapsed(began) < (6 if len(signals) == 1 else 2.5)
    finally:
        over.set()
    for wire in crowd:
        wire.close()
    blind.close()
