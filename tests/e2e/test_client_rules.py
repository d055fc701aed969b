"""What real clients do that a proxy may stumble over, where no other file tells the story."""
import pytest

import sigv4
from wire import dial

STS = "sts.us-east-1.amazonaws.com"


def connect(retryd, head):
    wire = dial(retryd.port)
    wire.send(head)
    return wire, wire.response("CONNECT", body=False)


@pytest.mark.parametrize("head", [
    "CONNECT %s:443 HTTP/1.0\r\n\r\n",                                              # Python's http.client
    "CONNECT %s:443 HTTP/1.1\r\nHost: %s\r\n\r\n",                                  # aiohttp, axios, undici, Java
    "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\nConnection: close\r\n\r\n",         # undici, axios
    "CONNECT %s:443 HTTP/1.1\r\nTE: deflate,gzip;q=0.3\r\nConnection: TE, close\r\nHost: %s:443\r\n\r\n",  # LWP
    "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\nProxy-Connection: Keep-Alive\r\n\r\n",
], ids=["bare", "host", "close", "te", "proxy-connection"])
def test_connect_as_clients_send_it(origin, retryd, head):
    """CR1, CR2: whatever comes with a CONNECT, its line is the truth, and no connection field ends the tunnel."""
    wire, answer = connect(retryd, (head.replace("%s", STS)).encode())
    assert answer.status == 200 and answer.get("Content-Length") is None
    context = retryd.tls_context()
    inside = type(wire)(context.wrap_socket(wire.sock, server_hostname=STS))
    for _ in range(2):
        inside.send(sigv4.sts().bytes())
        assert inside.response("POST").status == 200


def test_a_refused_connect_is_told_in_the_tunnel(origin, retryd):
    """CR5: an origin that is away is a 502 where SDKs show it: inside, in the client's own protocol."""
    origin.refuse(True)
    wire = retryd.open(STS)
    wire.send(sigv4.sts().bytes())
    answer = wire.response("POST")
    assert answer.status == 502 and answer.get("X-Retryd-Error")
    assert b"<ErrorResponse>" in answer.body


def test_jitter_differs_between_processes(origin, make_retryd):
    """E13: two daemons that meet the same outage do not wait the same times."""
    waits = []
    for _ in range(2):
        origin.reset()
        origin.answers({"status": 503}, then="last")
        retryd = make_retryd(origin, retry={"max_attempts": 5, "max_backoff": "200ms"})
        assert retryd.exchange(sigv4.sts()).status == 503
        retryd.requests_logged()
        waits.append([a["wait_ms"] for a in retryd.attempts_logged() if "wait_ms" in a])
        assert len(waits[-1]) == 4
    assert waits[0] != waits[1]


@pytest.mark.parametrize("value, told", [
    (None, None), ("attempt=1; max=3", None), ("attempt=0", None), ("attempt=2; max=3", 2),
    ("ttl=20991231T000000Z; attempt=3; max=3", 3), ("attempt=%s" % ("9" * 40), None), ("attempt=x", None)])
def test_attempts_of_the_client_are_told(origin, retryd, value, told):
    """CR15: a client that tries again itself shows in the request's line, by the number of its attempt."""
    headers = [("amz-sdk-request", value)] if value else []
    assert retryd.exchange(sigv4.sts(headers=headers)).status == 200
    assert retryd.requests_logged()[-1].get("client_attempt") == told
