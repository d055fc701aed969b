"""Request bodies against the replay log's edges: half-closed clients, full and missing replay directories, upstreams
that do not read (PR-04, security requirements E12, J9)."""
import os
import resource
import socket
import threading
import time

import pytest

from hostile import RawOrigin, cpu_seconds, read_body, read_head, read_request, request, response
from wire import until

KIB = 1024
DOWN = response(503)


@pytest.fixture
def raw_origin():
    made = []

    def make(script, **how):
        made.append(RawOrigin(script, **how))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def echo_length(wire, message):
    wire.send(response(200, b"%d" % len(message.body)))


def waiting(retryd, n=1):
    until(lambda: len(retryd.attempts_logged()) >= n, "%d attempts have failed" % n)


def test_half_closed_client_whose_body_waits_in_the_buffers(raw_origin, make_retryd):
    """The end of the client's stream is read before its last bytes fit into the log. They still count."""
    origin = raw_origin(lambda wire, n: echo_length(wire, read_request(wire)), listening=False)
    retryd = make_retryd(None, **origin.config(limits={"replay_memory": "64KiB", "replay_disk": "0"},
                                               retry={"max_attempts": 20, "max_backoff": "200ms"}))
    body = os.urandom(100 * KIB)
    wire = retryd.plain()
    wire.send(request("PUT", body=body))
    wire.sock.shutdown(socket.SHUT_WR)
    waiting(retryd, 2)
    origin.open()
    answer = wire.response("PUT")
    assert answer is not None and answer.status == 200 and answer.body == b"%d" % len(body)


@pytest.mark.parametrize("last", [b"PUT /2 HTTP/1.1\r\nHo", request("PUT", body=b"12345")[:-2]], ids=["head", "body"])
def test_pipelined_request_cut_by_a_half_close(raw_origin, make_retryd, last):
    """The end of the stream came while the first request ran: the second can never be whole, and ends at once."""
    go = threading.Event()

    def script(wire, n):
        read_request(wire)
        go.wait(10)
        wire.send(response())
        read_request(wire)

    origin = raw_origin(script)
    retryd = make_retryd(None, **origin.config())
    wire = retryd.plain()
    wire.send(request() + last)
    wire.sock.shutdown(socket.SHUT_WR)
    until(lambda: origin.accepted, "the first request is under way")
    go.set()
    assert wire.response().status == 200
    assert wire.ended(5)


@pytest.mark.parametrize("excess", [0, 10000], ids=["a block", "part of a block"])
def test_spool_that_fails_while_nothing_is_sent(raw_origin, make_retryd, tmp_path, excess):
    """The replay file cannot be made, while the client sends and no attempt runs: the body goes out once."""
    spool = tmp_path / "spool"
    spool.mkdir()
    attempts = []

    def script(wire, n):
        attempts.append(len(read_request(wire).body))
        wire.send(DOWN)

    origin = raw_origin(script, listening=False)
    retryd = make_retryd(None, **origin.config(
        limits={"replay_memory": "64KiB", "replay_disk": "1MiB", "replay_dir": str(spool)},
        retry={"max_attempts": 20, "max_backoff": "200ms"}))
    spool.rmdir()
    wire = retryd.plain()
    body = os.urandom(80 * KIB - excess)
    wire.send(request("PUT", body=body))
    waiting(retryd, 2)
    origin.open()
    answer = wire.response("PUT")
    assert answer is not None and answer.status == 503
    assert attempts == [len(body)]
    assert retryd.attempts_logged()[-1]["why"] == "unreplayable"


def test_spool_on_a_full_disk(raw_origin, make_retryd, tmp_path):
    """A file size limit stands for the full disk; its signal must not end the daemon."""
    attempts = []

    def script(wire, n):
        while True:
            attempts.append(len(read_request(wire).body))
            wire.send(DOWN)

    origin = raw_origin(script)
    retryd = make_retryd(None, **origin.config(limits={"replay_memory": "64KiB", "replay_dir": str(tmp_path)}))
    resource.prlimit(retryd.process.pid, resource.RLIMIT_FSIZE, (256 * KIB, 256 * KIB))
    wire = retryd.plain()
    body = os.urandom(1024 * KIB)
    wire.send(request("PUT", body=body))
    answer = wire.response("PUT")
    assert answer is not None and answer.status == 503
    assert attempts == [len(body)]
    assert retryd.attempts_logged()[-1]["why"] == "unreplayable"


@pytest.mark.parametrize("retries", ["off", "standard"])
def test_upstream_that_does_not_read_costs_no_time(raw_origin, make_retryd, retries):
    """Everything is full, the client has more: the daemon waits and does not spin."""
    go = threading.Event()

    def script(wire, n):
        message = read_head(wire)
        go.wait(20)
        echo_length(wire, read_body(wire, message))

    origin = raw_origin(script, receive_buffer=4096)
    retryd = make_retryd(None, **origin.config(limits={"replay_memory": "64KiB", "replay_disk": "0"},
                                               retry={"mode": retries}))
    wire = retryd.plain()
    body = bytes(8 * 1024 * KIB)
    sender = threading.Thread(target=wire.send, args=(request("PUT", body=body),))
    sender.start()
    # Full: the client's socket takes no more for a while.
    until(lambda: stuck(wire.sock), "the client is held back")
    before = cpu_seconds(retryd.process)
    time.sleep(1)
    assert cpu_seconds(retryd.process) - before < 0.2
    go.set()
    answer = wire.response("PUT")
    sender.join()
    assert answer.status == 200 and answer.body == b"%d" % len(body)


def stuck(sock):
    """The kernel's send queue is not empty and does not move."""
    import array
    import fcntl
    import termios

    def queued():
        n = array.array("i", [0])
        fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, n)
        return n[0]

    first = queued()
    time.sleep(0.3)
    return first > 0 and queued() == first
