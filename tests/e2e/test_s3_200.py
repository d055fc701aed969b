"""S3: status 200 with an error in the body (retry-semantics §3.6; PR-01)."""
import time

import pytest

import sigv4
from daemons import elapsed

XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
INTERNAL = "<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"
DONE = '<CompleteMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><ETag>"0-1"</ETag>' \
       "</CompleteMultipartUploadResult>"
PARTS = b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>e</ETag></Part></CompleteMultipartUpload>"


def complete():
    return sigv4.s3("POST", "/big.bin?uploadId=u1", PARTS, headers=[("Content-Type", "application/xml")])


def ok(body, **how):
    return dict({"status": 200, "headers": {"Content-Type": "application/xml"}, "body": body, "framing": "chunked"},
                **how)


OPERATIONS = {
    "CompleteMultipartUpload": complete,
    "CopyObject": lambda: sigv4.s3("PUT", "/copy", headers=[("x-amz-copy-source", "/bucket/key")]),
    "UploadPartCopy": lambda: sigv4.s3("PUT", "/copy?partNumber=1&uploadId=u1",
                                       headers=[("x-amz-copy-source", "/bucket/key")]),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("framing, clear", [("chunked", False), ("length", False), ("chunked", True),
                                            ("close", True)])
def test_error_in_a_200_is_retried(origin, retryd, operation, framing, clear):
    origin.answers(ok(XML + INTERNAL, framing=framing), ok(XML + DONE, framing=framing))
    answer = retryd.exchange(OPERATIONS[operation](), clear=clear)
    assert (answer.status, answer.body, answer.whole) == (200, (XML + DONE).encode(), True)
    first, second = origin.requests()
    assert first["body_sha256"] == second["body_sha256"]
    assert {first["sig"], second["sig"]} == {"ok"}


def test_blanks_while_s3_works(origin, retryd):
    body = " " * 6 + XML + INTERNAL
    origin.answers(ok(body, chunk_bytes=3, chunk_delay_ms=20), ok(XML + DONE))
    answer = retryd.exchange(complete())
    assert answer.body == (XML + DONE).encode()
    assert len(origin.requests()) == 2


@pytest.mark.parametrize("body", [XML + "\n   \n" + INTERNAL, " \n" + XML + "  " + INTERNAL, INTERNAL])
def test_blanks_everywhere(origin, retryd, body):
    origin.answers(ok(body), ok(XML + DONE))
    assert retryd.exchange(complete()).body == (XML + DONE).encode()
    assert len(origin.requests()) == 2


def test_slow_down_in_a_200_is_throttling(origin, retryd):
    origin.answers(ok(XML + INTERNAL.replace("InternalError", "SlowDown")), ok(XML + DONE))
    assert retryd.exchange(complete()).body == (XML + DONE).encode()
    first = retryd.log("attempt")[0]
    assert (first["class"], first["code"]) == ("throttling", "SlowDown")


def test_last_one_is_delivered_as_it_is(origin, retryd):
    origin.answers(*[ok(XML + INTERNAL.replace("internal", "number %d" % n), request_id="R%d" % n)
                     for n in (1, 2, 3)])
    answer = retryd.exchange(complete())
    assert answer.status == 200 and answer.get("x-amzn-RequestId") == "R3"
    assert answer.body == (XML + INTERNAL.replace("internal", "number 3")).encode()
    assert len(origin.requests()) == 3


def test_cut_document_is_retried(origin, retryd):
    origin.answers(ok(XML + DONE[:40]), ok(XML + DONE))
    assert retryd.exchange(complete()).body == (XML + DONE).encode()
    assert len(origin.requests()) == 2


def test_error_further_inside_is_a_success(origin, retryd):
    body = XML + "<CompleteMultipartUploadResult>" + INTERNAL + "</CompleteMultipartUploadResult>"
    origin.answers(ok(body))
    assert retryd.exchange(complete()).body == body.encode()
    assert len(origin.requests()) == 1


@pytest.mark.parametrize("target", ["/page.xml", "/page.xml?partNumber=1"])
def test_the_callers_own_data_is_never_judged(origin, retryd, target):
    origin.answers(ok(INTERNAL))
    answer = retryd.exchange(sigv4.s3("GET", target))
    assert (answer.status, answer.body) == (200, INTERNAL.encode())
    assert len(origin.requests()) == 1


def test_hold_ends_after_its_time(origin, make_retryd):
    """Blanks for longer than the hold: the client gets what there is, and the right to retry is gone."""
    retryd = make_retryd(origin, limits={"hold_root_time": "400ms"})
    body = " " * 100 + XML + INTERNAL
    origin.answers(ok(body, chunk_bytes=10, chunk_delay_ms=100), ok(XML + DONE))
    request = complete()
    wire = retryd.open(request.host)
    wire.send(request.bytes())
    began = time.monotonic()
    answer = wire.response("POST", body=False)
    assert 0.35 <= elapsed(began) < 1.2
    wire.body(answer)
    assert answer.body == body.encode() and answer.whole
    assert len(origin.requests()) == 1
