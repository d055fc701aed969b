#!/usr/bin/env python3
"""demo.py RETRYD: a client without retries, a flaky AWS-like origin, and retryd between them.

All of it runs on this machine: the origin is faultd.py on loopback ports, and retryd is told to dial it
instead of the real DynamoDB. Nothing is sent to AWS.
"""
import http.client
import os
import ssl
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import sigv4  # noqa: E402
from daemons import Origin, clean_env, make_ca  # noqa: E402

HOST = "dynamodb.us-east-1.amazonaws.com"
FAULTS = [{"error": "ThrottlingException"}, {"status": 503, "retry_after_ms": 800}, {"fail": "reset"}]
FAULT_LIST = "once throttled (400 ThrottlingException), once 503, once a reset connection"


def client():
    """One signed GetItem, as an application without an SDK would send it; obeys HTTPS_PROXY."""
    request = sigv4.dynamodb("GetItem", {"TableName": "demo", "Key": {"id": {"S": "42"}}})
    proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
    connection = http.client.HTTPSConnection(proxy.hostname, proxy.port, timeout=60, context=ssl.create_default_context(
        cafile=os.environ["SSL_CERT_FILE"]))
    connection.set_tunnel(HOST, 443)
    connection.request(request.method, request.target, request.body, dict(request.headers))
    answer = connection.getresponse()
    body = answer.read().decode()
    print("  the client sees: %d %s  %s" % (answer.status, answer.reason, body), flush=True)
    return 0 if answer.status == 200 else 1


def main(retryd, *options):
    if not os.path.exists(retryd):
        sys.exit("demo: %s is not built" % retryd)
    with tempfile.TemporaryDirectory(prefix="retryd-demo-") as work:
        origin = Origin(work, make_ca(os.path.join(work, "ca")))
        try:
            me = [sys.executable, os.path.abspath(__file__), "--client"]
            print("A DynamoDB look-alike on this machine fails three times: %s." % FAULT_LIST)
            print("The client is a few lines of Python that know nothing of retries.\n")
            print("Without retryd:", flush=True)
            origin.answers(*FAULTS)
            subprocess.run(me, env=clean_env(HTTPS_PROXY="http://127.0.0.1:%d" % origin.proxy,
                                             SSL_CERT_FILE=origin.ca_file))
            print("\nThe same behind `retryd exec`:", flush=True)
            origin.answers(*FAULTS)
            command = [retryd, "exec", "--timeline", "--set", "state_dir=%s/state" % work,
                       "--set", "upstream.ca_file=%s" % origin.ca_file,
                       "--set", "resolve.%s:443=127.0.0.1:%d" % (HOST, origin.https), *options, "--", *me]
            return subprocess.run(command, env=clean_env()).returncode
        finally:
            origin.stop()


if __name__ == "__main__":
    if sys.argv[1:] == ["--client"]:
        sys.exit(client())
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
