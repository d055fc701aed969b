"""What makes one upstream client, with a quota and a rate limit of its own: budgets.key."""
import json

import pytest

import sigv4
from test_retryctl import ask
from wire import until

FAILS = {"status": 503}


def put(table, **how):
    return sigv4.json_rpc("dynamodb", "DynamoDB_20120810.PutItem",
                          {"Item": {"id": {"S": "1"}}, "TableName": table}, **how)


def send(retryd, *requests):
    for request in requests:
        retryd.exchange(request)


def clients(retryd):
    """Labels without what names the caller's key -> retries."""
    status, body = ask(retryd, "GET", "/budgets")
    assert status == 200
    return {b["client"]: b["retries"] for b in body["budgets"]}


def start(origin, make_retryd, key, **more):
    origin.answers(FAILS, then="last")
    return make_retryd(origin, budgets={"key": key}, retry={"max_backoff": "1ms", "max_attempts": 2}, **more)


def test_a_budget_for_each_table(origin, make_retryd):
    retryd = start(origin, make_retryd, ["service", "region", "access_key", "resource"])
    send(retryd, put("orders"), put("orders"), put("carts"))
    assert clients(retryd) == {"dynamodb/us-east-1/…MPLE/orders": 2, "dynamodb/us-east-1/…MPLE/carts": 1}
    assert sigv4.KEY_ID not in json.dumps(ask(retryd, "GET", "/budgets")[1])


def test_the_default_knows_no_tables(origin, make_retryd):
    retryd = start(origin, make_retryd, ["service", "region", "access_key"])
    send(retryd, put("orders"), put("carts"))
    assert clients(retryd) == {"dynamodb/us-east-1/…MPLE": 2}


@pytest.mark.parametrize("split", [1, 20, 45, -1])
def test_a_body_that_comes_in_pieces(origin, make_retryd, split):
    """The table is known before the first attempt, wherever its name is cut; nothing is asked of the origin till then."""
    retryd = start(origin, make_retryd, ["service", "resource"])
    request = put("orders")
    wire = retryd.open(request.host)
    wire.send(request.head() + request.body[:split])
    assert wire.silent(0.1) and not origin.requests()
    wire.send(request.body[split:])
    assert wire.response("POST").status == 503
    assert clients(retryd) == {"dynamodb/orders": 1}


def test_a_long_body_is_not_waited_for(origin, make_retryd):
    retryd = start(origin, make_retryd, ["service", "resource"])
    request = sigv4.json_rpc("dynamodb", "DynamoDB_20120810.PutItem", {"TableName": "orders", "x": "y" * 100000})
    wire = retryd.open(request.host)
    wire.send(request.head() + request.body[:8192])
    until(lambda: origin.log("tls"), "the attempt has begun")
    wire.send(request.body[8192:])
    assert wire.response("POST").status == 503
    assert clients(retryd) == {"dynamodb/orders": 1}


def test_a_body_that_never_comes(origin, make_retryd):
    retryd = start(origin, make_retryd, ["service", "resource"], timeouts={"client_body": "300ms"})
    request = put("orders")
    wire = retryd.open(request.host)
    wire.send(request.head())
    assert wire.response("POST").status == 408
    assert not origin.requests()
    [record] = retryd.requests_logged()
    assert "attempts" not in record


def test_a_body_that_there_is_no_room_to_wait_for(origin, make_retryd):
    """Others took the memory for bodies after the head had come: the request begins without knowing the table."""
    origin.rules({"requests": [{"match": {"service": "s3"}, "steps": [{"fail": "hang"}], "then": "last"}]})
    retryd = make_retryd(origin, budgets={"key": ["service", "resource"]},
                         limits={"replay_memory": "256KiB", "replay_memory_total": "256KiB",
                                 "replay_disk": 0, "replay_disk_total": 0})
    request = put("orders")
    wire = retryd.open(request.host)
    wire.send(request.head())
    assert wire.silent(0.2)  # the head has arrived
    big = sigv4.s3("PUT", body=b"x" * 256 * 1024)
    hog = retryd.open(big.host)
    hog.send(big.bytes())
    until(lambda: origin.requests(), "all memory for bodies is in use")
    wire.send(request.body)
    assert wire.response("POST").status == 200
    hog.close()


def test_a_client_that_leaves_before_its_body(origin, make_retryd):
    retryd = start(origin, make_retryd, ["service", "resource"])
    wire = retryd.open("dynamodb.us-east-1.amazonaws.com")
    wire.send(put("orders").head())
    assert wire.silent(0.2)  # the head has arrived
    wire.reset()
    [record] = retryd.requests_logged()
    assert record["end"] == "client_gone" and "attempts" not in record
    assert not origin.requests()


def test_operation_host_peer_and_query_protocol(origin, make_retryd):
    retryd = start(origin, make_retryd, ["operation", "peer", "host"])
    send(retryd, sigv4.sts())
    [client] = clients(retryd)  # a label is cut where it is too long
    assert client.startswith("GetCallerIdentity/127.0.0.1/sts.us-east-1")
