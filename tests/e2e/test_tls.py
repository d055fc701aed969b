"""The certificates that retryd shows, and those that it accepts (security requirements F, G, H; PR-10)."""
import os
import re
import shutil
import ssl
import subprocess

import pytest

import sigv4
from daemons import Retryd
from wire import Wire, until

NAMES = ["examplebucket.s3.us-east-1.amazonaws.com", "a.b.c.s3.amazonaws.com", "sts.amazonaws.com",
         "%s.s3.us-east-1.amazonaws.com" % ("b" * 63), "sqs.cn-north-1.amazonaws.com.cn", "x.lambda-url.eu-west-1.on.aws",
         "s3.dualstack.eu-west-1.api.aws"]


def openssl(*args, stdin=None):
    done = subprocess.run(["openssl", *args], input=stdin, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def leaf_of(retryd, host, tmp_path):
    context = retryd.tls_context()
    with context.wrap_socket(retryd.tunnel(host).sock, server_hostname=host) as tls:
        pem = ssl.DER_cert_to_PEM_cert(tls.getpeercert(True))
    path = tmp_path / ("%s.pem" % host[:100])
    path.write_text(pem)
    return str(path)


@pytest.mark.parametrize("host", NAMES)
def test_pr10_leaf_passes_strict_verification(origin, retryd, tmp_path, host):
    """F4, CR17: leaf passes strict verification."""
    leaf = leaf_of(retryd, host, tmp_path)
    chain = os.path.join(retryd.state_dir, "chain.pem")
    rc, out = openssl("verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", host, "-CAfile",
                      retryd.ca_file, "-untrusted", chain, leaf)
    assert rc == 0, out
    _, text = openssl("x509", "-in", leaf, "-noout", "-text")
    assert re.findall(r"DNS:(\S+)", text) == [host]
    assert "CA:FALSE" in text and "prime256v1" in text and "ecdsa-with-SHA256" in text
    assert re.search(r"Extended Key Usage: *\n *TLS Web Server Authentication\n", text)
    assert re.search(r"Key Usage: critical\n *Digital Signature\n", text)
    assert "CRL Distribution" not in text and "Authority Information Access" not in text
    _, issuer = openssl("x509", "-in", chain, "-noout", "-text")
    key_id = re.search(r"Subject Key Identifier: *\n *(\S+)", issuer)[1]
    assert re.search(r"Authority Key Identifier: *\n *(?:keyid:)?(\S+)", text)[1] == key_id
    # Valid before now (clocks differ), a week at most.
    assert openssl("x509", "-in", leaf, "-noout", "-checkend", str(8 * 86400))[0] == 1
    assert openssl("x509", "-in", leaf, "-noout", "-checkend", "3600")[0] == 0


def test_pr10_serials_differ(origin, retryd, tmp_path):
    serials = {openssl("x509", "-in", leaf_of(retryd, h, tmp_path), "-noout", "-serial")[1] for h in NAMES[:3]}
    assert len(serials) == 3


def test_pr10_authority_is_constrained_and_unique(origin, make_retryd, tmp_path):
    """H1, H2, CR16: authority is constrained and unique."""
    first, second = make_retryd(origin), make_retryd(origin)
    texts = []
    for one in (first, second):
        _, root = openssl("x509", "-in", one.ca_file, "-noout", "-text")
        assert "CA:TRUE" in root
        assert re.search(r"Basic Constraints: critical", root)
        assert re.search(r"Key Usage: critical", root) and "Subject Key Identifier" in root
        _, middle = openssl("x509", "-in", os.path.join(one.state_dir, "chain.pem"), "-noout", "-text")
        assert "CA:TRUE, pathlen:0" in middle
        assert re.search(r"Name Constraints: critical", middle)
        assert "DNS:amazonaws.com" in middle and "Excluded" in middle
        texts.append(re.search(r"pub:(.*?)ASN1", root, re.DOTALL)[1])
    assert texts[0] != texts[1]


def test_key_files_are_private(origin, retryd):
    """H3: The root's key was thrown away; what is left is one key that nobody else may read."""
    keys = []
    for base, _, names in os.walk(retryd.state_dir):
        for name in names:
            path = os.path.join(base, name)
            if not os.path.isfile(path):
                continue  # the admin socket
            with open(path, "rb") as f:
                if b"PRIVATE KEY" in f.read():
                    keys.append(path)
                    assert os.stat(path).st_mode & 0o777 == 0o600
                    assert os.stat(base).st_mode & 0o777 == 0o700
    assert len(keys) == 1


def test_authority_survives_a_restart(origin, retryd, tmp_path):
    with open(retryd.ca_file) as f:
        before = f.read()
    retryd.stop()
    retryd.start()
    with open(retryd.ca_file) as f:
        assert f.read() == before
    assert retryd.exchange(sigv4.sts()).status == 200


def test_open_key_file_is_refused(origin, retryd):
    """H3: open key file is refused."""
    retryd.stop()
    (key,) = [os.path.join(b, n) for b, _, names in os.walk(retryd.state_dir) for n in names if n.endswith(".key")]
    os.chmod(key, 0o640)
    with pytest.raises(AssertionError, match="ended with"):
        retryd.start()
    assert key in retryd.said()
    retryd.process = None


def test_bundle_holds_the_system_store_and_our_root(origin, retryd):
    with open(os.path.join(retryd.state_dir, "ca-bundle.pem")) as f:
        bundle = f.read()
    with open(retryd.ca_file) as f:
        root = re.search(r"-----BEGIN.*?-----END CERTIFICATE-----", f.read(), re.DOTALL)[0]
    assert root in bundle and bundle.count("BEGIN CERTIFICATE") > 50


# ---- towards the client


def test_sni_that_differs_is_refused(origin, retryd):
    """F2: sni that differs is refused."""
    context = retryd.tls_context()
    context.check_hostname = False
    with pytest.raises(ssl.SSLError) as e:
        context.wrap_socket(retryd.tunnel("sts.amazonaws.com").sock, server_hostname="sqs.amazonaws.com")
    assert "UNRECOGNIZED_NAME" in str(e.value).upper()


def test_no_sni_is_the_connect_host(origin, retryd):
    """F2: no sni is the connect host."""
    context = retryd.tls_context()
    context.check_hostname = False
    with context.wrap_socket(retryd.tunnel("sts.amazonaws.com").sock) as tls:
        assert ("DNS", "sts.amazonaws.com") in tls.getpeercert()["subjectAltName"]


@pytest.mark.parametrize("offer, answer", [(["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1"), ([], None)])
def test_alpn_is_never_h2(origin, retryd, offer, answer):
    """F7, CR4: alpn is never h2."""
    context = ssl.create_default_context(cafile=retryd.ca_file)
    if offer:
        context.set_alpn_protocols(offer)
    with context.wrap_socket(retryd.tunnel("sts.amazonaws.com").sock, server_hostname="sts.amazonaws.com") as tls:
        assert tls.selected_alpn_protocol() == answer


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_tls_versions(origin, retryd, version):
    context = retryd.tls_context()
    context.minimum_version = context.maximum_version = version
    request = sigv4.sts()
    wire = Wire(context.wrap_socket(retryd.tunnel(request.host).sock, server_hostname=request.host))
    assert retryd.exchange(request, wire=wire).status == 200


def test_host_must_be_the_tunnels(origin, retryd):
    """C3: No domain fronting: 421, and the origin sees nothing."""
    request = sigv4.sts(host="sts.eu-west-1.amazonaws.com")
    wire = retryd.open("sts.us-east-1.amazonaws.com")
    answer = retryd.exchange(request, wire=wire)
    assert (answer.status, answer.get("X-Retryd-Error")) == (421, "misdirected_request")
    assert wire.ended()
    assert origin.requests() == []


def test_eager_hello_in_the_same_segment(origin, retryd):
    """A client that does not wait for the answer to CONNECT."""
    context = retryd.tls_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="sts.amazonaws.com")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    wire = retryd.plain()
    wire.send(b"CONNECT sts.amazonaws.com:443 HTTP/1.0\r\n\r\n" + outgoing.read())
    assert wire.response("CONNECT", body=False).status == 200
    done = False
    while not done:
        incoming.write(wire.buffer)
        wire.buffer = b""
        try:
            tls.do_handshake()
            done = True
        except ssl.SSLWantReadError:
            wire.send(outgoing.read())
            assert wire.fill()
    assert ("DNS", "sts.amazonaws.com") in tls.getpeercert()["subjectAltName"]
    wire.close()


# ---- towards the origin


@pytest.mark.parametrize("variant", ["expired", "future", "wrong_name", "self_signed", "untrusted"])
def test_bad_certificate_is_final(origin, retryd, variant):
    """E11, F9, G1: bad certificate is final."""
    origin.rules({"connections": [{"steps": [{"tls": variant}], "then": "loop"}]})
    answer = retryd.exchange(sigv4.dynamodb())
    assert (answer.status, answer.get("X-Retryd-Error")) == (502, "upstream_certificate")
    assert origin.requests() == []
    assert len(origin.log("conn")) == 1
    (record,) = retryd.requests_logged()
    assert record["attempts"] == 1


@pytest.mark.parametrize("variant", ["alert", "garbage", "close", "reset"])
def test_broken_handshake_is_transient(origin, retryd, variant):
    origin.rules({"connections": [{"steps": [{"tls": variant}], "then": "loop"}]})
    answer = retryd.exchange(sigv4.sts())
    assert answer.status == 502 and answer.get("X-Retryd-Error")
    assert origin.requests() == []
    (record,) = retryd.requests_logged()
    assert record["attempts"] == 3


def test_without_the_origins_root_nothing_works(origin, make_retryd):
    retryd = make_retryd(resolve={"*.amazonaws.com": "127.0.0.1:%d" % origin.https})
    answer = retryd.exchange(sigv4.sts())
    assert (answer.status, answer.get("X-Retryd-Error")) == (502, "upstream_certificate")
    assert origin.requests() == []


def test_own_authority_is_no_anchor_for_upstreams(origin, make_origin, make_retryd, tmp_path, origin_ca):
    """G4: An origin with a leaf signed by retryd's own key is refused, even when its root stands in the bundle."""
    retryd = make_retryd(origin)
    impostor = tmp_path / "impostor-ca"
    impostor.mkdir()
    (key,) = [os.path.join(b, n) for b, _, names in os.walk(retryd.state_dir) for n in names if n.endswith(".key")]
    shutil.copy(key, impostor / "ca.key")
    shutil.copy(os.path.join(retryd.state_dir, "chain.pem"), impostor / "ca.pem")
    bundle = tmp_path / "bundle.pem"
    with open(retryd.ca_file) as a, open(origin.ca_file) as b:
        bundle.write_text(a.read() + b.read())
    retryd.stop()

    false_origin = make_origin_with(make_origin, impostor)
    again = make_retryd(false_origin, state_dir=retryd.state_dir, upstream={"ca_file": str(bundle)})
    answer = again.exchange(sigv4.sts())
    assert (answer.status, answer.get("X-Retryd-Error")) == (502, "upstream_certificate")
    assert false_origin.requests() == []


def make_origin_with(make_origin, ca_dir):
    return make_origin(args=["--ca", str(ca_dir)])


def test_empty_trust_file_is_a_start_up_error(origin, tmp_path):
    """G5: empty trust file is a start up error."""
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    retryd = Retryd(tmp_path / "r", origin, {"upstream": {"ca_file": str(empty)}}, start=False)
    with pytest.raises(AssertionError, match="ended with"):
        retryd.start()
    assert str(empty) in retryd.said()


@pytest.mark.parametrize("version", ["tls1.2", "tls1.3"])
def test_upstream_versions(origin, retryd, version):
    origin.rules({"connections": [{"steps": [{"tls": version}]}]})
    assert retryd.exchange(sigv4.sts()).status == 200
    assert until(lambda: origin.log("tls"), "a handshake")[0]["version"] == "TLSv" + version[3:]


def test_sni_and_alpn_upstream(origin, retryd):
    assert retryd.exchange(sigv4.sts()).status == 200
    (hello,) = origin.log("hello")
    assert hello["sni"] == "sts.us-east-1.amazonaws.com" and hello["alpn"] == ["http/1.1"]
