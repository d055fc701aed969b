"""An origin with TLS of its own making, good or bad; it counts what reaches it."""
import os
import socket
import ssl
import threading

from wire import TIMEOUT

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class TlsOrigin:
    """One thread a connection; every request head gets `answer`. raw: what is done with a socket instead of TLS."""

    def __init__(self, certificate=None, key=None, setup=None, raw=None, answer=OK, keep=True, address="127.0.0.1"):
        self.answer, self.raw, self.keep = answer, raw, keep
        self.connections = 0
        self.http_bytes = 0
        self.heads = []
        self.handshakes = []          # one dict each: version, resumed, client (its certificate, DER, or None), sni
        self.failures = []
        self.sni = None
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listening = socket.create_server((address, 0), family=family)
        self.port = self.listening.getsockname()[1]
        if raw is None:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.sni_callback = lambda sock, name, context: setattr(self, "sni", name)
            if setup:
                setup(self.context)
            if certificate:
                self.context.load_cert_chain(certificate, key)
        threading.Thread(target=self.accept, daemon=True).start()

    def stop(self):
        self.listening.close()

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
        try:
            if self.raw:
                self.raw(sock)
                return
            sock = tls = self.context.wrap_socket(sock, server_side=True)
            self.handshakes.append({"version": tls.version(), "resumed": tls.session_reused,
                                    "client": tls.getpeercert(True), "sni": self.sni})
            self.talk(tls)
            if self.keep is None:
                os.close(tls.detach())  # a FIN without close_notify
        except OSError as e:
            self.failures.append(str(e))
        finally:
            sock.close()

    def talk(self, tls):
        buffer = b""
        while True:
            data = tls.recv(65536)
            if not data:
                tls.unwrap()
                return
            self.http_bytes += len(data)
            buffer += data
            while b"\r\n\r\n" in buffer:
                head, buffer = buffer.split(b"\r\n\r\n", 1)
                self.heads.append(head)
                tls.sendall(self.answer)
                if self.keep is None:
                    return
                if not self.keep:
                    tls.unwrap()
                    return
