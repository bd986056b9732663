"""What the conformance checks need around them: a mailbox with a mail in it, and a server that takes mail."""  # noqa: INP001

import contextlib
import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

_MAIL = (
    b"From: ann@example.org\r\nTo: agent@example.org\r\nSubject: Tea\r\nMessage-ID: <tea@example.org>\r\n\r\nNow?\r\n"
)


def _of_tests(name: str) -> Any:
    """Return a module of the pack's tests, which are not importable by name."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / "tests" / f"{name}.py")
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, str | int]]:  # noqa: ARG001 - there is nothing to put there
    """Serve both."""
    mailbox = _of_tests("imap_server").ImapServer()
    async with mailbox.serving(), _of_tests("smtp_server").SmtpServer().serving() as smtp:
        await mailbox.add(_MAIL)
        yield {"imap": mailbox.port, "smtp": smtp.port, "mail": f"{mailbox.validity}-1"}
