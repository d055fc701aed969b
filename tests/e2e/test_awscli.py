"""Debian's AWS CLI, unmodified, its own retries off: it fails without retryd and succeeds with it."""
import re

import pytest

from clients import AWSCLI, call, faults
from daemons import retryd_path, yaml


def proxied_by_the_origin(origin):
    """The control: the same faults through a proxy that does nothing about them."""
    return {"HTTPS_PROXY": "http://127.0.0.1:%d" % origin.proxy, "AWS_CA_BUNDLE": origin.ca_file}


@pytest.mark.parametrize("name", AWSCLI)
def test_fails_without(origin, name):
    origin.rules(faults(name))
    done = call(AWSCLI[name], **proxied_by_the_origin(origin))
    assert done.returncode != 0
    assert len(origin.requests()) == 1, done.stderr


@pytest.mark.parametrize("attempts", [None, "1"])
@pytest.mark.parametrize("name", AWSCLI)
def test_succeeds_by_exec(origin, tmp_path, name, attempts):
    """exec turns the client's retries off, or they are off already: retryd's own are on either way."""
    config = tmp_path / "exec.yaml"
    config.write_text(yaml({"state_dir": str(tmp_path / "state"), "upstream": {"ca_file": origin.ca_file},
                            "resolve": {"*.amazonaws.com:443": "127.0.0.1:%d" % origin.https},
                            "retry": {"max_backoff": "100ms"}}))
    origin.rules(faults(name))
    done = call([retryd_path(), "exec", "-c", str(config), "--summary", "--", *AWSCLI[name]],
                AWS_MAX_ATTEMPTS=attempts)
    assert done.returncode == 0, done.stderr
    requests = origin.requests()
    assert len(requests) == 3 and {r["sig"] for r in requests} == {"ok"}
    assert "retr" in done.stderr


@pytest.mark.parametrize("name", ["dynamodb", "s3-put", "sqs", "sts"])
def test_succeeds_with_what_run_prints(origin, retryd, name):
    """The export lines, taken by a shell as a user takes them."""
    origin.rules(faults(name))
    exports = "\n".join(re.findall(r"^\s*(export .*)$", retryd.said("stdout"), re.MULTILINE))
    for variable in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "AWS_CA_BUNDLE"):
        assert "export %s=" % variable in exports
    done = call(["sh", "-c", exports + '\nexec "$@"', "sh", *AWSCLI[name]])
    assert done.returncode == 0, done.stderr
    assert [r["status"] for r in origin.requests()][-1] < 300
    assert len(origin.requests()) == 3
