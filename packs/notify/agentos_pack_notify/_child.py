"""Runs in a process of its own: one delivery by apprise. Takes JSON on stdin, answers with words on stdout.

It runs apart because a service may answer slowly, or without end, and no library gives up on that as a whole. A process
can be ended. It imports nothing of the pack, so that it starts fast and can be run from its file.
"""

import json
import logging
import os
import signal
import sys
import warnings
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from apprise import NotifyBase

_LINGERING = 1.0
"""For how many seconds apprise would wait on for an answer after this process has ended."""


def main() -> None:
    """Send the message; tell when that begins, and what became of it."""
    answers = _private_stdout()
    logging.disable(logging.CRITICAL)  # services log addresses, tokens and payloads as they are
    warnings.simplefilter("ignore")
    task = json.load(sys.stdin)
    service = service_of(task["address"])
    if service is None:
        print("unusable", file=answers, flush=True)
        return
    print("begun", file=answers, flush=True)
    # Told before the service is disposed of: some log in again or out then, which is no part of the delivery.
    print(send(service, task), file=answers, flush=True)


def _private_stdout() -> TextIO:
    """Return stdout for the answer alone; what libraries print goes nowhere, by whatever way they print it."""
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return answers


def send(service: "NotifyBase", task: dict[str, Any]) -> str:
    """Send by apprise: as text, with nothing in it interpreted, no attachments, no retries of its own."""
    from apprise import NotifyFormat

    # Apprise takes a service that is slow to answer for one that refused. The alarm comes first, and ends this process.
    service.socket_read_timeout = task["seconds"] + _LINGERING
    signal.setitimer(signal.ITIMER_REAL, task["seconds"])
    try:
        is_taken = service.notify(body=task["body"], title=task["title"], body_format=NotifyFormat.TEXT) is True
    except MemoryError:  # the answer is endless; the message may have arrived
        raise
    except Exception:  # noqa: BLE001 - foreign code, one of a hundred services; whatever it raises is no delivery
        return "refused"
    return "taken" if is_taken else "refused"


def service_of(address: str) -> "NotifyBase | None":
    """Return the service that *address* names; None if it does not understand it."""
    from apprise import Apprise, AppriseAsset

    asset = AppriseAsset(  # without a storage_path it keeps nothing on disk
        allow_templates=False,
        interpret_escapes=False,
        interpret_emojis=False,
        http_redirects=0,
        pgp_autogen=False,
        pem_autogen=False,
        secure_logging=True,
        plugin_paths=[],
    )
    return Apprise.instantiate(address, asset=asset)


if __name__ == "__main__":
    main()
