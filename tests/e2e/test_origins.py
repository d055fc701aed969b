"""What holds for some hosts only: trust, client certificates; resumed sessions; both families; source addresses."""
import socket
import ssl

import pytest

from certs import CLIENT, Cert
from daemons import Retryd, run_retryd
from tlsorigin import TlsOrigin
from wire import until

NAMES = ["one.test", "two.test", "three.test", "four.test"]


class World:
    """An origin for all the names, and the files of a configuration."""

    def __init__(self, directory):
        self.directory = directory
        self.root, self.private_root = Cert("public root", ca=True), Cert("private root", ca=True)
        self.client_root = Cert("client root", ca=True)
        self.mine = Cert("client 7", self.client_root, eku=CLIENT)
        self.root_file = self.write("root", self.root)
        self.private_file = self.write("private", self.private_root)
        self.mine_files = self.mine.write(directory, "mine")
        self.servers = []

    def write(self, name, cert):
        path = self.directory / (name + "-root.pem")
        path.write_bytes(cert.pem())
        return str(path)

    def serve(self, by=None, name="leaf", **how):
        leaf = Cert(name, by or self.root, NAMES)
        self.servers.append(TlsOrigin(*leaf.write(self.directory, name), setup=self.ask, **how))
        return self.servers[-1]

    def ask(self, context):
        """Client certificates are asked for and may be left out."""
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.client_root.pem().decode())


@pytest.fixture
def world(tmp_path):
    w = World(tmp_path)
    yield w
    for server in w.servers:
        server.stop()


def run(make_retryd, world, ports, **config):
    """ports: by name."""
    upstream = dict({"ca_file": world.root_file, "system_trust": False}, **config.pop("upstream", {}))
    return make_retryd(None, resolve={"%s:443" % n: "127.0.0.1:%d" % p for n, p in ports.items()}, upstream=upstream,
                       **config)


def get(retryd, host, close=False):
    wire = retryd.plain()
    wire.send(b"GET https://%s/ HTTP/1.1\r\nHost: %s\r\n%s\r\n" %
              (host.encode(), host.encode(), b"Connection: close\r\n" if close else b""))
    answer = wire.response()
    wire.close()
    return answer


def test_client_certificate_for_named_hosts_only(world, make_retryd):
    """G8: the same origin asks on every connection; only the connection for the named host shows one."""
    server = world.serve(keep=False)
    certificate, key = world.mine_files
    retryd = run(make_retryd, world, {n: server.port for n in NAMES},
                 origins=[{"hosts": ["two.test"], "client_certificate": certificate, "client_key": key}])
    for host in NAMES + NAMES:
        assert get(retryd, host).status == 200
    shown = {}
    for h in server.handshakes:
        shown.setdefault(h["sni"], set()).add(bool(h["client"]))
    assert shown == {"one.test": {False}, "two.test": {True}, "three.test": {False}, "four.test": {False}}


def test_trust_of_named_hosts(world, make_retryd):
    """G10, G5: roots given for a host are its only ones, and nobody else's."""
    public, private = world.serve(), world.serve(world.private_root, "private-leaf")
    retryd = run(make_retryd, world, {"one.test": public.port, "two.test": private.port, "three.test": public.port,
                                      "four.test": private.port},
                 origins=[{"hosts": ["two.test", "three.test"], "ca_file": world.private_file}])
    for host, good in [("one.test", True), ("two.test", True), ("three.test", False), ("four.test", False)]:
        answer = get(retryd, host)
        assert answer.status == (200 if good else 502), host
        if not good:
            assert answer.get("X-Retryd-Error") == "upstream_certificate"


def test_a_connection_verified_one_way_serves_no_other(world, make_retryd):
    """G10: the first answer leaves a connection in the pool; another host on the same address gets its own."""
    server = world.serve()
    certificate, key = world.mine_files
    retryd = run(make_retryd, world, {n: server.port for n in NAMES},
                 origins=[{"hosts": ["two.test"], "client_certificate": certificate, "client_key": key}])
    for host in ("one.test", "two.test", "one.test", "two.test"):
        assert get(retryd, host).status == 200
    assert server.connections == 2
    assert sorted(bool(h["client"]) for h in server.handshakes) == [False, True]


@pytest.mark.parametrize("broken", ["certificate", "key", "ca_file", "other key"])
def test_files_that_cannot_be_used(world, tmp_path, broken):
    """G5: found at the start, with the name of the file."""
    certificate, key = world.mine_files
    bad = tmp_path / "bad.pem"
    bad.write_text("nothing\n")
    other = Cert("other").write(tmp_path, "other")[1]
    record = {"hosts": ["one.test"], "ca_file": world.private_file, "client_certificate": certificate, "client_key": key}
    record[{"certificate": "client_certificate", "key": "client_key", "ca_file": "ca_file",
            "other key": "client_key"}[broken]] = other if broken == "other key" else str(bad)
    retryd = Retryd(tmp_path / "r", None, {"origins": [record]}, start=False)
    with pytest.raises(AssertionError, match="ended with"):
        retryd.start()
    assert "origins[0]" in run_retryd("check", "-c", retryd.config_file).stdout
    assert "%s:" % retryd.config_file in retryd.said()
    assert "origins[0]" in retryd.said() and (other if broken == "other key" else str(bad)) in retryd.said()


# ---- resumption


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed(world, make_retryd, version):
    """G7: a second connection to the same name and port costs no second chain; another name does not gain by it."""
    server = world.serve(keep=False)
    server.context.maximum_version = version
    retryd = run(make_retryd, world, {n: server.port for n in NAMES})
    for host in ("one.test", "one.test", "one.test", "two.test"):
        assert get(retryd, host).status == 200
    until(lambda: len(server.handshakes) == 4, "four handshakes")
    assert [h["resumed"] for h in server.handshakes] == [False, True, True, False]


def test_no_session_survives_new_trust(world, make_retryd):
    """G7: started again with other roots, the same origin is verified anew, and refused."""
    server = world.serve(keep=False)
    retryd = run(make_retryd, world, {"one.test": server.port})
    assert get(retryd, "one.test").status == 200
    retryd.stop()
    again = run(make_retryd, world, {"one.test": server.port}, upstream={"ca_file": world.private_file})
    assert get(again, "one.test").status == 502
    assert [h["resumed"] for h in server.handshakes] == [False]


# ---- addresses


def one_answer(sock):
    sock.recv(65536)
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


def test_every_address_of_localhost(make_retryd):
    """Whichever address of localhost somebody listens on is reached; I3 wants them allowed. More: unit/io/net/test_race."""
    addresses = sorted({a[4][0] for a in socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)})
    assert addresses
    for address in addresses:
        server = TlsOrigin(raw=one_answer, address=address)
        for allowed in (True, False):
            retryd = make_retryd(None, http_ports=[server.port], allow_addresses=addresses if allowed else [])
            wire = retryd.plain()
            wire.send(b"GET http://localhost:%d/ HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (server.port, server.port))
            answer = wire.response()
            assert answer.body == b"ok" if allowed else answer.status == 403
            wire.close()
        assert server.connections == 1
        server.stop()


def test_source_address(world, make_retryd):
    """Connections come from the address that the configuration says."""
    came = []

    def note(sock):
        came.append(sock.getpeername()[0])
        sock.recv(65536)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    server = TlsOrigin(raw=note)
    retryd = make_retryd(None, resolve={"one.test:80": "127.0.0.1:%d" % server.port},
                         upstream={"source_addresses": ["127.0.0.77"]})
    wire = retryd.plain()
    wire.send(b"GET http://one.test/ HTTP/1.1\r\nHost: one.test\r\n\r\n")
    assert wire.response().status == 200
    assert came == ["127.0.0.77"]
    server.stop()
    wire.close()
