"""The request body: recorded once, sent from byte 0 as often as needed (retry-semantics §13.2; PR-04)."""
import hashlib
import os
import random
import signal
import threading
import time

import pytest

import sigv4
from wire import until

MIB = 1 << 20
DOWN = {"status": 503, "body": "{}"}


def noise(n):
    return random.Random(n).randbytes(n)


def put(body, **how):
    return sigv4.s3("PUT", "/large.bin", body, **how)


def chunked(body, size, trailers=b""):
    pieces = [body[i:i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n" + trailers + b"\r\n"


def chunked_put(body):
    """A PUT without a length, its payload not signed, as streaming SDKs send it. The transfer coding is the
    connection's own matter and never signed."""
    host, target = "bucket.s3.us-east-1.amazonaws.com", "/stream.bin"
    signed = sigv4.sign("PUT", host, target, [], body, "s3", payload="UNSIGNED-PAYLOAD")
    return sigv4.Request("PUT", host, target, signed + [("Transfer-Encoding", "chunked")])


@pytest.mark.parametrize("fault", [DOWN, {"fail": "reset"}], ids=["503", "reset"])
def test_5_mib_put_is_replayed_whole(origin, retryd, fault):
    """E12: 5 mib put is replayed whole."""
    body = noise(5 * MIB)
    origin.answers(dict(fault, times=2))
    assert retryd.exchange(put(body)).status == 200
    requests = origin.requests()
    assert [r["body_bytes"] for r in requests] == [5 * MIB] * 3
    assert {r["body_sha256"] for r in requests} == {hashlib.sha256(body).hexdigest()}
    assert {r["sig"] for r in requests} == {"ok"}


@pytest.mark.parametrize("size, chunk", [(1, 1), (100000, 997), (3 * MIB, 65536)])
def test_chunked_body_is_replayed(origin, retryd, size, chunk):
    body = noise(size)
    origin.answers(DOWN, {"fail": "reset"})
    request = chunked_put(body)
    wire = retryd.open(request.host)
    wire.send(request.head() + chunked(body, chunk))
    assert wire.response("PUT").status == 200
    requests = origin.requests()
    assert [(r["framing"], r["body_bytes"], r["sig"]) for r in requests] == [("chunked", size, "ok")] * 3
    assert {r["body_sha256"] for r in requests} == {hashlib.sha256(body).hexdigest()}


def test_body_that_arrives_in_drops(origin, retryd):
    """The first attempt streams: the head is at the origin long before the body is whole."""
    body = noise(20000)
    origin.answers(DOWN)
    request = put(body)
    wire = retryd.open(request.host)
    wire.send(request.head())
    for i in range(0, len(body), 1000):
        wire.send(body[i:i + 1000])
        time.sleep(0.002)
    assert wire.response("PUT").status == 200
    assert {r["body_sha256"] for r in origin.requests()} == {hashlib.sha256(body).hexdigest()}


def test_body_beyond_memory_goes_to_a_file_nobody_sees(origin, make_retryd, tmp_path):
    """E12: body beyond memory goes to a file nobody sees."""
    spool = tmp_path / "spool"
    spool.mkdir()
    retryd = make_retryd(origin, limits={"replay_memory": "64KiB", "replay_dir": str(spool)},
                         retry={"max_backoff": "100ms"})
    body = noise(2 * MIB)
    origin.answers(DOWN)
    assert retryd.exchange(put(body)).status == 200
    assert {r["body_sha256"] for r in origin.requests()} == {hashlib.sha256(body).hexdigest()}
    assert os.listdir(spool) == []


@pytest.mark.parametrize("excess, attempts", [(0, 2), (1, 1)], ids=["at the limit", "one byte over"])
def test_replay_limit(origin, make_retryd, excess, attempts):
    retryd = make_retryd(origin, limits={"replay_memory": "1MiB", "replay_disk": "0"}, retry={"max_backoff": "50ms"})
    origin.answers(DOWN)
    answer = retryd.exchange(put(noise(MIB + excess)))
    assert answer.status == (200 if attempts == 2 else 503)
    assert len(origin.requests()) == attempts
    if attempts == 1:
        (attempt,) = retryd.log("attempt")
        assert attempt["why"] == "unreplayable"


def test_body_far_beyond_the_limit_passes_once(origin, make_retryd):
    retryd = make_retryd(origin, limits={"replay_memory": "64KiB", "replay_disk": "0"})
    body = noise(8 * MIB)
    assert retryd.exchange(put(body)).status == 200
    (request,) = origin.requests()
    assert request["body_sha256"] == hashlib.sha256(body).hexdigest()


def test_answer_while_the_body_still_arrives(origin, retryd):
    """503 comes as soon as the head is read; the retry takes place, with the whole body."""
    body = noise(3 * MIB)
    origin.rules({"requests": [{"phase": "head", "steps": [DOWN]}]})
    request = put(body)
    wire = retryd.open(request.host)
    wire.send(request.head())

    def send():
        for i in range(0, len(body), 65536):
            wire.send(body[i:i + 65536])
            time.sleep(0.005)

    sender = threading.Thread(target=send)
    sender.start()
    answer = wire.response("PUT")
    sender.join()
    assert answer.status == 200
    last = origin.requests()[-1]
    assert last["body_sha256"] == hashlib.sha256(body).hexdigest()


def test_answer_while_an_unreplayable_body_still_arrives(origin, make_retryd):
    """Never a status of the proxy's own making: the slow client is paused and retried, or gets the 503."""
    retryd = make_retryd(origin, limits={"replay_memory": "64KiB", "replay_disk": "0"})
    body = noise(3 * MIB)
    origin.rules({"requests": [{"phase": "head", "steps": [dict(DOWN, read_body_bytes=1 << 20)]}]})
    request = put(body)
    wire = retryd.open(request.host)
    sender = threading.Thread(target=lambda: ignore_reset(lambda: wire.send(request.bytes())))
    sender.start()
    answer = wire.response("PUT")
    assert answer.status == 503 and answer.get("X-Retryd-Error") is None
    assert len(origin.requests()) == 1
    wire.close()
    sender.join()


def ignore_reset(action):
    try:
        action()
    except OSError:
        pass


def test_total_replay_memory_is_shared(origin, make_retryd):
    """Those that find no room go through without a retry; all complete."""
    retryd = make_retryd(origin, limits={"replay_memory": "1MiB", "replay_memory_total": "2MiB", "replay_disk": "0"},
                         retry={"max_backoff": "50ms"})
    bodies = [noise(900000 + n) for n in range(12)]
    statuses = []

    def one(body):
        statuses.append(retryd.exchange(put(body)).status)

    threads = [threading.Thread(target=one, args=(b,)) for b in bodies]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert statuses == [200] * 12
    assert {r["body_sha256"] for r in origin.requests()} == {hashlib.sha256(b).hexdigest() for b in bodies}


def test_origin_that_does_not_read_holds_the_client_back(origin, make_retryd):
    """Back-pressure: beyond the replay bounds no more than buffers' worth is taken from the client."""
    retryd = make_retryd(origin, limits={"replay_memory": "64KiB", "replay_disk": "0"},
                         timeouts={"response": "60s"})
    origin.rules({"requests": [{"phase": "head", "steps": [{"fail": "hang", "hang_ms": 60000}]}]})
    # The origin's `hang` reads and forgets, so the stop is made with the process itself.
    request = put(noise(32 * MIB))
    wire = retryd.open(request.host)
    wire.send(request.head())
    until(lambda: origin.log("tls"), "the origin has the connection")
    origin.process.send_signal(signal.SIGSTOP)
    try:
        wire.sock.settimeout(3)
        sent = 0
        try:
            while sent < len(request.body):
                sent += wire.sock.send(request.body[sent:sent + 65536])
        except OSError:
            pass
        assert sent < 24 * MIB, "all of it was taken"
    finally:
        origin.process.send_signal(signal.SIGCONT)
        wire.close()
