"""What comes ahead of the first request: the PROXY protocol, and TLS with the proxy itself.

A docstring that begins with numbers names the security requirements that its test shows."""
import hashlib
import os
import socket
import ssl
import struct
import subprocess
import time

import pytest

from daemons import clean_env, elapsed, free_port
from test_access import answered, dial_from, refusals
from test_budget_key import clients
from test_listeners import connect, get, start_fails, unix_dial
from wire import TIMEOUT, Wire, dial, until

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def v1(source, port=4711):
    family = b"TCP6" if ":" in source else b"TCP4"
    return b"PROXY %s %s %s %d 443\r\n" % (family, source.encode(), source.encode(), port)


def v2(source, port=4711, command=0x21, more=b""):
    family, kind = (socket.AF_INET6, 0x21) if ":" in source else (socket.AF_INET, 0x11)
    address = socket.inet_pton(family, source)
    block = address + address + struct.pack(">HH", port, 443) + more
    return SIGNATURE + struct.pack(">BBH", command, kind, len(block)) + block


def greeted(port, header):
    wire = dial(port)
    wire.send(header)
    return wire


@pytest.fixture
def behind(make_retryd, origin):
    """A listener behind a load balancer at 127.0.0.1."""
    def make(**more):
        port = free_port()
        retryd = make_retryd(origin, **more.pop("config", {}), listeners=[dict(
            {"address": "127.0.0.1:%d" % port, "name": "behind", "proxy_protocol": ["127.0.0.1"],
             "clients": ["0.0.0.0/0", "::/0"]}, **more)])
        retryd.behind = port
        return retryd

    return make


@pytest.mark.parametrize("header", [
    v1("192.0.2.7"), v1("2001:db8::7"), v2("192.0.2.7"), v2("2001:db8::7"), v2("192.0.2.7", more=b"\x04\0\x03xyz"),
    b"PROXY UNKNOWN\r\n", SIGNATURE + b"\x20\0\0\0", v2("192.0.2.7", command=0x20)])
def test_headers(behind, header):
    """I1: both versions, whole and cut; what follows in the same segment is the first request."""
    retryd = behind()
    assert get(greeted(retryd.behind, header), "http://sts.amazonaws.com/").status == 200
    wire = greeted(retryd.behind, header + b"GET http://sts.amazonaws.com/ HTTP/1.1\r\nHost: sts.amazonaws.com\r\n\r\n")
    assert wire.response().status == 200
    wire = dial(retryd.behind)
    wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for i in range(len(header)):
        wire.send(header[i:i + 1])
    assert get(wire, "http://sts.amazonaws.com/").status == 200


@pytest.mark.parametrize("header", [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"PROXY TCP4 192.0.2.7\r\n", v1("192.0.2.7").replace(b"\r\n", b"\n"),
    b"PROXY UNKNOWN " + b"x" * 100, SIGNATURE + b"\x21\x11\xff\xff", SIGNATURE + b"\x21\x12\0\x0c" + b"x" * 12,
    b"\x16\x03\x01\x02\0\x01"])
def test_bad_headers(behind, header):
    """I1: without the header, or with another than it must be, the connection is closed unanswered."""
    retryd = behind()
    wire = greeted(retryd.behind, header)
    assert not wire.fill() and wire.buffer == b""
    (line,) = until(lambda: refusals(retryd), "a line")
    assert line["client"].startswith("127.0.0.1:") and line["listener"] == "behind"


def test_no_header_in_time(behind):
    """J3: the header has the time of a first byte, and no more."""
    retryd = behind(config={"timeouts": {"client_head": "300ms"}})
    silent, slow = dial(retryd.behind), greeted(retryd.behind, b"PROXY TCP4 ")
    for wire in (silent, slow):
        assert not wire.fill()
    until(lambda: len(refusals(retryd)) == 2, "both are told")
    assert all("in time" in l["detail"] for l in refusals(retryd))


def test_only_load_balancers_may_say_so(behind):
    """I1: a header from elsewhere is not believed: the connection is closed at once."""
    retryd = behind()
    wire = dial_from("127.0.0.2", retryd.behind)
    assert wire.ended()
    assert "proxy_protocol" in refusals(retryd)[0]["detail"]


def test_rules_are_for_the_named(behind):
    """I1, J1: clients, the bound of a peer and the log see the address that the header names."""
    retryd = behind(clients=["192.0.2.0/24"], config={"limits": {"max_clients_per_peer": 2}})
    assert not answered(greeted(retryd.behind, v1("198.51.100.1")))
    assert not answered(greeted(retryd.behind, b"PROXY UNKNOWN\r\n")), "it speaks for itself, and is not listed"
    line = refusals(retryd)[0]
    assert (line["client"], line["detail"]) == ("198.51.100.1:4711", "its address is not among clients")
    held = [greeted(retryd.behind, v2("192.0.2.1")) for _ in range(2)]
    assert all(answered(w) for w in held)
    held = [greeted(retryd.behind, v2("192.0.2.9")) for _ in range(2)]
    for w in held:
        assert connect(w, "sts.amazonaws.com:443").status == 200
    assert not answered(greeted(retryd.behind, v2("192.0.2.9")))
    assert answered(greeted(retryd.behind, v2("192.0.2.10")))
    assert retryd.log("too_many_of_peer")[0]["client"] == "192.0.2.9:4711"
    for w in held:
        w.close()


def test_the_budget_is_that_of_the_named(behind, origin):
    """E8: where the peer is part of an upstream client, it is the one that the header names."""
    retryd = behind(config={"budgets": {"key": ["peer", "listener"]},
                            "retry": {"max_backoff": "1ms", "max_attempts": 2}})
    origin.answers({"status": 503}, then="last")
    for source in ("192.0.2.7", "192.0.2.8", "192.0.2.7"):
        assert get(greeted(retryd.behind, v1(source)), "http://sts.amazonaws.com/").status == 503
    assert clients(retryd) == {"sts.amazonaws.com:80/192.0.2.7/behind": 2,
                                "sts.amazonaws.com:80/192.0.2.8/behind": 1}


def test_a_drain_does_not_wait_for_a_header(behind):
    retryd = behind()
    wire = dial(retryd.behind)
    assert answered(greeted(retryd.behind, v1("192.0.2.7")))
    start = time.monotonic()
    retryd.stop()
    assert not wire.fill() and elapsed(start) < 8


def test_on_a_unix_socket(make_retryd, tmp_path):
    path = tmp_path / "r.sock"
    make_retryd(listeners=[{"address": "unix:%s" % path, "proxy_protocol": ["0.0.0.0/0"],
                             "clients": ["192.0.2.0/24"]}])
    wire = unix_dial(path)
    wire.send(v1("192.0.2.7"))
    assert answered(wire)
    wire = unix_dial(path)
    wire.send(v1("198.51.100.7"))
    assert not answered(wire)
    assert not answered(unix_dial(path))


# ---- TLS with the proxy


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    directory = tmp_path_factory.mktemp("listener")
    cert, key = str(directory / "cert.pem"), str(directory / "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days",
                    "2", "-subj", "/CN=proxy", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"], check=True,
                   stderr=subprocess.DEVNULL)
    os.chmod(key, 0o600)
    return cert, key


class Inner:
    """TLS over any connection: what `ssl` does not offer for a socket that is TLS already."""

    def __init__(self, wire, context, host):
        self.wire, self.incoming, self.outgoing = wire, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=host)

    def hello(self):
        """The bytes that begin the handshake, for a client that does not wait for the 200."""
        with pytest.raises(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()

    def open(self):
        self.incoming.write(self.wire.buffer)
        self.wire.buffer = b""
        self.drive(self.tls.do_handshake)
        return Wire(self)

    def drive(self, step, *args):
        while True:
            try:
                return step(*args)
            except ssl.SSLWantReadError:
                self.flush()
                if not self.wire.fill():
                    self.incoming.write_eof()
                self.incoming.write(self.wire.buffer)
                self.wire.buffer = b""
            finally:
                self.flush()

    def flush(self):
        data = self.outgoing.read()
        if data:
            self.wire.send(data)

    def sendall(self, data):
        for at in range(0, len(data), 16384):
            self.drive(self.tls.write, data[at:at + 16384])

    def recv(self, n):
        try:
            return self.drive(self.tls.read, n)
        except ssl.SSLZeroReturnError:
            return b""

    def settimeout(self, seconds):
        self.wire.sock.settimeout(seconds)

    def close(self):
        self.wire.close()


@pytest.fixture
def over_tls(make_retryd, origin, certificate):
    def make(**more):
        port = free_port()
        retryd = make_retryd(origin, **more.pop("config", {}), listeners=[dict(
            {"address": "127.0.0.1:%d" % port, "tls_certificate": certificate[0], "tls_key": certificate[1]}, **more)])
        retryd.over_tls = port
        return retryd

    return make


def tls_dial(port, certificate, header=b"", **context):
    c = ssl.create_default_context(cafile=certificate[0])
    c.set_alpn_protocols(context.pop("alpn", ["http/1.1"]))
    for name, value in context.items():
        setattr(c, name, value)
    s = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
    s.sendall(header)
    return Wire(c.wrap_socket(s, server_hostname="127.0.0.1"))


def test_plain_requests_over_tls(over_tls, certificate):
    retryd = over_tls()
    wire = tls_dial(retryd.over_tls, certificate)
    assert wire.sock.version() == "TLSv1.3" and wire.sock.selected_alpn_protocol() == "http/1.1"
    for _ in range(3):
        assert get(wire, "http://sts.amazonaws.com/").status == 200
    assert not answered(dial(retryd.over_tls)), "HTTP in the clear is no way in"
    assert answered(retryd.plain())


def test_interception_inside_tls(over_tls, origin, certificate):
    """F2: an opened CONNECT inside TLS with the proxy: TLS in TLS, large bodies both ways, a retry."""
    retryd = over_tls()
    origin.answers({"status": 503})
    wire = tls_dial(retryd.over_tls, certificate)
    assert connect(wire, "sts.amazonaws.com:443").status == 200
    inner = Inner(wire, retryd.tls_context(), "sts.amazonaws.com").open()
    inner.send(b"GET / HTTP/1.1\r\nHost: sts.amazonaws.com\r\n\r\n")
    assert inner.response().status == 200
    assert len(origin.requests()) == 2
    body = os.urandom(3 << 20)
    inner.send(b"PUT /b/k HTTP/1.1\r\nHost: sts.amazonaws.com\r\nContent-Length: %d\r\n\r\n" % len(body))
    inner.send(body)
    assert inner.response().status == 200
    assert origin.requests()[-1]["body_sha256"] == hashlib.sha256(body).hexdigest()


def test_blind_tunnel_inside_tls(make_retryd, origin, certificate):
    port = free_port()
    make_retryd(origin, resolve={"other.example:443": "127.0.0.1:%d" % origin.https},
                listeners=[{"address": "127.0.0.1:%d" % port, "tls_certificate": certificate[0],
                            "tls_key": certificate[1]}])
    wire = tls_dial(port, certificate)
    assert connect(wire, "other.example:443").status == 200
    inner = Inner(wire, ssl.create_default_context(cafile=origin.ca_file), "other.example").open()
    inner.send(b"GET /x HTTP/1.1\r\nHost: other.example\r\n\r\n")
    assert inner.response().status == 200


GET = b"GET http://sts.amazonaws.com/ HTTP/1.1\r\nHost: sts.amazonaws.com\r\n\r\n"


def narrow_tls_dial(port, certificate):
    """With a receive buffer of a fixed size."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    s.settimeout(TIMEOUT)
    s.connect(("127.0.0.1", port))
    return Wire(ssl.create_default_context(cafile=certificate[0]).wrap_socket(s, server_hostname="127.0.0.1"))


def test_pending_output_goes_before_the_inner_handshake(over_tls, origin, certificate):
    """J5: answers that the client has not read yet when it sends CONNECT come out whole, then the 200."""
    retryd = over_tls()
    origin.answers({"status": 200, "body_size": 16384}, then="last")
    stuck = narrow_tls_dial(retryd.over_tls, certificate)
    stuck.send(GET * 700)
    seen = [0]

    def stands_still():
        time.sleep(0.3)
        seen.append(len(origin.requests()))
        return 0 < seen[-1] == seen[-2]

    until(stands_still, "no more answers are asked for: their reader does not read", seconds=60)
    stuck.close()
    # A little less than what brings it to a stop: CONNECT is looked at while output waits.
    n = seen[-1] - 6
    wire = narrow_tls_dial(retryd.over_tls, certificate)
    inner = Inner(wire, retryd.tls_context(), "sts.amazonaws.com")
    wire.send(GET * n + b"CONNECT sts.amazonaws.com:443 HTTP/1.1\r\nHost: sts.amazonaws.com:443\r\n\r\n" +
              inner.hello())
    until(lambda: len(origin.requests()) >= seen[-1] + n, "all were asked for")
    for _ in range(n):
        answer = wire.response()
        assert answer.status == 200 and answer.whole
    assert wire.response("CONNECT", body=False).status == 200
    inner = inner.open()
    inner.send(b"GET / HTTP/1.1\r\nHost: sts.amazonaws.com\r\n\r\n")
    assert inner.response().status == 200


def test_curl_with_an_https_proxy(over_tls, certificate):
    retryd = over_tls()
    url = "https://127.0.0.1:%d" % retryd.over_tls
    done = subprocess.run(["curl", "-sS", "--noproxy", "", "-x", url, "--proxy-cacert", certificate[0], "--cacert",
                           retryd.ca_file, "-o", "/dev/null", "-w", "%{http_code} %{http_connect}",
                           "https://sts.amazonaws.com/"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=clean_env(), timeout=TIMEOUT)
    assert done.stdout == "200 200", done.stderr


def test_hardening(over_tls, certificate):
    """F6, F7: TLS 1.2 at least, no sessions to resume, http/1.1 alone."""
    retryd = over_tls()
    old = tls_dial(retryd.over_tls, certificate, maximum_version=ssl.TLSVersion.TLSv1_2)
    assert old.sock.version() == "TLSv1.2" and old.sock.session is None or not old.sock.session.has_ticket
    assert answered(old)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        tls_dial(retryd.over_tls, certificate, alpn=["h2"])
    done = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % retryd.over_tls, "-tls1_1", "-cipher",
                           "ALL:@SECLEVEL=0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT)
    assert "alert protocol version" in done.stdout and "Cipher is (NONE)" in done.stdout


def test_handshake_in_time(over_tls):
    """F10: a handshake that does not come is ended."""
    retryd = over_tls(config={"timeouts": {"tls": "300ms"}})
    wire = dial(retryd.over_tls)
    assert not wire.fill()
    (line,) = until(lambda: retryd.log("client_tls_failed"), "a line")
    assert "in time" in line["detail"] and line["listener"] == "127.0.0.1:%d" % retryd.over_tls


def test_a_crowd_of_handshakes(over_tls, certificate):
    """F10: handshakes with the proxy that stand still do not keep out one that means it."""
    retryd = over_tls()
    crowd = [dial(retryd.over_tls) for _ in range(400)]
    wire = tls_dial(retryd.over_tls, certificate)
    assert get(wire, "http://sts.amazonaws.com/").status == 200
    for w in crowd:
        w.close()


def test_both(over_tls, certificate):
    """I1: the PROXY header comes in the clear, TLS after it."""
    retryd = over_tls(proxy_protocol=["127.0.0.0/8"], clients=["192.0.2.7"])
    wire = tls_dial(retryd.over_tls, certificate, header=v2("192.0.2.7"))
    assert get(wire, "http://sts.amazonaws.com/").status == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        tls_dial(retryd.over_tls, certificate, header=v2("192.0.2.8"))


def test_certificate_files_are_checked_at_start(tmp_path, certificate):
    """H1: a key that others may read is refused, and so is one of another certificate."""
    cert, key = certificate
    loose, other = tmp_path / "loose.pem", tmp_path / "other.pem"
    loose.write_bytes(open(key, "rb").read())
    loose.chmod(0o644)
    subprocess.run(["openssl", "genrsa", "-out", str(other), "2048"], check=True, stderr=subprocess.DEVNULL)
    other.chmod(0o600)
    for pair, words in (((cert, str(loose)), "others may read"), ((cert, str(other)), str(other)),
                        ((str(tmp_path / "none"), key), "none"), ((cert, str(tmp_path / "none")), "none")):
        said = start_fails(tmp_path, listen=[], listeners=[{"address": "127.0.0.1:0", "tls_certificate": pair[0],
                                                            "tls_key": pair[1]}])
        assert "listeners[0].tls_certificate" in said and words in said, said
