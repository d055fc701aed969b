"""The log: a line an attempt, a line a request, and no secret ever (security requirements K1, K2)."""
import re

import pytest

import sigv4
from wire import until

CANARIES = {
    "secret": sigv4.SECRET,
    "token": "CanarySessionToken0123456789",
    "cookie": "CanaryCookie0123456789",
    "body": "CanaryBody0123456789",
    "answer": "CanaryAnswer0123456789",
    "password": "Q2FuYXJ5UHJveHlQYXNzd29yZA==",
}


def test_a_line_an_attempt_and_a_line_a_request(origin, retryd):
    """E9: what was sent upstream for one request can be counted."""
    origin.answers({"fail": "reset"}, {"error": "ThrottlingException"})
    assert retryd.exchange(sigv4.dynamodb("PutItem")).status == 200
    (request,) = retryd.requests_logged()
    attempts = retryd.attempts_logged()
    assert [a["attempt"] for a in attempts] == ["1/4", "2/4", "3/4"]
    assert len({a["xid"] for a in attempts} | {request["xid"]}) == 1
    first, second, third = attempts
    for a in attempts:
        assert (a["host"], a["service"], a["op"]) == ("dynamodb.us-east-1.amazonaws.com", "dynamodb", "PutItem")
        assert a["took_ms"] >= 0
    assert (first["failure"], first["class"], first["decision"]) == ("reset", "transient", "retry")
    assert first["quota_before"] - first["quota_after"] == 14 and "status" not in first
    assert (second["status"], second["code"], second["class"], second["decision"]) == \
        (400, "ThrottlingException", "throttling", "retry")
    assert "wait_ms" in second and second["quota_before"] - second["quota_after"] == 5
    assert (third["status"], third["class"], third["decision"]) == (200, "success", "deliver")
    assert (request["status"], request["attempts"], request["end"]) == (200, 3, "delivered")
    assert request["key"] == sigv4.KEY_ID[-4:] and request["region"] == "us-east-1"


def test_key_value_lines(origin, make_retryd):
    retryd = make_retryd(origin, log={"format": "kv"})
    origin.answers({"error": "ThrottlingException"})
    assert retryd.exchange(sigv4.dynamodb()).status == 200

    def lines():
        with open(retryd.log_file) as f:
            return [l for l in f.read().splitlines() if re.search(r"\brequest\b.*\battempts=2\b", l)]

    assert len(until(lines, "the request's line")) == 1


@pytest.mark.parametrize("level", ["info", "debug"])
def test_no_secret_gets_out(origin, make_retryd, level):
    """K2: no secret gets out."""
    retryd = make_retryd(origin, log={"level": level})
    origin.answers({"status": 503, "body": CANARIES["answer"], "headers": {"Set-Cookie": CANARIES["cookie"]}})
    request = sigv4.s3("PUT", "/key", CANARIES["body"].encode(),
                       headers=[("X-Amz-Security-Token", CANARIES["token"]), ("Cookie", CANARIES["cookie"])])
    request.headers.append(("Proxy-Authorization", "Basic " + CANARIES["password"]))
    signature = request.headers[-2][1].rsplit("Signature=", 1)[1]
    assert retryd.exchange(request).status == 200
    presigned = "/key?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=%s%%2F20260101%%2Fus-east-1%%2Fs3%%2F" \
                "aws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host" \
                "&X-Amz-Security-Token=%s&X-Amz-Signature=%s" % (sigv4.KEY_ID, CANARIES["token"], "c0ffee" * 10)
    wire = retryd.open(request.host)
    wire.send(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (presigned.encode(), request.host.encode()))
    assert wire.response().status == 200
    wire.close()
    # A malformed head, whose bytes must not be quoted either.
    wire = retryd.plain()
    wire.send(b"GET http://sts.amazonaws.com/ HTTP/1.1\r\nHost: sts.amazonaws.com\r\nCookie: %s\0\r\n\r\n" %
              CANARIES["cookie"].encode())
    assert wire.response().status == 400
    retryd.requests_logged(2)
    retryd.stop()
    said = "".join(retryd.said(n) for n in ("stdout", "stderr", "retryd.log"))
    for what in list(CANARIES.values()) + [signature, "c0ffee" * 10, sigv4.KEY_ID]:
        assert what not in said
    assert len(retryd.log("request")) >= 2


def test_no_control_byte_gets_out(origin, retryd):
    """K1: no control byte gets out."""
    origin.answers({"status": 400, "body": '{"__type":"Evil\\u001b[31m\\nrequest x=1"}',
                    "headers": {"Content-Type": "application/x-amz-json-1.0"}})
    wire = retryd.plain()
    wire.send(b"\x1b[31mGET / HTTP/1.1\r\n\r\n")
    assert wire.response().status == 400
    assert retryd.exchange(sigv4.dynamodb()).status == 400
    retryd.requests_logged(1)
    with open(retryd.log_file, "rb") as f:
        data = f.read()
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", data)


def test_what_cut_an_answer_short(origin, retryd):
    """The attempt was judged by its head; the reason comes later and stands in the request's line."""
    origin.answers({"status": 200, "body_size": 200000, "truncate_at": 150000})
    wire = retryd.open("bucket.s3.us-east-1.amazonaws.com")
    wire.send(sigv4.s3("GET", "/key").bytes())
    assert not wire.response("GET").whole
    (request,) = retryd.requests_logged()
    assert (request["end"], request["failure"], request["attempts"]) == ("cut", "truncated_body", 1)


def test_who_was_refused_and_where_to(make_retryd):
    """The line has the id of the answer, the way in and the target: never its path, nor an empty field."""
    retryd = make_retryd(listen=[], listeners=[{"name": "door", "address": "127.0.0.1:0", "aws_only": True}])
    for head, method, host, port, reason in (
            (b"GET http://example.test/key?X-Amz-Signature=canary HTTP/1.1\r\nHost: example.test\r\n\r\n",
             "GET", "example.test", 80, "host_not_allowed"),
            (b"CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n",
             "CONNECT", "example.test", 443, "host_not_allowed"),
            (b"CONNECT example.test:22 HTTP/1.1\r\nHost: example.test:22\r\n\r\n",
             "CONNECT", "example.test", 22, "port_not_allowed")):
        wire = retryd.plain()
        wire.send(head)
        answer = wire.response(method)
        line = retryd.log("refused")[-1]
        assert (line["method"], line["host"], line["port"], line["reason"]) == (method, host, port, reason)
        assert line["listener"] == "door" and line["client"].startswith("127.0.0.1:")
        assert answer.get("X-Amzn-RequestId") == "retryd-" + line["xid"]
        assert "canary" not in str(line) and "detail" not in line
        wire.close()


def test_tls_where_none_is_spoken(make_retryd):
    """A proxy URL with https:// for a listener that has no certificate."""
    wire = make_retryd().plain()
    wire.send(b"\x16\x03\x01\x00\x05hello\r\n\r\n")
    answer = wire.response()
    assert answer.status == 400 and b"tls_certificate" in answer.body


def test_why_a_tunnel_was_not(make_retryd):
    retryd = make_retryd()
    wire = retryd.plain()
    wire.send(b"CONNECT 169.254.169.254:443 HTTP/1.1\r\nHost: 169.254.169.254:443\r\n\r\n")
    answer = wire.response("CONNECT")
    (line,) = until(lambda: retryd.log("tunnel"), "its line")
    assert (line["end"], line["detail"]) == ("address_not_allowed", "169.254.169.254:443: metadata")
    assert line["client"].startswith("127.0.0.1:")
    assert answer.get("X-Amzn-RequestId") == "retryd-" + line["xid"]


def test_where_it_listens_and_who_asked(origin, make_retryd):
    retryd = make_retryd(origin, listen=[], listeners=[{"name": "door", "address": "127.0.0.1:0"}])
    assert retryd.exchange(sigv4.sts()).status == 200
    (line,) = retryd.log("listening")
    assert (line["listener"], line["listen"]) == ("door", "127.0.0.1:%d" % retryd.port)
    assert retryd.requests_logged()[0]["client"].startswith("127.0.0.1:")
