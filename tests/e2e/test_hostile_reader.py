"""Clients that take their answers slowly, late or not at all (security requirements J5, D5)."""
import signal
import socket
import time

import pytest

from daemons import elapsed
from hostile import RawOrigin, descriptors, read_request, request, response, stands_still
from wire import Wire, until

ANSWER = bytes(range(256)) * 200      # 50 KiB: held until whole, and written in one go


@pytest.fixture
def small_answers():
    """An origin that answers each request with 50 KiB."""
    def script(wire, n):
        while True:
            read_request(wire)
            wire.send(response(200, ANSWER))

    origin = RawOrigin(script)
    yield origin
    origin.stop()


def reluctant(retryd):
    """A client whose socket takes little."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", retryd.port))
    return Wire(sock)


def test_pipelined_requests_do_not_pile_up_answers(small_answers, make_retryd):
    """J8: No new request is begun while answers wait to be taken; in the end every one comes, whole."""
    retryd = make_retryd(None, **small_answers.config())
    wire = reluctant(retryd)
    wire.send(request() * 400)
    until(lambda: stands_still(retryd.process), "the daemon is at rest")
    assert len(retryd.log("request")) < 200
    whole_answers(wire, 400)


def test_half_closed_client_gets_every_answer(small_answers, make_retryd):
    retryd = make_retryd(None, **small_answers.config())
    wire = reluctant(retryd)
    wire.send(request() * 100)
    wire.sock.shutdown(socket.SHUT_WR)
    until(lambda: stands_still(retryd.process), "the daemon is at rest")
    whole_answers(wire, 100)
    assert wire.ended()


def in_kernel(wire):
    """Bytes on the way from the daemon to the client that have left the daemon, by /proc/net/tcp."""
    here, there = ("0100007F:%04X" % port for port in (wire.sock.getsockname()[1], wire.sock.getpeername()[1]))
    total = 0
    with open("/proc/net/tcp") as f:
        for line in f:
            fields = line.split()
            if fields[1:3] == [there, here]:
                total += int(fields[4].split(":")[0], 16)
            elif fields[1:3] == [here, there]:
                total += int(fields[4].split(":")[1], 16)
    return total


@pytest.fixture
def tail(small_answers, make_retryd):
    """A client whose exchanges are all over, and the last answer is still inside the daemon, in part at least."""
    def make(**config):
        retryd = make_retryd(None, **small_answers.config(**config))
        wire, n, before = reluctant(retryd), 0, -1
        while in_kernel(wire) > before:
            before = in_kernel(wire)
            wire.send(request())
            n += 1
            retryd.requests_logged(n)  # written after what the socket takes was given to it
        return retryd, wire, n

    return make


def whole_answers(wire, n):
    for i in range(n):
        answer = wire.response()
        assert answer is not None and answer.whole and answer.body == ANSWER, "answer %d of %d" % (i + 1, n)


def test_half_close_while_the_last_answer_waits(tail):
    retryd, wire, n = tail()
    wire.sock.shutdown(socket.SHUT_WR)
    whole_answers(wire, n)
    assert wire.ended()


def test_idle_time_begins_when_the_answer_is_taken(tail):
    """J3, CR13: idle time begins when the answer is taken."""
    retryd, wire, n = tail(timeouts={"client_idle": "1s"})
    time.sleep(3)                     # three times client_idle
    whole_answers(wire, n)
    assert wire.ended(5)              # now it is idle


def test_answer_that_nobody_takes_ends_the_connection(tail):
    retryd, wire, n = tail(timeouts={"client_write": "500ms"})
    baseline = descriptors(retryd.process)
    until(lambda: descriptors(retryd.process) < baseline, "the connection is given up")


def test_graceful_stop_delivers_what_waits(tail):
    retryd, wire, n = tail()
    retryd.tell(signal.SIGTERM)
    whole_answers(wire, n)
    assert wire.ended()
    retryd.stop()


def test_graceful_stop_has_an_end(tail):
    """The reader that takes nothing gets the drain timeout and a moment, not client_write."""
    retryd, wire, n = tail(timeouts={"drain": "500ms", "client_write": "60s"})
    began = time.monotonic()
    retryd.stop(signal.SIGTERM)
    assert elapsed(began) < 6
