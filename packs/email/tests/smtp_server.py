"""A real SMTP server on loopback, by aiosmtpd, with a login and TLS, and made to fail on request."""

import asyncio
import contextlib
import logging
import warnings
from email import message_from_bytes, policy

from aiosmtpd.smtp import SMTP, AuthResult

logging.getLogger("mail.log").disabled = True  # aiosmtpd tells there what passwords and mails it was given


class SmtpServer:
    """Takes mail of the user `robot`, and keeps it."""

    def __init__(self, password="pass-word-9", *, tls=None, is_implicit=False):
        self.user, self.password = "robot", password
        self.tls, self.is_implicit = tls, is_implicit
        self.port = 0
        self.envelopes = []
        self.raw = []
        self.news = asyncio.Condition()
        self.answers = []
        """What is answered to the next mails in place of 250; None cuts the connection after the mail came."""
        self.refused = {}
        """What is answered to recipients."""
        self.encrypted = []
        self.sessions = []

    @property
    def mails(self):
        return [message_from_bytes(one, policy=policy.default) for one in self.raw]

    async def until(self, condition):
        async with asyncio.timeout(30), self.news:
            await self.news.wait_for(condition)

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802 - aiosmtpd's name
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 - aiosmtpd's name
        answer = self.answers.pop(0) if self.answers else "250 OK"
        if answer is None or answer.startswith("250"):
            self.raw.append(envelope.content)
            self.envelopes.append((envelope.mail_from, *envelope.rcpt_tos))
            self.encrypted.append(session.ssl is not None or self.is_implicit)
        async with self.news:
            self.news.notify_all()
        if answer is None:
            server.transport.abort()
            return "250 OK"
        return answer

    def _check(self, server, session, envelope, mechanism, data):
        right = (self.user.encode(), self.password.encode())
        return AuthResult(success=(data.login, data.password) == right, handled=False)

    @contextlib.asynccontextmanager
    async def serving(self):
        loop = asyncio.get_running_loop()
        starts_tls = self.tls is not None and not self.is_implicit

        def session():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a password goes without TLS, on loopback
                made = SMTP(
                    self,
                    authenticator=self._check,
                    auth_required=True,
                    auth_require_tls=starts_tls,
                    tls_context=self.tls if starts_tls else None,
                    require_starttls=starts_tls,
                    hostname="loopback",
                    loop=loop,
                )
            self.sessions.append(made)
            return made

        context = self.tls if self.is_implicit else None
        server = await loop.create_server(session, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            await server.wait_closed()
            tasks = [one._handler_coroutine for one in self.sessions if one._handler_coroutine is not None]
            for one in self.sessions:
                if one.transport is not None:
                    one.transport.abort()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
