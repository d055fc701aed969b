"""Requests as 40 clients really sent them (tests/vectors/wire), through retryd: at the origin they are the same on
attempt 1 and on attempt 2, their signatures verify there, and the log knows whose they are.

`recorded` sends each recording as it is; it is too old to be retried. `anew` sends it with today's date and a new
signature by the same key, answers attempt 1 with 503 and looks at both attempts."""
import pytest

from daemons import Retryd
from faultd import Verifier
from hostile import RawOrigin, read_body, read_head
from recorded import Recorded, as_checked, fields_of, identities, index
from sigv4 import KEY_ID, SECRET
from web import Minted
from wire import until

ENTRIES = index()
IDENTITY = identities()
# RFC 9110 7.6.1: between client and proxy, or between proxy and origin, only. TE and what Connection lists too.
HOP_BY_HOP = {"connection", "proxy-connection", "keep-alive", "te", "transfer-encoding", "trailer", "upgrade",
              "proxy-authorization", "proxy-authenticate"}


class Scene:
    """An origin that keeps what it saw and answers as told; a retryd for it."""

    def __init__(self, directory, ca):
        self.seen, self.statuses = [], []
        self.clear = RawOrigin(self.serve)
        self.tls = RawOrigin(self.serve, tls=Minted(ca).context)
        self.retryd = Retryd(directory, None, {
            "resolve": {"*.amazonaws.com:443": "127.0.0.1:%d" % self.tls.port,
                        "*.amazonaws.com:80": "127.0.0.1:%d" % self.clear.port},
            "upstream": {"ca_file": str(ca / "ca.pem")}, "retry": {"max_backoff": "5ms"}})

    def serve(self, wire, _):
        while True:
            message = read_head(wire)
            if "expect" in message.headers:
                wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.seen.append(read_body(wire, message))
            status = self.statuses.pop(0) if self.statuses else 200
            wire.send(b"HTTP/1.1 %d X\r\nContent-Length: 7\r\n\r\n%s" %
                      (status, b"" if message.method == "HEAD" else b"<Well/>"))

    def exchange(self, request, statuses):
        self.seen.clear()
        self.statuses[:] = statuses
        logged = len(self.retryd.log("request"))
        wire = self.retryd.plain() if request.clear else self.retryd.open(request.host)
        wire.send(request.head())
        if request.get("expect"):
            assert wire.head().startswith(b"HTTP/1.1 100")
        wire.send(request.framed_body())
        answer = wire.response(request.method)
        wire.close()
        line = until(lambda: self.retryd.log("request")[logged:], "the request's line")[0]
        return answer, list(self.seen), line

    def stop(self):
        self.clear.stop()
        self.tls.stop()
        self.retryd.stop()


@pytest.fixture(scope="module")
def scene(tmp_path_factory, origin_ca):
    one = Scene(tmp_path_factory.mktemp("wire") / "retryd", origin_ca)
    yield one
    one.stop()


def end_to_end(fields):
    listed = {t.strip().lower() for n, v in fields if n.lower() == "connection" for t in v.split(",")}
    return [[n, v] for n, v in fields if n.lower() not in HOP_BY_HOP | listed | {"via"}]


def check_arrival(request, message):
    start, fields = fields_of(message.head)
    assert start == "%s %s HTTP/1.1" % (request.method, request.target)
    assert end_to_end(fields) == end_to_end(request.fields)
    added = [n for n, _ in fields if n.lower() in HOP_BY_HOP | {"via"}]
    assert added == ["Via"] + ["Transfer-Encoding"] * request.chunked
    assert message.body == request.body and message.trailers == b""
    verdict, why = Verifier({KEY_ID: SECRET}).check(
        as_checked(message.method, message.target, fields, message.body, request.host))
    assert verdict == request.entry["sig"], why


def check_identity(request, line):
    service, region, operation, key = IDENTITY[request.name]
    assert [line.get(name, "-") or "-" for name in ("service", "region", "op", "key")] == \
        [service, region, operation, key[-4:] if key != "-" else "-"]


def test_there_are_many():
    assert len(ENTRIES) == len(IDENTITY) == 193


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e["file"].replace(".http", ""))
def test_recorded(scene, entry):
    """C1, C2, CR8, CR9: recorded."""
    request = Recorded(entry)
    answer, seen, line = scene.exchange(request, [200])
    assert answer.status == 200 and len(seen) == 1
    check_arrival(request, seen[0])
    check_identity(request, line)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e["file"].replace(".http", ""))
def test_anew(scene, entry):
    """C2, CR8: anew."""
    request = Recorded(entry).dated_anew()
    answer, seen, line = scene.exchange(request, [503, 200])
    assert answer.status == 200 and len(seen) == 2 and line["attempts"] == 2
    assert seen[0].head == seen[1].head
    for message in seen:
        check_arrival(request, message)
    check_identity(request, line)
