"""`retryd explain`: the command line from outside, files, standard input, hostile raw files; and it says what the
running proxy then does."""
import json
import random
import subprocess
import time

import pytest

import sigv4
from daemons import SANITIZER, clean_env, retryd_path, run_retryd

HOST = "dynamodb.us-east-1.amazonaws.com"
KEY = "AKIDSECRETEXAMPLE"
SIGNED = ("Authorization: AWS4-HMAC-SHA256 Credential=%s/20260601/us-east-1/dynamodb/aws4_request, "
          "SignedHeaders=host;x-amz-date, Signature=5ec2e7" % KEY)
THROTTLED = b'{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException"}'
REQUEST = ("POST / HTTP/1.1\r\nHost: %s\r\n%s\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\n"
           "Content-Length: 2\r\n\r\n{}" % (HOST, SIGNED)).encode()
RESPONSE = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s" % (len(THROTTLED), THROTTLED)


def explain(tmp_path, *args, stdin=b""):
    done = subprocess.run([retryd_path(), "explain", *map(str, args)], input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=clean_env(HOME=str(tmp_path)), timeout=20)
    said = done.stderr.decode()
    assert not SANITIZER.search(said), said
    return done.returncode, done.stdout.decode(), said


def as_json(tmp_path, *args, stdin=b""):
    status, out, err = explain(tmp_path, "--json", *args, stdin=stdin)
    assert (status, err) == (0, "")
    return json.loads(out)


def test_text_begins_with_the_verdict(tmp_path):
    body = tmp_path / "body"
    body.write_bytes(THROTTLED)
    status, out, err = explain(tmp_path, "--host", HOST, "--method", "POST", "--header", SIGNED,
                               "--status", 400, "--body", body)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "would be retried: throttling, wait 0..1000 ms, costs 5 of 500 tokens"
    assert "...MPLE" in out and KEY not in out and "5ec2e7" not in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("how", ["file", "stdin"])
def test_raw(tmp_path, how):
    raw = tmp_path / "raw"
    raw.write_bytes(REQUEST + RESPONSE)
    got = as_json(tmp_path, "--raw", raw if how == "file" else "-",
                  stdin=REQUEST + RESPONSE if how == "stdin" else b"")
    assert got["verdict"] == "retry"
    assert (got["request"]["service"], got["request"]["operation"]) == ("dynamodb", "PutItem")
    assert (got["answer"]["code"], got["answer"]["code_from"]) == ("ThrottlingException", "json __type")
    assert [r["wait_max_ms"] for r in got["retries"]] == [1000, 2000, 4000]
    assert [r["tokens_left"] for r in got["retries"]] == [495, 490, 485]


def test_settings_and_their_origin(tmp_path):
    config = tmp_path / "retryd.yaml"
    config.write_text("retry:\n  max_attempts: 7\n")
    config.chmod(0o644)
    got = as_json(tmp_path, "-c", config, "--set", "retry.max_backoff=1500ms", "--host", HOST, "--status", 429)
    settings = {s["name"]: (s["value"], s["origin"]) for s in got["settings"]}
    assert settings["max_attempts"] == ("7", "%s:2" % config)
    assert settings["max_backoff"] == ("1500ms", "--set")
    assert [r["wait_max_ms"] for r in got["retries"]] == [1000] + 5 * [1500]
    as_java = as_json(tmp_path, "-D", "aws.maxAttempts=2", "--host", HOST, "--status", 429)
    assert as_java["max_attempts"] == 2


def test_bypass_is_seen(tmp_path):
    got = as_json(tmp_path, "--set", "intercept.bypass=" + HOST, "--host", HOST, "--status", 503)
    assert got["verdict"] == "unseen" and got["retries"] == []


def test_signature_by_the_clock_of_the_machine(tmp_path):
    def signed(age_s):
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - age_s))
        return as_json(tmp_path, "--host", HOST, "--status", 503, "--header", "X-Amz-Date: " + date)

    young, old = signed(10), signed(3600)
    assert young["verdict"] == "retry" and young["signature"]["in_time"] == "yes"
    assert old["verdict"] == "deliver" and old["why"] == "deadline" and old["signature"]["in_time"] == "no"


@pytest.mark.parametrize("args, word", [
    (["--host", HOST], "no response"),
    (["--host", HOST, "--status", "1e3"], "--status"),
    (["--host", HOST, "--status", 500, "--body", "/"], "/"),
    (["--raw", "/nonexistent/raw"], "No such file"),
    (["--host", HOST, "--failure", "gremlins"], "read_timeout"),
    (["--host", HOST, "--status", 500, "--set", "retry.max_attempts=0"], "1..100"),
])
def test_unusable(tmp_path, args, word):
    status, out, err = explain(tmp_path, *args)
    assert (status, out) == (2, "")
    assert word in err and len(err.splitlines()) == 1


def test_endless_input(tmp_path):
    status, _, err = explain(tmp_path, "--raw", "/dev/zero")
    assert status == 2 and "larger than" in err


def test_hostile_raw_files(tmp_path):
    """Cut at every length, and with bytes changed: an explanation or one line, never a crash, never a secret."""
    whole, dice = REQUEST + RESPONSE, random.Random(7)
    raws = [whole[:n] for n in range(0, len(whole), 9)]
    for _ in range(60):
        raw = bytearray(whole)
        for _ in range(dice.randrange(1, 6)):
            raw[dice.randrange(len(raw))] = dice.choice(b"\0\r\n :\t\xff0;/%\x1b")
        raws.append(bytes(raw))
    for raw in raws:
        status, out, err = explain(tmp_path, "--raw", "-", stdin=raw)
        assert status in (0, 2), (raw, err)
        assert (status == 2) == (len(err.splitlines()) == 1 and out == ""), (raw, out, err)
        assert KEY not in out + err and "5ec2e7" not in out + err
        assert "\x1b" not in out + err


def test_the_proxy_does_what_it_says(tmp_path, origin, retryd):
    said = as_json(tmp_path, "--host", "sts.us-east-1.amazonaws.com", "--method", "POST", "--status", 503)
    origin.answers({"status": 503, "body": "{}"}, then="last")
    assert retryd.exchange(sigv4.sts()).status == 503
    assert len(origin.requests()) == 1 + len(said["retries"]) == said["max_attempts"]


def test_is_listed():
    assert "explain" in run_retryd("help").stdout


def test_rules_by_listener(tmp_path):
    """match.listener counts where the request came by that listener."""
    config = tmp_path / "retryd.yaml"
    config.write_text("listeners: [{name: batch, address: 'unix:%s/p.sock'}]\n"
                      "rules: [{match: {listener: batch}, max_attempts: 9}]\n" % tmp_path)
    config.chmod(0o600)
    args = ["-c", config, "--host", HOST, "--header", SIGNED, "--status", 503]
    assert len(as_json(tmp_path, *args)["retries"]) == 3
    assert len(as_json(tmp_path, *args, "--listener", "batch")["retries"]) == 8
