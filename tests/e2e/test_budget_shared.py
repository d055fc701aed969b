"""One quota for all workers, and for as long as it is asked to last (retry-semantics §7)."""
import collections
import os
import signal
import threading

import sigv4
from test_workers import worker_of, workers
from wire import until

DOWN = {"status": 503, "body": "{}"}
CAPACITY, COST = 500, 14
ALL = CAPACITY // COST           # transient retries that a full quota pays for


def outage(origin, retryd, requests, clients=8):
    """So many requests meet an origin that is down. How many retries were sent, and by which workers."""
    origin.reset()
    origin.answers(DOWN, then="last")
    before = len(retryd.log("request"))

    def client(n):
        for _ in range(n):
            answer = retryd.exchange(sigv4.dynamodb())
            assert answer.status == 503

    threads = [threading.Thread(target=client, args=(requests // clients,)) for _ in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    lines = retryd.requests_logged(before + requests)[before:]
    retries = sum(r["attempts"] - 1 for r in lines)
    assert len(origin.wait_requests(requests + retries)) == requests + retries
    return retries, {worker_of(r["xid"]) for r in lines}


def test_an_outage_drains_one_quota(origin, make_retryd):
    """E8: Whichever worker meets the outage: all of them together send what one client would."""
    retryd = make_retryd(origin, workers=4, retry={"max_backoff": "20ms"})
    retries, by = outage(origin, retryd, 64)
    assert retries == ALL
    assert len(by) == 4


def test_workers_draw_different_delays(origin, make_retryd):
    retryd = make_retryd(origin, workers=4, retry={"max_backoff": "100ms"})
    outage(origin, retryd, 64)
    delays = collections.defaultdict(list)
    for a in retryd.attempts_logged():
        if a["decision"] == "retry":
            delays[worker_of(a["xid"])].append(a["wait_ms"])
    assert len(delays) >= 2
    drawn = [d for some in delays.values() for d in some]
    assert len(drawn) == ALL and len(set(drawn)) > ALL * 0.9


def test_the_quota_outlives_its_workers(origin, make_retryd):
    retryd = make_retryd(origin, workers=3, retry={"max_backoff": "20ms"})
    assert outage(origin, retryd, 64)[0] == ALL
    for pid in workers(retryd):
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(retryd.log("worker_started")) == 6, "all are replaced")
    retries, by = outage(origin, retryd, 16)
    assert retries == 0
    assert by <= set(workers(retryd))


def test_the_quota_outlives_the_daemon(origin, make_retryd, tmp_path):
    """With a file: after a stop, and after the death of every process of it."""
    retryd = make_retryd(origin, workers=2, retry={"max_backoff": "20ms"}, budgets={"file": str(tmp_path / "budgets")})
    assert outage(origin, retryd, 64)[0] == ALL
    retryd.stop()
    retryd.start()
    assert outage(origin, retryd, 16)[0] == 0
    retryd.process.kill()
    retryd.stop(status=-signal.SIGKILL)
    until(lambda: not [p for p in os.listdir("/proc") if p.isdigit() and holds(p, tmp_path / "budgets")],
          "all processes are gone")
    retryd.start()
    assert outage(origin, retryd, 16)[0] == 0


def holds(pid, path):
    try:
        with open("/proc/%s/maps" % pid) as f:
            return str(path) in f.read()
    except OSError:
        return False


def test_without_a_file_a_restart_forgets(origin, make_retryd):
    retryd = make_retryd(origin, workers=1, retry={"max_backoff": "20ms"})
    assert outage(origin, retryd, 64)[0] == ALL
    retryd.stop()
    retryd.start()
    assert outage(origin, retryd, 64)[0] == ALL


def test_two_daemons_share_one_file(origin, make_retryd, tmp_path):
    shared = {"file": str(tmp_path / "budgets")}
    first = make_retryd(origin, workers=2, retry={"max_backoff": "20ms"}, budgets=shared)
    second = make_retryd(origin, workers=1, retry={"max_backoff": "20ms"}, budgets=shared)
    assert outage(origin, first, 64)[0] == ALL
    assert outage(origin, second, 16)[0] == 0


def test_a_file_that_does_not_fit_is_replaced_with_a_word(origin, make_retryd, tmp_path):
    path = tmp_path / "budgets"
    path.write_bytes(b"not made by retryd" * 1000)
    path.chmod(0o600)
    retryd = make_retryd(origin, workers=2, retry={"max_backoff": "20ms"}, budgets={"file": str(path)})
    assert len(retryd.log("shared_memory")) == 1
    assert outage(origin, retryd, 64)[0] == ALL
