"""A parent proxy for tests: CONNECT and absolute-form, Basic auth, TLS of its own; writes down what it is told.

Every name leads to the same two ports of the origin (443 to TLS, all else to the clear one), so that nothing depends
on a resolver. Threads, one for each connection; everything is on loopback.
"""
import base64
import select
import socket
import ssl
import threading

from wire import TIMEOUT


class Parent:
    def __init__(self, origin, credentials=None, tls=None, answer=None, silent=False):
        """tls: (certificate, key) files; answer: bytes for every request instead of forwarding it."""
        self.origin, self.answer, self.silent = origin, answer, silent
        self.wanted = credentials and "Basic " + base64.b64encode(credentials.encode()).decode()
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*tls)
        self.seen = []                # one dict a request head: method, target, headers
        self.connections = 0
        self.errors = []
        self.open = set()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def stop(self):
        self.listening.close()
        for sock in list(self.open):
            try:
                sock.close()
            except OSError:
                pass

    def accept(self):
        while True:
            try:
                sock, _ = self.listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        sock.settimeout(TIMEOUT)
        self.open.add(sock)
        try:
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True)
                self.open.add(sock)
            while self.one(sock):
                pass
        except (OSError, ValueError) as e:
            self.errors.append(repr(e))
        finally:
            sock.close()

    def head(self, sock):
        data = b""
        while not data.endswith(b"\r\n\r\n"):
            byte = sock.recv(1)       # never more than the head
            if not byte:
                return None
            data += byte
        lines = data.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = [tuple(x.strip() for x in line.split(":", 1)) for line in lines[1:] if line]
        self.seen.append({"method": method, "target": target, "headers": headers, "raw": data})
        return method, target, headers, data

    def one(self, sock):
        head = self.head(sock)
        if head is None:
            return False
        method, target, headers, data = head
        if self.silent:
            sock.recv(1)
            return False
        given = [v for k, v in headers if k.lower() == "proxy-authorization"]
        if self.wanted and given != [self.wanted]:
            sock.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\n"
                         b"Proxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n")
            return False
        if self.answer:
            sock.sendall(self.answer)
            return False
        port = self.origin.https if method == "CONNECT" else self.origin.http
        up = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
        self.open.add(up)
        try:
            if method == "CONNECT":
                sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = "/" + target.split("://", 1)[1].partition("/")[2]
                up.sendall(b"%s %s HTTP/1.1\r\n" % (method.encode(), path.encode()) +
                           b"".join(b"%s: %s\r\n" % (k.encode("latin-1"), v.encode("latin-1")) for k, v in headers
                                    if k.lower() != "proxy-authorization") + b"\r\n")
            self.join(sock, up)
        finally:
            up.close()
        return False

    def join(self, a, b):
        """Bytes both ways until one side ends."""
        while True:
            ready = [s for s in (a, b) if isinstance(s, ssl.SSLSocket) and s.pending()] or \
                select.select([a, b], [], [], TIMEOUT)[0]
            if not ready:
                return
            for s in ready:
                data = s.recv(65536)
                if not data:
                    return
                (b if s is a else a).sendall(data)

    def targets(self):
        return [(r["method"], r["target"]) for r in self.seen]

    def values(self, name):
        return [v for r in self.seen for k, v in r["headers"] if k.lower() == name.lower()]
