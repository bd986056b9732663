"""Find a pattern in lines. Run as a program it does so for others, in a process that can be ended.

A regular expression may take longer than anybody lives, and more memory than there is, while it holds the
interpreter's lock: no thread and no timer ends it. This file needs nothing but the standard library, so that its
process starts in a few hundredths of a second.
"""

import json
import re
import sys
from collections.abc import Iterator

LINE_CHARS = 10_000
"""How much of a line is searched."""
LINE_END = re.compile(r"\r\n|\n|\r")


def find(pattern: "re.Pattern[str]", text: str, limit: int) -> Iterator[tuple[int, int]]:
    """List the lines in which *pattern* is found, up to *limit*: the number of each, from 1, and the column."""
    lines = LINE_END.split(text)
    if not lines[-1]:
        lines.pop()  # a text that ends with a line end has no line after it
    for number, line in enumerate(lines, 1):
        match = pattern.search(line[:LINE_CHARS])
        if match is not None:
            yield number, match.start() + 1
            limit -= 1
            if limit <= 0:
                return


def main() -> None:
    """Answer stdin, a line of JSON and then the texts: first whether the pattern is one, then for each text."""
    asked = json.loads(sys.stdin.buffer.readline())
    try:
        pattern = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        _say({"error": str(error)[:300] or type(error).__name__})
        return
    _say({})
    for size in asked["sizes"]:
        _say(list(find(pattern, sys.stdin.buffer.read(size).decode(), asked["limit"])))


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
