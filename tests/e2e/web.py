"""A web server for real programs: what they send comes back as JSON, and large bodies cost no memory.

    GET  /hello              "hello\\n"           GET /bytes/N   N zero bytes
    GET  /flaky              503, then "hello\\n" GET /files/... below `root`
    any  /echo               {"method", "target", "bytes", "sha256", "chunked", "expect", "headers"}
    PUT  /sink               {"bytes"}            any /git/...   `git http-backend` on `root`"""
import asyncio
import hashlib
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
import urllib.parse

from daemons import clean_env
from faultd import Authority

PIECE = bytes(1 << 20)


class Minted:
    """A server context that has a certificate for every name."""

    def __init__(self, directory, alpn=("http/1.1",)):
        self.authority, self.contexts, self.lock, self.alpn = Authority(str(directory)), {}, threading.Lock(), alpn
        self.context = self.of("amazonaws.com")
        self.context.sni_callback = self.choose

    def of(self, name):
        with self.lock:
            if name not in self.contexts:
                self.contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                self.contexts[name].load_cert_chain(self.authority.leaf(name))
                self.contexts[name].set_alpn_protocols(list(self.alpn))
            return self.contexts[name]

    def choose(self, tls, name, _):
        tls.context = self.of(name or "amazonaws.com")


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def log_message(self, *_):
        pass

    def setup(self):
        self.request.settimeout(60)
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        super().setup()

    def pieces(self):
        """The body, by its framing."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                left = size
                while left:
                    piece = self.rfile.read(min(left, 1 << 20))
                    left -= len(piece)
                    yield piece
                self.rfile.readline()
                if not size:
                    return
        left = int(self.headers.get("Content-Length", 0))
        while left:
            piece = self.rfile.read(min(left, 1 << 20))
            if not piece:
                raise EOFError
            left -= len(piece)
            yield piece

    def answer(self, status, body, kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def route(self):
        web, path = self.server.web, urllib.parse.urlsplit(self.path).path
        with web.lock:
            web.requests.append((self.command, self.path, {n.lower(): v for n, v in self.headers.items()}))
            seen = sum(p == self.path for _, p, _ in web.requests)
        if path == "/sink":
            self.answer(200, json.dumps({"bytes": sum(map(len, self.pieces()))}).encode())
        elif path.startswith("/bytes/"):
            self.zeros(int(path[len("/bytes/"):]))
        elif path.startswith("/git/"):
            self.git(b"".join(self.pieces()))
        elif path.startswith("/files/"):
            self.directory, self.path = web.root, self.path[len("/files"):]
            super().do_GET()
        elif path == "/echo":
            self.echo()
        elif path == "/flaky" and seen == 1:
            self.answer(503, b"not yet")
        else:
            self.answer(200, b"hello\n")

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = route

    def zeros(self, n):
        self.send_response(200)
        self.send_header("Content-Length", str(n))
        self.end_headers()
        while n:
            n -= self.wfile.write(PIECE[:n])

    def echo(self):
        digest, n = hashlib.sha256(), 0
        for piece in self.pieces():
            digest.update(piece)
            n += len(piece)
        self.answer(200, json.dumps({
            "method": self.command, "target": self.path, "bytes": n, "sha256": digest.hexdigest(),
            "chunked": "Transfer-Encoding" in self.headers, "expect": self.headers.get("Expect"),
            "headers": [n.lower() for n in self.headers]}).encode(), "application/json")

    def git(self, body):
        """RFC 3875, as much as git needs."""
        url = urllib.parse.urlsplit(self.path)
        done = subprocess.run(["git", "http-backend"], input=body, stdout=subprocess.PIPE, check=True, env=clean_env(
            GIT_PROJECT_ROOT=self.server.web.root, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=url.path[len("/git"):],
            QUERY_STRING=url.query, REQUEST_METHOD=self.command, CONTENT_TYPE=self.headers.get("Content-Type", ""),
            CONTENT_LENGTH=str(len(body)), HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""),
            GIT_PROTOCOL=self.headers.get("Git-Protocol", ""), GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory",
            GIT_CONFIG_VALUE_0="*"))
        head, body = done.stdout.split(b"\r\n\r\n", 1)
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        self.send_response(int(dict(fields).get("Status", "200").split()[0]))
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass                          # a client that left; the tests look at what clients got


class Web:
    """On a port of loopback, in clear or (with a server context) over TLS."""

    def __init__(self, root, tls=None):
        self.root, self.requests, self.lock = str(root), [], threading.Lock()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.web = self
        self.port = self.server.server_address[1]
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Http2Only:
    """A TLS server that speaks h2 and nothing else, and answers every request with "hello over 2\\n"."""

    def __init__(self, authority):
        self.context = Minted(authority, alpn=("h2",)).context
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.threads.append(threading.Thread(target=self.serve, args=(sock,)))
            self.threads[-1].start()

    def serve(self, sock):
        import h2.config              # here, for those who have no use for it
        import h2.connection
        import h2.events
        try:
            sock.settimeout(20)
            with self.context.wrap_socket(sock, server_side=True) as tls:
                if tls.selected_alpn_protocol() != "h2":
                    return
                h2c = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
                h2c.initiate_connection()
                tls.sendall(h2c.data_to_send())
                while True:
                    data = tls.recv(65536)
                    if not data:
                        return
                    for event in h2c.receive_data(data):
                        if isinstance(event, h2.events.RequestReceived):
                            h2c.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/plain")])
                            h2c.send_data(event.stream_id, b"hello over 2\n", end_stream=True)
                    tls.sendall(h2c.data_to_send())
        except OSError:
            pass

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(25)


class ReversingChat:
    """A WebSocket server over TLS that answers each message with its reverse; it never speaks first."""

    def __init__(self, authority):
        self.loop, self.over, self.ready = asyncio.new_event_loop(), None, threading.Event()
        self.context = Minted(authority).context
        self.thread = threading.Thread(target=self.loop.run_until_complete, args=(self.serve(),))
        self.thread.start()
        assert self.ready.wait(20)

    async def serve(self):
        import websockets             # here, for those who have no use for it
        self.over = asyncio.Event()
        async with websockets.serve(self.talk, "127.0.0.1", 0, ssl=self.context) as server:
            self.port = server.sockets[0].getsockname()[1]
            self.ready.set()
            await self.over.wait()

    @staticmethod
    async def talk(chat, _path=None):
        async for message in chat:
            await chat.send(message[::-1])

    def stop(self):
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join(20)
        self.loop.close()


def zero_file(path, n):
    """A sparse file of n bytes."""
    with open(path, "wb") as f:
        os.truncate(f.fileno(), n)
    return str(path)
