"""SIGTERM and SIGINT stop gracefully: what is in flight ends, what waits is answered, the exit status is 0."""
import signal
import socket
import threading
import time

import pytest

import sigv4
from daemons import elapsed
from test_connect_hello import client_hello
from test_listeners import unix_dial
from wire import until

SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.mark.parametrize("sig", SIGNALS)
def test_request_in_flight_ends_well(origin, retryd, sig):
    origin.answers({"ok": "auto", "delay_ms": 700})
    wire = retryd.open("sts.us-east-1.amazonaws.com")
    wire.send(sigv4.sts().bytes())
    until(lambda: origin.log("tls"), "the attempt is under way")
    retryd.tell(sig)
    answer = wire.response("POST")
    assert answer.status == 200 and answer.whole
    retryd.stop()


@pytest.mark.parametrize("sig", SIGNALS)
def test_parked_request_is_answered(origin, retryd, sig):
    origin.answers({"status": 503, "body": "{}", "retry_after_ms": 4500}, then="last")
    wire = retryd.open("sts.us-east-1.amazonaws.com")
    wire.send(sigv4.sts().bytes())
    until(lambda: [a for a in retryd.attempts_logged() if a["decision"] == "retry"], "the request is parked")
    began = time.monotonic()
    retryd.tell(sig)
    answer = wire.response("POST")
    assert answer.status == 503 and answer.whole
    assert elapsed(began) < 2
    retryd.stop()
    assert elapsed(began) < 3
    assert len(origin.requests()) == 1


def test_idle_connections_and_tunnels_do_not_keep_it(origin, make_retryd):
    retryd = make_retryd(origin, resolve={"other.example:443": "127.0.0.1:%d" % origin.https},
                         timeouts={"drain": "500ms"})
    idle = retryd.open("sts.us-east-1.amazonaws.com")
    assert retryd.exchange(sigv4.sts(), wire=idle).status == 200
    silent, tunnel = retryd.plain(), retryd.tunnel("other.example")
    began = time.monotonic()
    retryd.stop()
    assert elapsed(began) < 5
    for wire in (idle, silent, tunnel):
        assert wire.ended(5)


def test_drain_has_an_end(origin, make_retryd):
    retryd = make_retryd(origin, timeouts={"drain": "500ms"})
    origin.answers({"fail": "hang"})
    wire = retryd.open("sts.us-east-1.amazonaws.com")
    wire.send(sigv4.sts().bytes())
    until(origin.requests, "the request is at the origin")
    began = time.monotonic()
    retryd.tell(signal.SIGTERM)
    answer = wire.response("POST")
    assert answer is None or answer.status in (502, 503, 504)
    retryd.stop()
    assert 0.4 < elapsed(began) < 5


def test_a_drain_ends_whatever_is_under_way(origin, make_retryd, tmp_path):
    """One connection, or a crowd, in each state in which something is waited for."""
    hello, host = client_hello(), "dynamodb.us-east-1.amazonaws.com"
    path = tmp_path / "r.sock"
    origin.answers({"fail": "hang"}, then="last")
    retryd = make_retryd(origin, listeners=[{"address": "unix:%s" % path, "proxy_protocol": ["127.0.0.0/8"],
                                             "clients": ["127.0.0.0/8"]}],
                         budgets={"key": ["service", "resource"]}, limits={"upstream_per_origin": 1},
                         timeouts={"drain": "1s", "connect": "60s"}, intercept={"bypass": ["silent.amazonaws.com"]})
    get = b"GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (host.encode(), host.encode())
    held = retryd.plain()
    held.send(get)
    until(origin.requests, "the one connection is in use")
    wires = [held] + [retryd.plain() for _ in range(3)]
    for wire in wires[1:]:
        wire.send(get)                                  # waits for it
    body = retryd.open(host)
    body.send(sigv4.json_rpc("dynamodb", "DynamoDB_20120810.PutItem", {"TableName": "t"}).head())
    introduced = unix_dial(path)                        # says nothing
    wires += [body, introduced, retryd.tunnel(host), retryd.tunnel("silent.amazonaws.com")]
    for _ in range(300):                                # more handshakes than may run at once
        wires.append(retryd.tunnel(host))
        wires[-1].send(hello)
    wires.append(retryd.tunnel(host))
    wires[-1].send(hello[:20])
    began = time.monotonic()
    retryd.stop()
    assert elapsed(began) < 10
    for wire in wires[:4] + [body]:
        answer = wire.response()
        assert answer is None or answer.status == 503
    for wire in wires:
        wire.close()


def test_no_new_connections_while_draining(origin, retryd):
    origin.answers({"ok": "auto", "delay_ms": 1000})
    wire = retryd.open("sts.us-east-1.amazonaws.com")
    wire.send(sigv4.sts().bytes())
    until(lambda: origin.log("tls"), "the attempt is under way")
    retryd.tell(signal.SIGTERM)

    def refused():
        try:
            socket.create_connection(("127.0.0.1", retryd.port), timeout=1).close()
            return False
        except (ConnectionRefusedError, ConnectionResetError):
            return True  # reset: it was in the queue of the socket when that closed

    until(refused, "new connections are refused", 2)
    assert wire.response("POST").status == 200
    retryd.stop()


def test_storm_of_signals(origin, retryd):
    """L5: Signals that mean nothing change nothing, also while requests run."""
    stop = threading.Event()

    def storm():
        while not stop.is_set():
            for sig in (signal.SIGPIPE, signal.SIGURG, signal.SIGWINCH, signal.SIGCHLD):
                retryd.process.send_signal(sig)
            stop.wait(0.001)

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        for _ in range(20):
            assert retryd.exchange(sigv4.sts()).status == 200
    finally:
        stop.set()
        thread.join()
