"""What the conformance checks need around them: a repository with two commits and a change."""  # noqa: INP001

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

_ANN = "Ann <ann@example.org> 1767225600 +0000"
_HISTORY = f"""\
commit refs/heads/main
committer {_ANN}
data 5
First
M 100644 inline notes.txt
data 9
Milk
Tea

commit refs/heads/main
committer {_ANN}
data 6
Second
M 100644 inline notes.txt
data 15
Milk
Tea
Bread

"""


async def _git(folder: Path, *arguments: str, stdin: str = "") -> str:
    alone = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    process = await asyncio.create_subprocess_exec(
        *("git", *arguments), cwd=folder, env=alone, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate(stdin.encode())
    if process.returncode:
        raise RuntimeError(f"git {arguments[0]} ended with {process.returncode}")
    return said.decode().strip()


@contextlib.asynccontextmanager
async def prepare(tmp: Path) -> AsyncIterator[dict[str, str]]:
    """Make the repository, and tell which commit it is at."""
    await _git(tmp, "init", "--quiet", "--initial-branch=main")
    await _git(tmp, "fast-import", "--quiet", stdin=_HISTORY)
    await _git(tmp, "reset", "--quiet", "--hard")
    (tmp / "notes.txt").write_text("Oats\nTea\nBread\n")
    yield {"head": await _git(tmp, "rev-parse", "HEAD")}
