"""brownout.py BUILD_DIR [SVG]: an origin that has less to give than is asked for, in adaptive and in standard mode.

200 clients in a closed loop, through one retryd of 4 workers, for 90 s. The origin serves 100 requests/s (a token
bucket with a burst of 100; 200/s from second 60 on) and answers the rest with 400 ThrottlingException, each after
5 to 6 ms. Prints what happened and how it compares to the bounds of adaptive mode, draws it, and ends with status 1
if a bound was missed. The same world is simulated by brownout_sim.c, for limiters that are not shared.
"""
import asyncio
import math
import os
import random
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TREE, "tests/e2e"))

import sigv4  # noqa: E402
from daemons import Retryd  # noqa: E402

RATE, BURST, CLIENTS, WORKERS, SECONDS, DOUBLED_AT = 100, 100, 200, 4, 90, 60
LATENCY = 0.005
THROTTLED = b'{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"Rate exceeded"}'


class Figures:
    """Counts by the second."""

    def __init__(self, seconds, clients):
        self.seconds = seconds
        self.began = time.monotonic()
        self.sends, self.throttled, self.failed = ([0] * seconds for _ in range(3))
        self.served = [[0] * seconds for _ in range(clients)]
        self.answers = {}             # failures by status and X-Retryd-Error

    def count(self, series):
        second = int(time.monotonic() - self.began)
        if second < self.seconds:
            series[second] += 1

    def rate(self, series, start, end):
        return sum(series[start:end]) / (end - start)

    def share_throttled(self, start, end):
        return sum(self.throttled[start:end]) / max(1, sum(self.sends[start:end]))

    def spread(self, start, end):
        """The best served client against the worst."""
        served = [sum(s[start:end]) for s in self.served]
        return max(served) / max(1, min(served))


class Origin:
    """A token bucket behind HTTP on a loopback port, which is open before serve() runs."""

    def __init__(self, rate, burst=None, latency=LATENCY):
        self.rate, self.burst, self.latency = rate, burst or rate, latency
        self.tokens, self.filled = self.burst, time.monotonic()
        self.figures = None           # counts nothing before there are some
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]

    def set_rate(self, rate):
        self.take(0)
        self.rate = rate

    def take(self, n=1):
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.filled) * self.rate)
        self.filled = now
        if self.tokens < n:
            return False
        self.tokens -= n
        return True

    async def serve(self):
        return await asyncio.start_server(self.connection, sock=self.listener)

    async def connection(self, reader, writer):
        try:
            while True:
                await read_message(reader)
                served = self.take()
                if self.figures:
                    self.figures.count(self.figures.sends)
                    if not served:
                        self.figures.count(self.figures.throttled)
                await asyncio.sleep(self.latency * random.uniform(1, 1.2))
                body = b"{}" if served else THROTTLED
                writer.write(b"HTTP/1.1 %s\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n%s" %
                             (b"200 OK" if served else b"400 Bad Request", len(body), body))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def read_message(reader):
    """Head and body of a message with Content-Length."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    return head, await reader.readexactly(int(fields.get(b"content-length", 0)))


def signed():
    """A GetItem of this second, in clear through the proxy."""
    now = int(time.time())
    if signed.at != now:
        request = sigv4.dynamodb()
        signed.at, signed.data = now, request.bytes(request.absolute())
    return signed.data


signed.at = None


class Client:
    """One connection to the proxy, made anew when it broke."""

    def __init__(self, port):
        self.port, self.writer = port, None

    async def call(self):
        """Status and X-Retryd-Error of one exchange."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writer.write(signed())
        head, _ = await read_message(self.reader)
        own = [line[16:].decode() for line in head.split(b"\r\n") if line.lower().startswith(b"x-retryd-error: ")]
        return int(head[9:12]), own[0] if own else None

    def close(self):
        if self.writer:
            self.writer.close()
            self.writer = None


async def ask_on(client, figures, served):
    """The closed loop: asks again as soon as there is an answer, whatever it says."""
    while True:
        try:
            answer = await client.call()
        except (OSError, asyncio.IncompleteReadError) as e:
            client.close()
            answer = (type(e).__name__, None)
        if answer == (200, None):
            figures.count(served)
        else:
            figures.count(figures.failed)
            figures.answers[answer] = figures.answers.get(answer, 0) + 1


async def closed_loop(origin, port, clients, seconds, doubled_at):
    server = await origin.serve()
    figures = Figures(seconds, clients)
    origin.tokens, origin.filled, origin.figures = origin.burst, time.monotonic(), figures
    tasks = []
    for served in figures.served:     # all begin within the first second
        tasks.append(asyncio.create_task(ask_on(Client(port), figures, served)))
        await asyncio.sleep(1 / clients)
    await asyncio.sleep(figures.began + doubled_at - time.monotonic())
    origin.set_rate(2 * origin.rate)
    await asyncio.sleep(figures.began + seconds - time.monotonic())
    for task in tasks:
        task.cancel()
    server.close()
    return figures


def brownout(workdir, mode, seconds=SECONDS, doubled_at=DOUBLED_AT, clients=CLIENTS, workers=WORKERS,
             started=None):
    """The whole story; its figures. started: is told of the daemon before the first client comes."""
    origin = Origin(RATE, BURST)
    retryd = Retryd(workdir, config={"resolve": {"*.amazonaws.com": "127.0.0.1:%d" % origin.port}, "workers": workers,
                                     "retry": {"mode": mode}, "log": {"level": "warn"}})
    try:
        if started:
            started(retryd)
        return asyncio.run(closed_loop(origin, retryd.port, clients, seconds, doubled_at))
    finally:
        retryd.stop()


# --- telling -----------------------------------------------------------------------------------------------

def criteria(f):
    """Each bound of adaptive mode: what it is of, the figure, whether it is met."""
    rate, late = f.rate(f.sends, 20, 60), f.rate(f.sends, 75, 90)
    throttled, spread = f.share_throttled(20, 60), f.spread(20, 60)
    return [
        ("20-60 s  sends/s, within 15 % of " + str(RATE), "%.1f" % rate, abs(rate - RATE) <= 0.15 * RATE),
        ("20-60 s  throttled, < 5 % of sends", "%.1f %%" % (100 * throttled), throttled < 0.05),
        ("20-60 s  served, best / worst client, <= 1.5", "%.2f" % spread, spread <= 1.5),
        ("75-90 s  sends/s, >= 85 %% of %d" % (2 * RATE), "%.1f" % late, late >= 0.85 * 2 * RATE),
    ]


def table(runs):
    lines = ["%-8s" % "second" + "".join("   %-32s" % name for name in runs),
             "%-8s" % "" + "   %8s %10s %12s" % ("sends/s", "throttled", "failed/s") * len(runs)]
    for start in range(0, SECONDS, 5):
        end = start + 5
        lines.append("%-8s" % ("%d-%d" % (start, end)) + "".join(
            "   %8.1f %8.1f %% %12.1f" % (f.rate(f.sends, start, end), 100 * f.share_throttled(start, end),
                                         f.rate(f.failed, start, end)) for f in runs.values()))
    return "\n".join(lines)


# --- drawing -----------------------------------------------------------------------------------------------

COLOURS = {"adaptive": "#0969da", "standard": "#d1242f"}
GREY, INK, RULE = "#57606a", "#1f2328", "#d8dee4"
WIDTH, LEFT, RIGHT, HEIGHT, GAP, TOP = 760, 64, 24, 140, 62, 144


class Panel:
    """Seconds to the right, a quantity upwards between the first and the last of `ticks`."""

    def __init__(self, number, title, ticks, unit="", logarithmic=False):
        self.top = TOP + number * (HEIGHT + GAP)
        self.ticks, self.logarithmic, self.out = ticks, logarithmic, []
        self.text(LEFT, self.top - 12, title, "start", "600", INK)
        for value in ticks:
            y = self.y(value)
            self.out.append('<path d="M%d %.1fH%d" stroke="%s"/>' % (LEFT, y, WIDTH - RIGHT, RULE))
            self.text(LEFT - 8, y + 4, "{:,.0f}".format(value) + unit, "end")
        for second in range(0, SECONDS + 1, 15):
            self.text(self.x(second), self.top + HEIGHT + 17, "%d s" % second, "middle")
        self.out.append('<path d="M%.0f %.1fV%.1f" stroke="%s" stroke-dasharray="2 3"/>' %
                        (self.x(DOUBLED_AT), self.top, self.top + HEIGHT, GREY))

    def x(self, second):
        return LEFT + (WIDTH - LEFT - RIGHT) * second / SECONDS

    def y(self, value):
        low, high = self.ticks[0], self.ticks[-1]
        value = max(low, min(value, high))
        part = math.log(value / low) / math.log(high / low) if self.logarithmic else (value - low) / (high - low)
        return self.top + HEIGHT * (1 - part)

    def text(self, x, y, words, anchor, weight="400", colour=GREY):
        self.out.append('<text x="%.0f" y="%.1f" text-anchor="%s" font-weight="%s" fill="%s">%s</text>' %
                        (x, y, anchor, weight, colour, words))

    def line(self, values, colour, more='stroke-width="2" stroke-linejoin="round"'):
        path = "L".join("%.1f %.1f" % (self.x(s), self.y(v)) for s, v in values)
        self.out.append('<path d="M%s" fill="none" stroke="%s" %s/>' % (path, colour, more))


def round_up(value):
    """To a number that halves well."""
    step = 10 ** (len(str(int(value))) - 1)
    return next(n * step for n in (1, 1.4, 2, 3, 4, 6, 8, 10) if n * step >= value)


def middles(series):
    return [(second + 0.5, value) for second, value in enumerate(series)]


def legend(runs):
    """What the lines are, and the means of the middle of the run."""
    out = []
    for i, (mode, colour) in enumerate(COLOURS.items()):
        f, y = runs[mode], 58 + 20 * i
        out.append('<path d="M%d %dh26" stroke="%s" stroke-width="3"/>' % (LEFT, y - 4, colour))
        out.append('<text x="%d" y="%d" fill="%s"><tspan font-weight="600" fill="%s">%s</tspan>: of %s requests/s at the '
                   'origin %.1f %% throttled; %s requests/s served, %s failed</text>' %
                   (LEFT + 34, y, INK, colour, mode, "{:,.0f}".format(f.rate(f.sends, 20, 60)),
                    100 * f.share_throttled(20, 60), "{:,.0f}".format(sum(f.rate(s, 20, 60) for s in f.served)),
                    "{:,.0f}".format(f.rate(f.failed, 20, 60))))
    return out


def drawing(runs):
    """Both runs. The load has a logarithmic scale: standard mode sends many times as much."""
    decades = math.ceil(math.log10(max(runs["standard"].sends)))
    load = Panel(0, "Load of the origin: requests/s that reach it (dashed: what it serves)",
                 [10 ** n for n in range(decades + 1)], logarithmic=True)
    load.line([(0, RATE), (DOUBLED_AT, RATE), (DOUBLED_AT, 2 * RATE), (SECONDS, 2 * RATE)], GREY,
              'stroke-width="1.5" stroke-dasharray="6 4"')
    most = round_up(max(runs["standard"].failed))
    panels = [load, Panel(1, "Throttled: share of these", [0, 25, 50, 75, 100], " %"),
              Panel(2, "Failed: requests/s that end with an error for the client", [0, most / 2, most])]
    for mode in ("standard", "adaptive"):
        f = runs[mode]
        shares = [100 * f.share_throttled(s, s + 1) for s in range(SECONDS)]
        for panel, series in zip(panels, (f.sends, shares, f.failed)):
            panel.line(middles(series), COLOURS[mode])
    height = panels[-1].top + HEIGHT + 30
    head = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="DejaVu Sans, Verdana, sans-serif" '
            'font-size="12">' % (WIDTH, height), '<rect width="100%" height="100%" fill="#fff"/>',
            '<text x="%d" y="30" font-size="15" font-weight="600" fill="%s">%d clients, %d workers; the origin serves %d/s, '
            'from %d s on %d/s</text>' % (LEFT, INK, CLIENTS, WORKERS, RATE, DOUBLED_AT, 2 * RATE), *legend(runs)]
    head.append('<text x="%d" y="98" font-size="11" fill="%s">(means from 20 s to 60 s)</text>' % (LEFT + 34, GREY))
    return "\n".join(head + [line for p in panels for line in p.out] + ["</svg>"]) + "\n"


# --- all of it ---------------------------------------------------------------------------------------------

def simulate(build):
    """Limiters of their own for each of 8 processes, against one that all share."""
    path = os.path.join(build, "bench-brownout_sim")
    sources = [os.path.join(HERE, "brownout_sim.c")]
    for room in ("retry", "base"):
        directory = os.path.join(TREE, "src/core", room)
        sources += sorted(os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".c"))
    subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-O2", "-I" + os.path.join(TREE, "src"), "-o", path, *sources,
                    "-lm"], check=True)
    subprocess.run([path], check=True)


def main():
    build = sys.argv[1]
    svg = sys.argv[2] if len(sys.argv) > 2 else os.path.join(TREE, "doc/brownout.svg")
    os.environ["RETRYD_BIN"] = os.path.join(build, "retryd")
    runs = {}
    with tempfile.TemporaryDirectory() as work:
        for mode in ("adaptive", "standard"):
            print("%s mode, %d s ..." % (mode, SECONDS), flush=True)
            runs[mode] = brownout(os.path.join(work, mode), mode)
    print(table(runs), "\n")
    missed = 0
    for name, figure, met in criteria(runs["adaptive"]):
        missed += not met
        print("%s  %-46s %s" % ("PASS" if met else "FAIL", name, figure))
    with open(svg, "w") as f:
        f.write(drawing(runs))
    print("\ndrawn: %s\n\nSimulated, one limiter shared by all against one for each process:\n" % svg, flush=True)
    simulate(build)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
