"""Clients that refuse our certificates, crowds of handshakes, and session tickets."""
import socket
import ssl

import pytest

import sigv4
from test_connect_hello import HOST, client_hello, origin_context, tunnel_line
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
