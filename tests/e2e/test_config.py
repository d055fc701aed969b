"""`retryd check`: every problem names the file, the line, the key and what is allowed."""
import os
import re

import pytest

from daemons import TREE, run_retryd


def check(tmp_path, text):
    path = tmp_path / "retryd.yaml"
    path.write_text(text)
    os.chmod(path, 0o644)
    done = run_retryd("check", "-c", path, env={"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")})
    return done.returncode, done.stdout + done.stderr, str(path)


@pytest.mark.parametrize("text", [
    "", "# nothing\n", "listen: 127.0.0.1:0\n", "listen:\n  - 127.0.0.1:0\n  - '[::1]:0'\n",
    "retry:\n  mode: standard\n  max_attempts: 5\n  services:\n    dynamodb:\n      max_attempts: 10\n",
    "resolve:\n  '*.amazonaws.com': 127.0.0.1:8443\n  sts.amazonaws.com:443: '[::1]:443'\n",
])
def test_good(tmp_path, text):
    status, said, _ = check(tmp_path, text)
    assert status == 0, said


BAD = [
    ("retry:\n  max_attempts: 0\n", 2, "retry.max_attempts", "1..100"),
    ("retry:\n  max_attempts: 101\n", 2, "retry.max_attempts", "1..100"),
    ("retry:\n  max_attempts: three\n", 2, "retry.max_attempts", "1..100"),
    ("retry:\n  mode: legendary\n", 2, "retry.mode", "standard"),
    ("timeouts:\n  connect: 5 parsecs\n", 2, "timeouts.connect", "1ms..10m"),
    ("timeouts:\n  connect: 11m\n", 2, "timeouts.connect", "1ms..10m"),
    ("limits:\n  replay_memory: -1\n", 2, "limits.replay_memory", "4KiB..1GiB"),
    ("\n\nlimit:\n  replay_memory: 1MiB\n", 4, "limit.replay_memory", "limits.replay_memory"),
    ("retry:\n  max_atempts: 3\n", 2, "retry.max_atempts", "max_attempts"),
    ("listen: 0.0.0.0:8199\n", 1, "listen", "loopback"),
    ("listen: 127.0.0.1\n", 1, "listen", "PORT"),
    ("listen: 127.0.0.1:99999\n", 1, "listen", "PORT"),
    ("log:\n  level: loud\n", 2, "log.level", "debug"),
    ("intercept:\n  aws: perhaps\n", 2, "intercept.aws", "true"),
    ("allow_addresses: [127.0.0.1/33]\n", 1, "allow_addresses", ""),
    ("allow_addresses: [127.0.0.01]\n", 1, "allow_addresses", ""),
    ("resolve:\n  sts.amazonaws.com: sts.local\n", 2, "resolve.sts.amazonaws.com", "ADDRESS"),
    ("state_dir: /tmp/x\nstate_dir: /tmp/y\n", 2, "state_dir", ""),
    ("retry: 5\n", 1, "retry", ""),
    ("listen: &a 127.0.0.1:0\nstate_dir: *a\n", 1, "", "anchor"),
    ("listen: !!str 127.0.0.1:0\n", 1, "", "tag"),
    ("a: [\n", None, "", ""),
    ("retry:\n\tmode: standard\n", 2, "", ""),
]


@pytest.mark.parametrize("text, line, key, allowed", BAD, ids=[repr(b[0][:40]) for b in BAD])
def test_bad(tmp_path, text, line, key, allowed):
    status, said, path = check(tmp_path, text)
    assert status not in (0, -6, -11, 134, 139)
    assert re.search(re.escape(path) + (":%d:" % line if line else r":\d+:"), said), said
    assert key in said and allowed.lower() in said.lower(), said


def test_all_problems_at_once(tmp_path):
    _, said, path = check(tmp_path, "retry:\n  mode: x\n  max_attempts: 0\nlog:\n  level: y\n")
    assert [n for n in (2, 3, 5) if "%s:%d:" % (path, n) in said] == [2, 3, 5]


def test_missing_file(tmp_path):
    done = run_retryd("check", "-c", tmp_path / "nowhere.yaml")
    assert done.returncode != 0 and "nowhere.yaml" in done.stderr


def test_world_writable_file_is_refused(tmp_path):
    path = tmp_path / "retryd.yaml"
    path.write_text("listen: 127.0.0.1:0\n")
    os.chmod(path, 0o666)
    done = run_retryd("check", "-c", path)
    assert done.returncode != 0 and "writable" in done.stderr


HOSTILE = {
    "nested lists": b"a: " + b"[" * 100 + b"]" * 100,
    "large": b"x" * (2 << 20),
    "aliases": b"a: &a [" + b"*a," * 10 + b"]",
    "zero byte": b"listen: 127.0.0.1:0\0",
    "not utf-8": b"listen: \xff\xfe",
    "nested blocks": b"- " * 20 + b"x",
    "two documents": b"listen: 127.0.0.1:0\n---\nlisten: 127.0.0.1:1\n",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused_quietly(tmp_path, case):
    path = tmp_path / "retryd.yaml"
    path.write_bytes(HOSTILE[case])
    os.chmod(path, 0o644)
    done = run_retryd("check", "-c", path, timeout=10)
    assert done.returncode in (1, 2) and len(done.stderr) < 100000


def test_shipped_file_is_good_and_names_every_option(tmp_path):
    shipped = os.path.join(TREE, "conf/retryd.yaml")
    done = run_retryd("check", "-c", shipped, env={"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    with open(os.path.join(TREE, "src/core/config/options.def")) as f:
        options = re.findall(r'^(?:OPTION|LIST|MAP)\(\w+, "([^"]+)"', f.read(), re.MULTILINE)
    assert len(options) > 40
    with open(shipped) as f:
        text = f.read()
    for option in options:
        last = [part for part in option.split(".") if part != "*"][-1]
        assert re.search(r"^[ #]*%s:" % re.escape(last), text, re.MULTILINE), option
