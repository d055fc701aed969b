"""Clients that refuse our certificates, crowds of handshakes, and session tickets."""
import socket
import ssl

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

import sigv4
from test_connect_hello import HOST, client_hello, origin_context, records, tunnel_line
from wire import Wire, until

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def shake(retryd, context, host=HOST):
    return context.wrap_socket(retryd.tunnel(host).sock, server_hostname=host)


# ---- refusals


@pytest.mark.parametrize("version", VERSIONS)
def test_refusing_client_is_remembered(origin, make_retryd, version):
    """F7: who refused our CA gets the origin's own certificate next time; others, and other hosts, are opened."""
    retryd = make_retryd(origin, intercept={"refusal_memory": "1h"})
    theirs = origin_context(origin, low=version, high=version)
    with pytest.raises(ssl.SSLError):
        shake(retryd, theirs)
    (line,) = until(lambda: retryd.log("client_tls_failed"), "a line")
    assert (line["host"], line["reason"], line["tunnelled_for_ms"]) == (HOST, "ca_refused", 3600000)
    assert retryd.ca_file in line["help"] and "intercept.bypass" in line["help"]
    with shake(retryd, theirs):
        pass
    assert tunnel_line(retryd)["reason"] == "ca_refused"
    with shake(retryd, retryd.tls_context(), "sqs.us-east-1.amazonaws.com"):
        pass
    assert len(retryd.log("tunnel")) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_refusals_are_not_remembered_unasked(origin, retryd, version):
    """F7: by default each handshake is tried, and each refusal told with what to do about it."""
    theirs = origin_context(origin, low=version, high=version)
    for n in (1, 2):
        with pytest.raises(ssl.SSLError):
            shake(retryd, theirs)
        lines = until(lambda: (lambda l: l if len(l) == n else None)(retryd.log("client_tls_failed")), "%d lines" % n)
        assert lines[-1]["reason"] == "ca_refused"
    assert retryd.log("tunnel") == []


SUITES = {"TLS_AES_256_GCM_SHA384": (AESGCM, 32, hashes.SHA384), "TLS_AES_128_GCM_SHA256": (AESGCM, 16, hashes.SHA256),
          "TLS_CHACHA20_POLY1305_SHA256": (ChaCha20Poly1305, 32, hashes.SHA256)}
UNKNOWN_CA, DECODE_ERROR = 48, 50


def alert_after_handshake(retryd, keylog, alert):
    """A whole handshake of TLS 1.3, and then an alert as the client's first protected record."""
    wire = retryd.tunnel(HOST)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.keylog_filename = keylog
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=HOST)
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            wire.send(outgoing.read())
            assert wire.fill()
            incoming.write(wire.take(len(wire.buffer)))
    with open(keylog) as f:
        secrets = dict(line.split()[::2] for line in f if not line.startswith("#"))
    cipher, size, digest = SUITES[tls.cipher()[0]]

    def derived(label, n):
        info = n.to_bytes(2, "big") + bytes([len(label)]) + label + b"\0"
        return HKDFExpand(digest(), n, info).derive(bytes.fromhex(secrets["CLIENT_TRAFFIC_SECRET_0"]))

    inner = bytes([2, alert, 0x15])
    head = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
    record = cipher(derived(b"tls13 key", size)).encrypt(derived(b"tls13 iv", 12), inner, head)
    wire.send(outgoing.read() + head + record)
    assert until(lambda: not wire.fill(), "the end of the connection")


def test_refusal_after_the_handshake_is_remembered(origin, make_retryd, tmp_path):
    """F7: with TLS 1.3 a client may say that it does not trust us when the handshake is over: that counts, too."""
    retryd = make_retryd(origin, intercept={"refusal_memory": "1h"})
    alert_after_handshake(retryd, str(tmp_path / "other"), DECODE_ERROR)
    with shake(retryd, retryd.tls_context()):
        pass
    assert retryd.log("tunnel") == [] and retryd.log("client_tls_failed") == []
    alert_after_handshake(retryd, str(tmp_path / "refusal"), UNKNOWN_CA)
    (line,) = until(lambda: retryd.log("client_tls_failed"), "a line")
    assert (line["host"], line["reason"]) == (HOST, "ca_refused")
    with shake(retryd, origin_context(origin)):
        pass
    assert tunnel_line(retryd)["reason"] == "ca_refused"


# ---- crowds


@pytest.fixture
def crowded(origin, make_retryd):
    """retryd, and a way to leave connections to it that send CONNECT and what is given, and then stand still."""
    retryd = make_retryd(origin, limits={"max_clients": 4000, "max_clients_per_peer": 4000})
    stalled = []

    def stall(first):
        s = socket.create_connection(("127.0.0.1", retryd.port), timeout=30)
        stalled.append(s)
        s.sendall(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" % HOST.encode() + first)

    retryd.stall = stall
    yield retryd
    for s in stalled:
        s.close()


def test_stalled_handshakes_do_not_keep_others_out(crowded):
    """F10: whole hellos that never go on, far more than may run at once: good clients are still served."""
    hello = client_hello()
    for _ in range(1500):
        crowded.stall(hello)
    for _ in range(3):
        assert crowded.exchange(sigv4.sts()).status == 200
    lines = crowded.log("client_tls_failed")
    assert lines and {l["reason"] for l in lines} <= {"crowded", "timeout"}


def test_as_many_at_once_as_configured(origin, make_retryd):
    """F10: limits.max_handshakes acts: two that stand still are a crowd then, and give way."""
    retryd = make_retryd(origin, limits={"max_handshakes": 2})
    stalled = []
    for _ in range(2):
        stalled.append(retryd.tunnel(HOST))
        stalled[-1].send(client_hello())
        assert stalled[-1].fill()     # the server's flight: its handshake has begun
    assert retryd.exchange(sigv4.sts()).status == 200
    assert [l["reason"] for l in retryd.log("client_tls_failed")] == ["crowded"]
    for wire in stalled:
        wire.close()


def without_key_share(hello):
    """That hello with an empty key_share, to which a server answers HelloRetryRequest (RFC 8446 4.2.8)."""
    body = hello[9:]
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at:at + 2], "big")
    at += 1 + body[at]
    rest, extensions = body[at + 2:], b""
    while rest:
        size = 4 + int.from_bytes(rest[2:4], "big")
        extensions += b"\0\x33\0\2\0\0" if rest[:2] == b"\0\x33" else rest[:size]
        rest = rest[size:]
    message = body[:at] + len(extensions).to_bytes(2, "big") + extensions
    return records(b"\x01" + len(message).to_bytes(3, "big") + message)


def test_bytes_of_a_handshake_are_bounded(retryd):
    """F10: the second hello, after HelloRetryRequest, has no end: 64 KiB are enough."""
    wire = retryd.tunnel(HOST)
    wire.send(without_key_share(client_hello()))
    assert wire.fill() and wire.buffer[:1] == b"\x16", wire.buffer
    endless = records(b"\x01" + (128 * 1024).to_bytes(3, "big") + bytes(128 * 1024))
    wire.send(endless[:60 * 1024])
    while not wire.silent(0.5):       # what belongs to that answer
        assert wire.broken is None and wire.take(len(wire.buffer)), "closed within the bound"
    wire.send(endless[60 * 1024:70 * 1024])
    assert until(lambda: not wire.fill(), "the end of the connection")
    (line,) = until(lambda: retryd.log("client_tls_failed"), "a line")
    assert line["reason"] == "handshake" and "64 KiB" in line["detail"]


def test_silent_and_slow_hellos_do_not_keep_others_out(crowded):
    """F10, F3: nothing, or half a hello: such clients take no turn at all."""
    hello = client_hello()
    for n in range(600):
        crowded.stall(hello[:n % 2 * 40])
    for _ in range(3):
        assert crowded.exchange(sigv4.sts()).status == 200
    assert "crowded" not in {l["reason"] for l in crowded.log("client_tls_failed")}


def test_half_a_hello_is_closed_in_time(origin, retryd):
    """F3: a hello that does not come whole in 10 s."""
    wire = retryd.tunnel(HOST)
    wire.send(client_hello()[:50])
    assert wire.ended(20)
    (line,) = until(lambda: retryd.log("client_tls_failed"), "a line")
    assert line["reason"] == "timeout"
    assert origin.log("conn") == []


# ---- tickets


def session_of(retryd, version, host=HOST):
    context = retryd.tls_context()
    context.minimum_version = context.maximum_version = version
    request = sigv4.sts(host=host)
    wire = Wire(shake(retryd, context, host))
    assert retryd.exchange(request, wire=wire).status == 200
    session = wire.sock.session
    wire.sock.unwrap()
    return context, session


@pytest.mark.parametrize("version", VERSIONS)
def test_session_of_another_host_is_not_resumed(origin, make_retryd, version):
    """F8: a ticket resumes at its own host, in any worker; offered on a CONNECT to another, a full handshake follows."""
    retryd = make_retryd(origin, workers=2)
    context, session = session_of(retryd, version)
    for _ in range(4):
        with context.wrap_socket(retryd.tunnel(HOST).sock, server_hostname=HOST, session=session) as tls:
            assert tls.session_reused
    other = "sqs.us-east-1.amazonaws.com"
    with context.wrap_socket(retryd.tunnel(other).sock, server_hostname=other, session=session) as tls:
        assert not tls.session_reused
        assert ("DNS", other) in tls.getpeercert()["subjectAltName"]
