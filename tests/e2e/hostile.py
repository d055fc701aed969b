"""A raw origin for hostile stories: each connection is handed to a script of the test, byte by byte."""
import os
import socket
import ssl
import struct
import subprocess
import threading
import time

from wire import TIMEOUT, Wire, until

HOST = "sts.us-east-1.amazonaws.com"


def server_tls(directory, ca, *names):
    """A server context with a certificate for these names by this CA (a directory of faultd's make-ca)."""
    key, csr, cert, ext = (os.path.join(str(directory), "server." + e) for e in ("key", "csr", "pem", "ext"))
    with open(ext, "w") as f:
        f.write("subjectAltName=%s\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n" %
                ",".join("DNS:" + name for name in names))
    quiet = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                    "/CN=origin", "-keyout", key, "-out", csr], **quiet)
    subprocess.run(["openssl", "x509", "-req", "-in", csr, "-CA", os.path.join(str(ca), "ca.pem"), "-CAkey",
                    os.path.join(str(ca), "ca.key"), "-set_serial", "4711", "-days", "2", "-extfile", ext,
                    "-out", cert], **quiet)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


class RawOrigin:
    """script(wire, n) runs in a thread of its own for connection n (from 1); leaving it closes the connection.
    listening=False: the port is taken but refuses, until open(). tls: a server context, for TLS from the first byte."""

    def __init__(self, script, listening=True, receive_buffer=None, tls=None):
        self.tls = tls
        self.script, self.accepted, self.threads, self.live = script, 0, [], set()
        self.problems = []
        self.lock = threading.Lock()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.listener.bind(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = None
        if listening:
            self.open()

    def open(self):
        self.listener.listen(512)
        self.thread = threading.Thread(target=self._accept)
        self.thread.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.accepted += 1
                n = self.accepted
                self.live.add(sock)
                thread = threading.Thread(target=self._serve, args=(sock, n))
                self.threads.append(thread)
            thread.start()

    def _serve(self, sock, n):
        try:
            if self.tls:
                sock.settimeout(TIMEOUT)
                plain, sock = sock, self.tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
                with self.lock:
                    self.live.discard(plain)
                    self.live.add(sock)
                sock.do_handshake()
            self.script(Wire(sock), n)
        except (OSError, EOFError):
            pass                      # the other side left; the test looks at what that meant
        except Exception as e:        # a fault of the script itself
            self.problems.append(repr(e))
        finally:
            with self.lock:
                self.live.discard(sock)
            sock.close()

    def stop(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        if self.thread:
            self.thread.join(TIMEOUT)
        with self.lock:
            live, threads = list(self.live), list(self.threads)
        for sock in live:
            try:
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in threads:
            thread.join(TIMEOUT)
        assert not self.problems, self.problems[0]

    def config(self, **more):
        """The sections of a configuration that leads AWS's names, in clear, to this origin."""
        return dict({"resolve": {"*.amazonaws.com:80": "127.0.0.1:%d" % self.port}}, **more)


class Message:
    def __init__(self, head, body, trailers=b""):
        self.head, self.body, self.trailers = head, body, trailers
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target = lines[0].split(" ")[:2]
        self.headers = {}
        for line in lines[1:]:
            if line:
                name, value = line.split(":", 1)
                self.headers[name.lower()] = value.strip()


def exactly(wire, n):
    data = wire.take(n)
    if len(data) < n:
        raise EOFError
    return data


def read_head(wire):
    head = wire.head()
    if not head.endswith(b"\r\n\r\n"):
        raise EOFError
    return Message(head, b"")


def read_body(wire, message):
    """The whole body, by the framing that the head names."""
    if message.headers.get("transfer-encoding") == "chunked":
        while True:
            size = wire.line()
            if not size.endswith(b"\r\n"):
                raise EOFError
            n = int(size, 16)
            if n == 0:
                break
            message.body += exactly(wire, n)
            assert exactly(wire, 2) == b"\r\n"
        while True:
            line = wire.line()
            if not line.endswith(b"\r\n"):
                raise EOFError
            if line == b"\r\n":
                break
            message.trailers += line
    else:
        message.body = exactly(wire, int(message.headers.get("content-length", "0")))
    return message


def read_request(wire):
    return read_body(wire, read_head(wire))


def request(method="GET", target="/", body=None, headers=(), host=HOST, version="1.1"):
    lines = ["%s http://%s%s HTTP/%s" % (method, host, target, version), "Host: " + host]
    lines += ["%s: %s" % h for h in headers]
    if body is not None:
        lines.append("Content-Length: %d" % len(body))
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def response(status=200, body=b"", headers=()):
    lines = ["HTTP/1.1 %d X" % status, "Content-Length: %d" % len(body)] + ["%s: %s" % h for h in headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def reset_on_close(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def descriptors(process):
    return len(os.listdir("/proc/%d/fd" % process.pid))


def cpu_seconds(process):
    with open("/proc/%d/stat" % process.pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def back_to(process, baseline, seconds=15):
    """The daemon's descriptors are as few as before (retryd opens none lazily that it keeps)."""
    until(lambda: descriptors(process) <= baseline, "descriptors fall to %d" % baseline, seconds)


def rss_bytes(process):
    with open("/proc/%d/statm" % process.pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def stands_still(process):
    """It used no time at all for a while."""
    before = cpu_seconds(process)
    time.sleep(0.3)
    return cpu_seconds(process) == before
