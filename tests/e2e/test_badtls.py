"""The bad TLS suite (G3): through the daemon, a bad origin gets one handshake, no HTTP byte, and the client a 502.

The table is that of the requirement; rows at which OpenSSL alone would be content are here for the settings of G2.
"""
import datetime
import socket
import ssl
import subprocess
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509 import ocsp

from certs import CLIENT, Cert, address
from daemons import elapsed, free_port
from tlsorigin import OK, TlsOrigin
from wire import until

DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def root():
    return Cert("good root", ca=True)


@pytest.fixture
def serve():
    made = []

    def make(*args, **how):
        made.append(TlsOrigin(*args, **how))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def meet(root, serve, make_retryd, tmp_path):
    """One GET for https://HOST/ through retryd, which trusts `root`; returns the answer and the origin."""

    def run(host, server, timeouts=None, **config):
        (tmp_path / "root.pem").write_bytes(root.pem())
        names = {"%s:443" % n: "127.0.0.1:%d" % server.port for n in (host, )}
        retryd = make_retryd(None, resolve=names, upstream={"ca_file": str(tmp_path / "root.pem")},
                             timeouts=timeouts or {}, intercept={"hosts": ["origin.test", "*.origin.test", "127.0.0.1"]},
                             retry={"max_backoff": "20ms"}, **config)
        wire = retryd.plain()
        wire.send(b"GET https://%s/x HTTP/1.1\r\nHost: %s\r\n\r\n" % (host.encode(), host.encode()))
        answer = wire.response()
        wire.close()
        server.attempts = retryd.requests_logged()[0]["attempts"]
        return answer

    return run


def host_rows():
    nul = x509.DNSName("origin.test\0.evil.test")
    return {
        # name: (host, accepted, Cert arguments)
        "good": ("origin.test", True, {"sans": ["origin.test"]}),
        "wildcard": ("a.origin.test", True, {"sans": ["*.origin.test"]}),
        "ip": ("127.0.0.1", True, {"sans": [address("127.0.0.1")]}),
        "other name": ("origin.test", False, {"sans": ["other.test"]}),
        "cn right, san other": ("origin.test", False, {"cn": "origin.test", "sans": ["other.test"]}),
        "wildcard over a top level": ("origin.test", False, {"sans": ["*.test"]}),
        "wildcard within a label": ("origin.test", False, {"sans": ["o*n.test"]}),
        "bare wildcard": ("origin.test", False, {"sans": ["*"]}),
        "wildcard for its base": ("origin.test", False, {"sans": ["*.origin.test"]}),
        "wildcard for two labels": ("a.b.origin.test", False, {"sans": ["*.origin.test"]}),
        "nul in the name": ("origin.test", False, {"sans": [nul]}),
        "cn only": ("origin.test", False, {"cn": "origin.test"}),
        "ip as a name": ("127.0.0.1", False, {"sans": ["127.0.0.1"]}),
        "expired": ("origin.test", False, {"sans": ["origin.test"], "begin": -2 * DAY, "end": -DAY}),
        "not yet valid": ("origin.test", False, {"sans": ["origin.test"], "begin": DAY, "end": 2 * DAY}),
        "critical extension": ("origin.test", False, {"sans": ["origin.test"], "critical": "1.2.3.4.5"}),
        "for clients only": ("origin.test", False, {"sans": ["origin.test"], "eku": CLIENT}),
        "rsa 1024": ("origin.test", False, {"sans": ["origin.test"], "bits": 1024}),
        "sha-1": ("origin.test", False, {"sans": ["origin.test"], "digest": hashes.SHA1()}),
        "must-staple without one": ("origin.test", True, {"sans": ["origin.test"], "must_staple": True}),
    }


def lax(context):
    context.set_ciphers("ALL:@SECLEVEL=0")


def expect(answer, server, accepted, word="upstream_certificate", attempts=1):
    if accepted:
        assert answer.status == 200, answer.body
        return
    assert (answer.status, answer.get("X-Retryd-Error")) == (502, word), answer.body
    assert server.http_bytes == 0
    assert server.attempts == attempts
    assert server.connections == attempts


@pytest.mark.parametrize("row", sorted(host_rows()))
@pytest.mark.filterwarnings("ignore:SHA1 signatures")
def test_end_entities(root, serve, meet, tmp_path, row):
    """G3, G2: one certificate a row."""
    host, accepted, how = host_rows()[row]
    leaf = Cert(how.pop("cn", "leaf"), root, **how)
    server = serve(*leaf.write(tmp_path, "leaf"), setup=lax)
    expect(meet(host, server), server, accepted)


def chain(kind, root):
    """The leaf and what is sent behind it."""
    if kind == "self-signed":
        return Cert("origin.test", None, ["origin.test"]), []
    if kind == "unknown root":
        other = Cert("other root", ca=True)
        return Cert("leaf", other, ["origin.test"]), [other]
    if kind == "issuer is no CA":
        middle = Cert("middle", root, ca=False, eku=None)
    elif kind == "path length":
        upper = Cert("upper", root, ca=True, path_length=0)
        middle = Cert("middle", upper, ca=True)
        return Cert("leaf", middle, ["origin.test"]), [middle, upper]
    elif kind == "name constraints":
        middle = Cert("middle", root, ca=True, constraints=["elsewhere.test"])
    else:
        middle = Cert("middle", root, ca=True)
    return Cert("leaf", middle, ["origin.test"]), [] if kind == "intermediate missing" else [middle]


@pytest.mark.parametrize("kind, accepted", [("intermediate", True), ("intermediate missing", False), ("self-signed", False),
                                            ("unknown root", False), ("issuer is no CA", False), ("path length", False),
                                            ("name constraints", False)])
def test_chains(root, serve, meet, tmp_path, kind, accepted):
    """G3: what stands between the leaf and the root."""
    leaf, behind = chain(kind, root)
    server = serve(*leaf.write(tmp_path, "leaf", behind), setup=lax)
    expect(meet("origin.test", server), server, accepted)


@pytest.mark.parametrize("kind", ["one of 10 MiB", "hundred"])
def test_endless_chains(root, serve, meet, tmp_path, kind):
    """G3, G2: a certificate list beyond 64 KiB is not read to its end."""
    if kind == "hundred":
        behind = [Cert("filler %d %s" % (i, "x" * 40), root, ["f%d-%s.test" % (j, "y" * 50) for j in range(9)])
                  for i in range(100)]
    else:
        filler = Cert("filler", root, [("%d." % i + "z" * 60 + "." + "y" * 60 + ".test") for i in range(8000)])
        behind = [filler] * 10
    leaf = Cert("leaf", root, ["origin.test"])
    server = serve(*leaf.write(tmp_path, "leaf", behind), setup=lax)
    expect(meet("origin.test", server), server, False, "tls_failure", attempts=3)


def old(first, last):
    def setup(context):
        lax(context)
        context.minimum_version, context.maximum_version = first, last
    return setup


def suites(text):
    def setup(context):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(text)
    return setup


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("setup", [old(ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1),
                                   old(ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_1),
                                   suites("aNULL:@SECLEVEL=0"), suites("eNULL:@SECLEVEL=0")],
                         ids=["tls1.0", "tls1.1", "anonymous", "null"])
def test_old_and_empty_protocols(root, serve, meet, tmp_path, setup):
    """G3, G9: no fall-back to anything weaker, in no attempt."""
    leaf = Cert("leaf", root, ["origin.test"])
    server = serve(*leaf.write(tmp_path, "leaf"), setup=setup)
    expect(meet("origin.test", server), server, False, "tls_failure", attempts=3)
    assert server.handshakes == []


def read_hello(sock):
    assert sock.recv(65536)[:2] == b"\x16\x03"


def clear_text(sock):
    read_hello(sock)
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhttp")


def test_clear_text_answer(serve, meet):
    """G9, G3: an origin that answers a ClientHello in clear text is not spoken to in clear text."""
    server = serve(raw=clear_text)
    answer = meet("origin.test", server)
    expect(answer, server, False, "tls_failure", attempts=3)
    assert b"Bad Request" not in answer.body


def stalls(sock):
    read_hello(sock)
    sock.sendall(b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03")
    sock.recv(1)


def test_stall_after_server_hello(serve, meet):
    """G3, J6: a handshake that stops is given up when its time is over."""
    server = serve(raw=stalls)
    began = time.monotonic()
    answer = meet("origin.test", server, timeouts={"tls": "300ms"})
    assert (answer.status, answer.get("X-Retryd-Error")) == (504, "tls_timeout")
    assert server.connections == 3 and 0.9 <= elapsed(began) < 20


def test_client_certificate_wanted_and_none_configured(root, serve, meet, tmp_path):
    """G8, G3: an origin that asks gets none, and is served if it can live with that."""
    def setup(context):
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=root.pem().decode())
    leaf = Cert("leaf", root, ["origin.test"])
    server = serve(*leaf.write(tmp_path, "leaf"), setup=setup)
    assert meet("origin.test", server).status == 200
    assert [h["client"] for h in server.handshakes] == [None]


@pytest.mark.parametrize("answer, whole", [(OK, True), (b"HTTP/1.1 200 OK\r\n\r\nhalf of it", False)])
def test_end_without_close_notify(root, serve, meet, tmp_path, answer, whole):
    """G3, D5: a bare FIN ends no body that lasts until the end."""
    leaf = Cert("leaf", root, ["origin.test"])
    server = serve(*leaf.write(tmp_path, "leaf"), answer=answer, keep=None)
    got = meet("origin.test", server)
    if whole:
        assert (got.status, got.body) == (200, b"ok") and got.whole
    else:
        assert got.status == 502 or not got.whole
    until(lambda: server.heads, "a request")


# ---- revocation


def staple_for(leaf, issuer, status, begin=-DAY, end=DAY):
    now = datetime.datetime.utcnow()
    revoked = status == ocsp.OCSPCertStatus.REVOKED
    return (ocsp.OCSPResponseBuilder()
            .add_response(leaf.x, issuer.x, hashes.SHA1(), status, now + begin, now + end,
                          now - DAY if revoked else None, None)
            .responder_id(ocsp.OCSPResponderEncoding.NAME, issuer.x)
            .sign(issuer.key, hashes.SHA256()).public_bytes(serialization.Encoding.DER))


class Stapling:
    """`openssl s_server` with a staple: Python's ssl cannot send one."""

    def __init__(self, directory, files, staple):
        path = directory / "staple.der"
        path.write_bytes(staple)
        self.port = free_port()
        self.process = subprocess.Popen(
            ["openssl", "s_server", "-accept", "127.0.0.1:%d" % self.port, "-cert", files[0], "-key", files[1],
             "-status_file", str(path), "-www"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        until(self.there, "s_server listens")

    def there(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.kill()
        self.process.wait()


@pytest.mark.parametrize("status, begin, end, accepted", [
    (ocsp.OCSPCertStatus.GOOD, -DAY, DAY, True), (ocsp.OCSPCertStatus.REVOKED, -DAY, DAY, False),
    (ocsp.OCSPCertStatus.UNKNOWN, -DAY, DAY, False), (ocsp.OCSPCertStatus.GOOD, -2 * DAY, -DAY, False)],
    ids=["good", "revoked", "unknown", "old"])
def test_staples(root, meet, tmp_path, status, begin, end, accepted):
    """G6: an origin that staples a bad word about its own certificate is refused, once and for all."""
    leaf = Cert("leaf", root, ["origin.test"])
    server = Stapling(tmp_path, leaf.write(tmp_path, "leaf"), staple_for(leaf, root, status, begin, end))
    try:
        answer = meet("origin.test", server)
        if accepted:
            assert answer.status == 200
        else:
            assert (answer.status, answer.get("X-Retryd-Error")) == (502, "upstream_certificate")
            assert server.attempts == 1
    finally:
        server.stop()
