"""The pictures of docs/studio: every page of the studio, light and dark, on a host that has something to show."""

import asyncio
import io
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agentos import AgentOS, Principal
from agentos.studio import serve_studio
from agentos.studio.pages import PAGES

HERE = Path(__file__).parents[1]
EXAMPLES = HERE.parent / "examples"
FOLDER = HERE / "studio"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--force-color-profile=srgb"),
)
SIZE = {"width": 1200, "height": 760}
COLORS = 144
ADA = Principal(
    "ada", access={"notes:write", "tasks:write", "files:read", "files:write", "memory:read", "memory:write"}
)
SHOWN = {
    "stacks": "stacks?why=tool:greet",
    "tools": "tools?of=tasks:task_create",
}
"""At which address a page has the most to show; else at its own."""


async def write() -> None:
    """Write the pictures of all pages."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="demo-") as name:
        async with _host(Path(name)) as host:
            ready = asyncio.get_running_loop().create_future()
            serving = asyncio.create_task(serve_studio(host, principal=Principal.system(), ready=ready.set_result))
            try:
                await _take(await ready, host)
            finally:
                serving.cancel()
                await asyncio.wait([serving])


def _manifest(folder: Path) -> dict[str, Any]:
    workspace = folder / "workspace"
    for name in ("hello.py", "polite.py", "notes.py"):
        shutil.copy(EXAMPLES / name, folder / name)
    workspace.mkdir()
    (workspace / "plan.md").write_text("# Plan\n\n- buy milk\n- call Ada\n", "utf-8")
    return {
        "packs": [
            {"module": str(folder / "hello.py"), "identifier": "hello"},
            {"module": str(folder / "polite.py"), "identifier": "polite"},
            {"package": "calculator", "isolation": "process"},
            {"package": "datetime", "priority": 5},
            {"package": "giphy"},
            {"package": "files", "options": {"root": str(workspace), "writable": True}},
            {"package": "sqlite-memory", "options": {"path": str(folder / "memory.db")}},
            {"package": "tasks", "options": {"path": str(folder / "tasks.db")}},
            {
                "module": str(folder / "notes.py"),
                "identifier": "notes",
                "options": {"file": str(folder / "notes.txt")},
            },
            {"package": "calculater"},
        ],
        "overrides": {"tools": {"statistics": {"enabled": False}, "hello:greet": {"priority": 1}}},
        "deny": ["clear_notes"],
        "workflows": {"party": _WORKFLOW},
    }


_WORKFLOW: dict[str, Any] = {
    "version": "1",
    "description": "Plan a party: how many glasses and chairs, what is said of it, and whether it may be.",
    "inputs": {"type": "object", "properties": {"guests": {"type": "integer"}}, "required": ["guests"]},
    "tasks": [
        {"id": "glasses", "tool": "calculate", "arguments": {"expression": "${inputs.guests} * 2"}},
        {"id": "chairs", "tool": "calculate", "arguments": {"expression": "${inputs.guests} + 4"}},
        {"id": "ask", "human": "Have ${inputs.guests} guests?", "needs": ["glasses", "chairs"]},
        {"id": "tell", "tool": "greet", "arguments": {"name": "everybody"}, "needs": ["ask"]},
    ],
}


@asynccontextmanager
async def _host(folder: Path) -> AsyncIterator[AgentOS]:
    async with AgentOS(extension_manifest=_manifest(folder), store=str(folder / "agentos.db")) as host:
        yield host


async def _fill(host: AgentOS) -> None:
    """Make calls, decide on some, and let others wait."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("greet", {"name": "Ada"}),
        ("calculate", {"expression": "sqrt(2) * 21"}),
        ("convert_units", {"value": 12, "from": "km/h", "to": "m/s"}),
        ("now", {"tz": "Europe/Vienna"}),
        ("convert_units", {"value": 12, "from": "km/h", "too": "m/s"}),
        ("read_file", {"path": "plan.md"}),
        ("read_file", {"path": "missing.md"}),
        ("task_create", {"title": "Water the plants"}),
        ("add_note", {"text": "Buy milk"}),
        ("edit_file", {"path": "plan.md", "old_text": "buy milk", "new_text": "buy oat milk"}),
        ("clear_notes", {}),
    ]
    for number, (name, arguments) in enumerate(calls):
        call = {"name": name, "arguments": arguments, "id": f"call-{number}"}
        result = await host.tools.process_tool_call(call, ADA)
        if name == "task_create" and result.pending is not None:
            await host.approvals.approve(result.pending["proposal_id"])
    waits = asyncio.Event()
    host.extensions.on(lambda event: waits.set() if event.type == "workflow:waiting" else None)
    run = await host.workflows.start("party", {"guests": 12}, principal=ADA)
    await waits.wait()
    SHOWN["workflows"] = f"workflows?run={run.id}"
    await host.grants.add("files:write_file", "never", principal="ada")
    await host.grants.add("tasks:task_create", "always", principal="ada")


async def _take(link: str, host: AgentOS) -> None:
    from playwright.async_api import async_playwright

    base = link.partition("/sign-in")[0]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        is_filled = False
        for scheme in ("light", "dark"):
            context = await browser.new_context(
                viewport=SIZE, color_scheme=scheme, timezone_id="Europe/Vienna", locale="en-GB"
            )
            page = await context.new_page()
            await page.goto(link)
            if not is_filled:
                is_filled = True
                await _fill(host)
            for one in PAGES:
                if one.id == "chat" or not one.is_there(host):  # a conversation needs a model
                    continue
                await page.goto(f"{base}/{SHOWN.get(one.id, one.id)}")
                await page.locator("body[data-live=on]").wait_for()
                await page.evaluate("document.fonts.ready")
                (FOLDER / f"{one.id}-{scheme}.png").write_bytes(_small(await page.screenshot()))
        await browser.close()


def _small(picture: bytes) -> bytes:
    from PIL import Image

    image = Image.open(io.BytesIO(picture)).convert("RGB")
    target = io.BytesIO()
    image.quantize(COLORS, dither=Image.Dither.NONE).save(target, "PNG", optimize=True)
    return target.getvalue()
