"""Fixtures: `origin` (the scripted AWS-shaped origin) and `retryd` (the program on a configuration for it).

RETRYD_BIN names the program, default build/dev/retryd. Each test has daemons of its own; the end of each
test is a test as well: exit status 0 and a silent sanitizer.
"""
import os
import re
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from daemons import Origin, Retryd, make_ca, retryd_path  # noqa: E402

CORPUS_CASE = re.compile(r"test_corpus\.py::test_case\w*\[\w+-\d+-([a-z-]+)\]")


# Its runtimes are large: `./dev programs` installs them and asks for it.
collect_ignore = [] if os.environ.get("RETRYD_PROGRAMS") else ["test_programs_heavy.py"]


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than a few seconds; run once, with the sanitizers")


def pytest_report_header():
    return "retryd: %s" % retryd_path()


def pytest_terminal_summary(terminalreporter):
    """How many of the byte-level cases passed, in each mode."""
    counts = {}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, ()):
            found = CORPUS_CASE.search(getattr(report, "nodeid", ""))
            mode = found and found[1]
            if mode and (outcome != "passed" or report.when == "call"):
                counts.setdefault(mode, []).append(outcome == "passed")
    for mode, passed in sorted(counts.items()):
        terminalreporter.write_line("http1.jsonl, %s: %d of %d cases passed" % (mode, sum(passed), len(passed)))


@pytest.fixture(scope="session")
def origin_ca(tmp_path_factory):
    return make_ca(tmp_path_factory.mktemp("origin") / "ca")


@pytest.fixture
def make_origin(tmp_path, origin_ca):
    made = []

    def make(rules=None, args=()):
        made.append(Origin(tmp_path, origin_ca, rules, args))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def origin(make_origin):
    return make_origin()


@pytest.fixture
def make_retryd(tmp_path):
    made = []

    def make(origin=None, env=None, **config):
        """config: sections of the file, merged over the defaults of the tests."""
        made.append(Retryd(tmp_path / ("retryd%d" % len(made)), origin, config, env))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def retryd(origin, make_retryd):
    """Standard mode 2.1 as shipped, but backoffs of 100 ms at most."""
    return make_retryd(origin, retry={"max_backoff": "100ms"})
