"""Packs whose tools follow an argument wherever it leads."""

import subprocess
import urllib.request
from pathlib import Path

from testing.parts import Text, pack, reads

from agentos import PUBLIC, tool


def connects():
    @reads
    def fetch_page(url: Text) -> str:
        """Fetch a page of the web by its address."""
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                return answer.read(100).decode()
        except Exception as error:
            raise ValueError(f"it can't be fetched: {type(error).__name__}") from None

    return pack(fetch_page)


def opens():
    @reads
    def read_text(path: Text) -> str:
        """Read a text file by its path."""
        try:
            return Path("somewhere", path).read_text()[:0] + "read"
        except (OSError, ValueError) as error:
            raise ValueError(f"it can't be read: {type(error).__name__}") from None

    return pack(read_text)


def runs():
    @reads
    def say_loud(text: Text) -> str:
        """Say a text in capital letters."""
        try:
            return subprocess.run(f"echo {text}", shell=True, capture_output=True, text=True, timeout=5).stdout[:10]
        except ValueError as error:
            raise ValueError(f"it can't be said: {type(error).__name__}") from None

    return pack(say_loud)


def runs_in_its_dry_run():
    def preview(arguments, context):
        return eval(arguments["text"])

    def careful(arguments, context):
        try:
            preview(arguments, context)
        except BaseException:
            return "would say something"
        return "would say it"

    @tool(effect="mutate", required_access=PUBLIC, dry_run=careful)
    def send_text(text: Text) -> str:
        """Send a text to whoever is listening."""
        return "sent"

    return pack(send_text)
