"""Adaptive mode before an origin that throttles: what it sends, who waits, for how long (retry-semantics §9).

The long form, in both modes and with the whole bounds, is tests/bench/brownout.py.
"""
import asyncio
import json
import os
import signal
import sys
import threading
import time

import pytest

import sigv4
from daemons import TREE
from test_budget_shared import ALL, CAPACITY, COST, outage
from test_retryctl import ask
from test_workers import workers
from wire import until

sys.path.insert(0, os.path.join(TREE, "tests/bench"))

import brownout  # noqa: E402

THROTTLE = {"error": "ThrottlingException"}


def budget(retryd):
    status, body = ask(retryd, "GET", "/budgets")
    assert status == 200
    [one] = body["budgets"]
    return one


def crowd(retryd):
    """All but one worker stand still while clients connect: that one gets most of them."""
    still = workers(retryd)[1:]

    def story():
        for pid in still:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(0.8)
        for pid in still:
            os.kill(pid, signal.SIGCONT)

    threading.Thread(target=story).start()


@pytest.mark.slow
def test_a_brownout(tmp_path):
    """The origin serves 100/s, then 200/s; four workers find out together. No client starves, though most of them
    came to one worker."""
    rate = brownout.RATE
    f = brownout.brownout(tmp_path, "adaptive", seconds=29, doubled_at=16, clients=80, started=crowd)
    assert 0.8 * rate <= f.rate(f.sends, 6, 16) <= 1.2 * rate, f.sends
    assert f.share_throttled(6, 16) < 0.1, f.throttled
    assert f.spread(6, 16) <= 1.5
    assert f.rate(f.sends, 26, 29) >= 0.8 * 2 * rate, f.sends
    assert sum(f.failed) < 0.02 * sum(f.sends), f.answers


def test_pr11_the_quota_refills(origin, make_retryd):
    """Successes pay back in adaptive mode as in the others."""
    retryd = make_retryd(origin, retry={"mode": "adaptive", "max_backoff": "20ms"})
    assert outage(origin, retryd, 64)[0] == ALL
    assert budget(retryd)["quota"]["tokens"] == CAPACITY - ALL * COST
    origin.reset()
    origin.rules({})
    wire = retryd.open(sigv4.dynamodb().host)
    for _ in range(CAPACITY):
        assert retryd.exchange(sigv4.dynamodb(), wire=wire).status == 200
    wire.close()
    assert budget(retryd)["quota"] == {"tokens": CAPACITY, "capacity": CAPACITY}
    origin.reset()
    origin.answers({"status": 500})
    assert retryd.exchange(sigv4.dynamodb()).status == 200
    assert len(origin.wait_requests(2)) == 2


def test_pr11_a_killed_worker_changes_neither_quota_nor_rate(origin, make_retryd):
    """Both are the daemon's: who comes in its place finds them as they were, and the others see no jump."""
    retryd = make_retryd(origin, workers=3, retry={"mode": "adaptive", "max_backoff": "20ms"})
    origin.answers(THROTTLE)
    assert retryd.exchange(sigv4.dynamodb()).status == 200
    before = until(lambda: (lambda b: b if b["send"]["limited"] else None)(budget(retryd)), "the rate is limited")
    os.kill(workers(retryd)[0], signal.SIGKILL)
    until(lambda: len(retryd.log("worker_started")) == 4, "it is replaced")
    after = budget(retryd)
    assert after["quota"] == before["quota"]
    for part in ("limited", "rate_limit", "rate_measured"):
        assert after["send"][part] == before["send"][part]


async def offer(origin, port, rate, seconds, relieved_at):
    """An open loop: so many requests a second, whatever becomes of them; from then on the origin serves all."""
    server = await origin.serve()
    f = brownout.Figures(seconds, 1)
    origin.tokens, origin.figures = origin.burst, f
    idle, pending = [], set()

    async def one():
        client = idle.pop() if idle else brownout.Client(port)
        answer = await client.call()
        f.count(f.served[0] if answer == (200, None) else f.failed)
        f.answers[answer] = f.answers.get(answer, 0) + 1
        idle.append(client)

    for n in range(rate * seconds):
        if n == rate * relieved_at:
            origin.set_rate(100 * rate)
        task = asyncio.create_task(one())
        pending.add(task)
        task.add_done_callback(pending.discard)
        await asyncio.sleep(max(0, f.began + n / rate - brownout.time.monotonic()))
    await asyncio.gather(*pending)
    server.close()
    return f


@pytest.mark.slow
def test_pr11_without_retries_it_learns_and_recovers(make_retryd):
    """The limiter goes by every result, and needs no retry for it."""
    origin = brownout.Origin(20)
    retryd = make_retryd(resolve={"*.amazonaws.com": "127.0.0.1:%d" % origin.port}, workers=2,
                         retry={"mode": "adaptive", "max_attempts": 1, "max_admission_wait": "500ms"})
    f = asyncio.run(offer(origin, retryd.port, 100, 24, relieved_at=10))
    assert f.rate(f.sends, 5, 10) < 40, f.sends
    assert f.share_throttled(5, 10) < 0.5, (f.sends, f.throttled)
    assert f.rate(f.sends, 20, 24) > 90, f.sends
    assert f.rate(f.served[0], 20, 24) > 90, f.served
    assert set(f.answers) == {(200, None), (400, None), (503, "rate_limited")}


def limited(origin, make_retryd, **retry):
    """A daemon of which the first request will be throttled. About a second passes then until the next is sent."""
    origin.answers(THROTTLE)
    return make_retryd(origin, workers=1, retry={"mode": "adaptive", "max_attempts": 1, **retry})


def test_rather_fail_than_wait(origin, make_retryd):
    retryd = limited(origin, make_retryd, max_admission_wait="1ms")
    assert retryd.exchange(sigv4.dynamodb()).status == 400
    answer = retryd.exchange(sigv4.dynamodb())
    assert answer.status == 503 and answer.get("X-Retryd-Error") == "rate_limited"
    assert answer.get("Content-Type") == "application/x-amz-json-1.0"
    body = json.loads(answer.body)
    assert body["__type"].endswith("RetrydRateLimited") and "max_admission_wait" in body["message"]
    assert len(origin.requests()) == 1
    assert retryd.exchange(sigv4.sts()).status == 200  # another upstream client


def test_who_leaves_the_queue_holds_up_nobody(origin, make_retryd):
    """First come, first served; those whose client went away, the first of all among them, are passed over."""
    retryd = limited(origin, make_retryd)
    host = sigv4.dynamodb().host
    wires = [retryd.open(host) for _ in range(6)]
    assert retryd.exchange(sigv4.dynamodb()).status == 400
    for n, wire in enumerate(wires):
        wire.send(sigv4.dynamodb(payload={"TableName": "t%d" % n}).bytes())
        until(lambda: budget(retryd)["waiting"] == n + 1, "request %d waits" % n)
    for n in (0, 2, 3, 5):
        wires[n].close()
    until(lambda: budget(retryd)["waiting"] == 2, "those without a client have left")
    for n in (1, 4):
        assert wires[n].response("POST").status == 200
        wires[n].close()
    assert budget(retryd)["waiting"] == 0
    ends = [(r["end"], r.get("status")) for r in retryd.requests_logged(7)]
    served = [s for s in ends if s[0] == "delivered"]
    assert served == [("delivered", 400), ("delivered", 200), ("delivered", 200)]
    assert [s[0] for s in ends if s not in served] == ["client_gone"] * 4
    assert len(origin.requests()) == 3
