"""Retries as the client and the origin see them (retry-semantics §1, §2, §5-§8, §13)."""
import threading
import time

import pytest

import sigv4
from daemons import elapsed
from wire import until

THROTTLED = {"error": "ThrottlingException"}
DOWN = {"status": 503, "body": "{}"}
OK = {"ok": "auto"}


def same_request(requests):
    """Every attempt is the first one again: target, headers and body; and the signature holds."""
    first = requests[0]
    for r in requests:
        assert r["sig"] == "ok", r["sig_why"]
        for part in ("method", "target", "host", "headers", "body_sha256"):
            assert r[part] == first[part]


def gap_ms(requests, n):
    """From the reply to attempt n until attempt n + 1 stood complete at the origin."""
    return (requests[n]["mono"] - requests[n - 1]["mono_reply"]) * 1000


@pytest.mark.parametrize("fault", [THROTTLED, DOWN], ids=["throttled", "503"])
def test_fails_twice_then_succeeds(origin, retryd, fault):
    origin.answers(dict(fault, times=2))
    answer = retryd.exchange(sigv4.dynamodb("PutItem", {"TableName": "t", "Item": {"id": {"S": "1"}}}))
    assert (answer.status, answer.whole) == (200, True)
    requests = origin.requests()
    assert [r["status"] for r in requests] == [400 if fault is THROTTLED else 503] * 2 + [200]
    same_request(requests)


def test_throttled_connection_is_used_again(origin, retryd):
    """D4: throttled connection is used again."""
    origin.answers(dict(THROTTLED, times=2))
    assert retryd.exchange(sigv4.dynamodb()).status == 200
    assert [r["on_conn"] for r in origin.requests()] == [1, 2, 3]


TRANSPORT = {
    "reset": {"fail": "reset"},
    "close": {"fail": "close"},
    "reset-in-head": {"fail": "reset_in_head"},
    "close-in-head": {"fail": "close_in_head"},
    "reset-in-body": {"ok": "auto", "fail": "reset_in_body", "body": "{\"Item\": {}}", "at": 3},
    "truncated-body": {"ok": "auto", "truncate_at": 3, "body": "{\"Item\": {}}", "end": "close"},
    "garbage": {"fail": "garbage"},
}


@pytest.mark.parametrize("fault", TRANSPORT.values(), ids=TRANSPORT.keys())
def test_transport_failure_is_retried_on_a_new_connection(origin, retryd, fault):
    """D4: transport failure is retried on a new connection."""
    origin.answers(fault)
    answer = retryd.exchange(sigv4.dynamodb())
    assert (answer.status, answer.whole, answer.body) == (200, True, b"{}")
    requests = origin.requests()
    assert len(requests) == 2
    assert requests[0]["conn"] != requests[1]["conn"]
    same_request(requests)


def test_tls_broken_off_is_retried(origin, retryd):
    origin.rules({"connections": [{"steps": [{"tls": "reset"}, {"tcp": "close"}]}]})
    assert retryd.exchange(sigv4.dynamodb()).status == 200
    assert len(origin.requests()) == 1


def test_refused_connection_is_retried(origin, make_retryd):
    retryd = make_retryd(origin, retry={"max_attempts": 20, "max_backoff": "200ms"})
    wire = retryd.open("dynamodb.us-east-1.amazonaws.com")
    origin.refuse(True)
    wire.send(sigv4.dynamodb().bytes())
    until(lambda: len(retryd.attempts_logged()) >= 2, "two refused attempts are logged")
    origin.refuse(False)
    assert wire.response().status == 200
    assert len(origin.requests()) == 1
    failed = [a for a in retryd.attempts_logged() if a["decision"] == "retry"]
    assert len(failed) >= 2 and {a["class"] for a in failed} == {"transient"}


def test_silent_origin_times_out_and_is_retried(origin, make_retryd):
    """J6: silent origin times out and is retried."""
    retryd = make_retryd(origin, timeouts={"response": "300ms"})
    origin.answers({"fail": "hang"})
    began = time.monotonic()
    assert retryd.exchange(sigv4.dynamodb()).status == 200
    assert 0.3 <= elapsed(began) < 5
    requests = origin.wait_requests(2)
    assert requests[0]["conn"] != requests[1]["conn"]


def test_stalled_body_times_out_and_is_retried(origin, make_retryd):
    """J6: stalled body times out and is retried."""
    retryd = make_retryd(origin, timeouts={"read": "300ms"})
    origin.answers({"ok": "auto", "body": "{\"Item\": {}}", "chunk_bytes": 4, "chunk_delay_ms": 2000})
    answer = retryd.exchange(sigv4.dynamodb())
    assert (answer.status, answer.body) == (200, b"{}")


def test_dynamodb_has_four_attempts_others_three(origin, retryd):
    origin.answers(DOWN, then="last")
    retryd.exchange(sigv4.dynamodb())
    assert len(origin.requests()) == 4
    origin.reset()
    retryd.exchange(sigv4.sts())
    assert len(origin.requests()) == 3


def test_attempts_are_configurable(origin, make_retryd):
    """E1: attempts are configurable."""
    retryd = make_retryd(origin, retry={"max_attempts": 2, "services": {"sts": {"max_attempts": 1}}})
    origin.answers(DOWN, then="last")
    retryd.exchange(sigv4.dynamodb())
    assert len(origin.requests()) == 2
    origin.reset()
    retryd.exchange(sigv4.sts())
    assert len(origin.requests()) == 1


def test_mode_off_never_retries(origin, make_retryd):
    retryd = make_retryd(origin, retry={"mode": "off"})
    origin.answers(THROTTLED)
    assert retryd.exchange(sigv4.dynamodb()).status == 400
    assert len(origin.requests()) == 1


def test_final_error_passes_at_once(origin, retryd):
    origin.answers({"error": "ValidationException", "message": "ThrottlingException is not the code"})
    answer = retryd.exchange(sigv4.dynamodb())
    assert answer.status == 400 and b"ValidationException" in answer.body
    assert len(origin.requests()) == 1


# ---- the wait


@pytest.mark.parametrize("header, least, most", [
    ("700", 700, 750), ("0", 0, 50), ("-700", 0, 50), ("0.7", 0, 50), ("700, 800", 0, 50), ("nonsense", 0, 50),
    pytest.param("60000", 5000, 5050, marks=pytest.mark.slow),
    pytest.param("99999999999999999999", 0, 5050, marks=pytest.mark.slow),
])
def test_retry_after_is_honoured_within_its_clamp(origin, retryd, header, least, most):
    """E4: [t, t + 5 s] around the backoff t, itself below 50 ms here; half a second is left to the machine."""
    origin.answers(dict(DOWN, headers={"x-amz-retry-after": header}))
    assert retryd.exchange(sigv4.sts()).status == 200
    requests = origin.requests()
    assert len(requests) == 2
    assert least <= gap_ms(requests, 1) + 1 < most + 500


def test_retry_after_given_twice_is_ignored(origin, retryd):
    """E4: retry after given twice is ignored."""
    origin.answers(dict(DOWN, headers={"x-amz-retry-after": ["3000", "3000"]}))
    assert retryd.exchange(sigv4.sts()).status == 200
    assert gap_ms(origin.requests(), 1) < 1000


def test_retry_after_makes_nothing_retryable(origin, retryd):
    origin.answers({"error": "ValidationException", "retry_after_ms": 100})
    assert retryd.exchange(sigv4.dynamodb()).status == 400
    assert len(origin.requests()) == 1


def test_http_retry_after_is_ignored(origin, retryd):
    origin.answers(dict(DOWN, headers={"Retry-After": "30"}))
    assert retryd.exchange(sigv4.sts()).status == 200
    assert gap_ms(origin.requests(), 1) < 1000


# ---- the quota


def test_outage_drains_the_quota_and_fails_fast(origin, retryd):
    """E8: 35 transient retries from full: 17 requests with two, one with one, then none; 10 tokens are left."""
    origin.answers(DOWN, then="last")
    wire = retryd.open("sts.us-east-1.amazonaws.com")
    attempts = []
    for _ in range(21):
        assert retryd.exchange(sigv4.sts(), wire=wire).status == 503
        attempts.append(len(origin.requests()))
        origin.reset()
    assert attempts == [3] * 17 + [2] + [1] * 3
    last = until(lambda: [a for a in retryd.attempts_logged() if a["quota_after"] == 10], "10 tokens are left")[-1]
    assert last["decision"] == "deliver"

    # Another key has a quota of its own.
    assert retryd.exchange(sigv4.sts(key_id="AKIDOTHER000000EXAMPLE"), wire=wire).status == 503
    assert len(origin.requests()) == 3

    # Four first-attempt successes bring one transient retry back.
    origin.rules({})
    for _ in range(4):
        assert retryd.exchange(sigv4.sts(), wire=wire).status == 200
    origin.reset()
    origin.answers(DOWN, then="last")
    assert retryd.exchange(sigv4.sts(), wire=wire).status == 503
    assert len(origin.requests()) == 2


def test_throttling_costs_less(origin, retryd):
    origin.answers({"error": "Throttling"})
    assert retryd.exchange(sigv4.sts()).status == 200
    first, second = until(lambda: (lambda a: a if len(a) == 2 else None)(retryd.attempts_logged()), "two attempts")
    assert (first["class"], first["quota_before"], first["quota_after"]) == ("throttling", 500, 495)
    assert (second["class"], second["quota_after"]) == ("success", 500)


def test_long_poll_waits_when_the_quota_refuses(origin, retryd):
    origin.answers(DOWN, then="last")
    wire = retryd.open("sqs.us-east-1.amazonaws.com")
    for _ in range(18):
        retryd.exchange(sigv4.query("sqs", "SendMessage"), wire=wire)
    origin.reset()
    origin.answers(dict(DOWN, retry_after_ms=600), then="last")
    began = time.monotonic()
    assert retryd.exchange(sigv4.query("sqs", "SendMessage"), wire=wire).status == 503
    assert elapsed(began) < 0.5
    began = time.monotonic()
    assert retryd.exchange(sigv4.query("sqs", "ReceiveMessage"), wire=wire).status == 503
    assert elapsed(began) >= 0.6
    assert len(origin.requests()) == 2


# ---- the last error


def numbered_errors(n):
    """Different in everything, so that no part of one can pass for another's."""
    return [{"status": 503, "request_id": "R%d" % i, "body": "{\"message\": \"number %d\"}" % i,
             "headers": {"Content-Type": "application/json", "X-Odd-Case": "value %d" % i,
                         "x-twice": ["a%d" % i, "b%d" % i]}} for i in range(1, n + 1)]


# What a proxy may add to or take from a response head.
OWN = {"via", "connection", "keep-alive", "date"}


def end_to_end(headers):
    return [(n, v) for n, v in headers if n.lower() not in OWN]


REQUESTS = {
    "POST": lambda: sigv4.sts(),
    "PUT": lambda: sigv4.s3("PUT", "/key", b"x" * 10000),
    "GET": lambda: sigv4.s3("GET", "/key"),
    "HEAD": lambda: sigv4.s3("HEAD", "/key"),
}


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("kind", REQUESTS)
def test_last_error_is_delivered_untouched(origin, retryd, kind, framing):
    """D9: last error is delivered untouched."""
    origin.answers(*[dict(e, framing=framing) for e in numbered_errors(3)])
    answer = retryd.exchange(REQUESTS[kind]())
    assert answer.status_line == "HTTP/1.1 503 Service Unavailable"
    body = b"" if kind == "HEAD" else b"{\"message\": \"number 3\"}"
    expected = [("x-amzn-RequestId", "R3")]
    if framing == "length":
        expected.append(("Content-Length", str(len(b"{\"message\": \"number 3\"}"))))
    elif kind != "HEAD":
        expected.append(("Transfer-Encoding", "chunked"))
    expected += [("Content-Type", "application/json"), ("X-Odd-Case", "value 3"), ("x-twice", "a3"),
                 ("x-twice", "b3")]
    got = end_to_end(answer.headers)
    framing_names = ("content-length", "transfer-encoding")
    assert [h for h in got if h[0].lower() not in framing_names] == \
        [h for h in expected if h[0].lower() not in framing_names]
    assert (answer.body, answer.whole) == (body, True)
    if framing == "length":
        assert ("Content-Length", "23") in got
    assert len(origin.requests()) == 3


def test_connection_goes_on_after_an_error(origin, retryd):
    wire = retryd.open("sts.us-east-1.amazonaws.com")
    origin.answers(*numbered_errors(3))
    assert retryd.exchange(sigv4.sts(), wire=wire).get("x-amzn-RequestId") == "R3"
    assert retryd.exchange(sigv4.sts(), wire=wire).status == 200


OWN_ERRORS = {
    "json": (lambda: sigv4.dynamodb(), b"{", b"__type"),
    "query": (lambda: sigv4.sts(), b"<", b"<Code>"),
    "s3": (lambda: sigv4.s3("PUT", "/key", b"abc"), b"<", b"<Code>"),
}


@pytest.mark.parametrize("kind", OWN_ERRORS)
@pytest.mark.parametrize("fault, status, word", [("reset", 502, "connection_reset"),
                                                 ("hang", 504, "response_timeout")])
def test_own_error_speaks_the_clients_protocol(origin, make_retryd, kind, fault, status, word):
    """D9, CR11: own error speaks the clients protocol."""
    request, start, code = OWN_ERRORS[kind]
    retryd = make_retryd(origin, timeouts={"response": "200ms"}, retry={"max_attempts": 2, "max_backoff": "50ms"})
    origin.answers({"fail": fault}, then="last")
    answer = retryd.exchange(request())
    assert (answer.status, answer.whole) == (status, True)
    assert answer.body.lstrip().startswith((start, b"<?xml") if start == b"<" else start)
    assert code in answer.body and b"<html" not in answer.body.lower()
    assert answer.get("X-Retryd-Error") == word
    assert len(origin.wait_requests(2)) == 2


def test_error_then_refusal_is_retryds_own(origin, retryd):
    """503, 503, and the last attempt finds nobody: there is no last answer to hand over."""
    origin.answers(DOWN, dict(DOWN, refuse_ms=3000, close=True), then="last")
    answer = retryd.exchange(sigv4.sts())
    assert (answer.status, answer.get("X-Retryd-Error")) == (502, "connect_refused")


# ---- when no retry may be


def test_old_signature_is_not_retried(origin, retryd):
    """E5: A proxy cannot sign anew, and services refuse signatures five minutes old."""
    origin.answers(DOWN)
    assert retryd.exchange(sigv4.sts(age_s=290)).status == 503
    assert len(origin.requests()) == 1


def test_waits_are_bounded_in_sum(origin, make_retryd):
    """E5: waits are bounded in sum."""
    retryd = make_retryd(origin, retry={"max_attempts": 10, "max_total_wait": "1s"})
    origin.answers(dict(DOWN, retry_after_ms=400), then="last")
    began = time.monotonic()
    assert retryd.exchange(sigv4.sts()).status == 503
    assert len(origin.requests()) == 3
    assert elapsed(began) < 3


def test_no_retry_once_a_byte_was_delivered(origin, retryd):
    """E3: no retry once a byte was delivered."""
    origin.answers({"status": 200, "body_size": 300000, "truncate_at": 200000})
    answer = retryd.exchange(sigv4.s3("GET", "/large"))
    assert answer.status == 200 and not answer.whole
    assert answer.body == (b"0123456789abcdef" * 20000)[:len(answer.body)]
    retryd.requests_logged()
    assert len(origin.requests()) == 1


def test_cut_chunked_body_stays_visibly_cut(origin, retryd):
    """D5: cut chunked body stays visibly cut."""
    origin.answers({"status": 200, "body_size": 300000, "truncate_at": 200000, "framing": "chunked"})
    answer = retryd.exchange(sigv4.s3("GET", "/large"))
    assert answer.status == 200 and not answer.whole
    retryd.requests_logged()
    assert len(origin.requests()) == 1


def test_error_cut_short_is_a_failed_attempt(origin, retryd):
    """CR12: error cut short is a failed attempt."""
    origin.answers({"status": 500, "body_size": 123, "truncate_at": 0},
                   {"status": 503, "body_size": 400, "framing": "chunked", "truncate_at": 100})
    answer = retryd.exchange(sigv4.sts())
    assert (answer.status, answer.whole) == (200, True)
    assert len(origin.requests()) == 3


def test_dead_pooled_connection_costs_nothing(origin, retryd):
    """The origin closes after each answer without saying so; no attempt, no token (§13.1)."""
    origin.rules({"default": {"ok": "auto", "drop_after": True}})
    wire = retryd.open("dynamodb.us-east-1.amazonaws.com")
    for n in range(1, 31):
        assert retryd.exchange(sigv4.dynamodb(), wire=wire).status == 200
    records = retryd.requests_logged(30)
    assert {r["attempts"] for r in records} == {1}
    assert len(origin.requests()) == 30


def test_many_at_once(origin, retryd):
    origin.rules({"requests": [{"key": "header:x-id", "steps": [dict(DOWN), OK]}]})
    answers = []

    def one(n):
        request = sigv4.json_rpc("dynamodb", "DynamoDB_20120810.GetItem", {"n": n}, headers=[("x-id", str(n))])
        answers.append(retryd.exchange(request).status)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(30)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert answers == [200] * 30
    assert len(origin.requests()) == 60
