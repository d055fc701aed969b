"""What a newcomer sees first: the demo, and the variables for a shell."""
import os
import re
import subprocess
import sys

from daemons import HERE, clean_env, free_port, retryd_path, run_retryd


def test_demo():
    done = subprocess.run([sys.executable, os.path.join(HERE, "demo.py"), retryd_path()], env=clean_env(),
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = re.findall(r"the client sees: (\d+)", done.stdout)
    assert seen == ["400", "200"]
    attempts = re.findall(r"^.*\b\d/4\b.*$", done.stderr, re.MULTILINE)
    assert len(attempts) == 4
    assert "throttling" in attempts[0] and "transient" in attempts[1] and "reset" in attempts[2]
    assert "success" in attempts[3]


def test_env_prints_what_run_prints(make_retryd):
    retryd = make_retryd(listen=["127.0.0.1:%d" % free_port()])
    printed = run_retryd("env", "-c", retryd.config_file).stdout
    assert "export HTTPS_PROXY='%s'" % retryd.url in printed
    assert printed.strip() in retryd.said("stdout")


def test_env_is_safe_to_evaluate(tmp_path):
    """A state directory with characters that mean something to a shell."""
    state = tmp_path / "it's $(touch bad) `x`"
    config = tmp_path / "retryd.yaml"
    config.write_text('listen: 127.0.0.1:8199\nstate_dir: "%s"\n' % state)
    printed = run_retryd("env", "-c", config).stdout
    done = subprocess.run(["sh", "-c", printed + '\nprintf %s "$SSL_CERT_FILE"'], capture_output=True, text=True,
                          cwd=tmp_path, env=clean_env())
    assert done.stdout == "%s/ca-bundle.pem" % state
    assert not (tmp_path / "bad").exists()
