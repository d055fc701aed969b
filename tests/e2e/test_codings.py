"""Error bodies that are coded, in another format, or named in a header (retry-semantics §3; PR-12).

What is read for its code reaches the client as it came.
"""
import base64
import gzip
import time
import zlib

import pytest

import sigv4
from daemons import elapsed

JSON = {"Content-Type": "application/x-amz-json-1.0"}
THROTTLED = b'{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}'
FINAL = b'{"__type":"com.amazonaws.dynamodb.v20120810#ValidationException"}'


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODINGS = {
    "gzip": ("gzip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "raw": ("deflate", raw_deflate),
    "none": ("gzip", bytes),
}


def error(body, coding=None, headers=None, **how):
    headers = dict(headers or JSON)
    if coding:
        headers["Content-Encoding"] = coding
    return dict({"status": 400, "headers": headers, "body_b64": base64.b64encode(body).decode()}, **how)


@pytest.mark.parametrize("coding, pack", CODINGS.values(), ids=CODINGS.keys())
@pytest.mark.parametrize("how", [{}, {"framing": "chunked", "chunk_bytes": 1}], ids=["whole", "bytewise"])
def test_code_in_a_coded_body_is_read(origin, retryd, coding, pack, how):
    origin.answers(error(pack(THROTTLED), coding, **how))
    answer = retryd.exchange(sigv4.dynamodb())
    assert (answer.status, answer.whole) == (200, True)
    assert len(origin.requests()) == 2


@pytest.mark.parametrize("coding, pack", CODINGS.values(), ids=CODINGS.keys())
def test_coded_body_is_delivered_as_it_came(origin, retryd, coding, pack):
    origin.answers(error(pack(FINAL), coding))
    answer = retryd.exchange(sigv4.dynamodb())
    assert (answer.status, answer.body) == (400, pack(FINAL))
    assert len(origin.requests()) == 1


def test_bomb_is_delivered_untouched(origin, retryd):
    bomb = gzip.compress(bytes(64 << 20))
    origin.answers(error(bomb, "gzip"))
    start = time.monotonic()
    answer = retryd.exchange(sigv4.dynamodb())
    assert (answer.status, answer.body) == (400, bomb)
    assert elapsed(start) < 5
    assert len(origin.requests()) == 1


def test_unknown_coding_leaves_the_status(origin, retryd):
    origin.answers(error(THROTTLED, "br"))
    assert retryd.exchange(sigv4.dynamodb()).status == 400
    origin.answers(error(THROTTLED, "br", status=503))
    assert retryd.exchange(sigv4.dynamodb()).status == 200


def test_cbor(origin, retryd):
    cbor = {"Content-Type": "application/cbor", "smithy-protocol": "rpc-v2-cbor"}
    code = b"com.amazonaws.x#ThrottlingException"
    body = b"\xbf\x67message\x61m\x66__type\x78" + bytes([len(code)]) + code + b"\xff"
    origin.answers(error(body, headers=cbor))
    assert retryd.exchange(sigv4.dynamodb()).status == 200
    assert len(origin.requests()) == 2


def test_query_error_header_replaces_the_code(origin, retryd):
    query = dict(JSON, **{"x-amzn-query-error": "RequestThrottled;Sender"})
    origin.answers(error(FINAL, headers=query, status=403))
    assert retryd.exchange(sigv4.dynamodb()).status == 200
    assert len(origin.requests()) == 2


@pytest.mark.parametrize("on, attempts", [(True, 2), (False, 1)])
def test_checksum_that_does_not_fit(origin, make_retryd, on, attempts):
    """retry-semantics §13.4: with the option a DynamoDB answer whose x-amz-crc32 is wrong is tried again."""
    retryd = make_retryd(origin, retry={"dynamodb_crc32": on})
    origin.answers({"ok": "auto", "crc32": "bad"})
    answer = retryd.exchange(sigv4.dynamodb())
    assert (answer.status, answer.whole) == (200, True)
    assert len(origin.requests()) == attempts
