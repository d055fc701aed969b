"""Who may come in: addresses, users, how many of one peer.

A docstring that begins with numbers names the security requirements that its test shows."""
import os
import socket
import subprocess
import sys
import time

import pytest

from daemons import clean_env, elapsed, free_port
from test_listeners import connect, get, start_fails, unix_dial
from wire import TIMEOUT, Wire, until

NOBODY = 65534


def dial_from(source, port, host="127.0.0.1"):
    return Wire(socket.create_connection((host, port), timeout=TIMEOUT, source_address=(source, 0)))


def answered(wire):
    """Whether the connection serves: a proxy's refusal of a bad request, or nothing at all."""
    try:
        wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = wire.response()
    except OSError:
        return False
    return answer is not None and answer.status == 400


def refusals(retryd):
    return [l for l in retryd.log("refused") if l["reason"] == "client"]


def test_clients(make_retryd):
    """I1: peers of other addresses are closed at once, before a byte of them is read."""
    port = free_port()
    retryd = make_retryd(listeners=[{"address": "127.0.0.1:%d" % port, "name": "narrow",
                                     "clients": ["127.0.0.2", "127.0.1.0/24"]}])
    assert answered(dial_from("127.0.0.2", port)) and answered(dial_from("127.0.1.77", port))
    for source in ("127.0.0.1", "127.0.0.3", "127.0.2.1"):
        wire = dial_from(source, port)
        assert wire.ended()
    assert answered(retryd.plain()), "the other listener has no such rule"
    lines = refusals(retryd)
    assert len(lines) == 3 and {l["listener"] for l in lines} == {"narrow"}
    assert lines[0]["client"].startswith("127.0.0.1:")


def test_refusals_do_not_fill_the_log(make_retryd):
    """I1, K4: many refusals are a few lines a second."""
    port = free_port()
    retryd = make_retryd(listeners=[{"address": "127.0.0.1:%d" % port, "clients": ["127.0.0.2"]}])
    start = time.monotonic()
    for _ in range(300):
        assert dial_from("127.0.0.1", port).ended()
    until(lambda: refusals(retryd), "a line")
    told = refusals(retryd)
    assert len(told) <= 10 * (elapsed(start) + 2)
    assert len(told) + sum(l.get("untold", 0) for l in told) <= 300


USE = """
import os, socket, sys
family, address, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
if uid != os.getuid():
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
s = socket.socket(socket.AF_UNIX if family == "unix" else socket.AF_INET)
s.settimeout(20)
try:
    s.connect(address if family == "unix" else ("127.0.0.1", int(address)))
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    data = s.recv(64)
except OSError as e:
    data = b""
print("served" if data.startswith(b"HTTP/1.1 400") else "closed")
"""


def use_as(uid, family, address):
    done = subprocess.run([sys.executable, "-c", USE, family, str(address), str(uid)], stdout=subprocess.PIPE,
                          env=clean_env(), text=True, timeout=TIMEOUT, cwd="/")
    return done.stdout.strip()


@pytest.mark.parametrize("family", ["unix", "tcp"])
def test_users(make_retryd, family):
    """I1: the kernel says whose the other end is, on unix sockets and on loopback."""
    port = free_port()
    path = "/tmp/retryd-test-users-%d.sock" % os.getpid()
    address = port if family == "tcp" else path
    retryd = make_retryd(listeners=[dict(
        {"address": "127.0.0.1:%d" % port} if family == "tcp" else {"address": "unix:%s" % path,
                                                                     "socket_mode": "0666"},
        users=[str(os.getuid()) if os.getuid() else "root"])])
    assert use_as(os.getuid(), family, address) == "served"
    if os.getuid() == 0:
        assert use_as(NOBODY, family, address) == "closed"
        (line,) = refusals(retryd)
        assert "users" in line["detail"]
        if family == "unix":
            assert line["client"] == "uid=%d" % NOBODY


@pytest.mark.parametrize("family", ["unix", "tcp"])
def test_other_users_only(make_retryd, tmp_path, family):
    """I1: nobody is let in for being retryd's own user."""
    port = free_port()
    address = "127.0.0.1:%d" % port if family == "tcp" else "unix:%s/r.sock" % tmp_path
    retryd = make_retryd(listeners=[{"address": address, "users": [str(NOBODY)]}])
    assert use_as(os.getuid(), family, port if family == "tcp" else address[5:]) == "closed"
    assert len(refusals(retryd)) == 1


def test_unknown_user(tmp_path):
    said = start_fails(tmp_path, listen=[], listeners=[{"address": "127.0.0.1:0", "users": ["nosuchuser"]}])
    assert "retryd.yaml:" in said and "listeners[0].users" in said and "nosuchuser" in said


@pytest.mark.parametrize("workers", [1, 2])
def test_one_peer_does_not_take_all_places(make_retryd, workers):
    """J1: connections per peer address have a bound; a second peer is still served."""
    retryd = make_retryd(limits={"max_clients_per_peer": 10}, workers=workers)
    crowd = [dial_from("127.0.0.2", retryd.port) for _ in range(200)]
    until(lambda: retryd.log("too_many_of_peer"), "a line about the crowd")
    wire = dial_from("127.0.0.3", retryd.port)
    assert answered(wire)
    served = sum(answered(w) for w in crowd)
    assert 1 <= served <= 10 * workers
    lines = retryd.log("too_many_of_peer")
    assert len(lines) <= 10 and all(l["client"].startswith("127.0.0.2:") and l["limit"] == 10 for l in lines)
    for w in crowd:
        w.close()
    until(lambda: answered(dial_from("127.0.0.2", retryd.port)), "places are free again")


def test_a_user_of_a_unix_socket_is_one_peer(make_retryd, tmp_path):
    """J1: on a unix socket the bound is per user."""
    path = tmp_path / "r.sock"
    retryd = make_retryd(listeners=[{"address": "unix:%s" % path}], limits={"max_clients_per_peer": 5})
    crowd = [unix_dial(path) for _ in range(30)]
    until(lambda: retryd.log("too_many_of_peer"), "a line about the crowd")
    assert retryd.log("too_many_of_peer")[0]["client"] == "uid=%d" % os.getuid()
    assert answered(retryd.plain()), "an address is another peer"
    for w in crowd:
        w.close()


def test_tunnels_count(make_retryd, origin):
    """J1: what became a tunnel is still a connection of its peer, until it ends."""
    retryd = make_retryd(origin, resolve={"other.example:443": "127.0.0.1:%d" % origin.https},
                         limits={"max_clients_per_peer": 3})
    tunnels = [retryd.tunnel("other.example") for _ in range(3)]
    assert not answered(retryd.plain())
    tunnels.pop().close()
    until(lambda: answered(retryd.plain()), "its place is free again")
    for t in tunnels:
        t.close()


def test_aws_only(origin, make_retryd):
    """I2: a listener with aws_only serves AWS hosts and those of intercept.hosts, others are 403."""
    port = free_port()
    retryd = make_retryd(origin, listeners=[{"address": "127.0.0.1:%d" % port, "aws_only": True}],
                         intercept={"hosts": ["own.example"]},
                         resolve={"own.example:80": "127.0.0.1:%d" % origin.http,
                                  "other.example:80": "127.0.0.1:%d" % origin.http,
                                  "other.example:443": "127.0.0.1:%d" % origin.https})

    def narrow():
        return dial_from("127.0.0.1", port)

    for url in ("http://sts.amazonaws.com/", "http://own.example/"):
        assert get(narrow(), url).status == 200
    for url in ("http://other.example/", "http://evilamazonaws.com/", "http://192.0.2.1/"):
        answer = get(narrow(), url)
        assert (answer.status, answer.get("X-Retryd-Error")) == (403, "host_not_allowed")
        assert b"aws_only" in answer.body
    answer = connect(narrow(), "other.example:443")
    assert (answer.status, answer.get("X-Retryd-Error")) == (403, "host_not_allowed")
    assert connect(narrow(), "sts.amazonaws.com:443").status == 200
    assert get(retryd.plain(), "http://other.example/").status == 200
    assert connect(retryd.plain(), "other.example:443").status == 200


def test_off_loopback_is_aws_only_by_default(make_retryd):
    """I2, I3: a listener elsewhere serves AWS alone and leads to no private address, unless told to."""
    wide, told = free_port(), free_port()
    make_retryd(listeners=[{"address": "0.0.0.0:%d" % wide, "clients": ["127.0.0.0/8"]},
                           {"address": "0.0.0.0:%d" % told, "clients": ["127.0.0.0/8"], "aws_only": False}])
    assert get(dial_from("127.0.0.1", wide), "http://192.0.2.1/").get("X-Retryd-Error") == "host_not_allowed"
    for host in ("10.1.2.3", "192.168.1.1", "[fd00::1]", "[::ffff:10.0.0.1]"):
        assert get(dial_from("127.0.0.1", told), "http://%s/" % host).get("X-Retryd-Error") == "address_not_allowed"


def test_private_addresses_of_a_listener(make_retryd):
    """I3: private_addresses belongs to the listener."""
    port = free_port()
    make_retryd(listeners=[{"address": "127.0.0.1:%d" % port, "private_addresses": "deny"}])
    for host in ("10.255.255.1", "172.16.0.1", "[fd00::1]"):
        assert get(dial_from("127.0.0.1", port), "http://%s/" % host).get("X-Retryd-Error") == "address_not_allowed"
