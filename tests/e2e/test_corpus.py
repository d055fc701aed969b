"""Every case of tests/vectors/http1.jsonl, in every mode that it lists, against the real daemon (security
requirement A1). The cases that a run selects are played on a few lanes side by side, before the first one is judged;
each is then a test of its own."""
import queue
import socket
import threading

import pytest

import http1_runner as runner
from daemons import Retryd
from hostile import server_tls

LANES = 8
CASES = runner.load()
PLAYS = [(case["id"], mode) for case in CASES for mode in case["modes"]]
BYTEWISE = [(name, mode + "-bytewise") for name, mode in PLAYS]
BY_ID = {case["id"]: case for case in CASES}

CONFIG = {
    # 22 is the port of the cases that try this machine: it is the address rule that has to refuse them.
    "http_ports": [22, 80, 443, runner.PORT],
    "connect_ports": [443, 8443, runner.PORT],
    "intercept": {"hosts": [runner.HOST]},
    "timeouts": {"client_head": "2s", "client_body": "2s"},
    "retry": {"max_backoff": "100ms"},
}


class Corpus:
    """The outcome of every selected play; run once."""

    def __init__(self, directory, ca, plays):
        self.todo, self.results = queue.SimpleQueue(), {}
        for play in plays:
            self.todo.put(play)
        self.problems = []
        tls = server_tls(directory, ca, runner.HOST)
        self.deaf = socket.socket()   # the origin listens on its one port; on others it refuses
        self.deaf.bind(("127.0.0.1", 0))
        self.stubs = [runner.Stub(tls) for _ in range(min(LANES, len(plays)))]
        self.daemons = [self.daemon(directory / ("lane%d" % n), ca, stub) for n, stub in enumerate(self.stubs)]

    def daemon(self, directory, ca, stub):
        resolve = {"%s:%d" % (runner.HOST, runner.PORT): "127.0.0.1:%d" % stub.port,
                   runner.HOST: "127.0.0.1:%d" % self.deaf.getsockname()[1]}
        return Retryd(directory, None, dict(CONFIG, upstream={"ca_file": str(ca / "ca.pem")}, resolve=resolve))

    def play(self, lane):
        while True:
            try:
                name, mode = self.todo.get_nowait()
            except queue.Empty:
                return
            try:
                self.results[name, mode] = lane.run(BY_ID[name], mode)
            except Exception as e:    # that case fails, the others go on
                self.results[name, mode] = [repr(e)]

    def run(self):
        threads = []
        for daemon, stub in zip(self.daemons, self.stubs):
            context = daemon.tls_context()
            lane = runner.Lane(daemon.port, stub, lambda context=context: context)
            threads.append(threading.Thread(target=self.play, args=(lane,)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def stop(self):
        """The end of the daemons is judged as well: exit status 0, a silent sanitizer."""
        for stub in self.stubs:
            stub.stop()
        for daemon in self.daemons:
            daemon.stop()
        self.deaf.close()


@pytest.fixture(scope="module")
def corpus(request, tmp_path_factory, origin_ca):
    plays = [item.callspec.params["play"] for item in request.session.items
             if getattr(item, "function", None) in (test_case, test_case_bytewise)]
    made = Corpus(tmp_path_factory.mktemp("corpus"), origin_ca, plays)
    made.run()
    yield made
    made.stop()


@pytest.mark.parametrize("play", PLAYS, ids=["%s-%s" % play for play in PLAYS])
def test_case(corpus, play):
    """A1, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11, C3, C4, C5, C7, C10, D1, D2, D3, D4, D6, D7, D8: case."""
    wrong = corpus.results[play]
    assert not wrong, "%s: %s" % (BY_ID[play[0]]["title"], "; ".join(wrong))


@pytest.mark.slow
@pytest.mark.parametrize("play", BYTEWISE, ids=["%s-%s" % play for play in BYTEWISE])
def test_case_bytewise(corpus, play):
    """A2: however the bytes are cut."""
    test_case(corpus, play)


def test_the_corpus_is_whole():
    """The file only grows: a case without a mode would be one that nobody runs."""
    assert len(BY_ID) == len(CASES) >= 315
    assert all(case["modes"] for case in CASES)
    assert len(PLAYS) >= 542


def test_the_judge_is_not_blind(tmp_path, origin_ca, monkeypatch):
    """Straight at the origin, which takes anything, what has to be refused is not."""
    monkeypatch.setattr(runner, "PATIENCE", 1)
    stub = runner.Stub(server_tls(tmp_path, origin_ca, runner.HOST))
    lane = runner.Lane(stub.port, stub, None)
    assert not lane.run(BY_ID["SC-046"], "absolute")
    for name in ("SC-001", "SC-049", "SU-244"):
        assert lane.run(BY_ID[name], "absolute"), name
    stub.stop()
