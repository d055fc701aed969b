"""The client left: nothing is done for it any more (PR-06, security requirement E7)."""
import socket
import time

import pytest

import sigv4
from test_listeners import unix_dial
from wire import until

DOWN = {"status": 503, "body": "{}"}


def gone(retryd):
    (record,) = retryd.requests_logged()
    return record


@pytest.mark.parametrize("how", ["close", "reset"])
def test_during_a_wait(origin, retryd, how):
    origin.answers(dict(DOWN, retry_after_ms=1500), then="last")
    wire = retryd.open("sts.us-east-1.amazonaws.com")
    wire.send(sigv4.sts().bytes())
    until(lambda: [a for a in retryd.attempts_logged() if a["decision"] == "retry"], "the retry is decided")
    began = time.monotonic()
    getattr(wire, how)()
    record = gone(retryd)
    assert time.monotonic() - began < 1
    assert (record["end"], record["attempts"]) == ("client_gone", 1)
    # The time of the retry passes, and it does not come: a later request is the next that arrives.
    time.sleep(max(0, 1.8 - (time.monotonic() - began)))
    origin.rules({})
    assert retryd.exchange(sigv4.dynamodb()).status == 200
    assert [r["op"] for r in origin.requests()] == ["GetCallerIdentity", "GetItem"]


def test_while_the_origin_is_silent(origin, retryd):
    origin.answers({"fail": "hang"}, then="last")
    wire = retryd.open("sts.us-east-1.amazonaws.com")
    wire.send(sigv4.sts().bytes())
    until(origin.requests, "the request is at the origin")
    wire.close()
    assert gone(retryd)["end"] == "client_gone"
    until(lambda: origin.log("conn_end"), "the upstream connection is closed", 2)
    assert len(origin.requests()) == 1


def test_on_a_unix_socket(origin, make_retryd, tmp_path):
    origin.answers({"fail": "hang"}, then="last")
    path = tmp_path / "r.sock"
    retryd = make_retryd(origin, listeners=[{"address": "unix:%s" % path}])
    wire, request = unix_dial(path), sigv4.sts()
    wire.send(request.bytes(request.absolute()))
    until(origin.requests, "the request is at the origin")
    wire.close()
    assert gone(retryd)["end"] == "client_gone"


@pytest.mark.parametrize("family", ["tcp", "unix"])
def test_half_close_is_not_a_departure(origin, make_retryd, tmp_path, family):
    """Plain, because a TLS client cannot half-close: its end is an end."""
    origin.answers(dict(DOWN, times=2))
    path = tmp_path / "r.sock"
    retryd = make_retryd(origin, listeners=[{"address": "unix:%s" % path}])
    wire = unix_dial(path) if family == "unix" else retryd.plain()
    request = sigv4.sts()
    wire.send(request.bytes(request.absolute()))
    wire.sock.shutdown(socket.SHUT_WR)
    answer = wire.response("POST")
    assert answer.status == 200 and answer.whole
    assert len(origin.requests()) == 3


def test_during_the_body(origin, retryd):
    request = sigv4.s3("PUT", "/key", b"x" * 100000)
    wire = retryd.open(request.host)
    wire.send(request.head() + request.body[:5000])
    until(lambda: origin.log("tls"), "the attempt has begun")
    wire.close()
    assert gone(retryd)["end"] == "client_gone"
    # An incomplete request never reaches the origin as a complete one.
    assert [r["outcome"] for r in origin.wait_requests(1)] == ["client_gone"]


def test_many_departures_leave_the_quota_alone(origin, make_retryd):
    """What a departed request paid stays spent; it is neither drained further nor refilled by its leaving."""
    retryd = make_retryd(origin, timeouts={"response": "30s"})
    origin.rules({"requests": [{"steps": [{"fail": "hang"}], "then": "loop"}]})
    for n in range(1, 21):
        wire = retryd.open("sts.us-east-1.amazonaws.com")
        wire.send(sigv4.sts().bytes())
        origin.wait_requests(n)
        wire.close()
    retryd.requests_logged(20)
    origin.reset()
    origin.answers(DOWN)
    assert retryd.exchange(sigv4.sts()).status == 200
    failed = [a for a in retryd.attempts_logged() if a.get("status") == 503]
    assert (failed[0]["quota_before"], failed[0]["quota_after"]) == (500, 486)
