"""`agentos watch`: what is written is reloaded, and what changes on the stacks is told."""

import asyncio
import io
import json
from contextlib import asynccontextmanager

import pytest
from terminal import AGENTOS, GREET, PATIENCE, run_in_terminal

from agentos.cli.app import App
from agentos.cli.commands.watch import _watch

pytestmark = pytest.mark.anyio


class Heard(io.StringIO):
    """Text that wakes whoever waits for more of it."""

    def __init__(self):
        super().__init__()
        self.news = asyncio.Event()

    def write(self, text):
        self.news.set()
        return super().write(text)

    def told(self):
        return [json.loads(line) for line in self.getvalue().splitlines()]


@asynccontextmanager
async def watching():
    """Watch the working folder, and give a function that waits until something is told."""
    heard = Heard()
    app = App()
    app.given["json"] = True
    app._stdout = heard
    task = asyncio.create_task(_watch(app, 0.02))

    async def until(**wanted):
        async with asyncio.timeout(PATIENCE):
            while not any(wanted.items() <= one.items() for one in heard.told()):
                heard.news.clear()
                await heard.news.wait()
        return heard.told()

    try:
        yield until
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_changed_file_is_reloaded_and_the_change_is_told(project):
    folder = project("hello")
    async with watching() as until:
        await until(event="watching")
        (folder / "hello.py").write_text(GREET.replace("Greet a person", "Welcome a person"))
        await until(event="reloaded", what="hello.py")
        told = await until(change="~")

    assert told[-1]["entry"] == "tool:greet of hello 1.0"


async def test_a_mistake_is_told_and_the_old_one_runs_on_until_it_is_mended(project):
    folder = project("hello")
    async with watching() as until:
        await until(event="watching")
        (folder / "hello.py").write_text("this is no python")
        assert "SyntaxError" in (await until(event="failed"))[-1]["reason"]
        (folder / "hello.py").write_text(GREET.replace("greet", "wave"))
        told = await until(change="+", entry="tool:wave of hello 1.0")

    assert {"change": "-", "entry": "tool:greet of hello 1.0", "state": None} in told


async def test_a_pack_that_wants_to_end_the_program_is_told(project):
    folder = project("hello")
    async with watching() as until:
        await until(event="watching")
        (folder / "hello.py").write_text("class End(BaseException): pass\nraise End('of days')\n")
        assert "End: of days" in (await until(event="failed"))[-1]["reason"]
        (folder / "hello.py").write_text(GREET.replace("greet", "wave"))
        await until(change="+", entry="tool:wave of hello 1.0")


async def test_a_pack_that_failed_at_first_is_loaded_when_it_is_mended(project):
    folder = project("raises")
    async with watching() as until:
        await until(event="failed", what="raises.py")
        await until(event="watching")
        (folder / "raises.py").write_text(GREET)
        await until(event="reloaded", what="raises.py")
        await until(change="+", state="active")


async def test_a_pack_that_appears_is_loaded(project):
    folder = project("hello", "later")
    async with watching() as until:
        await until(event="watching")
        (folder / "later.py").write_text(GREET.replace("hello", "later").replace("greet", "wave"))
        await until(change="+", entry="tool:wave of later 1.0")


async def test_a_changed_manifest_counts(project):
    folder = project("hello")
    async with watching() as until:
        await until(event="watching")
        with (folder / "agentos.toml").open("a") as file:
            file.write('\n[[packs]]\nmodule = "gifs.py"\n')
        await until(event="changed")
        await until(change="+", entry="tool:gif_search of gifs 0.2", state="gated")


async def test_a_broken_manifest_is_waited_for(project):
    folder = project("hello")
    text = (folder / "agentos.toml").read_text()
    async with watching() as until:
        await until(event="watching")
        (folder / "agentos.toml").write_text("= broken")
        assert "can't be parsed" in (await until(event="failed", what="manifest"))[-1]["reason"]
        (folder / "agentos.toml").write_text(text + '\n[[packs]]\nmodule = "gifs.py"\n')
        await until(change="+", entry="tool:gif_search of gifs 0.2")


async def test_a_changed_definition_is_not_held_back_while_watching(project):
    project("hello", more='store = "s.db"\npins = "strict"\n')
    async with watching() as until:
        told = await until(event="watching")

    assert {"change": "+", "entry": "tool:greet of hello 1.0", "state": "active"} in told


def test_people_see_signs_and_end_it_with_ctrl_c(project):
    folder = project("hello")
    told = run_in_terminal([*AGENTOS, "watch"], inputs=[("watching", "\x03")], cwd=folder)

    assert "+ tool:greet of hello 1.0: active" in told
    assert told.code == 130


async def test_local_overrides_that_appear_count(project):
    folder = project("hello")
    async with watching() as until:
        await until(event="watching")
        (folder / "overrides.local.toml").write_text("[tools.greet]\nenabled = false\n")
        await until(event="changed")
        await until(change="~", entry="tool:greet of hello 1.0", state="disabled")


async def test_broken_local_overrides_are_waited_for(project):
    folder = project("hello")
    async with watching() as until:
        await until(event="watching")
        (folder / "overrides.local.toml").write_text("= broken")
        assert "overrides.local.toml" in (await until(event="failed", what="manifest"))[-1]["reason"]
        (folder / "overrides.local.toml").write_text("[tools.greet]\nenabled = false\n")
        await until(change="~", entry="tool:greet of hello 1.0", state="disabled")


@pytest.mark.parametrize("mended", ["agentos.toml", "hello.py"])
async def test_a_pack_that_is_required_and_cant_be_loaded_is_waited_for(project, mended):
    folder = project("hello")
    text = (folder / "agentos.toml").read_text()
    mending = {"agentos.toml": text.replace("hello.py", "gifs.py"), "hello.py": GREET.replace("greet", "wave")}
    async with watching() as until:
        await until(event="watching")
        (folder / "hello.py").write_text("this is no python")
        await until(event="failed", what="hello.py")
        (folder / "agentos.toml").write_text(f"{text}required = true\n")
        assert "SyntaxError" in (await until(event="failed", what="agentos.toml"))[-1]["reason"]
        (folder / mended).write_text(mending[mended])
        await until(change="-", entry="tool:greet of hello 1.0")


async def test_a_pack_that_ends_generators_is_told(project):
    folder = project("hello")
    async with watching() as until:
        await until(event="watching")
        (folder / "hello.py").write_text("raise GeneratorExit\n")
        assert "raised GeneratorExit" in (await until(event="failed", what="hello.py"))[-1]["reason"]
        (folder / "hello.py").write_text(GREET.replace("greet", "wave"))
        await until(change="+", entry="tool:wave of hello 1.0")
