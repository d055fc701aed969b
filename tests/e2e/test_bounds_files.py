"""J2: file descriptors: as many as may be had, no more clients than those carry, and no spin when they are gone."""
import resource
import stat
import time

import pytest

from daemons import retryd_path
from hostile import RawOrigin, back_to, cpu_seconds, descriptors, read_request, request, response
from wire import dial, until


@pytest.fixture
def origin():
    def script(wire, n):
        while True:
            read_request(wire)
            wire.send(response(200, b"fine"))

    one = RawOrigin(script)
    yield one
    one.stop()


@pytest.fixture
def limited(tmp_path, monkeypatch, make_retryd):
    """retryd started under a limit: `ulimit` options."""
    def make(options, origin, **config):
        wrapper = tmp_path / "limited"
        wrapper.write_text('#!/bin/sh\nulimit %s && exec "%s" "$@"\n' % (options, retryd_path()))
        wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("RETRYD_BIN", str(wrapper))
        return make_retryd(None, **origin.config(**config))

    return make


def test_the_soft_limit_is_raised(limited, origin):
    """J2: what the hard limit allows is used."""
    retryd = limited("-S -n 100", origin)
    soft, hard = resource.prlimit(retryd.process.pid, resource.RLIMIT_NOFILE)
    assert soft == hard > 100


@pytest.mark.parametrize("workers, fit", [(1, 96), (2, 192)])
def test_clients_that_do_not_fit(limited, origin, workers, fit):
    """J2: limits.max_clients is cut to what the descriptors carry, with a word about it."""
    retryd = limited("-n 256", origin, workers=workers)
    said = until(lambda: retryd.log("few_descriptors"), "the warning")
    assert len(said) == 1 and "4096" in said[0]["msg"] and "room for %d:" % fit in said[0]["msg"]


def test_a_thousand_clients(limited, origin):
    """J2: a thousand clients at 256 descriptors: those that have room are served, the others wait or are sent away, at
    little cost, and afterwards all is as before."""
    retryd = limited("-n 256", origin, limits={"max_clients_per_peer": 4096})
    held = descriptors(retryd.process)
    crowd = [dial(retryd.port) for _ in range(1000)]
    until(lambda: descriptors(retryd.process) >= held + 96, "the places are taken")
    crowd[0].send(request())
    assert crowd[0].response().status == 200
    time.sleep(1)                     # whoever is sent away has been
    before = cpu_seconds(retryd.process)
    time.sleep(2)
    assert cpu_seconds(retryd.process) - before < 0.4
    assert descriptors(retryd.process) <= held + 96 + 2
    for wire in crowd:
        wire.close()
    back_to(retryd.process, held + 2)
    wire = retryd.plain()
    wire.send(request())
    assert wire.response().status == 200


def test_idle_connections_make_room(limited, origin):
    """J2: without a descriptor for a client the idle upstream connections are closed."""
    retryd = limited("-n 256", origin)
    warm = [retryd.plain() for _ in range(20)]
    for wire in warm:                 # all at a time, so that each has its own
        wire.send(request("PUT", body=b"x" * 10)[:-5])
    until(lambda: origin.accepted == 20, "twenty upstream connections")
    for wire in warm:
        wire.send(b"x" * 5)
        assert wire.response().status == 200
    held = descriptors(retryd.process)
    resource.prlimit(retryd.process.pid, resource.RLIMIT_NOFILE, (held, held))
    extra = [retryd.plain() for _ in range(10)]
    for wire in extra:
        wire.send(request())
        assert wire.response().status == 200
    assert origin.accepted > 20
