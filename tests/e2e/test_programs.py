"""Programs that people have, through retryd: what they do works as without it.

web.example is opened (intercept.hosts) and retried (profile generic); tunnel.example and h2.example are blind tunnels."""
import asyncio
import functools
import hashlib
import json
import os
import shutil
import ssl
import subprocess
import threading
import time

import pytest

from daemons import clean_env, sanitized
from hostile import rss_bytes
from web import Http2Only, Minted, ReversingChat, Web, zero_file

MIB = 1 << 20
SANITIZED = sanitized()               # then memory says nothing: what is freed is kept for a while
LARGE = (64 if SANITIZED else 2048) * MIB
RSS_GROWTH = 24 * MIB
S3 = "bucket.s3.us-east-1.amazonaws.com"


class Scene:
    def __init__(self, make_retryd, directory, ca, **config):
        self.dir, self.root, self.ca = str(directory), directory / "root", str(ca / "ca.pem")
        self.root.mkdir()
        self.web = Web(self.root)
        self.tls = Web(self.root, Minted(ca).context)
        self.h2 = Http2Only(ca)
        self.chat = ReversingChat(ca)
        clear, tls = "127.0.0.1:%d" % self.web.port, "127.0.0.1:%d" % self.tls.port
        self.retryd = make_retryd(
            None, intercept={"hosts": ["web.example", "chat.web.example"]}, upstream={"ca_file": self.ca},
            resolve={"web.example:80": clear, "tunnel.example:80": clear, "web.example:443": tls, "tunnel.example:443": tls, S3 + ":443": tls,
                     "h2.example:443": "127.0.0.1:%d" % self.h2.port,
                     "chat.web.example:443": "127.0.0.1:%d" % self.chat.port,
                     "chat.tunnel.example:443": "127.0.0.1:%d" % self.chat.port},
            retry={"max_backoff": "20ms"}, rules=[{"match": {"host": ["web.example"]}, "profile": "generic"}], **config)
        # Everything a program may meet: retryd's authority, and in tunnels the origin's own.
        self.trust = os.path.join(self.dir, "trust.pem")
        with open(self.trust, "wb") as out:
            for name in (self.retryd.ca_file, self.ca):
                with open(name, "rb") as f:
                    out.write(f.read())

    def run(self, *command, ok=True, stdin=subprocess.DEVNULL, **env):
        """Its standard output. The proxy is in the environment, as programs expect it there."""
        url = self.retryd.url
        env = {"http_proxy": url, "https_proxy": url, "HTTPS_PROXY": url, "HOME": self.dir, **env}
        done = subprocess.run([str(word) for word in command], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=clean_env(**env), cwd=self.dir, timeout=180)
        assert not ok or done.returncode == 0, (done.returncode, done.stderr[-3000:], done.stdout[-500:])
        return done.stdout

    def curl(self, *arguments, **how):
        return self.run("curl", "-sS", "--max-time", "120", "--cacert", self.trust, *arguments, **how)

    def stop(self):
        self.web.stop()
        self.tls.stop()
        self.h2.stop()
        self.chat.stop()


@pytest.fixture
def scene(make_retryd, tmp_path, origin_ca):
    one = Scene(make_retryd, tmp_path, origin_ca)
    yield one
    one.stop()


SCHEMES = pytest.mark.parametrize("url", ["http://web.example", "https://web.example", "https://tunnel.example"])


# ---- curl

@SCHEMES
def test_curl(scene, url):
    assert scene.curl(url + "/hello") == b"hello\n"
    assert b" 200 OK" in scene.curl("-I", url + "/hello")
    several = scene.curl(*["%s/hello?%d" % (url, n) for n in range(5)])
    assert several == b"hello\n" * 5
    echo = json.loads(scene.curl("--path-as-is", "-g", url + "/echo?a=%7e&b=[]{}&c=../x"))
    assert echo["target"] == "/echo?a=%7e&b=[]{}&c=../x"


def test_curl_is_retried_where_it_may_be(scene):
    assert scene.curl("https://web.example/flaky") == b"hello\n"
    assert scene.curl("http://web.example/flaky?2") == b"hello\n"
    assert scene.curl("https://tunnel.example/flaky?3") == b"not yet"


@SCHEMES
def test_curl_put_with_expect(scene, url):
    body = os.urandom(2 * MIB)
    name = os.path.join(scene.dir, "body")
    with open(name, "wb") as f:
        f.write(body)
    echo = json.loads(scene.curl("-T", name, url + "/echo", "-H", "Expect: 100-continue"))
    assert (echo["method"], echo["bytes"], echo["sha256"]) == ("PUT", len(body), hashlib.sha256(body).hexdigest())
    assert (echo["expect"], echo["chunked"]) == ("100-continue", False)


@SCHEMES
def test_curl_uploads_a_pipe(scene, url):
    body = os.urandom(300000)
    name = os.path.join(scene.dir, "body")
    with open(name, "wb") as f:
        f.write(body)
    with open(name, "rb") as f:
        echo = json.loads(scene.curl("-T", "-", url + "/echo", stdin=f))
    assert (echo["bytes"], echo["sha256"], echo["chunked"]) == (len(body), hashlib.sha256(body).hexdigest(), True)


def test_curl_and_an_origin_that_has_only_http_2(scene):
    out = scene.curl("-w", "%{http_version}", "https://h2.example/")
    assert out == b"hello over 2\n2"


class Watch(threading.Thread):
    """The most memory that the daemon had meanwhile, above what it has now."""

    def __init__(self, process):
        super().__init__()
        self.process, self.base, self.most, self.over = process, rss_bytes(process), 0, threading.Event()

    def run(self):
        while not self.over.wait(0.02):
            self.most = max(self.most, rss_bytes(self.process) - self.base)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


@pytest.mark.parametrize("host", ["http://web.example", "https://web.example", "https://" + S3])
def test_large_bodies_take_no_memory(scene, host):
    """Also to S3, where a request is kept for a retry as long as it is not too long for that."""
    scene.curl(host + "/hello")
    source, began = zero_file(os.path.join(scene.dir, "zeros"), LARGE), time.monotonic()
    with Watch(scene.retryd.process) as watch:
        got = scene.curl("-o", "/dev/null", "-w", "%{size_download}", "%s/bytes/%d" % (host, LARGE))
        put = scene.curl("-T", source, host + "/sink")
    assert int(got) == LARGE and json.loads(put) == {"bytes": LARGE}
    print(host, LARGE // MIB, "MiB each way in %.1f s, memory grew by %d KiB" %
          (time.monotonic() - began, watch.most // 1024))
    assert SANITIZED or watch.most < RSS_GROWTH


# ---- wget, git, apt

@SCHEMES
def test_wget(scene, url):
    (scene.root / "file").write_bytes(bytes(range(256)) * 4096)
    scene.run("wget", "-q", "--ca-certificate", scene.trust, "-O", "out", url + "/files/file")
    assert (scene.root / "file").read_bytes() == open(os.path.join(scene.dir, "out"), "rb").read()
    scene.run("wget", "-q", "--ca-certificate", scene.trust, "-r", "-np", "-nH", url + "/files/")
    assert os.path.exists(os.path.join(scene.dir, "files/file"))


@pytest.fixture
def repository(scene, tmp_path):
    work = tmp_path / "work"
    git = functools.partial(scene.run, GIT_CONFIG_GLOBAL="/dev/null", GIT_AUTHOR_NAME="A", GIT_AUTHOR_EMAIL="a@example",
                            GIT_COMMITTER_NAME="A", GIT_COMMITTER_EMAIL="a@example")
    git("git", "init", "-q", work)
    for n in range(20):
        (work / ("file%d" % n)).write_bytes(os.urandom(20000))
        git("git", "-C", work, "add", ".")
        git("git", "-C", work, "commit", "-qm", "change %d" % n)
    git("git", "clone", "-q", "--bare", work, scene.root / "repo.git")
    git("git", "-C", scene.root / "repo.git", "update-server-info")
    return git


@pytest.mark.parametrize("path", ["/git/repo.git", "/files/repo.git"], ids=["smart", "dumb"])
@pytest.mark.parametrize("host", ["tunnel.example", "web.example"])
def test_git_clone(scene, repository, host, path):
    repository("git", "clone", "-q", "https://%s%s" % (host, path), "clone", GIT_SSL_CAINFO=scene.trust)
    assert len(repository("git", "-C", "clone", "log", "--format=%H").split()) == 20
    repository("git", "-C", "clone", "fsck", "--strict")


def build_deb(scene, n):
    """A package of one file; returns its stanza."""
    tree = os.path.join(scene.dir, "pkg%d" % n)
    os.makedirs(os.path.join(tree, "DEBIAN"))
    with open(os.path.join(tree, "data"), "wb") as f:
        f.write(os.urandom(50000))
    control = "Package: retryd-try-%d\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example>\nDescription: try\n" % n
    with open(os.path.join(tree, "DEBIAN/control"), "w") as f:
        f.write(control)
    name = "retryd-try-%d_1_all.deb" % n
    scene.run("dpkg-deb", "--root-owner-group", "--build", tree, scene.root / name)
    data = (scene.root / name).read_bytes()
    return control + "Filename: ./%s\nSize: %d\nSHA256: %s\n\n" % (name, len(data), hashlib.sha256(data).hexdigest())


def test_apt(scene):
    """A small repository of five packages, by absolute-form requests that apt pipelines; a state of its own."""
    (scene.root / "Packages").write_text("".join(build_deb(scene, n) for n in range(5)))
    state = os.path.join(scene.dir, "apt")
    for name in ("lists/partial", "cache/archives/partial", "etc"):
        os.makedirs(os.path.join(state, name))
    for name in ("status", "sources.list"):
        with open(os.path.join(state, name), "w") as f:
            f.write("deb [trusted=yes] http://web.example/files/ ./\n" if name == "sources.list" else "")
    options = {"Acquire::http::Proxy": scene.retryd.url, "Dir::State": state, "Dir::State::lists": state + "/lists",
               "Dir::State::status": state + "/status", "Dir::Cache": state + "/cache", "Dir::Etc": state + "/etc",
               "Dir::Etc::sourcelist": state + "/sources.list", "Dir::Etc::sourceparts": "-", "Dir::Log": state,
               "APT::Sandbox::User": "root", "Acquire::Retries": "0", "Debug::NoLocking": "true"}
    apt = ["apt-get", "-q"] + [word for pair in options.items() for word in ("-o", "%s=%s" % pair)]
    scene.run(*apt, "update", http_proxy="", https_proxy="")
    scene.run(*apt, "update", http_proxy="", https_proxy="")
    names = ["retryd-try-%d" % n for n in range(5)]
    scene.run(*apt, "-y", "--download-only", "install", *names, http_proxy="", https_proxy="")
    for name in names:
        name += "_1_all.deb"
        with open(os.path.join(state, "cache/archives", name), "rb") as f:
            assert f.read() == (scene.root / name).read_bytes()
    assert any("debian apt" in fields.get("user-agent", "").lower() for _, _, fields in scene.web.requests)


# ---- Python

def checked(get, put, generate, clear="http://web.example"):
    """get(url) -> text; put(url, bytes), generate(url, [bytes]) -> text."""
    body = os.urandom(100000)
    for url in (clear, "https://web.example", "https://tunnel.example"):
        assert get(url + "/hello") == "hello\n"
        echo = json.loads(put(url + "/echo", body))
        assert (echo["method"], echo["sha256"], echo["chunked"]) == ("PUT", hashlib.sha256(body).hexdigest(), False)
        echo = json.loads(generate(url + "/echo", [body[:7], body[7:90000], body[90000:]]))
        assert (echo["bytes"], echo["sha256"], echo["chunked"]) == (len(body), hashlib.sha256(body).hexdigest(), True)
    assert get("https://web.example/flaky") == "hello\n"
    assert len(get("https://web.example/bytes/3000000")) == 3000000


def test_requests(scene):
    import requests
    with requests.Session() as session:
        session.trust_env = False
        session.proxies = {"http": scene.retryd.url, "https": scene.retryd.url}
        session.verify = scene.trust
        checked(lambda u: session.get(u).text, lambda u, b: session.put(u, data=b).text,
                lambda u, parts: session.put(u, data=iter(parts)).text)


def test_urllib3(scene):
    import urllib3
    with urllib3.ProxyManager(scene.retryd.url, ca_certs=scene.trust) as pool:
        def ask(method, url, **how):
            return pool.urlopen(method, url, retries=False, **how).data.decode()
        checked(lambda u: ask("GET", u), lambda u, b: ask("PUT", u, body=b),
                lambda u, parts: ask("PUT", u, body=iter(parts), chunked=True))


def test_httpx(scene):
    import httpx
    with httpx.Client(proxies=scene.retryd.url, verify=scene.trust, trust_env=False, timeout=60) as client:
        checked(lambda u: client.get(u).text, lambda u, b: client.put(u, content=b).text,
                lambda u, parts: client.put(u, content=iter(parts)).text)


@pytest.mark.parametrize("host", ["chat.web.example", "chat.tunnel.example"])
def test_websockets(scene, host):
    """Through an opened TLS, where the handshake is read, and through a tunnel."""
    import websockets

    async def talk():
        trust = ssl.create_default_context(cafile=scene.trust)
        async with websockets.connect("wss://%s/chat" % host, sock=wire.sock, ssl=trust, server_hostname=host) as chat:
            for message in ["hello", "", "\u20ac" * 1000, b"\0\1\2", b"z" * 200000]:
                await chat.send(message)
                assert await chat.recv() == message[::-1]

    wire = scene.retryd.tunnel(host)
    asyncio.run(asyncio.wait_for(talk(), 60))


def test_the_programs_are_there():
    """None of the tests above is left out for want of its program."""
    assert all(shutil.which(name) for name in ("curl", "wget", "git", "apt-get", "dpkg-deb"))
