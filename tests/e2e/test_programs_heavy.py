"""Programs whose runtimes are large, through retryd: Node's undici and ws, Go's net/http, Java's HttpClient.

`./dev programs` installs the runtimes and runs this; nothing else does (see conftest.py)."""
import os

import pytest

from test_programs import Scene, checked, scene  # noqa: F401

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


def files(scene, run):
    """checked()'s three callables, of a program that takes get URL | put URL FILE | stream URL FILE."""
    name = os.path.join(scene.dir, "body")

    def put(verb, url, data):
        with open(name, "wb") as f:
            f.write(data)
        return run(verb, url, name).decode()

    return (lambda u: run("get", u).decode(), lambda u, data: put("put", u, data),
            lambda u, parts: put("stream", u, b"".join(parts)))


def test_go(scene, tmp_path):  # noqa: F811
    scene.run("go", "build", "-o", tmp_path / "fetch", os.path.join(HERE, "fetch.go"), GO111MODULE="off",
              GOCACHE=str(tmp_path / "cache"), GOTOOLCHAIN="local")
    checked(*files(scene, lambda *words: scene.run(tmp_path / "fetch", *words, SSL_CERT_FILE=scene.trust)))


def test_java(scene, tmp_path):  # noqa: F811
    """It asks for HTTP/2 in every way: ALPN, and Upgrade: h2c in clear."""
    scene.run("javac", "-d", tmp_path / "classes", os.path.join(HERE, "Fetch.java"))
    store = str(tmp_path / "trust.p12")
    for alias, name in (("retryd", scene.retryd.ca_file), ("origin", scene.ca)):
        scene.run("keytool", "-importcert", "-noprompt", "-alias", alias, "-file", name, "-keystore", store, "-storetype",
                  "PKCS12", "-storepass", "changeit")
    checked(*files(scene, lambda *words: scene.run(
        "java", "-cp", tmp_path / "classes", "-Djavax.net.ssl.trustStore=" + store,
        "-Djavax.net.ssl.trustStorePassword=changeit", "Fetch", *words)))


def node(scene, program, *words):  # noqa: F811
    return scene.run("node", os.path.join(HERE, program), *words, NODE_PATH="/usr/share/nodejs", TRUST=scene.trust)


def test_node_undici(make_retryd, tmp_path, origin_ca):
    """Its ProxyAgent makes a tunnel for http:// too: connect_ports must name port 80."""
    scene = Scene(make_retryd, tmp_path, origin_ca, connect_ports=[80, 443])  # noqa: F811
    try:
        checked(*files(scene, lambda *words: node(scene, "fetch.js", *words)),
                clear="http://tunnel.example")
    finally:
        scene.stop()


@pytest.mark.parametrize("host", ["chat.web.example", "chat.tunnel.example"])
def test_node_websocket(scene, host):  # noqa: F811
    assert node(scene, "chat.js", host).split() == [b"4", b"1005"]
