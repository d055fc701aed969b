"""J7: connections to one origin: a cap, a queue with two bounds, and nobody else hears of it."""
import threading
import time

import pytest

from daemons import elapsed
from hostile import RawOrigin, read_head, read_request, request, response
from test_websocket import connect, upgrader  # noqa: F401 (a fixture)
from wire import until

FAST = "sqs.us-east-1.amazonaws.com"


class SlowOrigin(RawOrigin):
    """Answers nobody until opened; knows how many requests it had at most at a time."""

    def __init__(self):
        self.gate, self.lock2 = threading.Event(), threading.Lock()
        self.now = self.most = self.served = 0
        self.targets = []
        super().__init__(self.talk)

    def talk(self, wire, n):
        while True:
            message = read_request(wire)
            with self.lock2:
                self.targets.append(message.target)
                self.now += 1
                self.most = max(self.most, self.now)
            self.gate.wait(60)
            time.sleep(0.002)
            with self.lock2:
                self.now -= 1
                self.served += 1
            wire.send(response(200, b"slow"))


@pytest.fixture
def slow():
    origin = SlowOrigin()
    yield origin
    origin.gate.set()
    origin.stop()


@pytest.fixture
def fast():
    def script(wire, n):
        while True:
            read_request(wire)
            wire.send(response(200, b"fast"))

    origin = RawOrigin(script)
    yield origin
    origin.stop()


def test_five_hundred_to_one_slow_origin(slow, fast, make_retryd):
    """J7: eight connections carry them all, one after the other; another origin does not notice."""
    retryd = make_retryd(None, resolve={"*.amazonaws.com:80": "127.0.0.1:%d" % slow.port,
                                        FAST + ":80": "127.0.0.1:%d" % fast.port},
                         limits={"upstream_per_origin": 8, "max_clients_per_peer": 4096},
                         timeouts={"connect": "60s"})
    crowd = [retryd.plain() for _ in range(500)]
    for n, wire in enumerate(crowd):
        wire.send(request(target="/%d" % n))
    until(lambda: slow.now == 8, "the cap is reached")
    began = time.monotonic()
    for _ in range(20):
        wire = retryd.plain()
        wire.send(request(host=FAST))
        assert wire.response().body == b"fast"
        wire.close()
    assert elapsed(began) < 10
    assert slow.accepted == 8 and len(slow.targets) == 8
    slow.gate.set()
    for wire in crowd:
        answer = wire.response()
        assert answer.status == 200 and answer.body == b"slow"
    assert slow.most == slow.accepted == 8
    assert slow.served == 500 and sorted(slow.targets) == sorted("/%d" % n for n in range(500))
    records = retryd.requests_logged(520)
    assert [r["attempts"] for r in records] == [1] * 520


def test_the_queue_is_bounded(slow, make_retryd):
    """J7: one too many is refused at once, those that wait in vain when the time is over: with a 503 of our own that
    costs no quota and is not tried again."""
    retryd = make_retryd(None, **slow.config(limits={"upstream_per_origin": 1, "upstream_waiters": 2},
                                             timeouts={"connect": "2s"}))
    held = retryd.plain()
    held.send(request(target="/held"))
    until(lambda: slow.now == 1, "the connection is in use")
    waiting = [retryd.plain() for _ in range(2)]
    began = time.monotonic()
    for wire in waiting:
        wire.send(request(target="/waits"))
        time.sleep(0.1)
    extra = retryd.plain()
    extra.send(request(target="/extra"))
    answers = [extra.response()]
    assert elapsed(began) < 1.9, "not at once"
    answers += [wire.response() for wire in waiting]
    assert elapsed(began) >= 2
    for answer in answers:
        assert answer.status == 503 and answer.get("X-Retryd-Error") == "overloaded"
    slow.gate.set()
    assert held.response().status == 200
    assert slow.targets == ["/held"]
    refused = [a for a in retryd.attempts_logged() if a.get("failure") == "overload"]
    assert len(refused) == 3
    for a in refused:
        assert a["class"] == "none" and a["decision"] == "deliver" and a["attempt"] == "1/3"
        assert a["quota_before"] == a["quota_after"]


def test_one_that_waits_may_leave(slow, make_retryd):
    """J7, E7: who leaves the queue leaves no hole in it, and its request is never sent."""
    retryd = make_retryd(None, **slow.config(limits={"upstream_per_origin": 1}, timeouts={"connect": "60s"}))
    wires = []
    for n in range(4):
        wires.append(retryd.plain())
        wires[n].send(request(target="/%d" % n))
        if n == 0:
            until(lambda: slow.now == 1, "the connection is in use")
        time.sleep(0.1)               # so that they queue in this order
    wires[1].close()
    wires[2].reset()
    retryd.requests_logged(2)
    slow.gate.set()
    assert wires[0].response().status == 200 and wires[3].response().status == 200
    assert slow.targets == ["/0", "/3"] and slow.accepted == 1


def test_failed_dials_give_their_place_back(make_retryd):
    """J7: a connection that could not be made holds nothing, retries and drops included."""
    origin = RawOrigin(lambda wire, n: read_head(wire), listening=False)
    retryd = make_retryd(None, **origin.config(limits={"upstream_per_origin": 1}, timeouts={"connect": "20s"},
                                               retry={"max_attempts": 3, "max_backoff": "10ms"}))
    began = time.monotonic()
    for opened in (False, True):
        if opened:
            origin.open()
        for _ in range(5):
            wire = retryd.plain()
            wire.send(request())
            assert wire.response().get("X-Retryd-Error") == ("connection_closed" if opened else "connect_refused")
            wire.close()
    assert elapsed(began) < 19
    origin.stop()


def test_a_websocket_counts(upgrader, make_retryd):  # noqa: F811
    """J7: a connection that left HTTP is in use until it ends."""
    retryd = make_retryd(None, resolve={"ws.example:80": "127.0.0.1:%d" % upgrader.port},
                         limits={"upstream_per_origin": 1}, timeouts={"connect": "60s"})
    first = connect(retryd)
    assert b" 101 " in first.recv(4096)
    second = connect(retryd)
    time.sleep(0.3)
    assert len(upgrader.heads) == 1
    first.close()
    assert b" 101 " in second.recv(4096)
    second.close()
