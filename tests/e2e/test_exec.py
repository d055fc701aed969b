"""`retryd exec -- COMMAND`: a private proxy for one command."""
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from daemons import clean_env, retryd_path, run_retryd, yaml
from wire import until

PYTHON = sys.executable
SUM = "import os; print({k: v for k, v in os.environ.items()})"

# A client without any retry of its own: GetCallerIdentity, unsigned, by what the environment says.
ASK = """
import os, ssl, sys, http.client, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
c = http.client.HTTPSConnection(proxy.hostname, proxy.port, timeout=20,
                                context=ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"]))
c.set_tunnel("sts.amazonaws.com", 443)
c.request("POST", "/", "Action=GetCallerIdentity&Version=2011-06-15",
          {"Content-Type": "application/x-www-form-urlencoded"})
print(c.getresponse().status)
"""


@pytest.fixture
def config(tmp_path, origin):
    path = tmp_path / "exec.yaml"
    path.write_text(yaml({"state_dir": str(tmp_path / "state"), "upstream": {"ca_file": origin.ca_file},
                          "resolve": {"*.amazonaws.com:443": "127.0.0.1:%d" % origin.https},
                          "retry": {"max_backoff": "100ms"}, "log": {"level": "error"}}))
    return str(path)


def run(config, *command, options=(), env=None):
    return run_retryd("exec", "-c", config, *options, "--", *command, env=env, timeout=60)


@pytest.mark.parametrize("status", [0, 1, 3, 77])
def test_exit_status_is_the_commands(config, status):
    assert run(config, "sh", "-c", "exit %d" % status).returncode == status


def test_death_by_signal_is_passed_on(config):
    assert run(config, "sh", "-c", "kill -KILL $$").returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)


def test_command_that_is_not_there(config):
    done = run(config, "/nonexistent/command")
    assert done.returncode == 127 and "/nonexistent/command" in done.stderr
    assert run(config, "/").returncode == 126


def test_without_a_command(config):
    done = run_retryd("exec", "-c", config)
    assert done.returncode == 2 and "COMMAND" in done.stderr


def test_arguments_and_standard_streams_are_the_commands(config):
    done = subprocess.run([retryd_path(), "exec", "-c", config, "--", "sh", "-c", 'cat; printf "%s|" "$@" >&2', "x",
                           "a b", "-c", "--", ""], input="in\n", capture_output=True, text=True, env=clean_env())
    assert (done.returncode, done.stdout) == (0, "in\n")
    assert "a b|-c|--||" in done.stderr


def test_environment(config, tmp_path):
    done = run(config, PYTHON, "-c", SUM, env={"AWS_MAX_ATTEMPTS": "1", "NO_PROXY": "mine.example"})
    env = eval(done.stdout)
    url = env["HTTPS_PROXY"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
    for name in ("HTTP_PROXY", "https_proxy", "http_proxy"):
        assert env[name] == url
    for name in ("AWS_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"):
        with open(env[name]) as f:
            assert "BEGIN CERTIFICATE" in f.read()
    for host in ("169.254.169.254", "169.254.170.2", "localhost", "127.0.0.1", "mine.example"):
        assert host in env["NO_PROXY"].split(",")
    assert env["NO_PROXY"] == env["no_proxy"]


def test_the_commands_request_is_retried(config, origin):
    origin.answers({"error": "Throttling"}, {"status": 503})
    done = run(config, PYTHON, "-c", ASK, options=["--summary"])
    assert (done.returncode, done.stdout) == (0, "200\n")
    assert len(origin.requests()) == 3
    assert "sts" in done.stderr and "GetCallerIdentity" in done.stderr
    assert re.search(r"\b3 attempts\b", done.stderr), done.stderr


def test_timeline(config, origin):
    origin.answers({"fail": "reset"}, {"error": "Throttling"})
    done = run(config, PYTHON, "-c", ASK, options=["--timeline"])
    assert done.stdout == "200\n"
    lines = done.stderr.splitlines()
    attempts = [l for l in lines if re.search(r"\b[123]/3\b", l)]
    assert len(attempts) == 3, done.stderr
    assert "reset" in attempts[0] and "transient" in attempts[0]
    assert re.search(r"500 *-> *486", attempts[0])
    assert "400" in attempts[1] and "Throttling" in attempts[1] and "throttling" in attempts[1]
    assert re.search(r"486 *-> *481", attempts[1])
    assert "200" in attempts[2] and "success" in attempts[2]


def test_quiet_without_options(config, origin):
    done = run(config, PYTHON, "-c", ASK)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_reach_the_command(config, tmp_path, sig):
    started = tmp_path / "started"
    script = "trap 'exit 42' TERM INT HUP; : > '%s'; while :; do sleep 0.05; done" % started
    # A shell cannot trap what was ignored when it started, as signals are in background jobs and under nohup.
    process = subprocess.Popen([retryd_path(), "exec", "-c", config, "--", "sh", "-c", script],
                               stderr=subprocess.PIPE, env=clean_env(), start_new_session=True,
                               preexec_fn=lambda: signal.signal(sig, signal.SIG_DFL))
    try:
        until(started.exists, "the command runs")
        process.send_signal(sig)
        process.communicate(timeout=20)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 42


def test_nothing_is_left_behind(config, tmp_path):
    done = run(config, "sh", "-c", "echo $PPID; echo $HTTPS_PROXY")
    pid, url = done.stdout.split()
    assert not os.path.exists("/proc/%s" % pid) or pid == "1"
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1])), timeout=2)


def test_own_state_is_made_on_first_use(tmp_path, origin):
    """No configuration at all: the state directory is the user's, under XDG_STATE_HOME."""
    done = run_retryd("exec", "--", "sh", "-c", 'cat "$SSL_CERT_FILE"',
                      env={"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "xdg")})
    assert done.returncode == 0, done.stderr
    assert "BEGIN CERTIFICATE" in done.stdout
    assert os.path.exists(tmp_path / "xdg/retryd/ca.pem")


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"])
def test_what_the_caller_trusts_goes_on_to_be_trusted(tmp_path, origin, variable):
    """By the command, and by retryd in its place: an origin behind a private root works as it did without retryd."""
    path = tmp_path / "exec.yaml"
    path.write_text(yaml({"state_dir": str(tmp_path / "state"), "log": {"level": "error"},
                          "resolve": {"*.amazonaws.com:443": "127.0.0.1:%d" % origin.https}}))
    private = open(origin.ca_file).read()
    done = run(str(path), PYTHON, "-c", ASK + "print(open(os.environ[%r]).read())" % variable,
               env={variable: origin.ca_file})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("200") and private in done.stdout
    ours = open(tmp_path / "state" / "ca.pem").read().strip()
    assert ours in done.stdout
    assert sorted(n for n in os.listdir(tmp_path / "state") if "bundle" in n) == ["ca-bundle.pem"]


def test_a_bundle_that_is_not_there(config):
    done = run(config, "true", env={"AWS_CA_BUNDLE": "/nonexistent.pem"})
    assert done.returncode == 2 and "/nonexistent.pem" in done.stderr
