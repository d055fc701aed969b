"""AWS signature version 4 and ready-made requests, for raw clients. The keys are AWS's published examples."""
import datetime
import hashlib
import hmac
import json
import urllib.parse

KEY_ID = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
REGION = "us-east-1"


def now_stamp(age_s=0):
    moment = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=age_s)
    return moment.strftime("%Y%m%dT%H%M%SZ")


def signing_key(secret, date, region, service):
    key = ("AWS4" + secret).encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def sign(method, host, target, headers, body, service, key_id=KEY_ID, secret=SECRET, region=REGION, age_s=0,
         payload=None):
    """The headers (ordered pairs) with Host, X-Amz-Date and Authorization added; all of them are signed."""
    stamp = now_stamp(age_s)
    path, _, query = target.partition("?")
    payload = payload or hashlib.sha256(body).hexdigest()
    headers = [("Host", host)] + list(headers) + [("X-Amz-Date", stamp)]
    if service == "s3":
        headers.append(("X-Amz-Content-Sha256", payload))
    names = sorted({n.lower() for n, _ in headers})
    values = {name: ",".join(" ".join(v.split()) for n, v in headers if n.lower() == name) for name in names}
    uri = path if service == "s3" else urllib.parse.quote(path, safe="-_.~/")
    pairs = sorted(tuple(urllib.parse.quote(urllib.parse.unquote(x), safe="-_.~") for x in (n, v))
                   for n, _, v in (p.partition("=") for p in query.split("&") if p))
    canonical = "\n".join([method, uri, "&".join("%s=%s" % p for p in pairs),
                           "".join("%s:%s\n" % (n, values[n]) for n in names), ";".join(names), payload])
    scope = "/".join((stamp[:8], region, service, "aws4_request"))
    to_sign = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signature = hmac.new(signing_key(secret, stamp[:8], region, service), to_sign.encode(), hashlib.sha256)
    return headers + [("Authorization", "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s" %
                       (key_id, scope, ";".join(names), signature.hexdigest()))]


class Request:
    """What a raw client sends: method, target, ordered headers, body; complete with its framing."""

    def __init__(self, method, host, target, headers, body=b""):
        self.method, self.host, self.target = method, host, target
        self.headers, self.body = list(headers), body

    def head(self, target=None, extra=()):
        lines = ["%s %s HTTP/1.1" % (self.method, target or self.target)]
        lines += ["%s: %s" % h for h in self.headers + list(extra)]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    def bytes(self, target=None):
        return self.head(target) + self.body

    def absolute(self):
        return "http://" + self.host + self.target


def _request(method, host, target, headers, body, service, **how):
    framing = [("Content-Length", str(len(body)))] if body or method in ("POST", "PUT") else []
    return Request(method, host, target, sign(method, host, target, list(headers) + framing, body, service, **how),
                   body)


def json_rpc(service, target, payload=None, host=None, version="1.0", headers=(), **how):
    """awsJson: json_rpc("dynamodb", "DynamoDB_20120810.GetItem")."""
    body = json.dumps(payload or {}).encode()
    return _request("POST", host or "%s.us-east-1.amazonaws.com" % service, "/",
                    [("Content-Type", "application/x-amz-json-" + version), ("X-Amz-Target", target), *headers],
                    body, service, **how)


def dynamodb(operation="GetItem", payload=None, **how):
    return json_rpc("dynamodb", "DynamoDB_20120810." + operation, payload or {"TableName": "table"}, **how)


def query(service, action, fields=(), host=None, headers=(), **how):
    """The query protocol: query("sts", "GetCallerIdentity")."""
    body = urllib.parse.urlencode([("Action", action), ("Version", "2011-06-15"), *fields]).encode()
    return _request("POST", host or "%s.us-east-1.amazonaws.com" % service, "/",
                    [("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"), *headers], body, service,
                    **how)


def sts(**how):
    return query("sts", "GetCallerIdentity", **how)


def s3(method="GET", target="/key", body=b"", host="bucket.s3.us-east-1.amazonaws.com", headers=(), **how):
    return _request(method, host, target, headers, body, "s3", **how)
