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
    """K5: bad."""
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
    """K5: world writable file is refused."""
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
    """K5: hostile files are refused quietly."""
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
        options = re.findall(r'^(?:OPTION|LIST|MAP|RULE|RULE_LIST)\(\w+, "([^"]+)"', f.read(), re.MULTILINE)
    assert len(options) > 40
    with open(shipped) as f:
        text = f.read()
    for option in options:
        last = [part for part in option.split(".") if part != "*"][-1]
        assert re.search(r"^[ #]*(?:match\.|quota\.)?%s:" % re.escape(last), text, re.MULTILINE), option


def test_shipped_file_leaves_to_the_sdks_what_they_are_told(tmp_path):
    done = run_retryd("config", "-c", os.path.join(TREE, "conf/retryd.yaml"),
                      env={"HOME": str(tmp_path), "AWS_MAX_ATTEMPTS": "7", "AWS_NEW_RETRIES_2026": "no"})
    assert "retry.max_attempts: 7  # AWS_MAX_ATTEMPTS\n" in done.stdout
    assert "retry.behaviour: 2.0  # AWS_NEW_RETRIES_2026\n" in done.stdout


RULES = """\
retry:
  services:
    dynamodbb: {max_attempts: 5}
rules:
  - match: {service: dynamodb, operation: [GetItem, Query]}
    max_attempts: 8
  - match: {service: dynamodb, operation: Query, region: eu-central-1}
    max_attempts: 9
  - match:
      host: api.example.com
    profile: generic
"""


def test_warnings_are_no_errors(tmp_path):
    status, said, path = check(tmp_path, RULES)
    assert status == 0
    warnings = [line for line in said.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 2, said
    assert warnings[0].startswith("warning: %s:3: " % path) and "did you mean dynamodb?" in warnings[0]
    assert warnings[1].startswith("warning: %s:7: rules[1] never matches: rules[0] (%s:5)" % (path, path))
    assert said.splitlines()[-1] == "%s: ok" % path


BAD_RULES = [
    ("rules:\n  - mode: legacy\n", 2, "rules[0].mode", "flavour"),
    ("rules:\n  - match: {service: s3}\n    max_atempts: 3\n", 3, "rules[0].max_atempts", "max_attempts"),
    ("rules:\n  - match: {servic: s3}\n", 2, "rules[0].match.servic", "match.service"),
    ("rules:\n  - s3\n", 2, "rules[0]", "settings below"),
    ("rules: {}\n", 1, "rules", "list"),
    ("rules:\n  - retry_statuses: [200]\n", 2, "rules[0].retry_statuses[0]", "300..599"),
    ("rules:\n  - profile: generic\n", 2, "rules[0].profile", "match.host"),
    ("retry:\n  flavour: cli-v2\n", 2, "retry.flavour", "cli-v2"),
]


@pytest.mark.parametrize("text, line, key, allowed", BAD_RULES, ids=[repr(b[0][:40]) for b in BAD_RULES])
def test_bad_rules(tmp_path, text, line, key, allowed):
    test_bad(tmp_path, text, line, key, allowed)


def test_every_value_with_its_origin(tmp_path):
    path = tmp_path / "retryd.yaml"
    path.write_text("timeouts:\n  dns: 1s\nretry:\n  max_backoff: 2s\n")
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/config").write_text("[default]\n\nmax_attempts = 4\nretry_mode = standard\n")
    env = {"HOME": str(tmp_path), "RETRYD_TIMEOUTS_TLS": "3s", "AWS_NEW_RETRIES_2026": "false"}
    args = ("-c", path, "--set", "retry.max_total_wait=9s", "-D", "aws.retryMode=STANDARD")
    done = run_retryd("config", "--show", *args, env=env)
    assert done.returncode == 0, done.stderr
    for line in ("timeouts.dns: 1s  # %s:2" % path, "retry.max_backoff: 2s  # %s:4" % path,
                 "timeouts.tls: 3s  # RETRYD_TIMEOUTS_TLS", "retry.max_total_wait: 9s  # --set",
                 "retry.mode: standard  # -D aws.retryMode", "retry.behaviour: 2.0  # AWS_NEW_RETRIES_2026",
                 "retry.max_attempts: 4  # %s/.aws/config:3" % tmp_path, "timeouts.connect: 5s  # default"):
        assert line in done.stdout.splitlines(), line
    assert run_retryd("check", "--show", *args, env=env).stdout == done.stdout


def test_one_service(tmp_path):
    path = tmp_path / "retryd.yaml"
    path.write_text("retry:\n  services:\n    sqs: {max_attempts: 6}\n" + RULES.split("dynamodbb")[1].split("\n", 1)[1])
    env = {"HOME": str(tmp_path)}

    def lines(service):
        done = run_retryd("config", "-c", path, "--service", service, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines(), done.stderr

    dynamodb, _ = lines("dynamodb")
    for line in ("max_attempts: 4  # service default", "base_delay: 25ms  # service default",
                 "quota.capacity: 500  # default", "mode: standard  # default"):
        assert line in dynamodb
    assert any("rules[0]" in line for line in dynamodb)
    assert "max_attempts: 6  # %s:3" % path in lines("sqs")[0]
    assert "did you mean dynamodb?" in lines("dynamdb")[1]


def test_exports_for_clients_are_not_for_retryd(tmp_path):
    env = {"HOME": str(tmp_path), "AWS_MAX_ATTEMPTS": "1", "RETRYD_CLIENT_ENV": "1"}
    done = run_retryd("config", env=env)
    assert "retry.max_attempts: null  # default" in done.stdout
    assert done.stderr.count("AWS_MAX_ATTEMPTS=1") == 1
    del env["RETRYD_CLIENT_ENV"]
    done = run_retryd("config", env=env)
    assert "retry.max_attempts: 1  # AWS_MAX_ATTEMPTS" in done.stdout and done.stderr == ""
