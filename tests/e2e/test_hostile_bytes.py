"""One exchange of some 300 bytes each way, broken off at every byte of it, in every way, on both sides.

The answer is then whole and right, or one of retryd's own, or visibly cut; a request that the client did not finish
never arrives whole; and a request that was answered in full reached the origin in full."""
import socket
import threading

import pytest

from hostile import HOST, RawOrigin, back_to, descriptors, read_request, reset_on_close
from wire import dial

BODY = bytes(range(65, 91)) * 5
REQUEST = (b"PUT http://%s/every/byte HTTP/1.1\r\nHost: %s\r\nX-Filler: %s\r\nContent-Length: %d\r\n\r\n" %
           (HOST.encode(), HOST.encode(), b"f" * 40, len(BODY)) + BODY)
CHUNKED = (b"PUT http://%s/every/byte HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n" %
           (HOST.encode(), HOST.encode()) + b"41;x=y\r\n" + BODY[:65] + b"\r\n41\r\n" + BODY[65:] +
           b"\r\n0\r\nX-Trailer: value\r\n\r\n")
ANSWERS = {
    "length": b"HTTP/1.1 200 OK\r\nX-Filler: " + b"f" * 40 + b"\r\nContent-Length: 130\r\n\r\n" + BODY,
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n41;x=y\r\n" + BODY[:65] + b"\r\n41\r\n" +
               BODY[65:] + b"\r\n0\r\nX-Trailer: value\r\n\r\n",
    "interim": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 130\r\n\r\n" + BODY,
    "error": b"HTTP/1.1 503 Busy\r\nContent-Length: 130\r\n\r\n" + BODY,
}
ENDS = ["close", "reset", "half", "stall"]
AT_ONCE = 40
# Attempts follow each other at once, and a stall is short: hundreds of exchanges have to fit into seconds.
CONFIG = {"retry": {"max_backoff": "1ms", "max_attempts": 2},
          "timeouts": {"response": "400ms", "read": "400ms", "client_body": "400ms", "client_head": "400ms"}}


def leave(wire, how):
    if how == "reset":
        reset_on_close(wire.sock)
    if how == "half":
        wire.sock.shutdown(socket.SHUT_WR)
    if how in ("half", "stall"):
        while wire.fill():            # until the other side has had enough
            pass


def for_each(numbers, action):
    """action(n) for all of them, some at a time; the first exception is the test's."""
    numbers, problems = list(numbers), []

    def work():
        while numbers and not problems:
            try:
                n = numbers.pop()
            except IndexError:
                return
            try:
                action(n)
            except Exception as e:
                problems.append((n, repr(e)))

    threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems, problems[0]


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("kind", ANSWERS)
def test_answer_broken_off_at_every_byte(make_retryd, kind, how):
    answer, connections = ANSWERS[kind], {}

    def script(wire, n):
        while True:
            message = read_request(wire)
            assert message.body == BODY
            cut = int(message.headers["x-cut"])
            wire.send(answer[:cut])
            if cut < len(answer):
                leave(wire, how)
                return

    origin = RawOrigin(script)
    try:
        retryd = make_retryd(None, **origin.config(**CONFIG))
        baseline = descriptors(retryd.process)

        def one(cut):
            wire = dial(retryd.port)
            host = b"b%d.s3.us-east-1.amazonaws.com" % cut     # a quota, and a pool, of its own
            wire.send(REQUEST.replace(HOST.encode(), host).replace(b"X-Filler", b"X-Cut: %d\r\nX-Filler" % cut))
            got = wire.response("PUT")
            assert got is not None, "no answer"
            if cut == len(answer):
                assert (got.status, got.whole, got.body) == (503 if kind == "error" else 200, True, BODY)
            elif got.whole:
                assert got.get("X-Retryd-Error") in ("connection_closed", "connection_reset", "response_timeout",
                                                     "truncated_response"), (got.status, got.headers)
            wire.close()

        for_each(range(len(answer) + 1), one)
    finally:
        origin.stop()
    back_to(retryd.process, baseline)


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("whole", [REQUEST, CHUNKED], ids=["length", "chunked"])
def test_request_broken_off_at_every_byte(make_retryd, whole, how):
    arrived = []

    def script(wire, n):
        while True:
            message = read_request(wire)
            arrived.append(message.headers["x-cut"])
            assert message.body == BODY
            wire.send(ANSWERS["length"])

    origin = RawOrigin(script)
    try:
        retryd = make_retryd(None, **origin.config(**CONFIG))
        baseline = descriptors(retryd.process)

        def one(cut):
            wire = dial(retryd.port)
            data = whole.replace(b"Host:", b"X-Cut: %03d\r\nHost:" % cut, 1)
            wire.send(data[:cut])
            if cut == len(data):
                got = wire.response("PUT")
                assert (got.status, got.body) == (200, BODY)
            elif how == "stall" and cut > 0:
                got = wire.response("PUT")
                assert got is not None and got.status == 408, got and got.status
            else:
                leave(wire, how)
            wire.close()

        length = len(whole) + len(b"X-Cut: 000\r\n")
        for_each(range(length + 1), one)
        assert set(arrived) == {"%03d" % length}
    finally:
        origin.stop()
    back_to(retryd.process, baseline)
