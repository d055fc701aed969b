"""E6, E7: requests that wait for a retry: how many, whose, what they hold, and what is left of them when they go."""
import threading
import time

import pytest

from daemons import elapsed, sanitized
from hostile import RawOrigin, descriptors, read_request, request, response, rss_bytes
from wire import until

MIB = 1 << 20
THROTTLED = b'{"__type":"ThrottlingException","message":"slower"}'


def signed(key, target="/", body=b""):
    credential = "Credential=%s/20260101/us-east-1/sts/aws4_request" % key
    return request("POST", target=target, body=body,
                   headers=[("Authorization", "AWS4-HMAC-SHA256 %s, SignedHeaders=host, Signature=00" % credential)])


class Throttler(RawOrigin):
    """Throttles everything, with a word about when to come again."""

    def __init__(self, wait_ms):
        self.count, self.guard = 0, threading.Lock()
        super().__init__(lambda wire, n: self.talk(wire, wait_ms))

    def talk(self, wire, wait_ms):
        while True:
            read_request(wire)
            with self.guard:
                self.count += 1
            wire.send(response(400, THROTTLED, headers=[("x-amz-retry-after", str(wait_ms))]))


@pytest.fixture
def throttler():
    origin = Throttler(5000)
    yield origin
    origin.stop()


def test_half_of_the_places_for_one_client(throttler, make_retryd):
    """E6: one upstream client gets half of the places, and its errors at once beyond that; another has the rest."""
    retryd = make_retryd(None, **throttler.config(limits={"max_parked": 20}))
    crowds = {}
    began = time.monotonic()
    for key in ("AKIAONE", "AKIATWO", "AKIATHREE"):
        crowds[key] = [retryd.plain() for _ in range(15)]
        for wire in crowds[key]:
            wire.send(signed(key))
        until(lambda: len(retryd.attempts_logged()) == 15 * len(crowds), "all were answered once")
    assert elapsed(began) < 4.5, "too slow a machine to say anything"
    said = [(a["decision"], a["why"]) for a in retryd.attempts_logged()]
    waits, told = ("retry", "will_retry"), ("deliver", "overload")
    assert sorted(said[:15]) == sorted(said[15:30]) == sorted([waits] * 10 + [told] * 5)
    assert said[30:] == [told] * 15
    for wire in crowds["AKIATHREE"]:
        answer = wire.response()
        assert answer.status == 400 and answer.body == THROTTLED


def test_held_responses_count(make_retryd):
    """E6: what is held of errors is in the memory total; beyond it an error goes on to the client instead."""
    release = threading.Event()

    def script(wire, n):
        while True:
            read_request(wire)
            wire.send(b"HTTP/1.1 500 No\r\nContent-Length: 60000\r\n\r\n" + b"e" * 50000)
            release.wait(30)
            wire.send(b"e" * 10000)

    origin = RawOrigin(script)
    retryd = make_retryd(None, **origin.config(limits={"replay_memory_total": "128KiB", "replay_memory": "4KiB",
                                                       "hold_root": "64KiB"},
                                               retry={"max_attempts": 2, "max_backoff": "10ms"}))
    try:
        crowd = [retryd.plain() for _ in range(8)]
        for n, wire in enumerate(crowd):
            wire.send(signed("AKIA%d" % n))
        until(lambda: len(retryd.attempts_logged()) >= 6, "most are delivered before they are whole")
        assert {(a["decision"], a["why"]) for a in retryd.attempts_logged()} == {("deliver", "overload")}
    finally:
        release.set()
    for wire in crowd:
        answer = wire.response()
        assert answer.status == 500 and answer.body == b"e" * 60000 and answer.whole
    origin.stop()
    for wire in crowd:
        wire.close()


def test_a_wait_holds_no_response(make_retryd):
    """E6: what was held of an error is free while its request waits: room for many more than would fit at once."""
    def script(wire, n):
        while True:
            read_request(wire)
            wire.send(response(500, b"e" * 60000, headers=[("x-amz-retry-after", "5000")]))

    origin = RawOrigin(script)
    retryd = make_retryd(None, **origin.config(limits={"replay_memory_total": "128KiB", "replay_memory": "4KiB",
                                                       "hold_root": "64KiB"}))
    crowd = [retryd.plain() for _ in range(8)]
    for n, wire in enumerate(crowd):
        wire.send(signed("AKIA%d" % n))
        until(lambda: len(retryd.attempts_logged()) > n, "it was answered")
    assert [(a["decision"], a["why"]) for a in retryd.attempts_logged()[:8]] == [("retry", "will_retry")] * 8
    for wire in crowd:
        wire.close()
    origin.stop()


def test_a_thousand_leave(throttler, make_retryd):
    """E7: a thousand parked clients go at once: everything they held is free, and the origin hears nothing more."""
    retryd = make_retryd(None, **throttler.config(limits={"max_clients_per_peer": 4096}))
    warm = retryd.plain()
    warm.send(signed("AKIAWARM"))
    until(lambda: throttler.count == 1, "the first is parked")
    held, before = descriptors(retryd.process), rss_bytes(retryd.process)
    crowd = [retryd.plain() for _ in range(1000)]
    for n, wire in enumerate(crowd):
        wire.send(signed("AKIA%04d" % (n // 50), body=b"b" * 20000))
    until(lambda: throttler.count >= 1001, "all are parked", 60)
    grown = rss_bytes(retryd.process) - before
    for n, wire in enumerate(crowd):
        wire.reset() if n % 2 else wire.close()
    until(lambda: len(retryd.log("request")) >= 1000, "all are gone", 60)
    count = throttler.count
    assert count <= 1001 + 20         # on a slow machine the first may have been sent again
    until(lambda: descriptors(retryd.process) <= held + 64, "only idle connections are left")
    assert {r["end"] for r in retryd.log("request")} <= {"client_gone"}
    warm.response()
    time.sleep(5.5)                   # longer than any of them would have waited
    assert throttler.count <= count + 4
    # Sanitizers keep what was freed: for them it is enough that nothing was added.
    kept = rss_bytes(retryd.process) - before
    assert kept < (2 * grown if sanitized() else 8 * MIB)
    wire = retryd.plain()
    wire.send(signed("AKIANEXT"))
    until(lambda: throttler.count > count, "another request is served as ever")


def test_waiting_holds_no_connection(throttler, make_retryd):
    """E7: a parked request has given its connection back: one is enough for as many as wait."""
    retryd = make_retryd(None, **throttler.config(limits={"upstream_per_origin": 1}))
    crowd = [retryd.plain() for _ in range(30)]
    for wire in crowd:
        wire.send(signed("AKIAONE"))
    until(lambda: len(retryd.attempts_logged()) == 30, "all wait")
    assert throttler.accepted == 1
