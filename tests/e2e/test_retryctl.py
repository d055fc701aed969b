"""The admin socket, and retryctl, which talks to it."""
import grp
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess

import pytest

import sigv4
from daemons import clean_env, retryd_path
from test_budget_shared import ALL, COST, outage
from test_workers import workers
from wire import TIMEOUT, until

ROOT = os.geteuid() == 0


def retryctl(*args, socket_path=None, **how):
    program = os.path.join(os.path.dirname(retryd_path()), "retryctl")
    where = ["-s", socket_path] if socket_path else []
    return subprocess.run([program, *where, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=TIMEOUT, env=clean_env(), **how)


def admin_path(retryd):
    return os.path.join(retryd.state_dir, "admin.sock")


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(self.path)


def ask(retryd, method, target, **headers):
    connection = Unix(admin_path(retryd))
    connection.request(method, target, headers=headers)
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body


def raw(retryd, request):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(TIMEOUT)
        s.connect(admin_path(retryd))
        s.sendall(request)
        got = b""
        while True:
            piece = s.recv(65536)
            if not piece:
                return got
            got += piece


@pytest.fixture(params=[1, 3], ids=["alone", "workers"])
def drained(request, origin, make_retryd):
    """A retryd whose quota for DynamoDB is used up."""
    retryd = make_retryd(origin, workers=request.param, retry={"max_backoff": "20ms"})
    assert outage(origin, retryd, 64)[0] == ALL
    return retryd


def test_budgets(drained, origin):
    status, body = ask(drained, "GET", "/budgets")
    assert status == 200
    assert body["entries"] == 1 and body["slots"] == 1024 and not body["truncated"]
    [budget] = body["budgets"]
    assert budget["client"].startswith("dynamodb/us-east-1/") and budget["client"].endswith("MPLE")
    assert budget["quota"] == {"tokens": 500 - ALL * COST, "capacity": 500}
    assert budget["retries"] == ALL and budget["refused"] > 0 and budget["throttles"] == 0
    assert 0 <= budget["changed_s"] < 60 and budget["waiting"] == 0
    assert sigv4.KEY_ID not in json.dumps(body)


def test_table_and_reset(drained, origin):
    path = admin_path(drained)
    shown = retryctl("budgets", socket_path=path)
    assert shown.returncode == 0 and shown.stderr == ""
    head, row = shown.stdout.splitlines()
    assert head.split() == ["CLIENT", "QUOTA", "SEND/S", "MEASURED/S", "THROTTLES", "WAITING", "CHANGED", "ID"]
    client, quota, send, _, throttles, waiting, changed, key = row.split()
    assert client.startswith("dynamodb/us-east-1/") and quota == "10/500" and send == "-"
    assert (throttles, waiting) == ("0", "0") and re.fullmatch(r"[\d.]+s", changed)
    assert re.fullmatch(r"[0-9a-f]{16}", key)
    as_json = retryctl("budgets", "--json", socket_path=path)
    assert json.loads(as_json.stdout)["budgets"][0]["id"] == key
    # By id, then by what people see; what it is for is that retries are paid for again.
    assert retryctl("reset", key, socket_path=path).stdout == '{"reset":1}\n'
    assert outage(origin, drained, 64)[0] == ALL
    assert retryctl("reset", client, socket_path=path).returncode == 0
    assert json.loads(retryctl("budgets", "--json", socket_path=path).stdout)["budgets"][0]["quota"]["tokens"] == 500
    assert len(drained.log("budget_reset")) == 2
    missing = retryctl("reset", "0123456789abcdef", socket_path=path)
    assert missing.returncode == 1 and "no such budget" in missing.stderr


def test_watch(drained):
    program = os.path.join(os.path.dirname(retryd_path()), "retryctl")
    with subprocess.Popen([program, "-s", admin_path(drained), "budgets", "--watch"], stdout=subprocess.PIPE,
                          text=True) as process:
        seen = [process.stdout.readline() for _ in range(4)]
        process.terminate()
    assert [line.split()[0] for line in seen[::2]] == ["CLIENT", "CLIENT"]


def test_health_and_the_end(origin, make_retryd):
    retryd = make_retryd(origin, workers=2)
    path = admin_path(retryd)
    good = retryctl("health", socket_path=path)
    assert (good.returncode, good.stdout) == (0, '{"status":"ok"}\n')
    retryd.stop()
    assert not os.path.exists(path)
    gone = retryctl("health", socket_path=path)
    assert gone.returncode == 1 and path in gone.stderr


def test_mode_of_the_socket(make_retryd, tmp_path):
    retryd = make_retryd()
    assert stat.S_IMODE(os.stat(admin_path(retryd)).st_mode) == 0o600
    if not ROOT:
        return
    other = make_retryd(admin={"group": "daemon", "socket": str(tmp_path / "a.sock")})
    st = os.stat(tmp_path / "a.sock")
    assert stat.S_IMODE(st.st_mode) == 0o660 and st.st_gid == grp.getgrnam("daemon").gr_gid
    assert retryctl("health", socket_path=str(tmp_path / "a.sock")).returncode == 0
    other.stop()


@pytest.mark.skipif(not ROOT, reason="needs another user")
def test_the_group_may_look_and_not_change(make_retryd, tmp_path):
    """Security requirement I7: a change takes the daemon's own user, or root."""
    tmp_path.chmod(0o755)
    for parent in list(tmp_path.parents)[:2]:
        parent.chmod(0o755)
    path = str(tmp_path / "a.sock")
    retryd = make_retryd(admin={"group": "daemon", "socket": path})
    program = (
        "import os, socket, sys\n"
        "os.setgroups([]); os.setgid(%d); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "s.sendall(sys.argv[2].encode() + b' HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')\n"
        "print(s.recv(100).split()[1].decode())\n" % grp.getgrnam("daemon").gr_gid)

    def as_member(request):
        return subprocess.run(["python3", "-c", program, path, request], stdout=subprocess.PIPE, text=True,
                              timeout=TIMEOUT, check=True).stdout.strip()

    assert as_member("GET /budgets") == "200"
    assert as_member("POST /budgets/reset?key=0123") == "403"
    retryd.stop()


@pytest.mark.parametrize("request_bytes,status", [
    (b"GET /budgets HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
    (b"GET /budgets HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\r\n", 403),
    (b"GET /budgets HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", 200),
    (b"GET /budgets HTTP/1.1\r\nHost: [::1]\r\n\r\n", 200),
    (b"GET /budgets HTTP/1.1\r\n\r\n", 400),
    (b"GET http://localhost/budgets HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"GET /budgets/reset?key=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    (b"POST /budgets HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405),
    (b"POST /budgets/reset HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"POST /budgets/reset?key=%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"POST /budgets/reset?key=" + b"a" * 65 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"POST /budgets/reset?key=a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 413),
    (b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    (b"GET /" + b"a" * 2000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    (b"GET / HTTP/1.1\nHost: localhost\n\n", 400),
    (b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
])
def test_requests(make_retryd, request_bytes, status):
    retryd = make_retryd()
    answer = raw(retryd, request_bytes)
    assert int(answer.split()[1]) == status
    head, body = answer.split(b"\r\n\r\n", 1)
    assert b"Connection: close" in head and json.loads(body) is not None


def test_silent_and_many_connections(make_retryd):
    """They cost each other a moment, and the proxy nothing."""
    retryd = make_retryd()
    silent = [socket.socket(socket.AF_UNIX) for _ in range(7)]
    for s in silent:
        s.connect(admin_path(retryd))
    assert ask(retryd, "GET", "/healthz") == (200, {"status": "ok"})
    for s in silent:
        s.close()


def test_labels_are_only_text(origin, make_retryd):
    """Parts of a label come from clients."""
    retryd = make_retryd(origin)
    for scope in ('a"b', "a\\b", "\xff\xfe", "\x1b[2J"):
        request = sigv4.sts()
        request.headers = [(n, v.replace("us-east-1", scope) if n == "Authorization" else v)
                           for n, v in request.headers]
        wire = retryd.open(request.host)
        wire.send(request.bytes())
        wire.response("POST")
        wire.close()
    status, body = ask(retryd, "GET", "/budgets")
    assert status == 200
    shown = retryctl("budgets", socket_path=admin_path(retryd))
    assert shown.returncode == 0
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown.stdout)
    assert len(shown.stdout.splitlines()) == 1 + len(body["budgets"])


def test_not_reachable_through_the_proxy(make_retryd):
    retryd = make_retryd()
    wire = retryd.plain()
    wire.send(b"GET http://localhost/budgets HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert wire.response().status in (403, 502)


def test_second_daemon_of_a_state_directory(make_retryd):
    first = make_retryd()
    second = make_retryd(state_dir=first.state_dir)
    [line] = second.log("no_admin_socket")
    assert "process %d has it" % first.process.pid in json.dumps(line)
    second.stop()
    assert retryctl("health", socket_path=admin_path(first)).returncode == 0


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("named", [False, True])
def test_the_next_daemon_gets_the_socket_when_the_last_has_drained(origin, make_retryd, count, named, tmp_path):
    """A restart that overlaps."""
    path = str(tmp_path / "named.sock") if named else None
    config = {"admin": {"socket": path}} if named else {}
    first = make_retryd(origin, workers=count, **config)
    path = path or admin_path(first)
    origin.answers({"ok": "auto", "delay_ms": 1500})
    wire = first.open(sigv4.sts().host)
    wire.send(sigv4.sts().bytes())
    origin.wait_requests(1)
    first.tell(signal.SIGTERM)
    until(lambda: first.log("stopping"), "the drain has begun")
    second = make_retryd(origin, workers=count, state_dir=first.state_dir, **config)
    assert len(second.log("no_admin_socket")) == 1
    assert wire.response("POST").status == 200
    first.stop()
    until(lambda: second.log("admin_socket"), "the socket is had")
    assert json.loads(retryctl("health", socket_path=path).stdout) == {"status": "ok"}
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    if count > 1:                     # it goes with the worker that has it, and comes back with the next one
        for pid in workers(second):
            os.kill(pid, signal.SIGKILL)
        until(lambda: retryctl("health", socket_path=path).returncode == 0, "the socket is back")
    second.stop()
    assert not os.path.exists(path)


def test_a_leftover_is_replaced(make_retryd):
    retryd = make_retryd(workers=2)
    pids = workers(retryd)
    retryd.process.kill()
    until(lambda: not any(os.path.exists("/proc/%d" % p) for p in pids), "all are gone")
    retryd.stop(status=-9)
    assert os.path.exists(admin_path(retryd))
    retryd.start()
    assert retryctl("health", socket_path=admin_path(retryd)).returncode == 0


@pytest.mark.parametrize("arguments", [[], ["budget"], ["reset"], ["budgets", "x"], ["health", "--json"], ["-s"]])
def test_usage(arguments):
    done = retryctl(*arguments)
    assert done.returncode == 2 and done.stderr.startswith("usage: retryctl")
    assert retryctl("--help").returncode == 0
    assert retryctl("--version").stdout.startswith("retryctl ")
