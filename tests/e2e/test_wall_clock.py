"""The wall clock jumps while somebody waits."""
import os
import subprocess
import threading
import time

import pytest

import sigv4
from daemons import sanitized
from wire import until

DAY_S = 86400
# In front of the C library: the wall clock is as many seconds off as the file says, the others are right.
SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long off(void)
{
    char text[32] = "";
    int fd = open(getenv("WALL_CLOCK_OFF"), O_RDONLY);
    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof text - 1) < 0)
        text[0] = 0;
    close(fd);
    return atol(text);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ts);
    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        ts->tv_sec += off();
    return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec ts;
    (void)tz;
    clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}
"""


@pytest.fixture
def jumpy(origin, make_retryd, tmp_path):
    """make(**config): a retryd whose wall clock the test sets by .jump(seconds)."""
    source, shim, off = (str(tmp_path / name) for name in ("clock.c", "clock.so", "off"))
    with open(source, "w") as f:
        f.write(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source], check=True)

    def make(**config):
        env = {"LD_PRELOAD": shim, "WALL_CLOCK_OFF": off}
        if sanitized():
            env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        retryd = make_retryd(origin, env=env, **config)
        retryd.jump = lambda seconds: os.replace(written(off + ".new", seconds), off)
        return retryd

    return make


def written(path, seconds):
    with open(path, "w") as f:
        f.write("%d" % seconds)
    return path


def ask(retryd):
    """An exchange in the clear, under way: (thread, where its answer and time will be)."""
    done = []

    def run():
        since = time.monotonic()
        answer = retryd.exchange(sigv4.sts(), clear=True)
        done.append((answer, time.monotonic() - since))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, done


@pytest.mark.parametrize("seconds", [DAY_S, -DAY_S])
def test_a_wait_before_a_retry(origin, jumpy, seconds):
    """L7: the clock jumps by a day, and the retry comes when it was due."""
    retryd = jumpy()
    origin.answers({"status": 503, "headers": {"x-amz-retry-after": "2000"}})
    thread, done = ask(retryd)
    (attempt,) = until(retryd.attempts_logged, "the first attempt")
    assert attempt["decision"] == "retry" and attempt["wait_ms"] >= 2000
    retryd.jump(seconds)
    thread.join(30)
    (answer, took), = done
    assert answer.status == 200
    assert attempt["wait_ms"] / 1000 - 0.01 <= took < attempt["wait_ms"] / 1000 + 10
    assert jumped(retryd)


@pytest.mark.parametrize("seconds", [DAY_S, -DAY_S])
def test_a_timeout(origin, jumpy, seconds):
    """L7: the clock jumps by a day, and an origin that says nothing is given up when its time is over."""
    retryd = jumpy(timeouts={"response": "2s"}, retry={"max_attempts": 1})
    origin.answers({"fail": "hang"})
    thread, done = ask(retryd)
    until(origin.requests, "the request is at the origin")
    retryd.jump(seconds)
    thread.join(30)
    (answer, took), = done
    assert answer.status == 504
    assert 1.99 <= took < 12
    assert jumped(retryd)


def jumped(retryd):
    """The log, which tells the time of day, shows that the clock of this retryd did jump."""
    first, last = retryd.log()[0], retryd.requests_logged()[-1]
    return first["ts"][:10] != last["ts"][:10]
