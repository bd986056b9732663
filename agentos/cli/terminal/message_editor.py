"""A message of one or more lines, typed with the line editor of the system: run as a program of its own.

Readline waits for a line as long as it takes and can't be told to stop, so a process does that can be ended while the
event loop of the command runs on (`message_input`). It imports nothing of agentos: it is there at once.
"""

import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from typing import Any

BLOCK = '"""'
KEPT = 1_000
"""How many messages can be recalled."""


def main(reply: int, history: str) -> None:
    """Read a message, with those in the file *history* to recall, and write it as JSON to the descriptor *reply*."""
    signal.signal(signal.SIGINT, _end)
    _prepare(history)
    message = read_message()
    with os.fdopen(reply, "w") as file:
        json.dump(message, file)


def _end(number: int, frame: object) -> None:  # noqa: ARG001 - the signal module's signature
    raise SystemExit(130)  # readline gives the terminal back as it was


def _prepare(history: str) -> None:
    """Let lines be edited and messages be recalled, where Python was built with readline."""
    try:
        import readline
    except ImportError:  # pragma: no cover - then lines are as the terminal gives them
        return
    readline.parse_and_bind("set enable-bracketed-paste on")  # a paste is one piece, and Enter sends it
    readline.set_auto_history(False)
    for message in recalled(history):
        readline.add_history(message)


def recalled(history: str) -> Iterator[str]:
    """Yield the messages of a file, oldest first; lines that are damaged are left out."""
    try:
        with open(history, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib would cost an import
            lines = file.readlines()[-KEPT:]
    except OSError:
        return
    for line in lines:
        try:
            message: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, str) and "\0" not in message:
            yield message


def read_message() -> str | None:
    """Read a message; None at the end of input.

    A line that ends with a backslash goes on in the next, and so does everything between two lines of three quotes.
    What is pasted at once is one message.
    """
    lines: list[str] = []
    while True:
        try:
            line = input("you> " if not lines else "...> ")
        except EOFError:
            sys.stdout.write("\n")
            return "\n".join(lines) if lines else None
        is_block = bool(lines) and lines[0].strip() == BLOCK
        if line.strip() == BLOCK and is_block:
            return "\n".join(lines[1:])
        goes_on = line.endswith("\\") and not is_block
        lines.append(line[:-1] if goes_on else line)
        if not (goes_on or is_block or line.strip() == BLOCK or _is_more_there()):
            return "\n".join(lines)


def _is_more_there() -> bool:
    """Tell whether another line can be read at once: what is pasted comes so, where the terminal does not mark it."""
    try:
        return bool(select.select([0], [], [], 0)[0])
    except (OSError, ValueError):  # pragma: no cover - a platform that can't tell
        return False


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
