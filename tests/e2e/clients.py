"""Real AWS clients, their own retries off: one call each, by command line."""
import os
import subprocess
import sys

from daemons import clean_env

HERE = os.path.dirname(os.path.abspath(__file__))

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "1", "AWS_PAGER": "", "HOME": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
}

QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/q"
# Debian's, whatever else the PATH finds first.
AWS = [sys.executable, "/usr/bin/aws"]
AWSCLI = {
    "dynamodb": [*AWS, "dynamodb", "list-tables"],
    "dynamodb-put": [*AWS, "dynamodb", "put-item", "--table-name", "table", "--item", '{"id": {"S": "1"}}'],
    "s3-put": [*AWS, "s3api", "put-object", "--bucket", "bkt", "--key", "a key", "--body", __file__],
    "s3-cp": [*AWS, "s3", "cp", "--only-show-errors", __file__, "s3://bkt/clients.py"],
    "sqs": [*AWS, "sqs", "send-message", "--queue-url", QUEUE, "--message-body", "hi"],
    "sts": [*AWS, "sts", "get-caller-identity"],
}
BOTO3 = {name: [sys.executable, os.path.join(HERE, "boto_ops.py"), op] for name, op in {
    "dynamodb-put": "ddb-put", "dynamodb-batchget": "ddb-batchget", "s3-put": "s3-put-large", "s3-get": "s3-get",
    "s3-multipart": "s3-multipart", "s3-stream": "s3-stream", "sqs-send": "sqs-send", "sqs-receive": "sqs-receive",
    "sts": "sts-identity",
}.items()}

THROTTLE = {"dynamodb": "ProvisionedThroughputExceededException", "s3": "SlowDown", "sqs": "RequestThrottled",
            "sts": "Throttling"}


def faults(name):
    """What meets each kind of request: throttled, then 503, then served."""
    code = THROTTLE[name.split("-")[0]]
    return {"requests": [{"key": "request", "steps": [{"error": code}, {"status": 503}]}]}


def call(command, **env):
    """None takes a variable away."""
    settings = {k: v for k, v in {**CREDENTIALS, **env}.items() if v is not None}
    return subprocess.run(command, env=clean_env(**settings), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120)
