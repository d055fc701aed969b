"""Hosts that are not on the intercept list: blind tunnels (security requirements F1, J10)."""
import socket
import ssl
import threading
import time

import pytest

from daemons import free_port
from hostile import RawOrigin
from wire import Wire, until


@pytest.fixture
def tunnelling(origin, make_retryd):
    return make_retryd(origin, resolve={"other.example:443": "127.0.0.1:%d" % origin.https,
                                        "evilamazonaws.com:443": "127.0.0.1:%d" % origin.https,
                                        "bypassed.amazonaws.com:443": "127.0.0.1:%d" % origin.https},
                       intercept={"bypass": ["bypassed.amazonaws.com"]})


def origin_certificate(origin, host):
    context = ssl.create_default_context(cafile=origin.ca_file)
    with socket.create_connection(("127.0.0.1", origin.https)) as s, \
            context.wrap_socket(s, server_hostname=host) as tls:
        return tls.getpeercert(True)


@pytest.mark.parametrize("host", ["other.example", "evilamazonaws.com", "bypassed.amazonaws.com"])
def test_certificate_is_the_origins_own(origin, tunnelling, host):
    context = ssl.create_default_context(cafile=origin.ca_file)
    tls = context.wrap_socket(tunnelling.tunnel(host).sock, server_hostname=host)
    assert tls.getpeercert(True) == origin_certificate(origin, host)
    wire = Wire(tls)
    wire.send(b"GET /x HTTP/1.1\r\nHost: %s\r\n\r\n" % host.encode())
    assert wire.response().status == 200
    assert "via" not in {n.lower() for n, _ in origin.requests()[0]["headers"]}


def test_nothing_is_retried_in_a_tunnel(origin, tunnelling):
    origin.answers({"status": 503})
    context = ssl.create_default_context(cafile=origin.ca_file)
    wire = Wire(context.wrap_socket(tunnelling.tunnel("other.example").sock, server_hostname="other.example"))
    wire.send(b"GET /x HTTP/1.1\r\nHost: other.example\r\n\r\n")
    assert wire.response().status == 503
    assert len(origin.requests()) == 1


@pytest.fixture
def raw_server():
    """Accepts one connection and hands it to the test."""
    listener = socket.create_server(("127.0.0.1", 0))
    accepted = []

    def accept():
        try:
            accepted.append(listener.accept()[0])
        except OSError:
            pass

    thread = threading.Thread(target=accept)
    thread.start()

    def get():
        thread.join(10)
        return Wire(accepted[0])

    get.port = listener.getsockname()[1]
    yield get
    listener.close()
    for s in accepted:
        s.close()
    thread.join(10)


def test_half_close_passes_through_both_ways(make_retryd, raw_server):
    retryd = make_retryd(resolve={"raw.example:443": "127.0.0.1:%d" % raw_server.port})
    wire = retryd.tunnel("raw.example")
    wire.send(b"question")
    wire.sock.shutdown(socket.SHUT_WR)
    server = raw_server()
    assert server.take(8) == b"question" and server.ended()
    server.send(b"answer")
    server.sock.shutdown(socket.SHUT_WR)
    assert wire.take(6) == b"answer" and wire.ended()


def test_bytes_sent_with_the_connect_head_arrive(make_retryd, raw_server):
    retryd = make_retryd(resolve={"raw.example:443": "127.0.0.1:%d" % raw_server.port})
    wire = retryd.plain()
    wire.send(b"CONNECT raw.example:443 HTTP/1.0\r\n\r\nearly")
    assert raw_server().take(5) == b"early"
    assert wire.response("CONNECT", body=False).status == 200


def test_large_amounts_are_byte_equal(make_retryd, raw_server):
    retryd = make_retryd(resolve={"raw.example:443": "127.0.0.1:%d" % raw_server.port})
    wire = retryd.tunnel("raw.example")
    server = raw_server()
    data = bytes(range(256)) * 40000
    sender = threading.Thread(target=wire.send, args=(data,))
    sender.start()
    assert server.take(len(data)) == data
    sender.join()
    sender = threading.Thread(target=server.send, args=(data,))
    sender.start()
    assert wire.take(len(data)) == data
    sender.join()


def test_idle_tunnel_is_closed(make_retryd, raw_server):
    retryd = make_retryd(resolve={"raw.example:443": "127.0.0.1:%d" % raw_server.port},
                         timeouts={"tunnel_idle": "300ms"})
    wire = retryd.tunnel("raw.example")
    server = raw_server()
    assert wire.ended(5) and server.ended(5)


def test_dead_end_is_answered_before_the_tunnel_opens(make_retryd):
    retryd = make_retryd(resolve={"raw.example:443": "127.0.0.1:%d" % free_port()})
    wire = retryd.plain()
    wire.send(b"CONNECT raw.example:443 HTTP/1.1\r\nHost: raw.example:443\r\n\r\n")
    answer = wire.response("CONNECT")
    assert (answer.status, answer.get("X-Retryd-Error")) == (502, "connect_refused")


@pytest.mark.parametrize("first", [8 * 1024, 60 * 1024, 63 * 1024, 64 * 1024])
def test_much_that_is_sent_before_the_tunnel_is_there(make_retryd, first):
    """J10, J13: while the parent thinks about it, a client sends more than a tunnel holds; nothing is lost."""
    let_in = threading.Event()

    def parent(wire, n):
        wire.head()
        assert let_in.wait(10)
        wire.send(b"HTTP/1.1 200 OK\r\n\r\n")
        wire.send(wire.take(len(data)))

    data = bytes(range(251)) * 1300
    origin = RawOrigin(parent)
    retryd = make_retryd(None, parent={"url": "http://127.0.0.1:%d" % origin.port})
    wire = Wire(socket.create_connection(("127.0.0.1", retryd.port)))
    wire.send(b"CONNECT raw.example:443 HTTP/1.1\r\nHost: raw.example:443\r\n\r\n" + data[:first])
    until(lambda: origin.accepted == 1, "the parent is asked")
    sender = threading.Thread(target=wire.send, args=(data[first:],))
    sender.start()
    time.sleep(0.2)                   # what retryd takes now fills its buffer
    let_in.set()
    assert wire.response("CONNECT", body=False).status == 200
    assert wire.take(len(data)) == data
    sender.join()
    wire.close()
    origin.stop()
