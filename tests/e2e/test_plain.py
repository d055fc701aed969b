"""Absolute-form requests: the same without TLS (RFC 9112 3.2.2)."""
import pytest

import sigv4

DOWN = {"status": 503, "body": "{}"}


def test_throttled_twice(origin, retryd):
    """CR3: throttled twice."""
    origin.answers({"error": "ThrottlingException", "times": 2})
    answer = retryd.exchange(sigv4.dynamodb(), clear=True)
    assert (answer.status, answer.body) == (200, b"{}")
    requests = origin.requests()
    assert len(requests) == 3
    assert {(r["listener"], r["target"], r["sig"]) for r in requests} == {("http0", "/", "ok")}


@pytest.mark.parametrize("fault", [DOWN, {"fail": "reset"}, {"fail": "close_in_head"},
                                   {"ok": "auto", "truncate_at": 1}], ids=["503", "reset", "head", "body"])
def test_failures(origin, retryd, fault):
    origin.answers(fault)
    assert retryd.exchange(sigv4.sts(), clear=True).status == 200
    assert len(origin.requests()) == 2


def test_large_put(origin, retryd):
    origin.answers(DOWN)
    assert retryd.exchange(sigv4.s3("PUT", "/large", b"\0\1\2\3" * (1 << 18)), clear=True).status == 200
    first, second = origin.requests()
    assert first["body_sha256"] == second["body_sha256"] and second["sig"] == "ok"


def test_several_hosts_on_one_connection(origin, retryd):
    wire = retryd.plain()
    for request in (sigv4.sts(), sigv4.dynamodb(), sigv4.s3("GET", "/key")):
        assert retryd.exchange(request, clear=True, wire=wire).status == 200
    assert [r["service"] for r in origin.requests()] == ["sts", "dynamodb", "s3"]


def test_path_and_query_are_not_touched(origin, retryd):
    """C2, CR10: path and query are not touched."""
    target = "/a%2Fb/./../c%20d+e//f?x=%7E&y&z=%2f"
    for clear in (True, False):
        origin.reset()
        origin.answers(DOWN)
        request = sigv4.s3("GET", target, headers=[("User-Agent", "tool/1.0  lib/2.0"), ("X-Amz-User-Agent", ""),
                                                   ("Range", "bytes=0-5242879"), ("Accept-Encoding", "identity"),
                                                   ("amz-sdk-request", "attempt=1; max=3")])
        assert retryd.exchange(request, clear=clear).status == 200
        requests = origin.requests()
        assert {r["target"] for r in requests} == {target}
        assert {r["sig"] for r in requests} == {"ok"}
        for name, value in request.headers:
            if name not in ("Host",):
                assert [name, value] in requests[1]["headers"]


def test_hop_by_hop_fields_stay_here(origin, retryd):
    """C6, C8, C13, CR2: hop by hop fields stay here."""
    request = sigv4.sts()
    request.headers += [("Proxy-Connection", "keep-alive"), ("Keep-Alive", "timeout=5"), ("TE", "trailers"),
                        ("Proxy-Authorization", "Basic c2VjcmV0"), ("Connection", "keep-alive, X-Mine"),
                        ("X-Mine", "1")]
    assert retryd.exchange(request, clear=True).status == 200
    seen = {n.lower() for n, _ in origin.requests()[0]["headers"]}
    assert not seen & {"proxy-connection", "keep-alive", "te", "proxy-authorization", "x-mine"}


def test_post_to_a_host_that_is_not_aws_is_sent_once(origin, make_retryd):
    """E2: RFC 9110 9.2.2: only for AWS does the operator agree to repeat what is not idempotent."""
    retryd = make_retryd(origin, resolve={"other.example:80": "127.0.0.1:%d" % origin.http})
    origin.answers({"fail": "reset"}, then="last")
    wire = retryd.plain()
    wire.send(b"POST http://other.example/ HTTP/1.1\r\nHost: other.example\r\nContent-Length: 2\r\n\r\nhi")
    answer = wire.response("POST")
    assert (answer.status, answer.get("X-Retryd-Error")) == (502, "connection_reset")
    assert len(origin.requests()) == 1


BAD = {
    "origin-form": (b"GET / HTTP/1.1\r\nHost: sts.us-east-1.amazonaws.com\r\n\r\n", 400),
    "no host": (b"GET http://sts.us-east-1.amazonaws.com/ HTTP/1.1\r\n\r\n", 400),
    "two lengths": (b"POST http://sts.us-east-1.amazonaws.com/ HTTP/1.1\r\nHost: sts.us-east-1.amazonaws.com\r\n"
                    b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
    "length and chunked": (b"POST http://sts.us-east-1.amazonaws.com/ HTTP/1.1\r\n"
                           b"Host: sts.us-east-1.amazonaws.com\r\nContent-Length: 5\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "bare line feed": (b"GET http://sts.us-east-1.amazonaws.com/ HTTP/1.1\nHost: sts.us-east-1.amazonaws.com\n\n",
                       400),
    "trace": (b"TRACE http://sts.us-east-1.amazonaws.com/ HTTP/1.1\r\nHost: sts.us-east-1.amazonaws.com\r\n\r\n",
              405),
    "version": (b"GET http://sts.us-east-1.amazonaws.com/ HTTP/2.0\r\nHost: sts.us-east-1.amazonaws.com\r\n\r\n",
                505),
}


@pytest.mark.parametrize("case", BAD)
def test_doubtful_requests_are_refused_and_the_connection_closed(origin, retryd, case):
    data, status = BAD[case]
    wire = retryd.plain()
    wire.send(data + b"GET http://sts.us-east-1.amazonaws.com/next HTTP/1.1\r\n"
                     b"Host: sts.us-east-1.amazonaws.com\r\n\r\n")
    answer = wire.response("GET")
    assert answer.status == status and answer.get("X-Retryd-Error")
    assert b"<html" not in answer.body.lower()
    if case != "trace":
        assert wire.ended()
    assert [r for r in origin.requests() if r["path"] != "/next"] == []
