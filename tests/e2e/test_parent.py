"""Through a parent proxy: CONNECT, absolute-form, its auth, its failures, NO_PROXY, TLS inside TLS."""
import os
import ssl
import time

import pytest

import sigv4
from certs import Cert, address
from daemons import Retryd, elapsed, free_port
from parent import Parent
from wire import until

CREDENTIALS = "retryd-user:s3cr3t:with:colons"


def private(path, text):
    path.touch(0o600)
    path.write_text(text)
    return path


@pytest.fixture
def make_parent(origin):
    made = []

    def make(**how):
        made.append(Parent(origin, **how))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def behind(make_retryd, origin, parent, scheme="http", host="127.0.0.1", parent_more=(), **config):
    """No `resolve`: only the parent knows where things are."""
    section = dict({"url": "%s://%s:%d" % (scheme, host, parent.port)}, **dict(parent_more))
    return make_retryd(None, parent=section, retry={"max_backoff": "100ms"},
                       upstream=dict({"ca_file": origin.ca_file}, **config.pop("upstream", {})), **config)


def test_intercepted_requests_go_through_connect(origin, make_parent, make_retryd):
    parent = make_parent()
    retryd = behind(make_retryd, origin, parent)
    origin.answers({"status": 503, "body": "{}"})
    request = sigv4.sts()
    wire = retryd.open(request.host)
    for _ in range(3):
        assert retryd.exchange(request, wire=wire).status == 200
    assert {r["sig"] for r in origin.requests()} == {"ok"} and len(origin.requests()) == 4
    # One tunnel, kept, served all three.
    assert parent.targets()[0] == ("CONNECT", request.host + ":443")
    assert len(parent.targets()) <= 2
    assert parent.values("Host")[0] == request.host + ":443"
    assert parent.values("Authorization") == [] and parent.values("Proxy-Authorization") == []


def test_clear_requests_go_in_absolute_form(origin, make_parent, make_retryd, tmp_path):
    """The client's own Proxy-Authorization ends here, ours is added; target and signature stay as they were."""
    secret = private(tmp_path / "credentials", CREDENTIALS + "\n")
    parent = make_parent(credentials=CREDENTIALS)
    retryd = behind(make_retryd, origin, parent, parent_more={"credentials_file": str(secret)})
    request = sigv4.s3("PUT", "/a%2Fb?x=%7E&y", b"0123456789")
    request.headers.append(("Proxy-Authorization", "Basic Y2xpZW50"))
    assert retryd.exchange(request, clear=True).status == 200
    (seen,) = origin.requests()
    assert (seen["target"], seen["sig"], seen["listener"]) == ("/a%2Fb?x=%7E&y", "ok", "http0")
    assert parent.targets() == [("PUT", "http://%s/a%%2Fb?x=%%7E&y" % request.host)]
    assert len(parent.values("Proxy-Authorization")) == 1
    assert parent.values("Host") == [request.host]


@pytest.mark.parametrize("target, sent", [("http://bucket.s3.us-east-1.amazonaws.com", "http://bucket.s3.us-east-1.amazonaws.com/"),
                                          ("http://bucket.s3.us-east-1.amazonaws.com?x=1",
                                           "http://bucket.s3.us-east-1.amazonaws.com/?x=1"),
                                          ("http://BUCKET.s3.us-east-1.amazonaws.com:80/x",
                                           "http://bucket.s3.us-east-1.amazonaws.com/x")])
def test_absolute_form_as_sent(origin, make_parent, make_retryd, target, sent):
    parent = make_parent(answer=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    retryd = behind(make_retryd, origin, parent)
    wire = retryd.plain()
    wire.send(b"GET %s HTTP/1.1\r\nHost: bucket.s3.us-east-1.amazonaws.com\r\n\r\n" % target.encode())
    assert wire.response().body == b"ok"
    assert parent.targets() == [("GET", sent)]
    wire.close()


def test_options_for_the_whole_server(origin, make_parent, make_retryd):
    parent = make_parent(answer=b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    retryd = behind(make_retryd, origin, parent)
    wire = retryd.plain()
    wire.send(b"OPTIONS http://origin.test HTTP/1.1\r\nHost: origin.test\r\n\r\n")
    assert wire.response().status == 200
    assert parent.targets() == [("OPTIONS", "http://origin.test")]
    wire.close()


def test_blind_tunnels_go_through_too(origin, make_parent, make_retryd, tmp_path):
    secret = private(tmp_path / "credentials", CREDENTIALS)
    parent = make_parent(credentials=CREDENTIALS)
    retryd = behind(make_retryd, origin, parent, parent_more={"credentials_file": str(secret)})
    wire = retryd.tunnel("elsewhere.test")
    assert parent.targets() == [("CONNECT", "elsewhere.test:443")]
    # The other end is the origin's TLS.
    context = ssl.create_default_context(cafile=origin.ca_file)
    context.check_hostname = False
    with context.wrap_socket(wire.sock, server_hostname="elsewhere.test") as tls:
        assert tls.version()


def test_credentials_that_are_wrong(origin, make_parent, make_retryd, tmp_path):
    """One attempt, 502 with a word of its own, never 407, and the secret is in no output."""
    secret = private(tmp_path / "credentials", "user:wr0ngs3cr3t\n")
    parent = make_parent(credentials=CREDENTIALS)
    retryd = behind(make_retryd, origin, parent, parent_more={"credentials_file": str(secret)},
                    log={"level": "debug"})
    for clear in (False, True):
        answer = retryd.exchange(sigv4.sts(), clear=clear)
        assert (answer.status, answer.get("X-Retryd-Error")) == (502, "parent_refused")
        assert answer.get("Proxy-Authenticate") is None
        assert b"407" in answer.body
    wire = retryd.plain()
    wire.send(b"CONNECT elsewhere.test:443 HTTP/1.1\r\nHost: elsewhere.test:443\r\n\r\n")
    answer = wire.response()
    assert (answer.status, answer.get("X-Retryd-Error")) == (502, "parent_refused")
    assert len(parent.seen) == 3
    assert {r["attempts"] for r in retryd.requests_logged(2)} == {1}
    assert origin.log("conn") == []
    for text in (retryd.said(), retryd.said("stdout"), retryd.said("retryd.log")):
        assert "wr0ngs3cr3t" not in text and "dXNlcjp3cjBuZ3MzY3IzdA" not in text
    wire.close()


@pytest.mark.parametrize("status, word, attempts", [(502, "parent_failure", 3), (503, "parent_failure", 3),
                                                    (403, "parent_refused", 1), (400, "parent_refused", 1)])
def test_a_parent_that_says_no(origin, make_parent, make_retryd, status, word, attempts):
    parent = make_parent(answer=b"HTTP/1.1 %d no\r\nContent-Length: 3\r\n\r\nno\n" % status)
    retryd = behind(make_retryd, origin, parent)
    answer = retryd.exchange(sigv4.sts())
    assert (answer.status, answer.get("X-Retryd-Error")) == (502, word)
    assert str(status).encode() in answer.body
    assert len(parent.seen) == attempts
    (record,) = retryd.requests_logged()
    assert record["attempts"] == attempts


def test_a_parent_that_is_away_or_silent(origin, make_parent, make_retryd):
    """J6: the wait for the answer to CONNECT ends with the connect timeout."""
    parent = make_parent(silent=True)
    retryd = behind(make_retryd, origin, parent, timeouts={"connect": "300ms"})
    began = time.monotonic()
    answer = retryd.exchange(sigv4.sts())
    assert (answer.status, answer.get("X-Retryd-Error")) == (502, "parent_failure")
    assert 0.9 < elapsed(began) < 20
    parent.port = free_port()
    retryd = behind(make_retryd, origin, parent)
    for clear in (False, True):
        answer = retryd.exchange(sigv4.sts(), clear=clear)
        assert (answer.status, answer.get("X-Retryd-Error")) == (502, "parent_failure")


def test_no_proxy_and_origins_decide(origin, make_parent, make_retryd):
    parent = make_parent()
    retryd = make_retryd(origin, parent={"url": "http://127.0.0.1:%d" % parent.port,
                                         "no_proxy": ["sqs.us-east-1.amazonaws.com", ".s3.us-east-1.amazonaws.com"]},
                         origins=[{"hosts": ["sts.us-east-1.amazonaws.com"], "parent": "skip"},
                                  {"hosts": ["x.s3.us-east-1.amazonaws.com"], "parent": "use"}])
    for host, through in [("sts.us-east-1.amazonaws.com", False), ("sts.eu-west-1.amazonaws.com", True),
                          ("sqs.us-east-1.amazonaws.com", False), ("sqs.us-east-2.amazonaws.com", True),
                          ("bucket.s3.us-east-1.amazonaws.com", False), ("x.s3.us-east-1.amazonaws.com", True)]:
        before = len(parent.seen)
        assert retryd.exchange(sigv4.sts(host=host)).status == 200
        assert (len(parent.seen) > before) == through, host


def test_own_environment_has_no_say(origin, make_parent, make_retryd, tmp_path):
    """I8: HTTP_PROXY and its like in retryd's own environment are not for its own connections."""
    parent = make_parent()
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    env = {n: "http://127.0.0.1:%d" % parent.port for n in names}
    env.update({n.lower(): v for n, v in env.items()})
    retryd = Retryd(tmp_path / "r", origin, {}, env=env)
    try:
        assert retryd.exchange(sigv4.sts()).status == 200
        assert retryd.exchange(sigv4.sts(), clear=True).status == 200
        assert parent.connections == 0
    finally:
        retryd.stop()


@pytest.mark.parametrize("host", ["169.254.169.254", "127.0.0.1", "[::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"])
def test_forbidden_literals_do_not_even_reach_the_parent(origin, make_parent, make_retryd, host):
    """I3: a literal target is judged here although the parent would dial it."""
    parent = make_parent()
    retryd = behind(make_retryd, origin, parent)
    wire = retryd.plain()
    wire.send(b"CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n" % (host.encode(), host.encode()))
    answer = wire.response()
    assert (answer.status, answer.get("X-Retryd-Error")) == (403, "address_not_allowed")
    wire = retryd.plain()
    wire.send(b"GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (host.encode(), host.encode()))
    assert wire.response().status == 403
    assert parent.connections == 0


def test_itself_as_a_parent_is_refused(origin, make_retryd):
    """I5: the one address that even the operator cannot name."""
    port = free_port()
    retryd = make_retryd(origin, listen=["127.0.0.1:%d" % port], parent={"url": "http://127.0.0.1:%d" % port})
    answer = retryd.exchange(sigv4.sts())
    assert answer.status == 403 and b"own listener" in answer.body


@pytest.mark.parametrize("kind", ["tunnel", "opened", "clear"])
def test_two_that_are_each_others_parent(make_retryd, kind):
    """C9: one 508, and no growth: the request goes round once."""
    ports = [free_port(), free_port()]
    both = []
    for own, other in (ports, ports[::-1]):
        both.append(make_retryd(None, listen=["127.0.0.1:%d" % own], parent={"url": "http://127.0.0.1:%d" % other},
                                retry={"mode": "off"}))
    wire = both[1].plain()
    request = sigv4.sts()
    if kind == "clear":
        wire.send(request.bytes(request.absolute()))
        answer = wire.response()
        assert (answer.status, answer.get("X-Retryd-Error")) == (508, "loop_detected")
    elif kind == "tunnel":
        wire.send(b"CONNECT elsewhere.test:443 HTTP/1.1\r\nHost: elsewhere.test:443\r\n\r\n")
        answer = wire.response()
        assert (answer.status, answer.get("X-Retryd-Error")) == (502, "parent_failure")
    else:
        wire = both[1].open(request.host)
        wire.send(request.bytes())
        answer = wire.response()
        assert (answer.status, answer.get("X-Retryd-Error")) == (502, "upstream_certificate")  # G4: no retryd trusts another
    wire.close()
    loops = sum(len([l for l in one.log() if "loop_detected" in str(l)]) for one in both)
    assert loops >= (0 if kind == "opened" else 1)
    assert sum(len(one.log()) for one in both) < 12


def test_via_of_connect(origin, make_parent, make_retryd):
    """C9: what was received, then the pseudonym; a chain too long to be true is refused."""
    parent = make_parent()
    retryd = behind(make_retryd, origin, parent)
    wire = retryd.plain()
    wire.send(b"CONNECT elsewhere.test:443 HTTP/1.1\r\nHost: elsewhere.test:443\r\nVia: 1.0 fred\r\nVia: 1.1 joe\r\n\r\n")
    assert wire.response("CONNECT", body=False).status == 200
    (via,) = parent.values("Via")
    assert via.startswith("1.0 fred, 1.1 joe, 1.1 ") and via.endswith(".retryd")
    wire.close()
    wire = retryd.plain()
    wire.send(b"CONNECT elsewhere.test:443 HTTP/1.1\r\nHost: elsewhere.test:443\r\nVia: %s\r\n\r\n" % (b"1.1 x, " * 80 + b"1.1 y"))
    assert wire.response().status == 508
    wire.close()


# ---- a parent that speaks TLS


@pytest.fixture
def tls_parent(make_parent, tmp_path):
    root = Cert("parent root", ca=True)
    root.write(tmp_path, "parent-root")
    leaf = Cert("parent", root, [address("127.0.0.1"), "parent.test"])
    return make_parent(tls=leaf.write(tmp_path, "parent"), credentials=CREDENTIALS), str(tmp_path / "parent-root.pem")


def test_tls_inside_tls(origin, tls_parent, make_retryd, tmp_path):
    """Megabytes both ways through both layers, on a kept connection."""
    parent, root = tls_parent
    secret = private(tmp_path / "credentials", CREDENTIALS)
    retryd = behind(make_retryd, origin, parent, "https",
                    parent_more={"ca_file": root, "credentials_file": str(secret)})
    body = bytes(range(256)) * 8192
    request = sigv4.s3("PUT", "/large", body)
    wire = retryd.open(request.host)
    assert retryd.exchange(request, wire=wire).status == 200
    origin.answers({"status": 200, "body": "x" * 300000})
    answer = retryd.exchange(sigv4.s3("GET", "/large"), wire=wire)
    assert answer.status == 200 and answer.body == b"x" * 300000 and answer.whole
    assert retryd.exchange(sigv4.s3("GET", "/plain"), clear=True).status == 200
    assert parent.targets()[0] == ("CONNECT", request.host + ":443")
    assert parent.targets()[-1][0] == "GET"
    assert {r["sig"] for r in origin.requests()} == {"ok"}
    wire.close()


def test_a_tls_parent_is_verified(origin, tls_parent, make_retryd, tmp_path):
    """G1: the parent's certificate is judged like any other; the credentials are not shown to an impostor."""
    parent, _ = tls_parent
    secret = private(tmp_path / "credentials", CREDENTIALS)
    retryd = behind(make_retryd, origin, parent, "https", parent_more={"credentials_file": str(secret)})
    answer = retryd.exchange(sigv4.sts())
    assert (answer.status, answer.get("X-Retryd-Error")) == (502, "upstream_certificate")
    assert b"parent proxy" in answer.body
    (record,) = retryd.requests_logged()
    assert record["attempts"] == 1
    assert parent.seen == []


def test_credentials_that_others_can_read(origin, tmp_path):
    """K2: a password in the clear that everybody on the machine can read is an error at the start."""
    secret = private(tmp_path / "credentials", CREDENTIALS)
    os.chmod(secret, 0o644)
    config = {"parent": {"url": "http://127.0.0.1:1", "credentials_file": str(secret)}}
    retryd = Retryd(tmp_path / "r", origin, config, start=False)
    with pytest.raises(AssertionError, match="ended with"):
        retryd.start()
    assert "parent.credentials_file: %s: others may read" % secret in retryd.said()


@pytest.mark.parametrize("text", ["", "no-colon\n", "a:b\nc:d\n", "a:b\x01\n", "a:" + "b" * 2000])
def test_credentials_file_that_is_none(origin, make_parent, make_retryd, tmp_path, text):
    secret = private(tmp_path / "credentials", text)
    config = {"parent": {"url": "http://127.0.0.1:1", "credentials_file": str(secret)}}
    retryd = Retryd(tmp_path / "r", origin, config, start=False)
    with pytest.raises(AssertionError, match="ended with"):
        retryd.start()
    assert "%s:" % retryd.config_file in retryd.said()
    assert "parent.credentials_file: %s: not one line" % secret in retryd.said()
    until(lambda: retryd.process.poll() is not None, "it ended")
    assert "b" * 100 not in retryd.said()


def test_the_far_one_of_two_in_a_row(make_retryd):
    """README: two retryds in a row, one of them opens nothing. It starts, with an authority for no name."""
    retryd = make_retryd(intercept={"aws": False})
    with open(os.path.join(os.path.dirname(retryd.ca_file), "names")) as f:
        assert f.read().split() == ["DNS:retryd.invalid", "IP:none"]
