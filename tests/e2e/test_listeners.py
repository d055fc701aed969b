"""Several listeners, each with its own rules: where they listen, what they forward, what becomes of their files.

A docstring that begins with numbers names the security requirements that its test shows."""
import os
import socket
import stat
import subprocess
import sys

import pytest

from daemons import Retryd, clean_env, free_port, retryd_path, run_retryd
from wire import TIMEOUT, Wire, dial, until


def unix_dial(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(TIMEOUT)
    s.connect(str(path))
    return Wire(s)


def get(wire, url, host=None):
    host = host or url.split("/")[2] if "//" in url else "x"
    wire.send(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (url.encode(), host.encode()))
    return wire.response()


def connect(wire, authority):
    wire.send(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (authority.encode(), authority.encode()))
    return wire.response("CONNECT", body=False)


def start_fails(tmp_path, **config):
    retryd = Retryd(tmp_path / "failing", config=config, start=False)
    with pytest.raises(AssertionError, match="ended with 2"):
        retryd.start()
    return retryd.said()


def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = s.getsockname()[0]
    return None if address.startswith("127.") else address


@pytest.mark.parametrize("workers", [1, 3])
def test_unix_socket(origin, make_retryd, tmp_path, workers):
    """I1: a unix socket serves as a TCP address does, with 0660, and is removed at the end."""
    path = tmp_path / "r.sock"
    retryd = make_retryd(origin, listeners=[{"address": "unix:%s" % path}], workers=workers)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    wire = unix_dial(path)
    assert get(wire, "http://sts.amazonaws.com/").status == 200
    assert get(wire, "http://sts.amazonaws.com/again").status == 200
    wire.close()
    assert get(retryd.plain(), "http://sts.amazonaws.com/").status == 200
    with open(os.path.join(retryd.dir, "ready")) as f:
        assert f.read().split("\n") == ["127.0.0.1:%d" % retryd.port, "unix:%s" % path, ""]
    assert "listening on unix:%s\n" % path in retryd.said("stdout")
    retryd.stop()
    assert not path.exists()


def test_unix_socket_alone(make_retryd, tmp_path):
    path = tmp_path / "r.sock"
    retryd = Retryd(tmp_path / "r", config={"listen": [], "listeners": [{"address": "unix:%s" % path,
                                                                         "socket_mode": "0600"}]}, start=False)
    retryd.stdout = open(os.path.join(retryd.dir, "stdout"), "wb")
    retryd.stderr = open(os.path.join(retryd.dir, "stderr"), "wb")
    retryd.process = subprocess.Popen([retryd_path(), "run", "-c", retryd.config_file], stdout=retryd.stdout,
                                      stderr=retryd.stderr, env=retryd.env)
    try:
        until(lambda: "listening" in retryd.said("stdout"), "it listens")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        assert get(unix_dial(path), "/").status == 400
        assert "HTTPS_PROXY" not in retryd.said("stdout")
        env = run_retryd("env", "-c", retryd.config_file)
        assert env.returncode == 2 and "unix sockets" in env.stderr
    finally:
        retryd.stop()


def test_leftover_of_a_dead_daemon(make_retryd, tmp_path):
    """I1: a socket that a killed daemon left is replaced; one that is alive is not."""
    path = tmp_path / "r.sock"
    listeners = [{"address": "unix:%s" % path}]
    first = make_retryd(listeners=listeners)
    said = start_fails(tmp_path, listeners=listeners)
    assert "listeners[0].address" in said and str(path) in said and "in use" in said and "retryd.yaml:" in said
    assert get(unix_dial(path), "/").status == 400
    first.process.kill()
    first.stop(status=-9)
    assert path.exists()
    make_retryd(listeners=listeners)
    assert get(unix_dial(path), "/").status == 400


@pytest.mark.parametrize("what", ["file", "link", "link to a socket"])
def test_what_is_no_socket_stays(tmp_path, what):
    """I1: nothing but a dead socket is replaced, and links are not followed."""
    path, target = tmp_path / "r.sock", tmp_path / "target"
    if what == "file":
        path.write_text("precious")
    else:
        if what == "link":
            target.write_text("precious")
        else:
            dead = socket.socket(socket.AF_UNIX)
            dead.bind(str(target))
            dead.close()
        path.symlink_to(target)
    said = start_fails(tmp_path, listeners=[{"address": "unix:%s" % path}])
    assert "listeners[0].address" in said and str(path) in said
    assert (path.is_symlink() and target.exists()) if what != "file" else path.read_text() == "precious"


def test_a_group_that_does_not_exist(tmp_path):
    said = start_fails(tmp_path, listeners=[{"address": "unix:%s/r.sock" % tmp_path, "socket_group": "nosuchgroup"}])
    assert "nosuchgroup" in said and not (tmp_path / "r.sock").exists()


def test_off_loopback_needs_rules(tmp_path):
    """I1: without clients or credentials a listener off loopback is a start-up error."""
    said = start_fails(tmp_path, listeners=[{"address": "0.0.0.0:0"}])
    assert "listeners[0].address" in said and "clients or credentials_file" in said


def test_a_wildcard_listener_is_never_dialled(make_retryd):
    """I5: no address of this machine leads back into the proxy, whatever is allowed."""
    port = free_port()
    retryd = make_retryd(listeners=[{"address": "0.0.0.0:%d" % port, "clients": ["127.0.0.0/8"]}],
                         http_ports=[port], connect_ports=[port], allow_addresses=["0.0.0.0/0"],
                         resolve={"back.example": "127.0.0.1"})
    hosts = ["127.0.0.1", "127.8.7.6", "0.0.0.0", "[::ffff:127.0.0.1]", "back.example"]
    if own_address():
        hosts.append(own_address())
    for host in hosts:
        answer = get(retryd.plain(), "http://%s:%d/" % (host, port))
        assert (answer.status, answer.get("X-Retryd-Error")) == (403, "address_not_allowed"), host
        answer = connect(retryd.plain(), "%s:%d" % (host, port))
        assert (answer.status, answer.get("X-Retryd-Error")) == (403, "address_not_allowed"), host


def test_every_listener_is_out_of_reach(make_retryd):
    """I5: one listener does not lead to another."""
    port = free_port()
    retryd = make_retryd(listeners=[{"address": "127.0.0.3:%d" % port}], connect_ports=[port],
                         allow_addresses=["127.0.0.0/8"])
    answer = connect(retryd.plain(), "127.0.0.3:%d" % port)
    assert (answer.status, answer.get("X-Retryd-Error")) == (403, "address_not_allowed")


def test_the_admin_socket_is_out_of_reach(make_retryd):
    """I7: no request through the proxy can name a unix socket."""
    retryd = make_retryd()
    path = os.path.join(retryd.state_dir, "admin.sock")
    assert os.path.exists(path)
    for target in ("http://unix:%s/" % path, "http://unix/%s" % path, "unix:%s" % path, "http+unix://%s/"
                   % path.replace("/", "%2F")):
        assert get(retryd.plain(), target, "unix").status in (400, 502)
    assert connect(retryd.plain(), "unix:%s" % path).status == 400


def test_exec_ignores_listeners(tmp_path):
    path = tmp_path / "r.sock"
    done = run_retryd("exec", "--set", "state_dir=%s/state" % tmp_path, "--set",
                      "listeners[0].address=unix:%s" % path, "--set", "listen=[]", "--", "sh", "-c",
                      "echo $HTTPS_PROXY; test ! -e %s" % path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("http://127.0.0.1:") and not path.exists()


STARTER = ("import os,sys\n"
           "fds = [int(a) for a in sys.argv[1].split(',')]\n"
           "high = [os.dup2(fd, 100 + i) for i, fd in enumerate(fds)]\n"
           "for i, fd in enumerate(high): os.dup2(fd, 3 + i); os.set_inheritable(3 + i, True)\n"
           "os.environ['LISTEN_PID'] = str(os.getpid()); os.environ['LISTEN_FDS'] = str(len(fds))\n"
           "os.execv(sys.argv[2], sys.argv[2:])\n")


def start_with(sockets, tmp_path, *settings):
    return subprocess.Popen([sys.executable, "-c", STARTER, ",".join(str(s.fileno()) for s in sockets), retryd_path(),
                             "run", "--set", "state_dir=%s/state" % tmp_path, "--set", "log.file=%s/log" % tmp_path,
                             *[a for s in settings for a in ("--set", s)]],
                            pass_fds=[s.fileno() for s in sockets], env=clean_env(), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def test_handed_over_sockets_find_their_listener(tmp_path):
    """I1: LISTEN_FDS: the rules of the listener with that address; else those of a plain loopback address."""
    path = tmp_path / "r.sock"
    known, other, unix = socket.socket(), socket.socket(), socket.socket(socket.AF_UNIX)
    known.bind(("127.0.0.1", 0))
    other.bind(("127.0.0.1", 0))
    unix.bind(str(path))
    for s in (known, other, unix):
        s.listen()
    process = start_with([known, other, unix], tmp_path, "listeners[0].address=127.0.0.1:%d" % known.getsockname()[1],
                         "listeners[0].aws_only=true")
    try:
        for _ in range(3):
            assert process.stdout.readline().startswith("listening on ")
        refused = get(dial(known.getsockname()[1]), "http://192.0.2.1:81/")
        assert refused.status == 403
        for wire in (dial(other.getsockname()[1]), unix_dial(path)):
            assert get(wire, "/").status == 400
        process.terminate()
        assert process.wait(TIMEOUT) == 0
        assert path.exists(), "the service manager's file"
    finally:
        process.kill()
        process.communicate()
        for s in (known, other, unix):
            s.close()


def test_a_handed_over_wildcard_is_refused(tmp_path):
    """I1: a socket off loopback that no listener names."""
    wide = socket.socket()
    wide.bind(("0.0.0.0", 0))
    wide.listen()
    process = start_with([wide], tmp_path)
    out, err = process.communicate(timeout=TIMEOUT)
    wide.close()
    assert process.returncode == 2 and "listening" not in out
    assert "LISTEN_FDS" in err and "no socket of a loopback address" in err and "listeners" in err
