"""A raw HTTP/1.1 client: exact bytes out, exact bytes in, through the proxy or not."""
import socket
import ssl
import struct
import time

TIMEOUT = 30


class Response:
    def __init__(self, head, interim):
        self.head = head              # bytes, blank line included
        self.interim = interim        # heads of the 1xx responses before it
        lines = head.decode("latin-1").split("\r\n")
        self.status_line = lines[0]
        self.status = int(lines[0].split(" ")[1])
        self.headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:] if line]
        self.body = b""
        self.trailers = b""
        self.whole = False            # the body ended as its framing says

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        return values[0] if values else None


class Wire:
    """One connection. Reads never outlast TIMEOUT."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(TIMEOUT)
        self.buffer = b""
        self.broken = None            # why the last read failed, if it did

    def send(self, data):
        self.sock.sendall(data)

    def fill(self):
        """More bytes into the buffer; False at the end or at a failure."""
        try:
            data = self.sock.recv(65536)
        except socket.timeout:
            raise
        except (OSError, ssl.SSLError) as e:
            self.broken = e
            return False
        self.buffer += data
        return bool(data)

    def take(self, n):
        while len(self.buffer) < n:
            if not self.fill():
                break
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def line(self):
        while b"\r\n" not in self.buffer:
            if not self.fill():
                data, self.buffer = self.buffer, b""
                return data
        data, self.buffer = self.buffer.split(b"\r\n", 1)
        return data + b"\r\n"

    def head(self):
        """The bytes of one message head, or what there was of it."""
        while b"\r\n\r\n" not in self.buffer:
            if not self.fill():
                data, self.buffer = self.buffer, b""
                return data
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        return head + b"\r\n\r\n"

    def response(self, method="GET", body=True):
        """The next final response; None when the connection ended without one."""
        interim = []
        while True:
            head = self.head()
            if not head.endswith(b"\r\n\r\n"):
                return None
            r = Response(head, interim)
            if not 100 <= r.status < 200:
                break
            interim.append(head)
        if body:
            self.body(r, method)
        return r

    def body(self, r, method="GET"):
        if method == "HEAD" or r.status in (204, 304):
            r.whole = True
        elif "chunked" in (r.get("Transfer-Encoding") or ""):
            while True:
                size = self.line()
                if not size.endswith(b"\r\n"):
                    return
                n = int(size.split(b";")[0], 16)
                if n == 0:
                    break
                r.body += self.take(n)
                if self.take(2) != b"\r\n":
                    return
            while True:
                line = self.line()
                if line == b"\r\n":
                    r.whole = True
                    return
                if not line.endswith(b"\r\n"):
                    return
                r.trailers += line
        elif r.get("Content-Length") is not None:
            n = int(r.get("Content-Length"))
            r.body = self.take(n)
            r.whole = len(r.body) == n
        else:
            while self.fill():
                pass
            r.body, self.buffer = self.buffer, b""
            r.whole = self.broken is None

    def ended(self, seconds=10):
        """The peer ended the connection, with nothing more said, within that time."""
        self.sock.settimeout(seconds)
        try:
            return not self.buffer and not self.fill()
        except socket.timeout:
            return False
        finally:
            self.sock.settimeout(TIMEOUT)

    def silent(self, seconds):
        """Nothing at all arrived in that time."""
        if self.buffer:
            return False
        self.sock.settimeout(seconds)
        try:
            self.fill()
            return False
        except socket.timeout:
            return True
        finally:
            self.sock.settimeout(TIMEOUT)

    def reset(self):
        raw = self.sock
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.close()

    def close(self):
        self.sock.close()


def dial(port, host="127.0.0.1"):
    return Wire(socket.create_connection((host, port), timeout=TIMEOUT))


def until(condition, what, seconds=15):
    """Waits for a condition (polled, with a deadline) and returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "in %d s never: %s" % (seconds, what)
        time.sleep(0.01)
