"""Real servers on loopback, for tests: one that answers by path, and one that speaks whatever bytes it is told."""

import asyncio
import contextlib
import http.server
import ssl
import threading
from pathlib import Path

PEM = Path(__file__).parent / "web" / "data" / "app-test.pem"
"""A certificate of app.test and *.app.test, with its key."""


class Site(http.server.ThreadingHTTPServer):
    """Answers by path. `pages[path]` is an answer `(status, headers, body)`, or a function of the request of one."""

    daemon_threads = True

    def __init__(self, address="127.0.0.1", port=0):
        super().__init__((address, port), Handler)
        self.pages = {}
        self.seen = []

    @property
    def url(self):
        return f"http://{self.server_address[0]}:{self.server_port}"

    def secure(self):
        """Speak TLS, and remember which names clients asked for."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(PEM)
        self.names = []
        context.sni_callback = lambda _, name, __: self.names.append(name)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        return self

    def handle_error(self, request, client_address):
        """Say nothing: clients that go away are the subject here."""


class Request:
    def __init__(self, handler, body):
        self.method, self.path = handler.command, handler.path
        self.headers = list(handler.headers.items())
        self.body = body

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = Request(self, body)
        self.server.seen.append(request)
        page = self.server.pages.get(request.path.partition("?")[0], (404, {}, b"no such page"))
        status, headers, body = page(request) if callable(page) else page
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serving(site):
    """Serve *site* from a thread."""
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


@contextlib.asynccontextmanager
async def speaking(script):
    """Serve on loopback: read the head of a request, then let `script(writer)` write what it likes. Yields the port."""

    async def talk(reader, writer):
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                await script(writer)
                await writer.drain()
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    tasks = []
    server = await asyncio.start_server(
        lambda reader, writer: tasks.append(asyncio.create_task(talk(reader, writer))), "127.0.0.1", 0
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
