"""The two programs of every story: the scripted origin (faultd.py) and the retryd under test."""
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time

from wire import TIMEOUT, Wire, dial, until

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
PYTHON = sys.executable
SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|UndefinedBehaviorSanitizer")


def retryd_path():
    return os.path.abspath(os.environ.get("RETRYD_BIN", os.path.join(TREE, "build/dev/retryd")))


def sanitized():
    """The program under test is built with AddressSanitizer: slower, and its memory says nothing."""
    with open(retryd_path(), "rb") as f:
        return b"__asan_init" in f.read()


def clean_env(**more):
    """An environment without any proxy or AWS setting of the caller's."""
    env = {k: v for k, v in os.environ.items()
           if not re.match(r"(?i)(https?|no|all)_proxy$|AWS_|RETRYD_|SSL_CERT|CURL_CA|REQUESTS_CA|NODE_", k)}
    env.update(LC_ALL="C.UTF-8", **more)
    return env


def make_ca(directory):
    subprocess.run([PYTHON, os.path.join(HERE, "faultd.py"), "make-ca", str(directory)], check=True,
                   stdout=subprocess.DEVNULL)
    return directory


class Origin:
    """faultd on loopback ports of its own choice: TLS, clear and proxy listeners, an admin port."""

    def __init__(self, workdir, ca_dir, rules=None, args=()):
        self.ca_dir = str(ca_dir)
        self.ca_file = os.path.join(self.ca_dir, "ca.pem")
        ready = os.path.join(str(workdir), "origin-%d.json" % id(self))
        self.process = subprocess.Popen(
            [PYTHON, os.path.join(HERE, "faultd.py"), "serve", "--https", "0", "--http", "0", "--proxy", "0",
             "--admin", "0", "--ca", self.ca_dir, "--ready", ready, "--quiet", "--max-seconds", "600", *args],
            stdout=subprocess.DEVNULL, env=clean_env())
        until(lambda: os.path.exists(ready) or self.process.poll() is not None, "the origin is ready")
        with open(ready) as f:
            addresses = json.load(f)
        self.admin, self.https, self.http, self.proxy = (
            int(addresses[name].rsplit(":", 1)[1]) for name in ("admin", "https0", "http0", "proxy0"))
        if rules is not None:
            self.rules(rules)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=TIMEOUT)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            data = json.loads(answer.read())
            assert answer.status == 200, data
            return data
        finally:
            connection.close()

    def rules(self, rules):
        self.ask("POST", "/rules", rules)

    def answers(self, *steps, then="fall", **rule):
        """The usual rules: these steps for every request in order, then what is right."""
        self.rules({"requests": [dict(rule, steps=list(steps), then=then)]})

    def reset(self):
        self.ask("POST", "/reset")

    def log(self, ev=None):
        return [e for e in self.ask("GET", "/log") if ev is None or e["ev"] == ev]

    def requests(self):
        return sorted(self.log("req"), key=lambda e: e["n"])

    def wait_requests(self, n):
        """Once n requests are logged; they may still be too few a moment after the client has its answer."""
        return until(lambda: (lambda r: r if len(r) >= n else None)(self.requests()), "%d requests" % n)

    def refuse(self, on, listener="https0"):
        self.ask("POST", "/listener", {"name": listener, "refuse": on})

    def stop(self):
        self.process.terminate()
        self.process.wait(TIMEOUT)


def yaml(value, depth=0):
    """Block YAML of plain dicts, lists and scalars."""
    pad = "  " * depth
    if isinstance(value, dict):
        return "".join("%s%s:%s" % (pad, json.dumps(k) if re.search(r"[^\w-]", str(k)) else k,
                                    "\n" + yaml(v, depth + 1) if isinstance(v, (dict, list)) and v
                                    else " " + scalar(v) + "\n") for k, v in value.items())
    return "".join("%s- %s\n" % (pad, scalar(v)) for v in value)


def scalar(v):
    if v in ([], {}):
        return json.dumps(v)
    if isinstance(v, bool):
        return "true" if v else "false"
    return str(v) if isinstance(v, int) else json.dumps(v)


def merged(base, more):
    out = dict(base)
    for key, value in more.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


class Retryd:
    """`retryd run` on a configuration of its own."""

    def __init__(self, workdir, origin=None, config=None, env=None, start=True):
        self.dir = str(workdir)
        os.makedirs(self.dir, exist_ok=True)
        self.config_file = os.path.join(self.dir, "retryd.yaml")
        base = {"listen": ["127.0.0.1:0"], "state_dir": os.path.join(self.dir, "state"),
                "log": {"format": "json", "file": os.path.join(self.dir, "retryd.log")}}
        if origin:
            # Names under AWS's suffixes end at the origin: TLS at its TLS port, clear at its clear one.
            base["resolve"] = {"*.amazonaws.com:443": "127.0.0.1:%d" % origin.https,
                               "*.amazonaws.com:80": "127.0.0.1:%d" % origin.http}
            base["upstream"] = {"ca_file": origin.ca_file}
        self.config = merged(base, config or {})
        self.state_dir, self.log_file = self.config["state_dir"], self.config["log"]["file"]
        with open(self.config_file, "w") as f:
            f.write(yaml(self.config))
        self.env = clean_env(**(env or {}))
        self.process = None
        self.told = False             # to end, by tell()
        if start:
            self.start()

    def start(self):
        self.told = False
        ready = os.path.join(self.dir, "ready")
        if os.path.exists(ready):
            os.unlink(ready)
        self.stdout = open(os.path.join(self.dir, "stdout"), "ab")
        self.stderr = open(os.path.join(self.dir, "stderr"), "ab")
        self.process = subprocess.Popen([retryd_path(), "run", "-c", self.config_file, "--ready-file", ready],
                                        stdin=subprocess.DEVNULL, stdout=self.stdout, stderr=self.stderr,
                                        env=self.env, cwd=self.dir)
        until(lambda: os.path.exists(ready) or self.process.poll() is not None, "retryd is ready")
        assert self.process.poll() is None, "retryd ended with %d: %s" % (self.process.returncode, self.said())
        with open(ready) as f:
            self.port = int(f.readline().strip().rsplit(":", 1)[1])
        self.url = "http://127.0.0.1:%d" % self.port

    def said(self, name="stderr"):
        with open(os.path.join(self.dir, name), errors="replace") as f:
            return f.read()

    @property
    def ca_file(self):
        return os.path.join(self.state_dir, "ca.pem")

    def log(self, event=None):
        """The lines of the JSON log so far; a line still being written is left for the next call."""
        if not os.path.exists(self.log_file):
            return []
        with open(self.log_file) as f:
            lines = [json.loads(line) for line in f if line.endswith("\n")]
        return [l for l in lines if event is None or l["event"] == event]

    def requests_logged(self, n=1):
        """The record of n requests (written when the request is over, so a moment after the answer)."""
        return until(lambda: (lambda r: r if len(r) >= n else None)(self.log("request")), "%d request lines" % n)

    def attempts_logged(self):
        return self.log("attempt")

    # ---- clients

    def plain(self):
        return dial(self.port)

    def tunnel(self, host, port=443):
        """A CONNECT that is to be granted; what follows is up to the caller."""
        wire = dial(self.port)
        wire.send(b"CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" %
                  (host.encode(), port, host.encode(), port))
        answer = wire.response("CONNECT", body=False)
        assert answer is not None and answer.status == 200, answer and answer.status_line
        return wire

    def tls_context(self):
        context = ssl.create_default_context(cafile=self.ca_file)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.set_alpn_protocols(["http/1.1"])
        return context

    def open(self, host, port=443):
        """CONNECT and TLS that trusts retryd's CA alone."""
        wire = self.tunnel(host, port)
        assert wire.buffer == b""
        # An end without close_notify is no end: it shows as a failure of the read.
        return Wire(self.tls_context().wrap_socket(wire.sock, server_hostname=host, suppress_ragged_eofs=False))

    def exchange(self, request, clear=False, wire=None):
        """One request, one answer, on a connection of its own (or on the one given)."""
        own = wire is None
        if own:
            wire = self.plain() if clear else self.open(request.host)
        wire.send(request.bytes(request.absolute() if clear else None))
        response = wire.response(request.method)
        if own:
            wire.close()
        return response

    # ---- its end

    def tell(self, sig):
        """One signal to end; stop() then only waits for it."""
        self.process.send_signal(sig)
        self.told = True

    def stop(self, sig=signal.SIGTERM, status=0):
        """Ends it, and fails on any other exit status and on any word of a sanitizer."""
        if self.process is None:
            return
        process, self.process = self.process, None
        if process.poll() is None and not self.told:
            process.send_signal(sig)
        try:
            process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            process.wait(TIMEOUT)
            raise AssertionError("retryd did not stop on %s" % sig)
        finally:
            self.stdout.close()
            self.stderr.close()
        err = self.said()
        assert not SANITIZER.search(err), err[-8000:]
        assert process.returncode == status, "exit status %d, stderr: %s" % (process.returncode, err[-4000:])


def run_retryd(*args, env=None, timeout=TIMEOUT, **how):
    """`retryd VERB ...` to its end; standard output and error as text. No sanitizer may speak."""
    done = subprocess.run([retryd_path(), *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=clean_env(**(env or {})), timeout=timeout, text=True, **how)
    assert not SANITIZER.search(done.stderr), done.stderr[-8000:]
    return done


def free_port():
    """A port nobody listens on (for the moment)."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def elapsed(since):
    return time.monotonic() - since
