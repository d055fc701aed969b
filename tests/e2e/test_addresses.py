"""Which addresses may be reached (security requirements I2-I5)."""
import socket
import threading

import pytest

from daemons import Retryd, free_port



@pytest.fixture
def canary():
    """A listener on all loopback addresses of both families that must never be reached."""
    sockets, hits = [], []
    first = socket.create_server(("0.0.0.0", 0))
    port = first.getsockname()[1]
    sockets.append(first)
    try:
        sockets.append(socket.create_server(("::", port), family=socket.AF_INET6))
    except OSError:
        pass  # no IPv6 here

    def accept(listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            hits.append(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            connection.close()

    threads = [threading.Thread(target=accept, args=(s,), daemon=True) for s in sockets]
    for t in threads:
        t.start()

    class Canary:
        pass

    canary = Canary()
    canary.port, canary.hits = port, hits
    yield canary
    for s in sockets:
        s.shutdown(socket.SHUT_RDWR)
        s.close()
    for t in threads:
        t.join(5)


@pytest.fixture
def open_ports(make_retryd, canary):
    return make_retryd(http_ports=[80, canary.port], connect_ports=[443, canary.port])


DENIED = ["127.0.0.1", "127.1.2.3", "0.0.0.0", "169.254.169.254", "169.254.170.2", "[::1]", "[::]",
          "[::ffff:127.0.0.1]", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "[fe80::1]", "[64:ff9b::7f00:1]",
          "[2002:7f00:1::]", "224.0.0.1", "255.255.255.255", "240.0.0.1", "192.0.0.8", "198.18.0.1", "localhost",
          "LOCALHOST."]
SPELLINGS = ["0x7f000001", "0x7f.0.0.1", "2130706433", "127.1", "127.0.1", "0177.0.0.1", "127.0.0.01", "127.0.0.1.2",
             "[::1%25lo]", "[v1.a]", "%6cocalhost", "127.0.0.256"]


def get(retryd, host, port):
    wire = retryd.plain()
    wire.send(b"GET http://%s:%d/ HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host.encode(), port, host.encode(), port))
    answer = wire.response()
    wire.close()
    return answer


def connect(retryd, host, port):
    wire = retryd.plain()
    wire.send(b"CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host.encode(), port, host.encode(), port))
    answer = wire.response("CONNECT")
    wire.close()
    return answer


@pytest.mark.parametrize("ask", [get, connect])
@pytest.mark.parametrize("host", DENIED)
def test_denied(open_ports, canary, ask, host):
    """I3, CR3: denied."""
    answer = ask(open_ports, host, canary.port)
    assert (answer.status, answer.get("X-Retryd-Error")) == (403, "address_not_allowed")
    assert b"NO_PROXY" in answer.body
    assert canary.hits == []


@pytest.mark.parametrize("ask", [get, connect])
@pytest.mark.parametrize("host", SPELLINGS)
def test_odd_spellings_never_reach_a_resolver(open_ports, canary, ask, host):
    """I4: odd spellings never reach a resolver."""
    answer = ask(open_ports, host, canary.port)
    assert (answer.status, answer.get("X-Retryd-Error")) == (400, "bad_request")
    assert canary.hits == []


@pytest.mark.parametrize("ask", [get, connect])
def test_ports_that_are_not_listed(make_retryd, canary, ask):
    answer = ask(make_retryd(), "192.0.2.1", canary.port)
    assert (answer.status, answer.get("X-Retryd-Error")) == (403, "port_not_allowed")


def test_allowed_by_name(make_retryd, canary):
    retryd = make_retryd(http_ports=[canary.port], allow_addresses=["127.0.0.1"])
    assert get(retryd, "127.0.0.1", canary.port).status == 200
    assert get(retryd, "127.0.0.2", canary.port).status == 403
    assert len(canary.hits) == 1


def test_allowed_range(make_retryd, canary):
    retryd = make_retryd(http_ports=[canary.port], allow_addresses=["127.0.0.0/30"])
    assert get(retryd, "127.0.0.2", canary.port).status == 200
    assert get(retryd, "127.0.0.4", canary.port).status == 403


def test_resolved_by_the_operator(make_retryd, canary):
    retryd = make_retryd(resolve={"inside.example:80": "127.0.0.1:%d" % canary.port})
    assert get(retryd, "inside.example", 80).status == 200


def test_private_addresses_can_be_denied(make_retryd):
    """I3: private addresses can be denied."""
    retryd = make_retryd(private_addresses="deny")
    for host in ("10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "[fc00::1]", "[::ffff:10.1.2.3]"):
        answer = get(retryd, host, 80)
        assert (answer.status, answer.get("X-Retryd-Error")) == (403, "address_not_allowed")


@pytest.mark.parametrize("ask", [get, connect])
def test_own_listener_is_out_of_reach(make_retryd, ask):
    """I5: Even where its address is allowed. The listener's port is known only once it runs: two in a row."""
    port = free_port()
    retryd = make_retryd(listen=["127.0.0.1:%d" % port], http_ports=[port], connect_ports=[port],
                         allow_addresses=["127.0.0.1"])
    answer = ask(retryd, "127.0.0.1", port)
    assert answer.status in (403, 508) and answer.get("X-Retryd-Error")


def test_two_proxies_in_a_circle_notice(make_retryd):
    """C9: Each sends loop.example to the other: one 508, no growth."""
    first_port, second_port = free_port(), free_port()
    first = make_retryd(listen=["127.0.0.1:%d" % first_port],
                        resolve={"loop.example:80": "127.0.0.1:%d" % second_port})
    make_retryd(listen=["127.0.0.1:%d" % second_port], resolve={"loop.example:80": "127.0.0.1:%d" % first_port})
    # The second gets origin-form, which a forward proxy refuses: the circle ends there.
    assert get(first, "loop.example", 80).status in (400, 508)


def test_refusal_is_one_attempt(open_ports, canary):
    """E11: refusal is one attempt."""
    get(open_ports, "127.0.0.1", canary.port)
    (record,) = open_ports.requests_logged()
    assert record.get("attempts", 0) <= 1


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"])
def test_listener_is_loopback_only(tmp_path, listen):
    """I1: listener is loopback only."""
    retryd = Retryd(tmp_path / "r", config={"listen": [listen]}, start=False)
    with pytest.raises(AssertionError, match="ended with"):
        retryd.start()
    assert "loopback" in retryd.said()


def test_redirects_are_relayed(make_retryd, make_origin):
    """D7: redirects are relayed."""
    origin = make_origin()
    retryd = make_retryd(origin)
    origin.answers({"status": 307, "headers": {"Location": "http://169.254.169.254/"}})
    wire = retryd.plain()
    wire.send(b"GET http://sts.amazonaws.com/ HTTP/1.1\r\nHost: sts.amazonaws.com\r\n\r\n")
    answer = wire.response()
    assert (answer.status, answer.get("Location")) == (307, "http://169.254.169.254/")
