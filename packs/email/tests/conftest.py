"""Give real servers to the tests: a mailbox and one that takes mail, both on loopback, and hosts on them."""

import asyncio
import contextlib
import datetime as dt
import importlib.util
import ipaddress
import ssl
from pathlib import Path

import pytest

from agentos import AgentOS, ToolCall


def _of_tests(name):
    spec = importlib.util.spec_from_file_location(f"email_{name}", Path(__file__).parent / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ImapServer = _of_tests("imap_server").ImapServer
SmtpServer = _of_tests("smtp_server").SmtpServer
OPTIONS = {
    "smtpTls": "none",
    "imapTls": "none",
    "fromAddress": "agent@example.org",
    "trust": "any",
    "recipients": ["*@example.org"],
    "pollSeconds": 1,
}
PASSWORD = "pass-word-9"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Return the file of a certificate for 127.0.0.1 and localhost that signs itself, with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def tls(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def serve_imap():
    """Return the class of the mailbox's server, to be entered by `async with serve_imap(...).serving()`."""
    return ImapServer


@pytest.fixture
def serve_smtp():
    return SmtpServer


@pytest.fixture
async def mailbox():
    async with ImapServer().serving() as server:
        yield server


@pytest.fixture
async def smtp():
    async with SmtpServer().serving() as server:
        yield server


def mail(text="Hello", *, id="<1@example.org>", sender="ann@example.org", subject="Tea", headers=(), kind="text/plain"):
    """Return a mail as bytes."""
    lines = [*headers, f"From: {sender}", "To: agent@example.org", f"Subject: {subject}"]
    lines += [f"Message-ID: {id}"] if id else []
    lines += ["Date: Mon, 02 Nov 2026 10:00:00 +0000", "MIME-Version: 1.0", f"Content-Type: {kind}; charset=utf-8"]
    return ("\r\n".join(lines) + "\r\n\r\n" + text.replace("\n", "\r\n") + "\r\n").encode()


@pytest.fixture(name="mail")
def _mail():
    return mail


@pytest.fixture
def hosting(mailbox, smtp):
    """Return a context manager for a host with the pack; with a handler its channel is at work."""

    @contextlib.asynccontextmanager
    async def hosted(
        handler=None, *, secrets=None, store=None, mode="auto", imap=None, outgoing=None, isolation="inline", **options
    ):
        ports = {"imapPort": (imap or mailbox).port, "smtpPort": (outgoing or smtp).port}
        known = {f"email.{name}Host": "127.0.0.1" for name in ("imap", "smtp")}
        known |= {f"email.{name}User": "robot" for name in ("imap", "smtp")}
        known |= {f"email.{name}Password": PASSWORD for name in ("imap", "smtp")}
        entry = {"module": "agentos_pack_email", "options": {**OPTIONS, **ports, **options}, "required": True}
        manifest = {
            "packs": [{**entry, "isolation": isolation}],
            "principals": {"ann": {}, "bob": {}},
            "channels": {"email": {"senders": {"ann@example.org": "ann", "bob@example.org": "bob"}}},
        }
        given = {id: value for id, value in {**known, **(secrets or {})}.items() if value is not None}
        async with AgentOS(extension_manifest=manifest, extension_secrets=given, store=store, mode=mode) as host:
            if handler is not None:
                host.channels.handle(handler)
                await host.channels.start()
            yield host

    return hosted


@pytest.fixture
def call():
    """Return a function that calls a tool of a host."""

    async def calling(host, name, **arguments):
        return await host.tools.process_tool_call(ToolCall(name, arguments))

    return calling


async def found(look):
    """Wait until *look* finds something, and return that; for what nothing tells of."""
    async with asyncio.timeout(30):
        while not (something := await look()):  # noqa: ASYNC110 - said above
            await asyncio.sleep(0.02)
    return something


@pytest.fixture(name="found")
def _found():
    return found


@pytest.fixture
def letters():
    """Return a function that waits until a host has dead letters."""

    async def waited(host):
        return await found(host.channels.letters)

    return waited
