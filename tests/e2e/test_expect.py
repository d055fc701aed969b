"""Expect: 100-continue (security requirement C11; PR-03): one bare interim answer, never two, never late."""
import time

import pytest

import sigv4
from daemons import elapsed

BODY = b"0123456789abcdef" * 4096
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"


def expecting():
    return sigv4.s3("PUT", "/key", BODY, headers=[("Expect", "100-continue")])


@pytest.fixture(params=["intercepted", "plain"])
def opened(request, retryd):
    """(wire, send_head): a connection, and what sends the request's head there."""
    clear = request.param == "plain"
    wire = retryd.plain() if clear else retryd.open(expecting().host)

    def send_head(r):
        wire.send(r.head(r.absolute() if clear else None))

    return wire, send_head


def test_upstream_says_100(origin, opened):
    wire, send_head = opened
    r = expecting()
    began = time.monotonic()
    send_head(r)
    assert wire.head() == INTERIM
    assert elapsed(began) < 1
    wire.send(BODY)
    answer = wire.response("PUT")
    assert answer.status == 200 and answer.interim == []
    (request,) = origin.requests()
    assert (request["expect"], request["expect_waited"], request["sig"]) == ("100-continue", True, "ok")


def test_upstream_never_says_100(origin, opened):
    """CR6: upstream never says 100."""
    wire, send_head = opened
    origin.rules({"requests": [{"phase": "head", "steps": [{"expect": "withhold", "proceed": True}]}]})
    began = time.monotonic()
    send_head(expecting())
    assert wire.head() == INTERIM
    assert 0.5 < elapsed(began) < 2
    wire.send(BODY)
    answer = wire.response("PUT")
    assert answer.status == 200 and answer.interim == []


@pytest.mark.parametrize("status", [403, 307])
def test_final_answer_instead(origin, opened, status):
    """CR7: final answer instead."""
    wire, send_head = opened
    origin.rules({"requests": [{"phase": "head", "steps": [{"expect": "final", "status": status, "body": "no"}]}]})
    send_head(expecting())
    answer = wire.response("PUT")
    assert (answer.status, answer.body, answer.interim) == (status, b"no", [])
    # The body was not sent and never will be: the connection cannot go on, or takes a request as it should.
    if not wire.ended(5):
        pytest.fail("the connection stays open with %r" % wire.buffer)


def test_retry_needs_the_body_again(origin, opened):
    wire, send_head = opened
    origin.answers({"status": 503, "body": "{}"})
    send_head(expecting())
    assert wire.head() == INTERIM
    wire.send(BODY)
    answer = wire.response("PUT")
    assert answer.status == 200 and answer.interim == []
    first, second = origin.requests()
    assert first["body_sha256"] == second["body_sha256"]
    assert {first["expect"], second["expect"]} == {"100-continue"}


def test_error_before_the_body_is_retried_and_then_asks_for_it(origin, opened):
    wire, send_head = opened
    origin.rules({"requests": [{"phase": "head", "steps": [{"expect": "final", "status": 503, "body": "{}"}]}]})
    send_head(expecting())
    assert wire.head() == INTERIM
    wire.send(BODY)
    answer = wire.response("PUT")
    assert answer.status == 200 and answer.interim == []
    assert origin.requests()[-1]["body_bytes"] == len(BODY)


def test_client_that_does_not_wait(origin, opened):
    wire, send_head = opened
    send_head(expecting())
    wire.send(BODY)
    answer = wire.response("PUT")
    assert answer.status == 200 and len(answer.interim) <= 1


def test_other_expectations_are_refused(origin, retryd):
    r = sigv4.s3("PUT", "/key", b"x", headers=[("Expect", "200-ok")])
    wire = retryd.open(r.host)
    wire.send(r.head())
    answer = wire.response("PUT")
    assert (answer.status, answer.get("X-Retryd-Error")) == (417, "expectation_failed")
    assert origin.requests() == []


@pytest.mark.parametrize("clear", [True, False], ids=["plain", "intercepted"])
def test_other_interim_answers_are_passed_on_bare_and_once(origin, retryd, clear):
    """D6: RFC 9110 15.2; the second attempt repeats them, the client has heard."""
    origin.answers({"status": 503, "interim": [102, 103, 102]}, {"ok": "auto", "interim": [103, 102]})
    answer = retryd.exchange(sigv4.sts(), clear=clear)
    assert (answer.status, answer.whole) == (200, True)
    assert [head.split(b" ")[1] for head in answer.interim] == [b"102", b"103"]
    assert all(head.count(b"\r\n") == 2 for head in answer.interim)
    assert len(origin.requests()) == 2


def test_other_interim_answers_never_reach_a_client_that_waits_for_100(origin, opened):
    """C11, D6: clients that read the interim answer by hand take anything else for the final one."""
    wire, send_head = opened
    origin.rules({"requests": [{"phase": "head", "steps": [{"interim": [103], "expect": "withhold",
                                                            "proceed": True}]}]})
    send_head(expecting())
    assert wire.head() == INTERIM
    wire.send(BODY)
    answer = wire.response("PUT")
    assert answer.status == 200 and b"100" not in b"".join(answer.interim)


def test_no_interim_answer_for_http_1_0(origin, retryd):
    """C14, D6: and the connection ends behind the answer."""
    origin.answers({"ok": "auto", "interim": [102, 103]})
    request = sigv4.sts()
    wire = retryd.plain()
    wire.send(request.bytes(request.absolute()).replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1))
    answer = wire.response("POST")
    assert (answer.status, answer.interim) == (200, []) and wire.ended()
