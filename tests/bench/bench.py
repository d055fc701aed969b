#!/usr/bin/env python3
"""bench.py BUILD_DIR [SECONDS]: small intercepted TLS POSTs on keep-alive, through retryd and direct.

The same client and the same origin in turn, three rounds, the median of each; CPU time is that of the
process (user and system) over its requests. All three share the machine's cores, so the direct figure is the
ceiling of this client and origin, not of the machine.
"""
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))

from daemons import Retryd, make_ca  # noqa: E402
from faultd import Authority  # noqa: E402

HOST = "dynamodb.us-east-1.amazonaws.com"
ROUNDS = 3


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tool(build, name):
    path = os.path.join(build, "bench-" + name)
    subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-o", path,
                    os.path.join(HERE, name + ".c"), "-lssl", "-lcrypto", "-lpthread"], check=True)
    return path


def rss_kib(pid):
    with open("/proc/%d/status" % pid) as f:
        return [int(line.split()[1]) for line in f if line.startswith("VmRSS")][0]


def main():
    build, seconds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4
    os.environ["RETRYD_BIN"] = os.path.join(build, "retryd")
    loadgen, origin_program = tool(build, "loadgen"), tool(build, "origin")
    with tempfile.TemporaryDirectory() as work:
        authority = Authority(make_ca(os.path.join(work, "ca")))
        ca_file = os.path.join(authority.dir, "ca.pem")
        origin = subprocess.Popen([origin_program, authority.leaf(HOST)], stdout=subprocess.PIPE, text=True)
        port = int(origin.stdout.readline())
        retryd = Retryd(os.path.join(work, "retryd"), config={
            "resolve": {HOST: "127.0.0.1:%d" % port}, "upstream": {"ca_file": ca_file}, "log": {"level": "warn"}})

        def load(proxy_port, trusted, connections):
            before, own = cpu_seconds(retryd.process.pid), cpu_seconds(origin.pid)
            done = subprocess.run([loadgen, str(port), str(proxy_port), HOST, trusted, str(connections),
                                   str(seconds)], stdout=subprocess.PIPE, text=True)
            requests, took, p50, p99, failures = (float(x) for x in done.stdout.split())
            if failures or not requests:
                sys.exit("bench: %d failures" % failures)
            cpu = cpu_seconds(retryd.process.pid) - before
            return {"rate": requests / took, "p50": p50, "p99": p99, "cpu": cpu / requests * 1e6,
                    "origin": (cpu_seconds(origin.pid) - own) / requests * 1e6}

        def median(rows, key):
            return statistics.median(row[key] for row in rows)

        print("%d s a run, median of %d; %d cores; POST of 58 bytes, answer of 2" % (seconds, ROUNDS, os.cpu_count()))
        print("%11s %22s %9s %9s %9s %17s %17s" % ("connections", "", "requests/s", "p50 us", "p99 us",
                                                  "CPU us/request", "(origin's CPU)"))
        try:
            for connections in (1, 16, 64):
                direct, through = [], []
                for _ in range(ROUNDS):
                    direct.append(load(0, ca_file, connections))
                    through.append(load(retryd.port, retryd.ca_file, connections))
                for name, rows in (("direct", direct), ("through retryd", through)):
                    print("%11d %22s %9.0f %9.0f %9.0f %17s %17.0f" % (
                        connections, name, median(rows, "rate"), median(rows, "p50"), median(rows, "p99"),
                        "%.0f" % median(rows, "cpu") if rows is through else "-", median(rows, "origin")))
                print("%11s %22s %9.2f" % ("", "ratio", median(through, "rate") / median(direct, "rate")))
            print("retryd: %d KiB resident after it" % rss_kib(retryd.process.pid))
        finally:
            retryd.stop()
            origin.kill()
            origin.wait()


main()
