"""Several workers: who gets which connection, what the death of one means for the others, how all of them end."""
import collections
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import sigv4
from daemons import clean_env, elapsed, retryd_path
from wire import TIMEOUT, Wire, dial, until

KILL_SECONDS = float(os.environ.get("RETRYD_KILL_SECONDS", "8"))
KILL_EVERY = 0.1


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(word) for word in f.read().split()]
    except FileNotFoundError:
        return []


def workers(retryd):
    return children(retryd.process.pid)


def working(retryd):
    """Those of them that accept."""
    return set(workers(retryd)) & {w["pid"] for w in retryd.log("worker_started")}


def worker_of(number):
    """Workers number their exchanges from their process id << 32 on."""
    return int(number, 16) >> 32


@pytest.fixture
def make_workers(make_retryd):
    def make(origin=None, workers=4, **config):
        named = {"resolve": {"*.example:80": "127.0.0.1:%d" % origin.http}} if origin else {}
        return make_retryd(origin, workers=workers, **dict(named, **config))

    return make


def get(wire, host):
    wire.send(b"GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % ((host.encode(),) * 2))
    return wire.response()


def refused(port):
    """A whole connection that costs retryd little: who answered it?"""
    wire = dial(port)
    wire.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = wire.response()
    wire.close()
    assert answer.status == 400
    return worker_of(answer.get("X-Amzn-RequestId").rsplit("-", 1)[1])


def assert_balanced(counts, n):
    """Around the fair share; on a busy machine a worker that is not running cannot take its turn at once."""
    fair = sum(counts.values()) / n
    assert len(counts) == n, counts
    assert max(counts.values()) <= 1.6 * fair and min(counts.values()) >= fair / 2, counts


# ---- who gets a connection

def held(retryd, wires):
    """The workers of open connections, asked with one request on each."""
    for i, wire in enumerate(wires):
        assert get(wire, "c%d.example" % i).status == 200
    return collections.Counter(worker_of(r["xid"]) for r in retryd.requests_logged(len(wires)))


def test_few_long_lived_connections_are_balanced(origin, make_workers):
    retryd = make_workers(origin)
    assert len(workers(retryd)) == 4
    wires = [retryd.plain() for _ in range(40)]
    assert_balanced(held(retryd, wires), 4)


def test_connections_made_one_by_one_are_balanced(origin, make_workers):
    retryd = make_workers(origin)
    wires = []
    for i in range(40):
        wires.append(retryd.plain())
        assert get(wires[-1], "c%d.example" % i).status == 200
    counts = collections.Counter(worker_of(r["xid"]) for r in retryd.requests_logged(40))
    assert_balanced(counts, 4)


def test_a_burst_is_not_taken_by_the_first_who_comes(origin, make_workers):
    """The others are late, as on a busy machine: until they come, one connection is taken for each 2 ms of waiting."""
    retryd = make_workers(origin)
    late = workers(retryd)[1:]
    began = time.monotonic()
    for pid in late:
        os.kill(pid, signal.SIGSTOP)
    wires = [retryd.plain() for _ in range(80)]
    time.sleep(0.01)
    for pid in late:
        os.kill(pid, signal.SIGCONT)
    alone = elapsed(began)
    counts = held(retryd, wires)
    assert len(counts) == 4, counts
    assert max(counts.values()) <= 1.6 * 20 + alone / 0.002, (counts, alone)


def test_many_short_connections_are_balanced(make_workers):
    retryd = make_workers()
    counts = collections.Counter()

    def client():
        for _ in range(500):
            counts[refused(retryd.port)] += 1

    threads = [threading.Thread(target=client) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sum(counts.values()) == 2000
    assert_balanced(counts, 4)


def test_a_stopped_worker_delays_nobody_for_long(make_workers):
    retryd = make_workers()
    stopped = workers(retryd)[0]
    os.kill(stopped, signal.SIGSTOP)
    try:
        began = time.monotonic()
        counts = collections.Counter(refused(retryd.port) for _ in range(300))
        assert elapsed(began) < 5
        assert stopped not in counts and len(counts) == 3
    finally:
        os.kill(stopped, signal.SIGCONT)


def test_limit_of_clients_counts_all_workers(make_workers):
    """J1: limit of clients counts all workers."""
    retryd = make_workers(limits={"max_clients": 6})
    wires = [retryd.plain() for _ in range(10)]
    turned_away = until(lambda: (lambda l: l if len(l) >= 4 else None)(retryd.log("too_many_clients")), "4 are too many")
    assert len(turned_away) == 4
    assert sum(w.ended(0.05) for w in wires) == 4


def test_a_tunnel_is_a_client(origin, make_workers):
    retryd = make_workers(origin, limits={"max_clients": 3}, resolve={"raw.example:443": "127.0.0.1:%d" % origin.https})
    tunnels = [retryd.tunnel("raw.example") for _ in range(3)]
    assert retryd.plain().ended(5)
    tunnels.pop().close()

    def again():
        try:
            return retryd.tunnel("raw.example")
        except (AssertionError, OSError):
            return None

    until(again, "a closed tunnel makes room").close()
    for one in tunnels:
        one.close()


# ---- death

class Load:
    """Clients that each open connections and send some requests on each, until told to stop. Each connection asks
    for a host of its own, by which it is found in the log."""

    def __init__(self, retryd, clients=8):
        self.retryd, self.stop = retryd, threading.Event()
        self.served, self.cut, self.wrong, self.number = 0, [], [], 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.client) for _ in range(clients)]
        for t in self.threads:
            t.start()

    def connection(self):
        with self.lock:
            self.number += 1
            host = "c%d.example" % self.number
        try:
            wire = self.retryd.plain()
            for _ in range(20):
                answer = get(wire, host)
                with self.lock:
                    if answer is None or not answer.whole:
                        self.cut.append(host)
                        return
                    self.served += 1
                    if answer.status != 200:
                        self.wrong.append((host, answer.status))
            wire.close()
        except OSError:               # reset while sending
            with self.lock:
                self.cut.append(host)

    def client(self):
        while not self.stop.is_set():
            self.connection()

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join()


def test_kill_9_again_and_again(origin, make_workers):
    """J13: A killed worker takes its own requests with it, and nothing else: all others end well, and new connections are
    served all the time."""
    retryd = make_workers(origin)
    load, killed, dice = Load(retryd), [], random.Random(9)
    slowest, end = 0, time.monotonic() + KILL_SECONDS
    while time.monotonic() < end:
        began = time.monotonic()
        alive = workers(retryd)
        if alive:
            killed.append(dice.choice(alive))
            os.kill(killed[-1], signal.SIGKILL)
        while True:                   # somebody new is served, if need be at the second try
            try:
                refused(retryd.port)
                break
            except (AttributeError, OSError):
                assert elapsed(began) < 2, "nobody is served"
        slowest = max(slowest, elapsed(began))
        time.sleep(max(0, KILL_EVERY - elapsed(began)))
    load.end()
    until(lambda: len(working(retryd)) == 4, "all workers are back")
    print("%d killed, %d requests served, %d connections cut, slowest new connection %d ms" %
          (len(killed), load.served, len(load.cut), slowest * 1000))
    assert len(killed) > KILL_SECONDS * 2
    assert load.served > KILL_SECONDS * 20
    assert not load.wrong
    by_host = collections.defaultdict(set)
    for r in retryd.log("request"):
        by_host[r["host"]].add(worker_of(r["xid"]))
    for host in load.cut:             # unknown to the log: killed before the first answer
        assert by_host[host] <= set(killed), host
    counts = collections.Counter(refused(retryd.port) for _ in range(400))
    assert_balanced(counts, 4)


def test_a_single_death_is_replaced_at_once(make_workers):
    retryd = make_workers(workers=2)
    before = workers(retryd)
    os.kill(before[0], signal.SIGABRT)
    began = time.monotonic()
    until(lambda: len(retryd.log("worker_started")) == 3, "a new worker")
    assert elapsed(began) < 2
    after = workers(retryd)
    assert before[1] in after and before[0] not in after and len(after) == 2
    ended = retryd.log("worker_ended")
    assert [(e["pid"], e["signal"]) for e in ended] == [(before[0], signal.SIGABRT)]


def test_workers_leave_with_their_master(make_workers):
    retryd = make_workers()
    pids = workers(retryd)
    retryd.process.kill()
    until(lambda: not any(os.path.exists("/proc/%d" % p) for p in pids), "all workers are gone")
    retryd.stop(status=-signal.SIGKILL)


# ---- the end

def test_all_workers_drain(origin, make_workers):
    retryd = make_workers(origin)
    origin.answers({"ok": "auto", "delay_ms": 700})
    wires = [retryd.open("sts.us-east-1.amazonaws.com") for _ in range(12)]
    for wire in wires:
        wire.send(sigv4.sts().bytes())
    origin.wait_requests(12)
    retryd.tell(signal.SIGTERM)
    for wire in wires:
        answer = wire.response("POST")
        assert answer.status == 200 and answer.whole
    retryd.stop()
    assert len({worker_of(r["xid"]) for r in retryd.log("request")}) == 4
    assert [e["status"] for e in retryd.log("worker_ended")] == [0] * 4


def test_terminal_and_service_manager_tell_everybody(origin, make_workers):
    """A signal that reaches the workers as well is one signal."""
    for sig in (signal.SIGINT, signal.SIGTERM):
        retryd = make_workers(origin)
        origin.answers({"ok": "auto", "delay_ms": 700})
        origin.reset()
        wire = retryd.open("sts.us-east-1.amazonaws.com")
        wire.send(sigv4.sts().bytes())
        origin.wait_requests(1)
        for pid in workers(retryd):
            os.kill(pid, sig)
        retryd.tell(sig)
        answer = wire.response("POST")
        assert answer.status == 200 and answer.whole
        retryd.stop()


def test_second_signal_ends_at_once(origin, make_workers):
    retryd = make_workers(origin)
    origin.answers({"fail": "hang"})
    wire = retryd.open("sts.us-east-1.amazonaws.com")
    wire.send(sigv4.sts().bytes())
    origin.wait_requests(1)
    began = time.monotonic()
    retryd.tell(signal.SIGTERM)
    until(lambda: retryd.log("stopping"), "the drain has begun")
    retryd.process.send_signal(signal.SIGTERM)
    retryd.stop()
    assert elapsed(began) < 5


def test_no_new_connections_while_draining(origin, make_workers):
    retryd = make_workers(origin)
    origin.answers({"ok": "auto", "delay_ms": 1000})
    wire = retryd.open("sts.us-east-1.amazonaws.com")
    wire.send(sigv4.sts().bytes())
    origin.wait_requests(1)
    retryd.tell(signal.SIGTERM)
    until(lambda: len(retryd.log("stopping")) == 5, "all have stopped to listen")
    with pytest.raises(ConnectionRefusedError):
        dial(retryd.port)
    assert wire.response("POST").status == 200
    retryd.stop()


# ---- the beginning

@pytest.mark.parametrize("count", [1, 2])
def test_no_privileges_are_kept(make_workers, count):
    """L1: Security requirement L1, of whoever carries traffic."""
    retryd = make_workers(workers=count)
    for pid in workers(retryd) or [retryd.process.pid]:
        with open("/proc/%d/status" % pid) as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        assert [int(status[c], 16) for c in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [0] * 4
        assert status["NoNewPrivs"] == "1"


def test_what_no_worker_can_do_ends_it(tmp_path):
    bad = tmp_path / "not-there.pem"
    done = subprocess.run([retryd_path(), "run", "--set", "workers=3", "--set", "listen=127.0.0.1:0",
                           "--set", "state_dir=%s" % (tmp_path / "state"), "--set", "upstream.ca_file=%s" % bad],
                          env=clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT)
    assert done.returncode == 2
    assert str(bad) in done.stderr
    assert "listening" not in done.stdout


@pytest.mark.parametrize("count", [1, 3])
def test_sockets_of_a_service_manager(tmp_path, count):
    """LISTEN_FDS, LISTEN_PID, READY=1 and STOPPING=1, from the main process only."""
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(str(tmp_path / "notify"))
    notices.settimeout(TIMEOUT)
    notices.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    starter = ("import os,sys; os.environ['LISTEN_PID']=str(os.getpid()); os.dup2(int(sys.argv[1]), 3); "
               "os.set_inheritable(3, True); os.execv(sys.argv[2], sys.argv[2:])")
    process = subprocess.Popen([sys.executable, "-c", starter, str(listening.fileno()), retryd_path(), "run",
                                "--set", "workers=%d" % count, "--set", "state_dir=%s" % (tmp_path / "state"),
                                "--set", "log.file=%s" % (tmp_path / "log")],
                               env=clean_env(LISTEN_FDS="1", NOTIFY_SOCKET=str(tmp_path / "notify")),
                               pass_fds=[listening.fileno()], stdout=subprocess.PIPE)
    try:
        def notice():
            text, control, _, _ = notices.recvmsg(256, 256)
            return text, int.from_bytes(control[0][2][:4], sys.byteorder)

        assert notice() == (b"READY=1", process.pid)
        wire = Wire(socket.create_connection(listening.getsockname()))
        wire.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wire.response().status == 400
        process.terminate()
        assert notice() == (b"STOPPING=1", process.pid)
        assert process.wait(TIMEOUT) == 0
        notices.setblocking(False)
        with pytest.raises(BlockingIOError):
            notices.recv(256)
    finally:
        process.kill()
        process.wait(TIMEOUT)
        notices.close()
        listening.close()
