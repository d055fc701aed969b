"""Behaviour 2.0 and the legacy flavours, over intercepted TLS, with the waits measured at the origin (retry-semantics
§10, legacy-modes). Lower bounds are the strategies' own; upper ones leave room for a busy machine."""
import sigv4

SLACK_S = 0.25


def gaps(origin):
    """Seconds from each answer to the request after it."""
    requests = origin.requests()
    return [b["mono"] - a["mono_reply"] for a, b in zip(requests, requests[1:])]


def always(origin, retryd, *answers, request=None):
    origin.answers(*answers, then="last")
    return retryd.exchange(request or sigv4.sts())


def test_ruby_waits_without_jitter(origin, make_retryd):
    retryd = make_retryd(origin, retry={"mode": "legacy", "flavour": "ruby"})
    assert always(origin, retryd, {"status": 503}).status == 503
    waits = gaps(origin)
    assert len(waits) == 3
    for wait, exact in zip(waits, (0.3, 0.6, 1.2)):
        assert exact - 0.005 <= wait < exact + SLACK_S, waits


def test_java_honours_retry_after_in_seconds(origin, make_retryd):
    retryd = make_retryd(origin, retry={"mode": "legacy", "flavour": "java"})
    origin.answers({"status": 503, "headers": {"Retry-After": "1"}})
    assert retryd.exchange(sigv4.sts()).status == 200
    (wait,) = gaps(origin)
    assert 0.995 <= wait < 1 + SLACK_S


def test_python_ignores_it_and_knows_its_own_codes(origin, make_retryd):
    """SlowDown under 400 is final there, a retry everywhere else."""
    retryd = make_retryd(origin, retry={"mode": "legacy", "flavour": "python"})
    origin.answers({"error": "SlowDown", "status": 400})
    assert retryd.exchange(sigv4.sts()).status == 400
    assert len(origin.requests()) == 1


def test_behaviour_20_ignores_x_amz_retry_after(origin, make_retryd):
    """The wait is at most a second there; behaviour 2.1 would wait the three that the header asks for."""
    for behaviour, least, most in (("2.0", 0, 1 + SLACK_S), ("2.1", 2.995, 3 + SLACK_S)):
        retryd = make_retryd(origin, retry={"behaviour": behaviour})
        origin.reset()
        origin.answers({"status": 503, "retry_after_ms": 3000})
        assert retryd.exchange(sigv4.sts()).status == 200
        (wait,) = gaps(origin)
        assert least <= wait < most, (behaviour, wait)


def test_behaviour_20_has_no_attempts_of_its_own_for_dynamodb(origin, make_retryd):
    for behaviour, attempts in (("2.0", 3), ("2.1", 4)):
        retryd = make_retryd(origin, retry={"behaviour": behaviour, "max_backoff": "20ms"})
        origin.reset()
        always(origin, retryd, {"status": 503}, request=sigv4.dynamodb())
        assert len(origin.requests()) == attempts, behaviour
