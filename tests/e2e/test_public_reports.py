"""Twelve public reports about retrying and intercepting proxies, as experiments: each test carries the number of its
report. All run both ways, inside an opened CONNECT and as absolute-form plain HTTP, where that makes a difference.

Some reports have more tests elsewhere, under their number as well: PR-10 and PR-11 in test_tls.py, test_brownout.py
and test_budget_shared.py.
"""
import base64
import gzip
import hashlib
import os
import random
import socket
import ssl
import subprocess
import threading
import time
import zlib

import pytest

import http1_runner
import sigv4
from daemons import elapsed
from hostile import RawOrigin, read_body, read_head, read_request, reset_on_close, response, rss_bytes, server_tls
from http1_runner import Tunnelled
from wire import until

MIB = 1 << 20
OWN_FIELDS = ("via", "connection")    # what retryd adds to an answer
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
INTERNAL = "<Error><Code>InternalError</Code><Message>We encountered an internal error. Please try again.</Message>" \
           "</Error>"
DOWN = {"status": 503, "body": "{}"}


class Way:
    """One of the two ways through retryd."""

    def __init__(self, name):
        self.clear = name == "plain"
        self.listener = "http0" if self.clear else "https0"

    def open(self, retryd, host):
        return retryd.plain() if self.clear else retryd.open(host)

    def target(self, request):
        return request.absolute() if self.clear else None

    def bytes(self, request):
        return request.bytes(self.target(request))

    def head(self, request):
        return request.head(self.target(request))

    def exchange(self, retryd, request, wire=None):
        return retryd.exchange(request, clear=self.clear, wire=wire)


@pytest.fixture(params=["intercepted", "plain"])
def way(request):
    return Way(request.param)


@pytest.fixture
def raw(way, make_retryd, tmp_path, origin_ca):
    """raw(script, **config): a retryd whose AWS names lead to a RawOrigin with this script."""
    made = []

    def make(script, **config):
        tls = None if way.clear else server_tls(tmp_path, origin_ca, sigv4.sts().host, sigv4.dynamodb().host,
                                                sigv4.s3().host)
        made.append(RawOrigin(script, tls=tls))
        config = dict({"retry": {"max_backoff": "100ms"}}, **config)
        return make_retryd(None, resolve={"*.amazonaws.com": "127.0.0.1:%d" % made[-1].port},
                           upstream={"ca_file": str(origin_ca / "ca.pem")}, **config)

    yield make
    for one in made:
        one.stop()


def noise(n, seed=7):
    return random.Random(seed).randbytes(n)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def attempts(retryd, n=1):
    """The attempt lines, once n requests are over."""
    retryd.requests_logged(n)
    return retryd.attempts_logged()


# ---- PR-01: 200 OK that is an error

DONE = '<CompleteMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><ETag>"0-1"</ETag>' \
       "</CompleteMultipartUploadResult>"


def complete():
    parts = b"".join(b"<Part><PartNumber>%d</PartNumber><ETag>e%d</ETag></Part>" % (n, n) for n in range(1, 8))
    return sigv4.s3("POST", "/bkt/big.bin?uploadId=u1",
                    b"<CompleteMultipartUpload>" + parts + b"</CompleteMultipartUpload>",
                    headers=[("Content-Type", "application/xml")])


def xml_200(body):
    return {"status": 200, "headers": {"Content-Type": "application/xml"}, "body": body, "framing": "chunked"}


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def test_pr01_blanks_and_then_an_error(way, raw):
    seen = []

    def script(wire, n):
        for k in range(2):
            seen.append(read_request(wire))
            if len(seen) == 2:
                wire.send(response(200, DONE.encode(), [("Content-Type", "application/xml")]))
                return
            wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(6):
                wire.send(chunk(b" "))
                time.sleep(0.5)
            wire.send(chunk((XML + INTERNAL).encode()) + b"0\r\n\r\n")

    retryd = raw(script)
    answer = way.exchange(retryd, complete())
    assert (answer.status, answer.body, answer.whole) == (200, DONE.encode(), True)
    assert len(seen) == 2 and (seen[0].head, seen[0].body) == (seen[1].head, seen[1].body)


def test_pr01_all_attempts_fail_so(way, origin, retryd):
    origin.answers(*[xml_200(XML + INTERNAL.replace("again", "again %d" % n)) for n in (1, 2, 3)])
    answer = way.exchange(retryd, complete())
    assert (answer.status, answer.whole) == (200, True)
    assert answer.body == (XML + INTERNAL.replace("again", "again 3")).encode()
    assert len(origin.requests()) == 3


def test_pr01_blanks_for_longer_than_the_hold(way, origin, make_retryd):
    """The client gets what there is; the right to retry is given up."""
    retryd = make_retryd(origin, limits={"hold_root_time": "400ms"})
    body = " " * 100 + XML + INTERNAL
    origin.answers(dict(xml_200(body), chunk_bytes=10, chunk_delay_ms=100), xml_200(XML + DONE))
    wire = way.open(retryd, complete().host)
    wire.send(way.bytes(complete()))
    began = time.monotonic()
    answer = wire.response("POST", body=False)
    assert 0.35 <= elapsed(began) < 1.6            # the body takes more than two seconds
    wire.body(answer)
    assert answer.body == body.encode() and answer.whole
    assert len(origin.requests()) == 1


def test_pr01_stored_content_that_looks_like_it(way, origin, retryd):
    origin.answers(xml_200(INTERNAL))
    answer = way.exchange(retryd, sigv4.s3("GET", "/bkt/page.xml"))
    assert (answer.status, answer.body) == (200, INTERNAL.encode())
    assert len(origin.requests()) == 1


def test_pr01_slow_down_behind_prolog_and_blanks(way, origin, retryd):
    origin.answers(xml_200(XML + " " * 9 + INTERNAL.replace("InternalError", "SlowDown")), xml_200(XML + DONE))
    assert way.exchange(retryd, complete()).body == (XML + DONE).encode()
    first = attempts(retryd)[0]
    assert (first["class"], first["code"]) == ("throttling", "SlowDown")
    assert first["quota_before"] - first["quota_after"] == 5


# ---- PR-02: throttling dressed as 400

JSON = {"Content-Type": "application/x-amz-json-1.1"}
TEXT_XML = {"Content-Type": "text/xml"}


def organizations():
    return sigv4.json_rpc("organizations", "AWSOrganizationsV20161128.ListAccounts", version="1.1")


CODES = {
    "type": (organizations, 400, JSON, '{"__type":"TooManyRequestsException","Message":"already in progress"}',
             "throttling"),
    "namespace": (organizations, 400, JSON, '{"__type":"com.amazonaws.organizations#TooManyRequestsException"}',
                  "throttling"),
    "header": (organizations, 400,
               dict(JSON, **{"x-amzn-ErrorType": "TooManyRequestsException:http://internal.example/"}), "{}",
               "throttling"),
    "query": (lambda: sigv4.query("cloudformation", "DescribeStacks"), 400, TEXT_XML,
              "<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>m</Message></Error>"
              "</ErrorResponse>", "throttling"),
    "ec2": (lambda: sigv4.query("ec2", "DescribeInstances"), 503, TEXT_XML,
            "<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>m</Message></Error></Errors>"
            "</Response>", "throttling"),
    "final": (organizations, 400, JSON, '{"__type":"ValidationException"}', "none"),
    "word-in-message": (organizations, 400, JSON, '{"message":"ThrottlingException happened once"}', "none"),
    "429": (organizations, 429, JSON, '{"__type":"Unheard"}', "throttling"),
    "head": (lambda: sigv4.s3("HEAD", "/key"), 503, {}, "", "transient"),
}


@pytest.mark.parametrize("case", CODES)
def test_pr02_code_decides(way, origin, retryd, case):
    request, status, headers, body, kind = CODES[case]
    origin.answers({"status": status, "headers": headers, "body": body})
    answer = way.exchange(retryd, request())
    count = 1 if kind == "none" else 2
    assert answer.status == (status if kind == "none" else 200)
    if kind == "none":
        assert answer.body == body.encode()
    assert len(origin.requests()) == count
    first = attempts(retryd)[0]
    assert first["class"] == kind
    assert first["quota_before"] - first["quota_after"] == {"none": 0, "throttling": 5, "transient": 14}[kind]


def test_pr02_unknown_429_by_policy(way, origin, make_retryd):
    """The SDKs' list does not have it: retry.retry_429, on as shipped, decides."""
    retryd = make_retryd(origin, retry={"retry_429": False})
    origin.answers({"status": 429, "headers": JSON, "body": '{"__type":"Unheard"}'})
    assert way.exchange(retryd, organizations()).status == 429
    assert len(origin.requests()) == 1


# ---- PR-03: 100-continue

GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
LARGE = noise(MIB)
INTERIM = {
    "bare": GO_ON,
    "with-fields": b"HTTP/1.1 100 Continue\r\nConnection: keep-alive\r\nDate: Tue, 01 Jan 2030 00:00:00 GMT\r\n\r\n",
    "silent": None,
}


def expecting():
    return sigv4.s3("PUT", "/bkt/k", LARGE, headers=[("Expect", "100-continue")])


def say(wire, seen, interim):
    message = read_head(wire)
    if interim:
        wire.send(interim)
    seen.append(read_body(wire, message))


def expect_go_on(way, wire):
    """Sends the head, and waits for exactly the 25 bytes; then for nothing."""
    wire.send(way.head(expecting()))
    began = time.monotonic()
    assert wire.take(25) == GO_ON
    assert elapsed(began) < 2         # a second where the origin says nothing, and a busy machine
    assert wire.silent(0.2)


@pytest.mark.parametrize("row", INTERIM)
def test_pr03_interim_answer(way, raw, row):
    """C11: the same 25 bytes whatever the origin says, or does not say."""
    seen = []

    def script(wire, n):
        say(wire, seen, INTERIM[row])
        wire.send(response(200, b"done"))

    retryd = raw(script)
    wire = way.open(retryd, expecting().host)
    expect_go_on(way, wire)
    wire.send(LARGE)
    answer = wire.response("PUT")
    assert (answer.status, answer.body, answer.interim) == (200, b"done", [])
    assert wire.ended() if answer.get("Connection") == "close" else wire.silent(0.2)
    assert [m.body for m in seen] == [LARGE]
    assert seen[0].headers["expect"] == "100-continue"


@pytest.mark.parametrize("status", [403, 307])
def test_pr03_final_answer_instead(way, raw, status):
    """C11: it is delivered, and the body not asked for."""
    def script(wire, n):
        read_head(wire)
        wire.send(response(status, b"no", [("Location", "https://elsewhere.example/")]))
        wire.fill()

    retryd = raw(script)
    wire = way.open(retryd, expecting().host)
    wire.send(way.head(expecting()))
    answer = wire.response("PUT")
    assert (answer.status, answer.body, answer.interim) == (status, b"no", [])
    assert wire.ended()               # its body was not sent and never will be


def test_pr03_replay_says_it_once(way, raw):
    """C11: never two, whatever the attempts hear."""
    seen = []

    def script(wire, n):
        while True:
            say(wire, seen, INTERIM["with-fields"])
            wire.send(response(503, b"{}") if len(seen) == 1 else response(200, b"done"))

    retryd = raw(script)
    wire = way.open(retryd, expecting().host)
    expect_go_on(way, wire)
    wire.send(LARGE)
    answer = wire.response("PUT")
    assert (answer.status, answer.body, answer.interim) == (200, b"done", [])
    assert wire.silent(0.2)
    assert [m.body for m in seen] == [LARGE] * 2


# ---- PR-04: the body still arrives when the retry is due

ONE_MIB = {"replay_memory": "1MiB", "replay_disk": "0"}


def put(body):
    return sigv4.s3("PUT", "/bkt/k", body)


def test_pr04_half_the_limit_is_not_counted_twice(way, origin, make_retryd):
    retryd = make_retryd(origin, limits=ONE_MIB, retry={"max_backoff": "100ms"})
    origin.answers({"fail": "reset"})
    body = noise(614400)
    assert way.exchange(retryd, put(body)).status == 200
    assert [r["body_sha256"] for r in origin.requests()] == [sha256(body)] * 2


def test_pr04_answer_while_the_body_comes(way, origin, make_retryd):
    """3 MiB, slowly; the 503 is there as soon as the head is. Retried or delivered, never a status of our own."""
    retryd = make_retryd(origin, limits=ONE_MIB, retry={"max_backoff": "100ms"})
    origin.rules({"requests": [{"phase": "head", "steps": [DOWN]}]})
    body, wire = noise(3 * MIB), way.open(retryd, put(b"").host)

    def send():
        try:
            wire.send(way.head(put(body)))
            for at in range(0, len(body), 64 << 10):
                wire.send(body[at:at + (64 << 10)])
                time.sleep(0.03)
        except OSError:
            pass                      # refused by a close behind the answer

    sender = threading.Thread(target=send)
    sender.start()
    answer = wire.response("PUT")
    sender.join()
    assert answer.status in (200, 503) and answer.get("X-Retryd-Error") is None
    if answer.status == 200:
        assert origin.requests()[-1]["body_sha256"] == sha256(body)
    else:
        assert answer.body == b"{}"


@pytest.mark.parametrize("excess", [0, 1])
def test_pr04_limit_to_the_byte(way, origin, make_retryd, excess):
    retryd = make_retryd(origin, limits=ONE_MIB, retry={"max_backoff": "100ms"})
    origin.answers(DOWN)
    body = noise(MIB + excess)
    assert way.exchange(retryd, put(body)).status == (503 if excess else 200)
    assert [r["body_sha256"] for r in origin.requests()] == [sha256(body)] * (1 if excess else 2)
    assert attempts(retryd)[0]["why"] == ("unreplayable" if excess else "success") or not excess


def test_pr04_two_hundred_at_once(make_retryd):
    """J9: 64 MiB for all of them; every request ends with an answer of the origin, within that and buffers."""
    count, body, bad = 200, noise(MIB), []
    first, seen, lock = {}, [0], threading.Lock()

    def script(wire, n):
        while True:
            message = read_request(wire)
            with lock:
                again = first.setdefault(message.target, 0)
                first[message.target] += 1
                seen[0] += message.body == body
            if not again:
                time.sleep(0.3)       # so that many are held at the same time
            wire.send(response(200 if again else 503, b"{}"))

    origin = RawOrigin(script)
    config = origin.config(limits=dict(ONE_MIB, replay_memory_total="64MiB"), retry={"max_backoff": "100ms"})
    # A sanitizer would keep 256 MiB of what was freed.
    retryd = make_retryd(env={"ASAN_OPTIONS": "quarantine_size_mb=8"}, **config)
    before, most, statuses = rss_bytes(retryd.process), [0], []

    def client(n):
        try:
            answer = retryd.exchange(sigv4.s3("PUT", "/bkt/%d" % n, body), clear=True)
            statuses.append((answer.status, answer.get("X-Retryd-Error")))
        except OSError as e:
            bad.append(repr(e))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        most[0] = max(most[0], rss_bytes(retryd.process))
        time.sleep(0.05)
    origin.stop()
    assert not bad and len(statuses) == count
    assert {s for s, word in statuses} <= {200, 503} and {word for s, word in statuses} == {None}
    assert seen[0] == sum(first.values())
    whys = {a["why"] for a in attempts(retryd, count) if a.get("decision") == "deliver" and a["status"] == 503}
    # overload: the answer that would be held counts in the same total.
    assert whys <= {"unreplayable", "quota", "overload"}
    # Stated overhead: 512 KiB a request, for the buffers of its two connections.
    assert most[0] - before < (64 << 20) + count * (512 << 10)


# ---- PR-05: the last error must survive

ERRORS = {
    "GET": lambda: sigv4.s3("GET", "/key"),
    "POST": sigv4.sts,
    "PUT": lambda: sigv4.s3("PUT", "/key", b"x" * 10000),
    "HEAD": lambda: sigv4.s3("HEAD", "/key"),
}


def error(n, chunked=False):
    """(bytes, fields, body) of the n-th error."""
    body = b'{"message": "number %d"}' % n
    fields = [("x-amz-request-id", "R%d" % n), ("Content-Type", "application/json"), ("X-odd-CASE", "value  %d" % n),
              ("x-twice", "a"), ("x-twice", "b")]
    fields.append(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body))))
    head = "HTTP/1.1 503 Slow  Down\r\n" + "".join("%s: %s\r\n" % f for f in fields) + "\r\n"
    return head.encode(), fields, body


def erring(seen, chunked=False):
    def script(wire, n):
        while True:
            message = read_request(wire)
            seen.append(message)
            head, _, body = error(len(seen), chunked)
            wire.send(head + (b"" if message.method == "HEAD" else chunk(body) + b"0\r\n\r\n" if chunked else body))
    return script


def assert_untouched(answer, n, method, chunked=False):
    _, fields, body = error(n, chunked)
    if chunked and method == "HEAD":
        fields = fields[:-1]          # the coding is of the hop, and there is no body
    assert answer.status_line == "HTTP/1.1 503 Slow  Down"
    assert [(k, v) for k, v in answer.headers if k.lower() not in OWN_FIELDS] == fields
    assert (answer.body, answer.whole) == (b"" if method == "HEAD" else body, True)


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("kind", ERRORS)
def test_pr05_last_error_untouched(way, raw, kind, chunked):
    seen = []
    answer = way.exchange(raw(erring(seen, chunked)), ERRORS[kind]())
    assert_untouched(answer, 3, kind, chunked)
    assert len(seen) == 3


def test_pr05_empty_quota(way, raw):
    """Then it is the first answer, at once, after one attempt."""
    seen = []
    retryd = raw(erring(seen), retry={"max_attempts": 100, "max_backoff": "1ms"})
    assert way.exchange(retryd, sigv4.sts()).status == 503
    spent = len(seen)
    assert spent == 1 + 500 // 14
    assert_untouched(way.exchange(retryd, sigv4.sts()), spent + 1, "POST")
    assert len(seen) == spent + 1
    assert retryd.requests_logged(2)[1]["why"] == "quota"


def test_pr05_error_then_nobody(way, origin, retryd):
    """503 twice, then refused: the last attempt decides, and it brought no answer. Stable, also the next time."""
    for n in (1, 2):
        origin.answers(DOWN, dict(DOWN, refuse_ms=3000, close=True), then="last")
        answer = way.exchange(retryd, sigv4.sts())
        assert (answer.status, answer.get("X-Retryd-Error")) == (502, "connect_refused")
        origin.refuse(False, way.listener)


# ---- PR-06: the client left, the retries did not

def test_pr06_silent_origin(way, origin, make_retryd):
    """E7: its upstream connection is closed at once, and no other is made."""
    retryd = make_retryd(origin, timeouts={"response": "1500ms"}, retry={"max_backoff": "100ms"})
    origin.answers({"fail": "hang"}, then="last")
    wire = way.open(retryd, sigv4.sts().host)
    wire.send(way.bytes(sigv4.sts()))
    until(origin.requests, "the request is at the origin")
    wire.close()
    until(lambda: origin.log("conn_end"), "the upstream connection is closed", 2)
    assert retryd.requests_logged()[0]["end"] == "client_gone"
    time.sleep(2)                     # past the timeout after which there would be another attempt
    assert len(origin.requests()) == 1


def test_pr06_reset_during_the_wait(way, origin, retryd):
    """E7: the timer goes with the client."""
    origin.answers(dict(DOWN, retry_after_ms=4000), then="last")
    wire = way.open(retryd, sigv4.sts().host)
    wire.send(way.bytes(sigv4.sts()))
    until(lambda: [a for a in retryd.attempts_logged() if a["decision"] == "retry"], "the retry is decided")
    wire.reset()
    (record,) = retryd.requests_logged()
    assert (record["end"], record["attempts"]) == ("client_gone", 1)
    time.sleep(4.5)                   # the time of the retry passes
    assert len(origin.requests()) == 1


def test_pr06_half_close_is_no_departure(way, origin, retryd):
    origin.answers(dict(DOWN, times=2))
    request = sigv4.sts()
    if way.clear:
        wire = way.open(retryd, request.host)
        wire.send(way.bytes(request))
        wire.sock.shutdown(socket.SHUT_WR)
        answer = wire.response("POST")
        assert answer.status == 200 and answer.whole
    else:
        client = Tunnelled(retryd.port, retryd.tls_context(), request.host, 443)
        client.put(way.bytes(request))
        client.end()                  # close_notify: nothing more is written, all is read
        answer = b""
        while True:
            more = client.take(10)
            if not more:
                break
            answer += more
        client.close()
        assert answer.startswith(b"HTTP/1.1 200 ") and more == b"", answer
    assert len(origin.requests()) == 3


def test_pr06_departures_in_the_second_attempt(way, origin, make_retryd):
    """The retry was decided and sent: what it cost stays spent, nothing more is, nothing comes back, and other callers
    have a quota of their own (retry-semantics 7.2)."""
    retryd = make_retryd(origin, retry={"max_backoff": "1ms"})
    count = 10
    origin.rules({"requests": [{"key": "header:x-id", "steps": [DOWN, {"fail": "hang"}]}]})
    for n in range(count):
        request = sigv4.json_rpc("sts", "S.GetIt", headers=[("x-id", str(n))])
        wire = way.open(retryd, request.host)
        wire.send(way.bytes(request))
        origin.wait_requests(2 * n + 2)
        wire.close()
    assert {r["end"] for r in retryd.requests_logged(count)} == {"client_gone"}
    origin.reset()
    origin.answers(DOWN)
    before = len(retryd.attempts_logged())
    assert way.exchange(retryd, sigv4.json_rpc("sts", "S.GetIt")).status == 200
    first = attempts(retryd, count + 1)[before]
    assert (first["quota_before"], first["quota_after"]) == (500 - 14 * count, 500 - 14 * (count + 1))
    origin.reset()
    origin.answers(DOWN)
    assert way.exchange(retryd, sigv4.dynamodb()).status == 200
    assert attempts(retryd, count + 2)[-2]["quota_before"] == 500


# ---- PR-07: the pooled connection was already dead

TRIALS = {"intercepted": 100, "plain": 400}


def dying(seen, resets_odd=False):
    """Answers, and closes within 5 ms. resets_odd: takes every second request to its end and resets instead."""
    dice, lock = random.Random(1), threading.Lock()

    def script(wire, n):
        while True:
            message = read_request(wire)
            with lock:
                seen.append(message)
                odd = len(seen) % 2 == 0
                delay = dice.random() * 0.005
            if resets_odd and odd:
                reset_on_close(wire.sock)
                return
            wire.send(response(200, b"ok"))
            if not resets_odd:
                time.sleep(delay)
                return
    return script


@pytest.mark.parametrize("kind", ["GET", "POST"])
def test_pr07_closed_while_idle(way, raw, kind):
    """D4, E1: no 502, one arrival each, no attempt and no token spent: the redial is free."""
    seen, dice = [], random.Random(2)
    retryd = raw(dying(seen))
    trials = TRIALS["plain" if way.clear else "intercepted"]
    wire = way.open(retryd, sigv4.s3().host)
    for n in range(trials):
        request = sigv4.s3("GET", "/%d" % n) if kind == "GET" else sigv4.s3("POST", "/%d" % n, b"x" * 10240)
        assert way.exchange(retryd, request, wire).status == 200
        time.sleep(dice.random() * 0.005)
    arrived = [m.target.rsplit("/", 1)[1] for m in seen]
    assert arrived == [str(n) for n in range(trials)]
    assert {r["attempts"] for r in retryd.requests_logged(trials)} == {1}
    assert {a.get("failure") for a in retryd.attempts_logged()} == {None}


def test_pr07_sent_and_then_reset(way, raw):
    """On a new connection that is a failed attempt, paid and logged as one; on one that was idle it cannot be told from
    a connection that was closed before, so it is dialled anew for nothing, once, and the log says that too."""
    seen, lock = [], threading.Lock()
    fates = iter(["answer", "reset", "reset", "answer"] * 20)

    def script(wire, n):
        while True:
            message = read_head(wire)
            with lock:
                seen.append(message.target)
                fate = next(fates)
            if fate == "reset":
                reset_on_close(wire.sock)
                return
            read_body(wire, message)
            wire.send(response(200, b"ok", [("Connection", "close")] if len(seen) % 4 == 0 else []))

    retryd = raw(script)
    wire = way.open(retryd, sigv4.s3().host)
    for n in range(20):
        for target in ("/first", "/second"):
            assert way.exchange(retryd, sigv4.s3("POST", "%s%d" % (target, n), b"x" * 10240), wire).status == 200
    records = retryd.requests_logged(40)
    assert [r["attempts"] for r in records] == [1, 2] * 20
    failed = [a for a in retryd.attempts_logged() if a.get("failure")]
    assert len(failed) == 20 and all(a["redialled"] and "reused" not in a for a in failed)
    assert {a["failure"] for a in failed} <= {"reset", "closed", "send"}
    assert {a["quota_before"] - a["quota_after"] for a in failed} == {14}
    assert not [a for a in retryd.attempts_logged() if not a.get("failure") and a.get("redialled")]
    assert len(seen) == 80


def test_pr07_redialled_is_said(way, raw):
    """The cheap case in the log: the attempt went well, on a connection that replaced a dead one."""
    seen, fates = [], iter(["answer", "reset", "answer", "reset", "answer"])

    def script(wire, n):
        while True:
            seen.append(read_request(wire).target)
            if next(fates) == "reset":
                reset_on_close(wire.sock)
                return
            wire.send(response(200, b"ok"))

    retryd = raw(script)
    wire = way.open(retryd, sigv4.s3().host)
    for n in range(3):
        assert way.exchange(retryd, sigv4.s3("GET", "/%d" % n), wire).status == 200
    retryd.requests_logged(3)
    assert [(a["attempt"], a.get("redialled")) for a in retryd.attempts_logged()] == \
        [("1/3", None), ("1/3", True), ("1/3", True)]
    assert len(seen) == 5


# ---- PR-08: truncated answers

STREAMED = {"hold_small": "0"}
HEAD_100 = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
CUT = {
    "length": (HEAD_100 + b"x" * 60, False),
    "chunked": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"x" * 60), False),
    "until-close": (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 60, True),
}


@pytest.mark.parametrize("row", CUT)
def test_pr08_cut_is_cut_to_the_client(way, raw, row):
    """D5, E3: seen from its head on, no end is invented, and nothing is tried again once bytes went out."""
    data, resets = CUT[row]
    count = []

    def script(wire, n):
        count.append(read_request(wire))
        wire.send(data)
        time.sleep(0.3)               # so that it is passed on first
        if resets:
            reset_on_close(wire.sock)

    retryd = raw(script, limits=STREAMED)
    answer = way.exchange(retryd, sigv4.s3("GET", "/key"))
    assert (answer.status, answer.body, answer.whole) == (200, b"x" * 60, False)
    assert retryd.requests_logged()[0]["end"] == "cut" and len(count) == 1


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("end", ["orderly", "bare", "reset"])
def test_pr08_body_that_ends_with_its_connection(way, raw, end, version):
    """D5: without a length only the way of the end tells whole from cut. Inside TLS an end without close_notify is a
    cut; a client of HTTP/1.0, which has no chunks to miss, sees a connection that breaks."""
    def script(wire, n):
        read_request(wire)
        wire.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 60)
        time.sleep(0.2)
        if end == "orderly":
            http1_runner.finish(wire.sock)
            wire.fill()
        elif end == "reset":
            reset_on_close(wire.sock)

    retryd = raw(script)
    request = sigv4.s3("GET", "/key")
    wire = way.open(retryd, request.host)
    wire.send(way.bytes(request).replace(b" HTTP/1.1\r\n", b" HTTP/%s\r\n" % version, 1))
    answer = wire.response("GET")
    whole = end == "orderly" or end == "bare" and way.clear
    assert (answer.status, answer.body) == (200, b"x" * 60)
    assert (answer.get("Transfer-Encoding") is None) == (version == b"1.0")
    assert answer.whole == whole
    assert retryd.requests_logged()[0]["end"] == ("delivered" if whole else "cut")


def test_pr08_small_and_cut_is_retried(way, raw):
    """Small successes are held until they are whole: the cut one is never seen."""
    count = []

    def script(wire, n):
        count.append(read_request(wire))
        if len(count) == 1:
            wire.send(HEAD_100 + b"x" * 60)
            return
        wire.send(response(200, b"y" * 100))

    answer = way.exchange(raw(script), sigv4.s3("GET", "/key"))
    assert (answer.status, answer.body, answer.whole) == (200, b"y" * 100, True)
    assert len(count) == 2


def test_pr08_always_cut_stays_visibly_cut(way, raw):
    """D5: the last attempt is held for nothing, its answer streams, as far as it goes."""
    count = []

    def script(wire, n):
        count.append(read_request(wire))
        wire.send(HEAD_100 + b"x" * 60)

    answer = way.exchange(raw(script), sigv4.s3("GET", "/key"))
    assert (answer.status, answer.body, answer.whole) == (200, b"x" * 60, False)
    assert len(count) == 3


def test_pr08_error_whose_body_never_comes(way, raw):
    """A failed attempt, retried; at the end an answer, never silence."""
    count = []

    def script(wire, n):
        count.append(read_request(wire))
        wire.send(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 123\r\n\r\n")

    answer = way.exchange(raw(script), sigv4.sts())
    assert answer.status in (500, 502) and answer.whole
    assert len(count) == 3


def test_pr08_cut_error_then_success(way, raw):
    count = []

    def script(wire, n):
        count.append(read_request(wire))
        if len(count) == 1:
            wire.send(b"HTTP/1.1 503 Slow Down\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n" + b"x" * 20)
            return
        wire.send(response(200, b"whole"))

    answer = way.exchange(raw(script), sigv4.sts())
    assert (answer.status, answer.body, answer.whole) == (200, b"whole", True)
    assert len(count) == 2


# ---- PR-09: signed headers changed on the way

SIGNED = [("Accept-Encoding", "identity"), ("amz-sdk-invocation-id", "8d0d1a5e-77c0-4b09-8a6c-3f5f8b0e2a11"),
          ("amz-sdk-request", "attempt=1; max=3"), ("Expect", "100-continue"), ("Range", "bytes=0-5242879"),
          ("User-Agent", "tool/1.0  lib/2.0"), ("X-Amz-User-Agent", "")]
HOP = [("TE", "trailers"), ("Keep-Alive", "timeout=5"), ("Connection", "X-Mine"), ("X-Mine", "1")]


@pytest.mark.parametrize("hop", [[], HOP], ids=["as-reported", "and-hop-by-hop"])
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_pr09_signature_holds_on_every_attempt(way, origin, retryd, method, hop):
    """C2: target and signed fields arrive as they were signed, hop-by-hop ones among them."""
    origin.answers(DOWN)
    target = "/a%2Fb/c%20d+e?x=%7E&y"
    headers = SIGNED if method == "PUT" else [h for h in SIGNED if h[0] != "Expect"]
    request = sigv4.s3(method, target, b"x" * 1000 if method == "PUT" else b"", headers=headers + hop)
    answer = way.exchange(retryd, request)
    assert answer.status == 200
    seen = origin.requests()
    assert [r["sig"] for r in seen] == ["ok", "ok"], [r.get("sig_why") for r in seen]
    assert {r["target"] for r in seen} == {target}
    for r in seen:
        for name, value in headers + hop:
            assert [name, value] in r["headers"]


# ---- PR-10: certificates that strict clients refuse (names: test_tls.py)

def openssl(*args):
    done = subprocess.run(["openssl", *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def test_pr10_leaf_for_an_address(make_retryd, origin, tmp_path, origin_ca):
    address = "192.0.2.7"
    retryd = make_retryd(origin, intercept={"hosts": [address]},
                         resolve={address: "127.0.0.1:%d" % origin.https})
    with retryd.tls_context().wrap_socket(retryd.tunnel(address).sock, server_hostname=address) as tls:
        leaf = tmp_path / "leaf.pem"
        leaf.write_text(ssl.DER_cert_to_PEM_cert(tls.getpeercert(True)))
    status, said = openssl("verify", "-x509_strict", "-purpose", "sslserver", "-verify_ip", address, "-CAfile",
                           retryd.ca_file, "-untrusted", os.path.join(retryd.state_dir, "chain.pem"), leaf)
    assert status == 0, said
    _, text = openssl("x509", "-in", leaf, "-noout", "-text")
    assert "IP Address:" + address in text and "DNS:" not in text


def test_pr10_names_outside_are_neither_minted_nor_accepted(make_retryd, origin, tmp_path):
    """Not minted: their tunnel is blind, and shows the origin's certificate. Not accepted: even the key that signs
    leaves makes none that a client takes."""
    host = "www.example.org"
    retryd = make_retryd(origin, resolve={host: "127.0.0.1:%d" % origin.https})
    context = ssl.create_default_context(cafile=origin.ca_file)
    with context.wrap_socket(retryd.tunnel(host).sock, server_hostname=host) as tls:
        assert ("commonName", "faultd test CA") in [pair for part in tls.getpeercert()["issuer"] for pair in part]
    chain = os.path.join(retryd.state_dir, "chain.pem")
    (key,) = subprocess.run(["grep", "-rl", "PRIVATE KEY", "--exclude=*.sock", "-D", "skip", retryd.state_dir],
                            stdout=subprocess.PIPE, text=True).stdout.split()
    for name, status in ((host, 2), ("evil-amazonaws.com", 2), ("sts.amazonaws.com", 0)):
        ext = tmp_path / "ext"
        ext.write_text("subjectAltName=DNS:%s\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n"
                       "keyUsage=critical,digitalSignature\nauthorityKeyIdentifier=keyid\n" % name)
        csr, leaf = tmp_path / "csr", tmp_path / "leaf"
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/O=x", "-keyout",
                tmp_path / "leaf.key", "-out", csr)
        made, said = openssl("x509", "-req", "-in", csr, "-CA", chain, "-CAkey", key, "-set_serial", "99", "-days", "2",
                             "-extfile", ext, "-out", leaf)
        assert made == 0, said
        got, said = openssl("verify", "-x509_strict", "-CAfile", retryd.ca_file, "-untrusted", chain, leaf)
        assert got == status and (status == 0 or "permitted subtree" in said), said


# ---- PR-12: compressed error bodies

DYNAMO = {"Content-Type": "application/x-amz-json-1.0"}
EXCEEDED = b'{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}'
FINAL = b'{"__type":"com.amazonaws.dynamodb.v20120810#ValidationException"}'


def coded(body, status=400, **how):
    return dict({"status": status, "headers": dict(DYNAMO, **{"Content-Encoding": "gzip"}),
                 "body_b64": base64.b64encode(body).decode()}, **how)


@pytest.mark.parametrize("how", [{}, {"framing": "chunked", "chunk_bytes": 1}], ids=["whole", "bytewise"])
def test_pr12_code_in_gzip(way, origin, retryd, how):
    origin.answers(coded(gzip.compress(EXCEEDED), **how))
    assert way.exchange(retryd, sigv4.dynamodb()).status == 200
    assert len(origin.requests()) == 2
    assert attempts(retryd)[0]["class"] == "throttling"


@pytest.mark.parametrize("body, count", [(EXCEEDED, 2), (FINAL, 1)], ids=["throttling", "final"])
def test_pr12_gzip_that_is_none(way, origin, retryd, body, count):
    """What can be read decides; what is delivered is as it came."""
    origin.answers(coded(body))
    answer = way.exchange(retryd, sigv4.dynamodb())
    assert answer.status == (200 if count == 2 else 400)
    assert count == 2 or (answer.body == body and answer.get("Content-Encoding") == "gzip")
    assert len(origin.requests()) == count


def bomb(size):
    packer, zeros = zlib.compressobj(9, wbits=31), bytes(4 * MIB)
    return b"".join(packer.compress(zeros) for _ in range(size // len(zeros))) + packer.flush()


@pytest.fixture(scope="module")
def two_gib():
    return bomb(2 << 30)


def test_pr12_bomb(way, origin, retryd, two_gib):
    """E10: two GiB inside two MiB; the bound of what is held ends the reading, and all of it is passed on."""
    origin.answers(coded(two_gib))
    before = rss_bytes(retryd.process)
    began = time.monotonic()
    answer = way.exchange(retryd, sigv4.dynamodb())
    assert (answer.status, answer.whole) == (400, True) and answer.body == two_gib
    assert elapsed(began) < 10
    assert rss_bytes(retryd.process) - before < 64 * MIB
    assert len(origin.requests()) == 1


def test_pr12_small_bomb(way, origin, retryd):
    """E10: one that is held whole; at most 256 KiB are ever unpacked."""
    small = bomb(48 * MIB)
    assert len(small) < 64 << 10
    origin.answers(coded(small))
    before = rss_bytes(retryd.process)
    answer = way.exchange(retryd, sigv4.dynamodb())
    assert (answer.status, answer.body) == (400, small)
    assert rss_bytes(retryd.process) - before < 16 * MIB
    assert len(origin.requests()) == 1


@pytest.mark.parametrize("crc32", [False, True], ids=["shipped", "dynamodb_crc32"])
def test_pr12_gzip_with_its_checksum(way, origin, make_retryd, crc32):
    retryd = make_retryd(origin, retry={"dynamodb_crc32": crc32})
    body = gzip.compress(b'{"Item":{"k":{"S":"v"}}}')
    origin.answers(dict(coded(body, 200), crc32="auto"))
    answer = way.exchange(retryd, sigv4.dynamodb())
    assert (answer.status, answer.body, answer.whole) == (200, body, True)
    assert answer.get("Content-Encoding") == "gzip"
    assert answer.get("x-amz-crc32") == str(zlib.crc32(body))
    assert len(origin.requests()) == 1


def test_pr12_checksum_that_does_not_fit(way, origin, make_retryd):
    """With retry.dynamodb_crc32, for the SDKs that look at it."""
    retryd = make_retryd(origin, retry={"dynamodb_crc32": True, "max_backoff": "100ms"})
    origin.answers(dict(coded(gzip.compress(b"{}"), 200), crc32="bad"))
    answer = way.exchange(retryd, sigv4.dynamodb())
    assert (answer.status, answer.whole, answer.get("Content-Encoding")) == (200, True, None)
    assert len(origin.requests()) == 2
