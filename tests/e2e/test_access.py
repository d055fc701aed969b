"""Who may come in: addresses, users, how many of one peer.

A docstring that begins with numbers names the security requirements that its test shows."""
import base64
import os
import socket
import subprocess
import sys
import time

import pytest

from daemons import clean_env, elapsed, free_port, run_retryd
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


# ---- Proxy-Authorization


def hashed(password, method="-6"):
    return subprocess.run(["openssl", "passwd", method, password], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


@pytest.fixture
def locked(make_retryd, origin, tmp_path):
    """A listener that asks for credentials: ann's password is "open sesame", bob's is "b:b"."""
    def make(**more):
        passwords = tmp_path / "passwords"
        passwords.write_text("# names and hashes\nann:%s\nbob:%s\n" % (hashed("open sesame"), hashed("b:b", "-5")))
        passwords.chmod(0o640)
        port = free_port()
        retryd = make_retryd(origin, **more.pop("config", {}),
                             listeners=[dict({"address": "127.0.0.1:%d" % port, "credentials_file": str(passwords)},
                                             **more)])
        retryd.locked = port
        return retryd

    return make


def basic(pair):
    return b"Proxy-Authorization: Basic " + base64.b64encode(pair.encode()) + b"\r\n"


def ask(wire, fields=b"", host="sts.amazonaws.com", body=b""):
    wire.send(b"POST http://%s/ HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n" %
              (host.encode(), host.encode(), fields, len(body)) + body)
    return wire.response()


def tunnel(wire, fields=b"", host="sts.amazonaws.com"):
    wire.send(b"CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n%s\r\n" % (host.encode(), host.encode(), fields))
    return wire.response("CONNECT", body=False)


def test_credentials_of_a_request(locked, origin):
    """I1, C8, K2: right ones are served and never forwarded; the log has the name and no secret."""
    retryd = locked()
    wire = dial_from("127.0.0.1", retryd.locked)
    for pair in ("ann:open sesame", "bob:b:b", "ann:open sesame"):
        answer = ask(wire, basic(pair) + b"X-Kept: yes\r\n", body=b"data")
        assert answer.status == 200
    for r in origin.requests():
        names = [n.lower() for n, _ in r["headers"]]
        assert "proxy-authorization" not in names and "x-kept" in names
    assert [l["user"] for l in retryd.requests_logged(3)] == ["ann", "bob", "ann"]
    with open(retryd.log_file) as f:
        log = f.read()
    assert "sesame" not in log and base64.b64encode(b"ann:open sesame").decode() not in log
    assert ask(retryd.plain()).status == 200, "the other listener asks for none"


@pytest.mark.parametrize("how", [ask, tunnel])
@pytest.mark.parametrize("fields", [
    b"", basic("ann:wrong"), basic("eve:open sesame"), basic("ann:open sesame").replace(b"Basic", b"Bearer"),
    basic("ann:open sesame") * 2, b"Proxy-Authorization: Basic !\r\n", b"Proxy-Authorization: Basic\r\n",
    b"Authorization: Basic YW5uOm9wZW4gc2VzYW1l\r\n", basic(":"), basic("ann:"), basic("ann:" + "x" * 600)])
def test_without_right_credentials(locked, origin, how, fields):
    """I1: 407 with the scheme, in words of its own; nothing reaches the origin."""
    retryd = locked()
    answer = how(dial_from("127.0.0.1", retryd.locked), fields)
    assert (answer.status, answer.get("X-Retryd-Error")) == (407, "proxy_credentials")
    assert answer.get("Proxy-Authenticate") == 'Basic realm="retryd", charset="UTF-8"'
    assert answer.get("Connection") == "close"
    assert origin.requests() == []


def test_credentials_of_a_tunnel(locked, origin):
    """I1: what is inside a tunnel has come in with its CONNECT; fields inside are not looked at, nor sent on."""
    retryd = locked()
    wire = dial_from("127.0.0.1", retryd.locked)
    assert tunnel(wire, basic("ann:open sesame")).status == 200
    inner = Wire(retryd.tls_context().wrap_socket(wire.sock, server_hostname="sts.amazonaws.com"))
    for fields in (b"", basic("eve:wrong")):
        inner.send(b"GET / HTTP/1.1\r\nHost: sts.amazonaws.com\r\n" + fields + b"\r\n")
        assert inner.response().status == 200
    assert all("proxy-authorization" not in [n.lower() for n, _ in r["headers"]] for r in origin.requests())
    assert [l["user"] for l in retryd.requests_logged(2)] == ["ann", "ann"]


def test_a_blind_tunnel_says_whose_it_is(locked, origin):
    retryd = locked(config={"resolve": {"other.example:443": "127.0.0.1:%d" % origin.https}})
    wire = dial_from("127.0.0.1", retryd.locked)
    assert tunnel(wire, basic("bob:b:b"), "other.example").status == 200
    wire.close()
    (line,) = until(lambda: retryd.log("tunnel"), "its line")
    assert line["user"] == "bob"


def test_check_tries_the_files(tmp_path):
    """K5: `retryd check` says that a file of a listener cannot be used."""
    missing = tmp_path / "missing"
    done = run_retryd("check", "--set", "listeners[0].address=127.0.0.1:1", "--set",
                      "listeners[0].credentials_file=%s" % missing)
    assert "would not start here" in done.stdout and str(missing) in done.stdout


def test_curl_with_credentials(locked):
    """I1: as programs do it: the name and the password in the proxy URL."""
    retryd = locked()

    def curl(credentials, *more):
        return subprocess.run(
            ["curl", "-sS", "--noproxy", "", "-x", "http://%s127.0.0.1:%d" % (credentials, retryd.locked), "--cacert",
             retryd.ca_file, "-o", "/dev/null", "-w", "%{http_connect} %{http_code}", "https://sts.amazonaws.com/",
             *more], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=clean_env(),
            timeout=TIMEOUT).stdout

    assert curl("ann:open%20sesame@") == "200 200"
    assert curl("ann:open%20sesame@", "--proxy-anyauth") == "200 200"
    assert curl("ann:wrong@") == "407 000"
    assert curl("") == "407 000"


def test_guessing_holds_up_nobody(locked):
    """I1, J11: checks of unknown credentials have a share of the time; known ones are served meanwhile."""
    retryd = locked()
    assert ask(dial_from("127.0.0.1", retryd.locked), basic("ann:open sesame")).status == 200
    seen = set()
    deadline = time.monotonic() + 60
    n = 0
    while 503 not in seen and time.monotonic() < deadline:
        seen.add(ask(dial_from("127.0.0.2", retryd.locked), basic("eve:%d" % n)).status)
        n += 1
    assert seen == {407, 503}
    assert ask(dial_from("127.0.0.1", retryd.locked), basic("ann:open sesame")).status == 200


@pytest.mark.parametrize("text, mode, words", [("ann:plain\n", 0o600, ":1: no hash"), ("", 0o600, "no line"),
                                               ("ann:$6$salt$x\n", 0o644, "others may read")])
def test_credentials_file_is_checked_at_start(tmp_path, text, mode, words):
    """K5, H3: a bad line is an error with its place; the file is not for everybody."""
    path = tmp_path / "passwords"
    path.write_text(text)
    path.chmod(mode)
    said = start_fails(tmp_path, listen=[], listeners=[{"address": "127.0.0.1:0", "credentials_file": str(path)}])
    assert "listeners[0].credentials_file" in said and "%s" % path in said and words in said
