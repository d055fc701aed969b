"""Everything arrives in drops, on both sides: CONNECT, handshakes, records, heads, bodies."""
import random
import select
import socket
import threading

import pytest

import sigv4


class Dripper:
    """A TCP relay that hands on a few bytes at a time, each in a segment of its own."""

    def __init__(self, port, seed):
        self.port, self.rng = port, random.Random(seed)
        self.sockets = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    @property
    def listens(self):
        return self.listener.getsockname()[1]

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.port))
            for s in (near, far):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                s.settimeout(20)
                self.sockets.append(s)
            thread = threading.Thread(target=self.relay, args=(near, far))
            self.threads.append(thread)
            thread.start()

    def relay(self, near, far):
        with near, far:
            other = {near: far, far: near}
            try:
                while other:
                    for s in select.select(list(other), [], [], 20)[0]:
                        data = s.recv(self.rng.choice([1, 1, 2, 5, 30]))
                        if data:
                            other[s].sendall(data)
                        else:
                            other.pop(s).shutdown(socket.SHUT_WR)
            except (OSError, ValueError):
                pass

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.threads[0].join(30)
        for s in self.sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for t in self.threads:
            t.join(30)


@pytest.mark.parametrize("seed", range(3))
def test_drops_on_both_sides(origin, make_retryd, seed):
    up = Dripper(origin.https, seed)
    down = None
    try:
        retryd = make_retryd(None, resolve={"*.amazonaws.com:443": "127.0.0.1:%d" % up.listens},
                             upstream={"ca_file": origin.ca_file}, retry={"max_backoff": "50ms"})
        down = Dripper(retryd.port, seed + 100)
        straight, retryd.port = retryd.port, down.listens
        origin.answers({"status": 503, "body": "{}"},
                       {"fail": "reset_in_body", "ok": "auto", "body": "{\"a\": 1}", "at": 3})
        wire = retryd.open("dynamodb.us-east-1.amazonaws.com")
        for n in range(3):
            wire.send(sigv4.dynamodb("PutItem", {"TableName": "t" * 2000, "N": n}).bytes())
            answer = wire.response("POST")
            assert (answer.status, answer.whole) == (200, True)
        wire.close()
        retryd.port = straight
        requests = origin.requests()
        assert len(requests) == 5 and {r["sig"] for r in requests} == {"ok"}
    finally:
        for one in (up, down):
            if one:
                one.stop()
