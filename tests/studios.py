"""What the tests of the studio share: a host with foreign text in every field, served on loopback, and visitors."""

import asyncio
import contextlib
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx

from agentos import (
    AgentOS,
    Descriptor,
    ExtensionPack,
    Persona,
    Principal,
    SecretRequirement,
    Tool,
    ToolResult,
    guardrail,
)
from agentos.studio import serve_studio

EVIL = "<script>window.stolen=1</script><img src=x onerror=window.stolen=1>\"'><b onclick=1>"
"""What a pack, a server or a model may put into any text."""
SECRET = "hunter2-correct-horse-battery"
OPERATOR = Principal.system()
GUEST = Principal("guest")
ANN = Principal("ann", access={"notes:write"})


async def _run(arguments, context):
    await context.report_progress(1, 2, EVIL)
    return ToolResult.ok({"said": arguments.get("text")}, content=f"done {EVIL}", state={"note": EVIL})


async def _fail(arguments, context):
    raise RuntimeError(EVIL)


def _text(name="text", **more):
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": EVIL, **more}},
        "required": [name],
        "additionalProperties": False,
    }


def _preview(arguments, context):
    return {"before": f"old {EVIL}\nsame", "after": f"new {arguments['text']}\nsame"}


def tools():
    """Return tools whose every text is foreign."""
    shared = {"description": f"What {EVIL} does", "input_schema": _text()}
    return [
        Tool.from_schema(name="look", effect="read", required_access=("notes:read",), execute=_run, **shared),
        Tool.from_schema(
            name="write", effect="mutate", required_access=("notes:write",), execute=_run, dry_run=_preview, **shared
        ),
        Tool.from_schema(name="wipe", effect="destructive", required_access=("notes:write",), execute=_run, **shared),
        Tool.from_schema(name="fail", effect="read", required_access=("notes:read",), execute=_fail, **shared),
    ]


@guardrail(stage="tool_call")
async def suspicious(call, context):
    """Flag every call."""
    from agentos import GuardVerdict

    return GuardVerdict.flag(EVIL, code="odd")


def evil_pack():
    """Return a pack with foreign text wherever a pack can put it."""
    needed = (SecretRequirement("evil.key", description=EVIL),)
    gated = Tool.from_schema(
        name="gated",
        description=EVIL,
        input_schema=_text(),
        effect="read",
        required_access=("notes:read",),
        execute=_run,
    )
    return ExtensionPack(
        "evil",
        "1.0",
        (*tools(), suspicious, Descriptor("tool", "gated", gated, required_secrets=needed), _persona()),
        description=EVIL,
    )


def _persona():
    return Descriptor("persona", "odd", Persona("odd", description=EVIL, system_prompt=EVIL))


@contextlib.asynccontextmanager
async def evil_host(**options):
    """Give a host of the pack whose every text is foreign."""
    async with AgentOS(**{"extension_secrets": {"other.key": SECRET}, **options}) as host:
        await host.extensions.load_pack(evil_pack())
        yield host


@contextlib.asynccontextmanager
async def served(host, principal=OPERATOR, **options):
    """Give the address and the link of a studio that is served for the time of the block."""
    ready = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve_studio(host, principal=principal, ready=ready.set_result, **options))
    try:
        await asyncio.wait([serving, ready], return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            await serving
        link = ready.result()
        parts = urlsplit(link)
        yield SimpleNamespace(link=link, base=f"{parts.scheme}://{parts.netloc}", serving=serving)
    finally:
        serving.cancel()
        await asyncio.wait([serving])


class Visitor(httpx.AsyncClient):
    """A browser without a page: it signs in, and sends forms as pages do."""

    def __init__(self, site, **options):
        super().__init__(base_url=site.base, timeout=60, trust_env=False, **options)
        self.site = site

    async def sign_in(self):
        """Follow the link."""
        answer = await self.get(self.site.link)
        assert answer.status_code == 303
        return self

    async def token(self, page="/tools"):
        """Return a token for forms, as a page has it."""
        text = (await self.get(page)).text
        return text.partition('name="csrf" content="')[2].partition('"')[0]

    async def submit(self, path, fields=None, *, origin=None, csrf=None, part=False):
        """Submit a form of a page."""
        said = {"csrf": await self.token() if csrf is None else csrf, **(fields or {})}
        headers = {"Origin": self.site.base if origin is None else origin}
        if part:
            headers |= {"HX-Request": "true"}
        return await self.post(path, data=said, headers={k: v for k, v in headers.items() if v})


@contextlib.asynccontextmanager
async def visiting(host, principal=OPERATOR, **options):
    """Give a visitor who is signed in."""
    async with served(host, principal, **options) as site, Visitor(site) as visitor:
        yield await visitor.sign_in()
