"""Hand out real repositories and hosts that use them."""

import os
import shutil
import subprocess
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from agentos import AgentOS, ToolCall

_ANN = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in {"NAME": "Ann", "EMAIL": "ann@example.org", "DATE": "2024-07-01T12:00:00+02:00"}.items()
}
_QUIET = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "file"}


class Repository:
    """A real repository, used as its owner would use it."""

    def __init__(self, folder):
        self.folder = folder

    def git(self, *arguments, env=None):
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **_QUIET, **_ANN, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, path, text):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text) if isinstance(text, str) else file.write_bytes(text)
        return file

    def commit(self, message="change", **files):
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.head

    @property
    def head(self):
        return self.git("rev-parse", "HEAD")

    def program(self, name="program"):
        """Make a program that leaves a trace beside the repository, and return its path."""
        path = self.folder.parent / "traps" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\ntouch "{path}-RAN"\n')
        path.chmod(0o755)
        return str(path)

    @property
    def traces(self):
        """Return the names of the programs that ran."""
        return sorted(path.name.removesuffix("-RAN") for path in (self.folder.parent / "traps").glob("*-RAN"))

    def forget(self):
        """Take the traces away."""
        for path in (self.folder.parent / "traps").glob("*-RAN"):
            path.unlink()


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "root"
    made.mkdir()
    return made


@pytest.fixture
def make(root):
    """Return a function that makes an empty repository in the root folder."""

    def making(name="repo", folder=root, **options):
        (folder / name).mkdir(parents=True)
        made = Repository(folder / name)
        made.git("init", "--quiet", "--initial-branch=main", *options.get("init", ()))
        return made

    return making


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """Return a repository with two commits, to be copied."""
    made = Repository(tmp_path_factory.mktemp("template") / "repo")
    made.folder.mkdir()
    made.git("init", "--quiet", "--initial-branch=main")
    made.commit("first", a="one\n", b="alpha\nbeta\n")
    made.commit("second\n\nwith a body", a="one\ntwo\n")
    return made


@pytest.fixture
def repo(template, root):
    """Return a repository with two commits."""
    shutil.copytree(template.folder, root / "repo")
    return Repository(root / "repo")


@pytest.fixture
def hosting(root):
    """Return a context manager for a host with the pack."""

    @asynccontextmanager
    async def host(mode="auto", **options):
        said = {"root": str(root), "authorName": "An Agent", "authorEmail": "agent@example.org", **options}
        entry = {"module": "agentos_pack_git_repo", "options": said, "required": True}
        async with AgentOS(extension_manifest={"packs": [entry]}, mode=mode, budget=None) as made:
            yield made

    return host


@pytest.fixture
async def hosts(hosting):
    """Return a function that returns a host with options; it lives as long as the test."""
    kept = {}
    async with AsyncExitStack() as undo:

        async def get(options=None):
            key = repr(options)
            if key not in kept:
                kept[key] = await undo.enter_async_context(hosting(**(options or {})))
            return kept[key]

        yield get


@pytest.fixture
def call(hosts):
    """Return a function that calls a tool, approves what asks, and returns the result."""

    async def calling(name, options=None, /, **arguments):
        host = await hosts(options)
        result = await host.tools.process_tool_call(ToolCall(name, {"repo": "repo", **arguments}))
        if result.error and result.error.type == "ApprovalRequired":
            return await host.approvals.approve(result.error.details["token"])
        return result

    return calling


@pytest.fixture
def ask(call):
    """Return a function that calls one tool and returns its output."""

    async def asking(name, options=None, /, **arguments):
        result = await call(name, options, **arguments)
        assert result.success, result.content
        return result.output

    return asking


@pytest.fixture
def refusal(call):
    """Return a function that calls one tool and returns why it was refused."""

    async def refusing(name, options=None, /, **arguments):
        result = await call(name, options, **arguments)
        assert not result.success, result.content
        return result.content

    return refusing


@pytest.fixture
def preview(hosts):
    """Return a function that returns what a dry run says."""

    async def previewing(name, options=None, /, **arguments):
        host = await hosts(options)
        return await host.tools.preview(ToolCall(name, {"repo": "repo", **arguments}))

    return previewing
