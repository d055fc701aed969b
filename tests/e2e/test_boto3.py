"""Debian's boto3, unmodified, its own retries off: it fails without retryd and succeeds with it."""
import pytest

from clients import BOTO3, call, faults


@pytest.mark.parametrize("name", BOTO3)
def test_fails_without(origin, name):
    origin.rules(faults(name))
    done = call(BOTO3[name], HTTPS_PROXY="http://127.0.0.1:%d" % origin.proxy, AWS_CA_BUNDLE=origin.ca_file)
    assert done.returncode != 0 and "ERR" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", BOTO3)
def test_succeeds_with(origin, retryd, name):
    origin.rules(faults(name))
    done = call(BOTO3[name], HTTPS_PROXY=retryd.url, AWS_CA_BUNDLE=retryd.ca_file)
    assert done.returncode == 0 and "OK" in done.stdout, done.stdout + done.stderr
    requests = origin.requests()
    assert len(requests) >= 3 and {r["sig"] for r in requests} == {"ok"}
    # Every request was met twice by a fault, and every one got through.
    assert sum(r["status"] < 300 for r in requests) * 3 == len(requests)


def test_transport_faults(origin, retryd):
    """What Debian's boto3 does not notice or not survive by itself: cut answers, resets, closed connections."""
    origin.rules({"requests": [{"key": "request", "steps": [{"ok": "auto", "truncate_at": 5}, {"fail": "reset"}]}]})
    done = call(BOTO3["sts"], HTTPS_PROXY=retryd.url, AWS_CA_BUNDLE=retryd.ca_file)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(origin.requests()) == 3


def test_many_calls_with_faults_all_succeed(origin, retryd):
    """Every fifth answer is a fault; sixty calls on keep-alive connections."""
    step = {"ok": "auto"}
    origin.rules({"requests": [{"then": "loop", "steps": [dict(step, times=4), {"error": "ThrottlingException"},
                                                          dict(step, times=4), {"fail": "reset"}]}]})
    done = call(BOTO3["dynamodb-put"] + ["60"], HTTPS_PROXY=retryd.url, AWS_CA_BUNDLE=retryd.ca_file)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("OK") == 60
