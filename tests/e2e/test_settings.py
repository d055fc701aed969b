"""Settings as the SDKs resolve them, rules, and the profile for hosts outside AWS (retry-semantics §11, §12.2)."""
import email.utils
import os
import time

import pytest

import sigv4
from daemons import Retryd, clean_env, elapsed, run_retryd
from wire import dial

DOWN = {"status": 503, "body": "{}"}
FAST = {"max_backoff": "50ms"}


@pytest.fixture
def start(tmp_path, origin):
    """retryd for the origin in a home of its own, which may hold ~/.aws/config."""
    made = []

    def make(env=None, profile=None, **config):
        home = tmp_path / ("home%d" % len(made))
        (home / ".aws").mkdir(parents=True)
        if profile is not None:
            (home / ".aws/config").write_text(profile)
        # Whoever opens this one waits until the test fails (security requirement K6).
        os.mkfifo(home / ".aws/credentials")
        config.setdefault("retry", FAST)
        made.append(Retryd(home / "retryd", origin, config, env=dict({"HOME": str(home)}, **(env or {}))))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def attempts(origin, retryd, request=None):
    """How often the origin sees one request that always fails."""
    origin.reset()
    origin.answers(DOWN, then="last")
    assert retryd.exchange(request or sigv4.sts()).status == 503
    return len(origin.requests())


# ---- what the SDKs are told


@pytest.mark.parametrize("env, sts, dynamodb", [
    ({}, 3, 4),
    ({"AWS_MAX_ATTEMPTS": "2"}, 2, 2),
    ({"AWS_RETRY_MODE": "Standard"}, 3, 4),
    ({"AWS_RETRY_MODE": ""}, 3, 4),
    ({"AWS_MAX_ATTEMPTS": "2", "RETRYD_RETRY_MAX_ATTEMPTS": "5"}, 5, 5),
    ({"AWS_NEW_RETRIES_2026": "false"}, 3, 3),
    ({"AWS_NEW_RETRIES_2026": "TRUE"}, 3, 4),
    ({"AWS_RETRY_MODE": "legacy", "RETRYD_RETRY_FLAVOUR": "java"}, 4, 9),
    ({"AWS_RETRY_MODE": "legacy", "RETRYD_RETRY_FLAVOUR": "java", "AWS_MAX_ATTEMPTS": "2"}, 2, 9),
    ({"AWS_MAX_ATTEMPTS": "1", "RETRYD_CLIENT_ENV": "1"}, 3, 4),
    ({"AWS_MAX_ATTEMPTS": "1"}, 1, 1),
])
def test_variables(origin, start, env, sts, dynamodb):
    retryd = start(env)
    assert attempts(origin, retryd) == sts
    assert attempts(origin, retryd, sigv4.dynamodb()) == dynamodb


def test_the_file_beats_variables(origin, start):
    retryd = start({"AWS_MAX_ATTEMPTS": "2", "AWS_RETRY_MODE": "standard"}, retry=dict(FAST, max_attempts=5))
    assert attempts(origin, retryd) == 5


PROFILE = """\
# of the whole team
[default]
region = eu-central-1
max_attempts = 2 ; comment
s3 =
  max_attempts = 9
[profile dev]
retry_mode = STANDARD
max_attempts = 4
max_attempts = 5
[profile "two words"]
Max_Attempts=6
[other]
max_attempts = 7
"""


@pytest.mark.parametrize("env, count", [
    ({}, 2), ({"AWS_PROFILE": "dev"}, 5), ({"AWS_PROFILE": "two words"}, 6), ({"AWS_MAX_ATTEMPTS": "4"}, 4),
])
def test_profile(origin, start, env, count):
    assert attempts(origin, start(env, PROFILE)) == count


def test_profile_default_with_prefix_wins(origin, start):
    assert attempts(origin, start(profile="[profile default]\nmax_attempts=4\n[default]\nmax_attempts=5\n")) == 4


def test_named_file(origin, start, tmp_path):
    path = tmp_path / "elsewhere"
    path.write_text(PROFILE)
    assert attempts(origin, start({"AWS_CONFIG_FILE": str(path), "AWS_PROFILE": "dev"}, "[default]\n")) == 5


def refused(tmp_path, env, *args, profile=None):
    (tmp_path / ".aws").mkdir(exist_ok=True)
    if profile is not None:
        (tmp_path / ".aws/config").write_text(profile)
    done = run_retryd("run", "--set", "listen=127.0.0.1:0", *args, env=dict({"HOME": str(tmp_path)}, **env),
                      timeout=10)
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize("env, words", [
    ({"AWS_RETRY_MODE": "fast"}, ("AWS_RETRY_MODE", '"fast"')),
    ({"AWS_RETRY_MODE": "off"}, ("AWS_RETRY_MODE", '"off"')),
    ({"AWS_MAX_ATTEMPTS": "0"}, ("AWS_MAX_ATTEMPTS", '"0"')),
    ({"AWS_MAX_ATTEMPTS": "-1"}, ("AWS_MAX_ATTEMPTS", '"-1"')),
    ({"AWS_MAX_ATTEMPTS": "2.5"}, ("AWS_MAX_ATTEMPTS", '"2.5"')),
    ({"AWS_MAX_ATTEMPTS": "many"}, ("AWS_MAX_ATTEMPTS", '"many"')),
    ({"AWS_PROFILE": "none"}, ("AWS_PROFILE", "none")),
    ({"AWS_CONFIG_FILE": "/nowhere/config"}, ("AWS_CONFIG_FILE", "/nowhere/config")),
    ({"AWS_RETRY_MODE": "legacy"}, ("AWS_RETRY_MODE", "retry.flavour")),
])
def test_bad_variables(tmp_path, env, words):
    """K6: bad variables."""
    said = refused(tmp_path, env)
    assert all(word in said for word in words), said


def test_bad_profile(tmp_path):
    """K6: bad profile."""
    said = refused(tmp_path, {}, profile="[default]\n\nretry_mode = slow\n")
    assert "/.aws/config:3: " in said and '"slow"' in said
    said = refused(tmp_path, {}, profile="[default]\nmax_attempts = x\n")
    assert "/.aws/config:2: " in said and '"x"' in said


def test_bad_property(tmp_path):
    assert '-D aws.retryMode: "x"' in refused(tmp_path, {}, "-D", "aws.retryMode=x")
    assert "aws.unknown" in refused(tmp_path, {}, "-Daws.unknown=x")


# ---- rules


def test_rule_by_service(origin, start):
    retryd = start(rules=[{"match": {"service": "dynamodb"}, "max_attempts": 6},
                          {"match": {"service": ["sts", "sqs"]}, "mode": "off"}])
    assert attempts(origin, retryd, sigv4.dynamodb()) == 6
    assert attempts(origin, retryd) == 1
    assert attempts(origin, retryd, sigv4.s3()) == 3


@pytest.mark.parametrize("match, count", [
    ({"operation": "GetItem"}, 2), ({"operation": "PutItem"}, 4), ({"region": "us-east-1"}, 2),
    ({"region": "eu-west-1"}, 4), ({"host": "*.us-east-1.amazonaws.com"}, 2), ({"method": "POST"}, 2),
    ({"method": "GET"}, 4), ({"access_key_id": sigv4.KEY_ID}, 2),
    ({"access_key_id": "*" + sigv4.KEY_ID[-4:]}, 2), ({"access_key_id": "*ZZZZ"}, 4),
    ({"operation": "GetItem", "region": "eu-west-1"}, 4),
])
def test_rule_matches(origin, start, match, count):
    retryd = start(rules=[{"match": match, "max_attempts": 2}])
    assert attempts(origin, retryd, sigv4.dynamodb("GetItem")) == count


def test_operation_named_in_the_body(origin, start):
    retryd = start(rules=[{"match": {"service": "sts", "operation": "GetCallerIdentity"}, "max_attempts": 5}])
    assert attempts(origin, retryd) == 5


def test_extra_codes_and_statuses(origin, start):
    retryd = start(rules=[{"match": {"service": "dynamodb"}, "retry_codes": ["ValidationException"],
                           "never_retry_codes": ["ThrottlingException"], "retry_statuses": [418],
                           "never_retry_statuses": [503]}])
    for fault, count in (({"error": "ValidationException"}, 2), ({"error": "ThrottlingException"}, 1),
                         ({"status": 418, "body": "{}"}, 2), (DOWN, 1), ({"error": "AccessDeniedException"}, 1),
                         ({"status": 500, "body": "{}"}, 2)):
        origin.reset()
        origin.answers(fault)
        retryd.exchange(sigv4.dynamodb())
        assert len(origin.requests()) == count, fault


def test_quota_of_a_rule(origin, start):
    retryd = start(rules=[{"quota": {"capacity": 3, "cost_transient": 2}, "max_attempts": 10}])
    assert attempts(origin, retryd) == 2
    assert attempts(origin, retryd) == 1


def test_base_delay_of_a_rule(origin, start):
    """No wait at all, where it would be up to 1 s and 2 s in behaviour 2.0."""
    retryd = start(retry={"behaviour": "2.0"}, rules=[{"match": {"service": "sts"}, "base_delay": "0s"}])
    began = time.monotonic()
    assert attempts(origin, retryd) == 3
    assert elapsed(began) < 1
    first, second, third = origin.requests()
    assert second["mono"] - first["mono_reply"] < 0.5 and third["mono"] - second["mono_reply"] < 0.5


def test_attempt_timeout_of_a_rule(origin, start):
    retryd = start(rules=[{"match": {"service": "dynamodb"}, "attempt_timeout": "300ms"}])
    origin.answers({"fail": "hang"})
    began = time.monotonic()
    assert retryd.exchange(sigv4.dynamodb()).status == 200
    assert 0.3 <= elapsed(began) < 5
    assert len(origin.wait_requests(2)) == 2


def test_body_bounds_of_a_rule(origin, start):
    """What does not fit is sent once."""
    retryd = start(rules=[{"match": {"method": "PUT"}, "replay_memory": "4KiB", "replay_disk": 0}])
    assert attempts(origin, retryd, sigv4.s3("PUT", "/small", b"x" * 1000)) == 3
    assert attempts(origin, retryd, sigv4.s3("PUT", "/large", b"x" * 300000)) == 1


def test_key_ids_are_never_shown(start, origin):
    retryd = start(rules=[{"match": {"access_key_id": sigv4.KEY_ID}, "max_attempts": 2}],
                   log={"level": "debug"})
    assert attempts(origin, retryd) == 2
    shown = run_retryd("check", "-c", retryd.config_file, "--show")
    assert "access_key_id" in shown.stdout
    for said in (shown.stdout, retryd.said(), retryd.said("stdout"), open(retryd.log_file).read()):
        assert sigv4.KEY_ID not in said and sigv4.KEY_ID[-8:] not in said


# ---- hosts outside AWS


GENERIC = {"match": {"host": "*.other.example"}, "profile": "generic", "max_attempts": 3}


@pytest.fixture
def generic(start, origin):
    def make(*rules, **config):
        return start(resolve={"*.other.example:80": "127.0.0.1:%d" % origin.http},
                     rules=list(rules) or [GENERIC], **config)
    return make


def ask(retryd, method="GET", host="api.other.example", headers=""):
    wire = dial(retryd.port)
    body = b"hi" if method in ("POST", "PUT", "PATCH") else b""
    wire.send(b"%s http://%s/x HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n" %
              (method.encode(), host.encode(), host.encode(), headers.encode(), len(body)) + body)
    answer = wire.response(method)
    wire.close()
    return answer


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_generic_statuses(origin, generic, status):
    origin.answers({"status": status, "body": "no", "headers": {"Retry-After": "0"}, "times": 2})
    assert ask(generic(retry={"max_backoff": "50ms"})).status == 200
    assert len(origin.requests()) == 3


@pytest.mark.parametrize("status", [400, 404, 408, 500, 501])
def test_generic_leaves_the_rest(origin, generic, status):
    origin.answers({"status": status, "body": "no"})
    assert ask(generic()).status == status
    assert len(origin.requests()) == 1


def test_generic_hears_retry_after_in_seconds(origin, generic):
    origin.answers({"status": 503, "body": "no", "headers": {"Retry-After": "1"}})
    assert ask(generic(retry={})).status == 200
    first, second = origin.requests()
    assert 0.95 <= second["mono"] - first["mono_reply"] < 3


def test_generic_hears_retry_after_as_a_date(origin, generic):
    origin.answers({"status": 503, "body": "no",
                    "headers": {"Date": email.utils.formatdate(1700000000, usegmt=True),
                                "Retry-After": email.utils.formatdate(1700000001, usegmt=True)}})
    assert ask(generic(retry={})).status == 200
    first, second = origin.requests()
    assert 0.95 <= second["mono"] - first["mono_reply"] < 3


@pytest.mark.parametrize("method, headers, count", [
    ("GET", "", 3), ("PUT", "", 3), ("DELETE", "", 3), ("POST", "", 1), ("PATCH", "", 1), ("FROB", "", 1),
    ("POST", "Idempotency-Key: \"8e03978e\"\r\n", 3),
])
def test_generic_repeats_what_may_be_repeated(origin, generic, method, headers, count):
    """E2: generic repeats what may be repeated."""
    origin.answers(DOWN, then="last")
    assert ask(generic(), method, headers=headers).status == 503
    assert len(origin.requests()) == count


def test_generic_repeats_a_post_by_consent(origin, generic):
    origin.answers(DOWN, then="last")
    assert ask(generic(dict(GENERIC, any_method=True)), "POST").status == 503
    assert len(origin.requests()) == 3


def test_post_that_reached_nobody_may_go_again(origin, generic):
    """E2: No byte of it was sent (RFC 9110 9.2.2; security requirement E2)."""
    retryd = generic(dict(GENERIC, max_attempts=2))
    origin.refuse(True, "http0")
    assert ask(retryd, "POST").status == 502
    origin.refuse(False, "http0")
    record = retryd.requests_logged()[0]
    assert record["attempts"] == 2 and origin.requests() == []


def test_plain_hosts_without_a_rule_are_sent_once(origin, generic):
    origin.answers(DOWN, then="last")
    retryd = generic({"match": {"host": "else.other.example"}, "profile": "generic"})
    assert ask(retryd).status == 503
    assert len(origin.requests()) == 1


def test_generic_is_refused_for_aws(tmp_path):
    path = tmp_path / "retryd.yaml"
    for host in ("sts.amazonaws.com", "*.amazonaws.com", "*.com"):
        path.write_text("rules:\n  - match: {host: '%s'}\n    profile: generic\n" % host)
        done = run_retryd("check", "-c", path)
        assert done.returncode == 2 and "%s:3: " % path in done.stderr and host in done.stderr


# ---- deadlines


@pytest.mark.parametrize("key", ["client_timeout", "max_elapsed"])
def test_no_retry_after_the_deadline(origin, start, key):
    retryd = start(retry={key: "400ms"})
    origin.answers(dict(DOWN, delay_ms=500), then="last")
    began = time.monotonic()
    assert retryd.exchange(sigv4.dynamodb()).status == 503
    assert elapsed(began) < 3
    assert len(origin.requests()) == 1
    assert [(a["decision"], a["why"]) for a in retryd.attempts_logged()] == [("deliver", "deadline")]


def test_no_wait_for_a_retry_after_the_deadline(origin, start):
    """The wait would last 5 s: the error goes back at once instead."""
    retryd = start(retry={"client_timeout": "3s"})
    origin.answers(dict(DOWN, headers={"x-amz-retry-after": "60000"}), then="last")
    began = time.monotonic()
    assert retryd.exchange(sigv4.dynamodb()).status == 503
    assert elapsed(began) < 2
    assert len(origin.requests()) == 1
    assert retryd.attempts_logged()[-1]["why"] == "deadline"


def test_within_the_deadline_all_is_as_ever(origin, start):
    retryd = start(retry=dict(FAST, client_timeout="30s", max_elapsed="30s"))
    assert attempts(origin, retryd) == 3


def test_environment_of_tests_is_clean():
    assert not [name for name in clean_env() if name.startswith(("AWS_", "RETRYD_"))]
