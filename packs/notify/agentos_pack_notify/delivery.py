"""One delivery in a process of its own, which ends with its time, its memory, or whoever waits for it."""

import json
import os
from pathlib import Path
from typing import Literal

from agentos_pack_common import Limits, ProcessResult, run_python

Outcome = Literal["taken", "refused", "unusable", "unstarted", "unanswered", "broken"]
"""taken, refused: by the service. unusable: no service understands the address. unstarted: nothing was sent at all.

unanswered: its time was up. broken: it ended in between. After these two the message may have arrived.
"""

START = 8.0
"""Seconds for the process to start and to import apprise, on a machine that is busy."""
_CHILD = Path(__file__).with_name("_child.py")
_MEMORY = 512_000_000
_OUTPUT = 1_000
# How the network is reached, the desktop, and the local time; nothing else of the environment is passed on.
_PASSED_ON = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "HOME", "TZ"),
)


async def send(address: str, title: str, body: str, seconds: float) -> Outcome:
    """Send a message by the service that *address* names, and return what became of it.

    The address is handed over by stdin: arguments and environments of a process can be read by others.
    """
    task = {"address": address, "title": title, "body": body, "seconds": seconds}
    done = await run_python(
        _CHILD,
        env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        stdin=json.dumps(task).encode(),
        limits=Limits(seconds=seconds + START, memory_bytes=_MEMORY, output_bytes=_OUTPUT),
    )
    return _outcome(done)


def _outcome(done: ProcessResult) -> Outcome:
    match done.stdout.decode("ascii", "replace").split():
        case ["begun", "taken"]:
            return "taken"
        case ["begun", "refused"]:
            return "refused"
        case ["unusable"]:
            return "unusable"
        case []:
            return "unstarted"
    return "unanswered" if done.timed_out or done.signal == "SIGALRM" else "broken"
