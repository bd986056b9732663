"""A pack whose process breaks the rules of the conversation with its host."""

import asyncio
import json
import logging
import os
import sys
import threading
import time

from agentos import PUBLIC, ExtensionPack, tool

DEEP = 10_000
READ = {"effect": "read", "required_access": PUBLIC}


def write(data: bytes) -> None:
    """Write to the host past everything that keeps to the rules."""
    view = memoryview(data)
    while view:
        view = view[os.write(int(sys.argv[1]), view) :]


def message(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


MESSAGES = {
    "100 MB": lambda: b'{"re": 1, "value": "' + b"x" * 100_000_000 + b'"}\n',
    "100 MB without an end": lambda: b"x" * 100_000_000,
    "not UTF-8": lambda: b'{"op": "log", "body": "\xff\xfe"}\n',
    "nested": lambda: b'{"op": "log", "body": ' + b"[" * DEEP + b"]" * DEEP + b"}\n",
    "half a message": lambda: b'{"op": "log", "bo\n',
    "a list": lambda: b"[1, 2]\n",
    "no operation": lambda: message(body=1),
    "an id of another type": lambda: message(re=[1], value=1),
    "a question with the id of another": lambda: message(id=7, op="secret", body="x") * 2,
    "too many questions": lambda: b"".join(message(id=7 + id, op="secret", body="x") for id in range(1_001)),
    "an answer with a wrong id": lambda: message(re=999_999, value=1) + message(re="1", value=1) + message(re=-1),
    "all answers": lambda: b"".join(message(re=id, value="forged") for id in range(1_000)),
    "errors for answers": lambda: b"".join(message(re=id, error=[1]) for id in range(1_000)),
    "much noise and a question": lambda: (
        message(op="log", body={"name": "", "level": 20, "text": "noise"}) * 2_000
        + message(id=8, op="secret", body="x")
    ),
    "an end to nothing": lambda: message(cancel=999_999) + message(cancel="x"),
    "an unknown operation": lambda: message(op="rm", body="-rf") + message(op="log", body=7),
    "a function of nobody": lambda: (
        message(of=999_999, call=0, body=[[], {}]) + message(id=8, of=1, call=9, body=[[], {}])
    ),
}


@tool(**READ)
async def echo(text: str) -> str:
    """Return the text."""
    return text


@tool(**READ)
async def pid() -> int:
    """Return the number of the process."""
    return os.getpid()


@tool(**READ)
async def garble(kind: str) -> str:
    """Write to the host what it does not expect."""
    write(MESSAGES[kind]())
    return "written"


@tool(**READ, timeout=0.2)
async def ignore() -> None:
    """Never answer, cancelled or not."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@tool(**READ, timeout=0.2)
async def block() -> None:
    """Never let anything else of this process go on."""
    while True:
        time.sleep(60)


@tool(**READ)
async def large() -> str:
    """Return more than fits into a message."""
    return "x" * 100_000_000


@tool(**READ)
async def deep() -> list:
    """Return something that is nested deeper than can be said."""
    value: list = []
    for _ in range(DEEP):
        value = [value]
    return value


FLOODS = {
    "stdout": lambda: os.write(1, b"flood\n" * 10_000),
    "stderr": lambda: os.write(2, b"flood\n" * 10_000),
    "a line without an end": lambda: os.write(1, b"flood" * 10_000),
    "log records": lambda: logging.getLogger("noisy").warning("flood"),
    "answers to nothing": lambda: write(message(re=999_999, value=1) * 100),
}


@tool(**READ)
async def flood(of: str) -> str:
    """Write as fast as possible, for as long as the process lives."""

    def go_on() -> None:
        while True:
            FLOODS[of]()

    threading.Thread(target=go_on, daemon=True).start()
    return "begun"


pack = ExtensionPack("hostile", "1.0", [echo, pid, garble, ignore, block, large, deep, flood])
