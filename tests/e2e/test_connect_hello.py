"""CONNECT to a host that is opened: the ClientHello decides, and nobody is broken by it."""
import socket
import ssl
import subprocess

import pytest

from hostile import RawOrigin
from wire import Wire, until

HOST = "sts.us-east-1.amazonaws.com"


def origin_context(origin, alpn=(), low=None, high=None):
    context = ssl.create_default_context(cafile=origin.ca_file)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    if low:
        context.minimum_version = low
    if high:
        context.maximum_version = high
    return context


def tunnel_line(retryd, n=1):
    return until(lambda: (lambda r: r if len(r) >= n else None)(retryd.log("tunnel")), "%d tunnel lines" % n)[-1]


def client_hello(name=HOST, alpn=("http/1.1",), extension=b"", version=None):
    """The bytes of a real ClientHello, with an extension more if wanted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols(list(alpn))
    if version:
        context.minimum_version = context.maximum_version = version
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    hello = outgoing.read()
    body = bytearray(hello[9:])
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at:at + 2], "big")
    at += 1 + body[at]
    size = int.from_bytes(body[at:at + 2], "big") + len(extension)
    body[at:at + 2] = size.to_bytes(2, "big")
    message = b"\x01" + (len(body) + len(extension)).to_bytes(3, "big") + bytes(body) + extension
    return records(message)


def records(message, size=16384):
    out = b""
    for at in range(0, len(message), size):
        piece = message[at:at + size]
        out += b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece
    return out


ECH = b"\xfe\x0d\x00\x20" + bytes(range(32))


@pytest.fixture
def raw(make_retryd):
    """An origin that gives back what the client said first, under the name of an AWS host; retryd before it."""
    seen = []

    def script(wire, n):
        wire.fill()
        seen.append(wire.buffer)
        wire.send(b"server here: " + wire.buffer)
        wire.buffer = b""
        while wire.fill():
            seen[-1] += wire.buffer
            wire.buffer = b""

    server = RawOrigin(script)
    server.seen = seen
    server.retryd = make_retryd(resolve={"*.amazonaws.com:443": "127.0.0.1:%d" % server.port})
    yield server
    server.stop()


# ---- passed on unread


def test_h2_only_reaches_the_origin(origin, retryd):
    """F7: a client that offers only h2 gets a blind tunnel: the origin's own certificate, its own choice of ALPN."""
    context = origin_context(origin, ["h2"])
    tls = context.wrap_socket(retryd.tunnel(HOST).sock, server_hostname=HOST)
    ours = ssl.create_default_context(cafile=retryd.ca_file)
    with ours.wrap_socket(retryd.tunnel(HOST).sock, server_hostname=HOST) as opened:
        assert tls.getpeercert(True) != opened.getpeercert(True)
    (hello,) = until(lambda: origin.log("hello"), "a hello at the origin")
    assert hello["alpn"] == ["h2"] and hello["sni"] == HOST
    tls.close()
    line = tunnel_line(retryd)
    assert (line["host"], line["reason"]) == (HOST, "h2_only")


def test_h2_only_gets_http2_end_to_end(make_retryd, origin_ca):
    """F7: an h2-only client speaks HTTP/2 with an h2-only origin."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    out = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                          "-keyout", str(origin_ca / "h2.key"), "-out", str(origin_ca / "h2.pem"), "-days", "2", "-subj",
                          "/CN=" + HOST, "-addext", "subjectAltName=DNS:" + HOST], capture_output=True)
    assert out.returncode == 0, out.stderr
    context.load_cert_chain(str(origin_ca / "h2.pem"), str(origin_ca / "h2.key"))
    context.set_alpn_protocols(["h2"])
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    got = []

    def script(wire, n):
        assert wire.sock.selected_alpn_protocol() == "h2"
        got.append(wire.take(len(preface)))
        wire.send(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")  # SETTINGS
        wire.fill()

    server = RawOrigin(script, tls=context)
    retryd = make_retryd(resolve={"*.amazonaws.com:443": "127.0.0.1:%d" % server.port})
    client = ssl.create_default_context(cafile=str(origin_ca / "h2.pem"))
    client.set_alpn_protocols(["h2"])
    wire = Wire(client.wrap_socket(retryd.tunnel(HOST).sock, server_hostname=HOST))
    assert wire.sock.selected_alpn_protocol() == "h2"
    wire.send(preface)
    assert wire.take(9)[3] == 4
    wire.close()
    server.stop()
    assert got == [preface]


@pytest.mark.parametrize("reason, first", [
    ("not_tls", b"GET / HTTP/1.1\r\nHost: " + HOST.encode() + b"\r\n\r\n"),
    ("not_tls", b"SSH-2.0-client\r\n"),
    ("not_tls", b"\x80\x2e\x01\x03\x01\x00\x15"),
    ("bad_hello", b"\x16\x03\x01\x00\x04\x02\x00\x00\x00"),
    ("bad_hello", b"\x16\x03\x01\x00\x00"),
    ("bad_hello", b"\x16\x03\x01\x00\x04\x01\x01\x00\x00"),
    ("alpn", client_hello(alpn=["imap"])),
    ("ech", client_hello("public.example", extension=ECH)),
], ids=["http", "ssh", "ssl2", "server-hello", "empty-record", "over-long", "imap", "ech"])
def test_what_we_cannot_open_is_passed_on(raw, reason, first):
    """F3, F7: no TLS, a broken or over-long hello, another ALPN, a hidden name: the bytes reach the origin as they were."""
    wire = raw.retryd.tunnel(HOST)
    wire.send(first)
    assert wire.take(13 + len(first)) == b"server here: " + first
    wire.send(b"and on")
    until(lambda: raw.seen == [first + b"and on"], "the rest at the origin")
    wire.close()
    line = tunnel_line(raw.retryd)
    assert (line["host"], line["port"], line["reason"]) == (HOST, 443, reason)
    assert line["bytes_up"] == len(first) + 6


def test_old_tls_is_passed_on(raw):
    """F6, F7: a client that has only TLS 1.1 meets the origin, not us; whether that is enough, they decide."""
    done = subprocess.run(["openssl", "s_client", "-proxy", "127.0.0.1:%d" % raw.retryd.port, "-connect", HOST + ":443",
                           "-servername", HOST, "-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"], input="",
                          capture_output=True, text=True, timeout=30)
    assert "BEGIN CERTIFICATE" not in done.stdout
    assert tunnel_line(raw.retryd)["reason"] == "old_tls"
    (hello,) = raw.seen
    assert hello[:2] == b"\x16\x03" and HOST.encode() in hello


@pytest.mark.parametrize("size", [1, 3, 100])
def test_hello_in_pieces_is_opened(origin, retryd, size):
    """F3: a ClientHello in many records and many segments is read as one."""
    hello = client_hello()
    wire = retryd.tunnel(HOST)
    wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    split = records(hello[5:], size)
    for at in range(0, len(split), 997):
        wire.send(split[at:at + 997])
    assert wire.take(1) == b"\x16"       # our ServerHello
    assert origin.log("conn") == []
    wire.close()


def test_server_that_speaks_first(make_retryd):
    """F3: a client that says nothing is waiting for its server: after 5 s it gets it."""
    server = RawOrigin(lambda wire, n: (wire.send(b"220 ready\r\n"), wire.fill()))
    retryd = make_retryd(resolve={"*.amazonaws.com:443": "127.0.0.1:%d" % server.port})
    wire = retryd.tunnel(HOST)
    assert wire.line() == b"220 ready\r\n"
    wire.send(b"QUIT\r\n")
    assert wire.ended()
    server.stop()
    wire.close()
    assert tunnel_line(retryd)["reason"] == "silent"


def test_dead_origin_behind_a_late_tunnel(make_retryd):
    """F7: the 200 is out already: the connection ends, nothing is said in a protocol that the client does not speak."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        retryd = make_retryd(resolve={"*.amazonaws.com:443": "127.0.0.1:%d" % s.getsockname()[1]})
        wire = retryd.tunnel(HOST)
        wire.send(client_hello(alpn=["h2"]))
        assert wire.ended()
    line = tunnel_line(retryd)
    assert (line["reason"], line["end"]) == ("h2_only", "connect_refused")


def test_destination_rules_hold_for_late_tunnels(make_retryd):
    """F7, I4: what may not be dialled is not dialled for a tunnel either."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    retryd = make_retryd(intercept={"hosts": ["127.0.0.1"]}, connect_ports=[port])
    wire = retryd.tunnel("127.0.0.1", port)
    wire.send(b"not tls")
    assert wire.ended()
    assert tunnel_line(retryd)["end"] == "address_not_allowed"
    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()
    listener.close()


# ---- opened


def test_grease_ech_is_opened(origin, retryd):
    """F7: browsers send an ECH that means nothing: under the name of the CONNECT it is opened."""
    wire = retryd.tunnel(HOST)
    wire.send(client_hello(extension=ECH))
    assert wire.take(1) == b"\x16"
    assert origin.log("conn") == []
    wire.close()


def test_alpn_none_and_both_are_opened(origin, retryd):
    """F7, CR4: http/1.1 beside h2, or no ALPN at all: opened, and never h2."""
    for offer, answer in ((["h2", "http/1.1"], "http/1.1"), ([], None)):
        context = ssl.create_default_context(cafile=retryd.ca_file)
        if offer:
            context.set_alpn_protocols(offer)
        with context.wrap_socket(retryd.tunnel(HOST).sock, server_hostname=HOST) as tls:
            assert tls.selected_alpn_protocol() == answer
    assert retryd.log("tunnel") == []


# ---- refused


@pytest.mark.parametrize("sni, same", [(HOST, True), (HOST.upper(), True), (HOST + ".", True), (None, True),
                                       ("sqs.us-east-1.amazonaws.com", False), ("a." + HOST, False)])
def test_sni_must_be_the_connect_host(origin, retryd, sni, same):
    """F2: SNI, if there is one, names the CONNECT host (case, trailing dot aside); else fatal unrecognized_name."""
    name = [] if sni is None else ["-servername", sni]
    done = subprocess.run(["openssl", "s_client", "-proxy", "127.0.0.1:%d" % retryd.port, "-connect", HOST + ":443",
                           "-CAfile", retryd.ca_file, *(name or ["-noservername"])], input="", capture_output=True,
                          text=True, timeout=30)
    out = done.stdout + done.stderr
    if same:
        assert "Verify return code: 0 (ok)" in out and "BEGIN CERTIFICATE" in out
        return
    assert "unrecognized name" in out and "BEGIN CERTIFICATE" not in out
    (line,) = until(lambda: retryd.log("client_tls_failed"), "a line")
    assert (line["host"], line["sni"], line["reason"]) == (HOST, sni, "sni")
    assert origin.log("conn") == []


def test_address_with_a_name_inside(make_retryd):
    """F2: CONNECT to an address is that address: an iPAddress SAN, and any name in the SNI is another host."""
    retryd = make_retryd(intercept={"hosts": ["127.0.0.1"]})
    context = ssl.create_default_context(cafile=retryd.ca_file)
    with context.wrap_socket(retryd.tunnel("127.0.0.1").sock, server_hostname="127.0.0.1") as tls:
        assert tls.getpeercert()["subjectAltName"] == (("IP Address", "127.0.0.1"),)
    context.check_hostname = False
    with pytest.raises(ssl.SSLError) as e:
        context.wrap_socket(retryd.tunnel("127.0.0.1").sock, server_hostname=HOST)
    assert "UNRECOGNIZED_NAME" in str(e.value).upper()
