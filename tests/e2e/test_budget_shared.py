"""One quota for all workers, and for as long as it is asked to last (retry-semantics §7)."""
import collections
import fcntl
import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import threading

import pytest

import sigv4
from daemons import retryd_path, run_retryd
from test_workers import worker_of, workers
from wire import TIMEOUT, until

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


def test_pr11_the_quota_outlives_its_workers(origin, make_retryd):
    retryd = make_retryd(origin, workers=3, retry={"max_backoff": "20ms"})
    assert outage(origin, retryd, 64)[0] == ALL
    for pid in workers(retryd):
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(retryd.log("worker_started")) == 6, "all are replaced")
    retries, by = outage(origin, retryd, 16)
    assert retries == 0
    assert by <= set(workers(retryd))


@pytest.fixture(params=["disk", "tmpfs"])
def budgets_dir(request, tmp_path):
    if request.param == "disk":
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield pathlib.Path(directory)


def test_the_quota_outlives_the_daemon(origin, make_retryd, budgets_dir):
    """With a file: after a stop, and after the death of every process of it."""
    path = budgets_dir / "budgets"
    retryd = make_retryd(origin, workers=2, retry={"max_backoff": "20ms"}, budgets={"file": str(path)})
    assert outage(origin, retryd, 64)[0] == ALL
    retryd.stop()
    retryd.start()
    assert outage(origin, retryd, 16)[0] == 0
    retryd.process.kill()
    retryd.stop(status=-signal.SIGKILL)
    until(lambda: not [p for p in os.listdir("/proc") if p.isdigit() and holds(p, path)],
          "all processes are gone")
    retryd.start()
    assert outage(origin, retryd, 16)[0] == 0
    assert not retryd.log("shared_memory")


def test_the_limiter_outlives_the_daemon(origin, make_retryd, tmp_path):
    """One throttle, and the next daemon still holds back."""
    retryd = make_retryd(origin, workers=2, retry={"mode": "adaptive", "max_attempts": 1},
                         budgets={"file": str(tmp_path / "budgets")})
    origin.answers({"error": "ThrottlingException"})
    assert retryd.exchange(sigv4.dynamodb()).status == 400
    retryd.stop()
    retryd.start()
    retryctl = os.path.join(os.path.dirname(retryd_path()), "retryctl")
    shown = subprocess.run([retryctl, "-s", os.path.join(retryd.state_dir, "admin.sock"), "budgets", "--json"],
                           stdout=subprocess.PIPE, timeout=TIMEOUT, check=True)
    [budget] = json.loads(shown.stdout)["budgets"]
    assert budget["send"]["limited"] and budget["throttles"] == 1


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


def test_several_daemons_share_one_file(origin, make_retryd, tmp_path):
    shared = {"file": str(tmp_path / "budgets")}
    first, second, third = (make_retryd(origin, workers=n, retry={"max_backoff": "20ms"}, budgets=shared)
                            for n in (2, 1, 3))
    assert outage(origin, first, 64)[0] == ALL
    assert outage(origin, second, 16)[0] == 0
    first.stop()                      # the others go on with it
    assert outage(origin, third, 16)[0] == 0
    assert not [d for d in (first, second, third) if d.log("shared_memory")]


@pytest.mark.parametrize("spoilt", ["header", "size", "entries"])
def test_a_file_that_does_not_fit_is_replaced_with_a_word(origin, make_retryd, tmp_path, spoilt):
    path = tmp_path / "budgets"
    retryd = make_retryd(origin, workers=2, retry={"max_backoff": "20ms"}, budgets={"file": str(path)})
    assert outage(origin, retryd, 64)[0] == ALL
    retryd.stop()
    with open(path, "r+b") as f:
        if spoilt == "header":
            f.seek(16)
            f.write(b"\xff" * 16)
        elif spoilt == "size":
            f.truncate(5000)
        else:
            f.seek(8192)              # entries: owed by nobody
            f.write(b"\x05" + b"\0" * 127)
    retryd.start()
    assert len(retryd.log("shared_memory")) == 1
    assert outage(origin, retryd, 64)[0] == ALL


def test_a_file_of_somebody_else_is_left_alone(tmp_path):
    path = tmp_path / "precious"
    path.write_bytes(b"not made by retryd" * 1000)
    path.chmod(0o600)
    for arguments in (["run"], ["exec"]):
        done = run_retryd(*arguments, "--set", "budgets.file=%s" % path, "--set", "listen=127.0.0.1:0",
                          "--set", "state_dir=%s" % (tmp_path / "state"), *["--", "true"][:2 * (arguments == ["exec"])])
        assert done.returncode == 2
        assert "budgets.file: %s: not made by retryd" % path in done.stderr
    assert path.read_bytes() == b"not made by retryd" * 1000
    assert sorted(os.listdir(tmp_path)) == ["precious"]


def take_all_seats(path):
    """The locks that say a seat is taken, as another daemon would have them."""
    f = open(path, "r+b")
    fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 4096, 64 * 64, 0))
    return f


@pytest.mark.parametrize("count", [1, 2])
def test_no_seat_left(origin, make_retryd, tmp_path, count):
    """The service goes on, with budgets of its own, and says so."""
    path = tmp_path / "budgets"
    config = {"workers": count, "retry": {"max_backoff": "20ms"}, "budgets": {"file": str(path)}}
    make_retryd(origin, **config).stop()
    with take_all_seats(path):
        retryd = make_retryd(origin, **config)
        assert len(retryd.log("budgets_apart")) == 1
        assert outage(origin, retryd, 64)[0] == ALL
        done = run_retryd("exec", "--set", "budgets.file=%s" % path, "--set", "state_dir=%s" % (tmp_path / "state"),
                          "--", "sh", "-c", "exit 7")
        assert done.returncode == 7 and "budgets_apart" in done.stderr
    later = make_retryd(origin, **config)
    assert not later.log("budgets_apart")
