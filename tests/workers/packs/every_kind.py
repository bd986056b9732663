"""A pack with something of every kind, sync and async."""

import asyncio
import datetime as dt
import decimal
import enum
import os
import threading
from pathlib import Path

import attrs

from agentos import (
    PUBLIC,
    Answer,
    Descriptor,
    Display,
    ExtensionPack,
    GuardVerdict,
    Media,
    MemoryHit,
    MemoryStats,
    Persona,
    Plan,
    PlanStep,
    Response,
    SecretRequirement,
    Tool,
    ToolContext,
    ToolResult,
    Toolset,
    Trouble,
    guardrail,
    middleware,
    tool,
)

READ = {"effect": "read", "required_access": PUBLIC}


class Colour(enum.Enum):
    RED = "red"


@attrs.frozen
class Point:
    x: int
    y: int = 0


class OwnError(LookupError):
    pass


@tool(**READ)
def add(a: int, b: int = 2) -> int:
    """Add.

    Args:
        a: One.
        b: The other.
    """
    return a + b


@tool(**READ, display=Display("text", title="{args.a} and {args.b}"))
async def add_async(a: int, b: int = 2) -> int:
    """Add, awaited."""
    await asyncio.sleep(0)
    return a + b


@tool(**READ)
def point(point: Point) -> Point:
    """Move a point."""
    return Point(point.x + 1, point.y)


@tool(**READ)
def day(day: dt.date) -> str:
    """Say a day."""
    return f"{day:%d.%m.%Y}"


@tool(output_schema=None, **READ)
def strange(kind: str) -> object:
    """Return something strange."""
    return {
        "bytes": b"\x00\xff",
        "set": {3, 1, 2},
        "tuple": (1, (2,)),
        "date": dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        "decimal": decimal.Decimal("1.50"),
        "path": Path("a") / "b",
        "enum": [Colour.RED],
        "keys": {1: "one", None: "nothing", "$": "tag"},
        "nan": float("nan"),
        "object": {"deep": [object()]},
        "function": len,
        "attrs": Point(1, 2),
        "surrogate": "\ud800",
        "big": 10**30,
        "empty": "",
        "nothing": None,
        "result": ToolResult.ok([1], "one", {"shown": True}, stop=True),
        "failure": ToolResult.fail("Full", "no room", {"left": 0}),
        "class": Point,
        "delta": dt.timedelta(hours=1),
    }[kind]


@tool(output_schema=None, **READ)
def deep(levels: int) -> object:
    """Return something that is nested deep."""
    value: object = "end"
    for _ in range(levels):
        value = [value]
    return value


@tool(**READ)
def endless() -> object:
    """Return something without an end."""
    value: list[object] = []
    value += [value, value]
    return value


@tool(**READ)
def raises(kind: str) -> str:
    """Raise."""
    raise {
        "value": ValueError("bad value"),
        "key": KeyError("k"),
        "own": OwnError("not here"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "empty": RuntimeError(),
        "os": FileNotFoundError(2, "No such file", "x.txt"),
        "group": ExceptionGroup("many", [ValueError("a")]),
        "unicode": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        "stop": StopIteration("s"),
        "cancelled": asyncio.CancelledError(),
        "lines": ValueError("one\n  two"),
    }[kind]


@tool(**READ)
async def raises_async(kind: str) -> str:
    """Raise, awaited."""
    return raises.function(kind)


@tool(**READ)
def letters(count: int):
    """Yield letters."""
    for number in range(count):
        yield chr(97 + number)


@tool(**READ)
async def letters_async(count: int):
    """Yield letters, awaited."""
    for number in range(count):
        yield {"letter": chr(97 + number)}


@tool(**READ)
def seen(context: ToolContext) -> object:
    """Say what the context has."""
    return {
        "principal": [context.principal.id, sorted(context.principal.access)],
        "call": [context.tool_call.name, context.tool_call.arguments, context.tool_call.id],
        "arguments": context.arguments,
        "depth": context.depth,
        "cancelled": context.cancelled,
        "approved": context.approved,
        "tool": context.tool.name,
        "options": dict(context.options),
        "session": dict(context.session),
        "secret": context.secret("api_key"),
        "masked": context.mask("it is s3cret-value!"),
    }


@tool(**READ)
async def seen_async(context: ToolContext) -> object:
    """Say what the context has, awaited."""
    return seen.function(context)


@tool(**READ)
def undeclared(context: ToolContext) -> str | None:
    """Read a secret that nobody declared."""
    return context.secret("other")


@tool(**READ)
def tells(context: ToolContext) -> str:
    """Tell how far it is."""
    context.report_progress(1, 2, "half")
    context.send_content("part")
    return "told"


@tool(**READ)
async def tells_async(context: ToolContext) -> str:
    """Tell how far it is, awaited."""
    await context.report_progress(1, 2, "half")
    await context.send_content("part")
    return "told"


@tool(**READ)
def calls(context: ToolContext) -> object:
    """Call another tool."""
    result = context.call("add", {"a": 40})
    return {"output": result.output, "success": result.success, "failed": context.call("nothing").error.type}


@tool(**READ)
async def calls_async(context: ToolContext) -> object:
    """Call another tool, awaited."""
    result = await context.call("add_async", {"a": 40})
    return {"output": result.output, "success": result.success, "failed": (await context.call("no")).error.type}


@tool(name="greet", wraps=True, **READ)
async def greet_over(context: ToolContext) -> str:
    """Greet louder than the one beneath."""
    return (await context.below()).output.upper()


@tool(**READ)
def where() -> object:
    """Say where it runs."""
    return {"pid": os.getpid(), "main": threading.current_thread() is threading.main_thread()}


@tool(**READ)
async def where_async() -> object:
    """Say where it runs, awaited."""
    return where.function()


@tool(**READ)
def logs(context: ToolContext) -> str:
    """Log."""
    context.logger.warning("careful with %s", "s3cret-value")
    return "logged"


@tool(**READ)
async def counts(context: ToolContext) -> int:
    """Count with a service."""
    box = await context.services.get_or_create("box", list)
    box.append(1)
    return len(box)


@tool(effect="mutate", required_access=("files",), dry_run=lambda args, context: {"would": args["name"]})
def delete(name: str) -> str:
    """Delete something."""
    return f"deleted {name}"


def _asks(args, context):
    return "always" if args["name"].startswith("big") else "never"


@tool(effect="mutate", required_access=PUBLIC, intervention=_asks)
def careful(name: str) -> str:
    """Change something."""
    return f"changed {name}"


@tool(effect="mutate", required_access=PUBLIC, intervention=[{"policy": "never", "match": {"$.name": "small*"}}])
def ruled(name: str) -> str:
    """Change something by rules."""
    return f"changed {name}"


@tool(**READ)
async def waits() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


@tool(timeout=0.05, **READ)
def hangs(context: ToolContext) -> str:
    """Hang until somebody gives up."""
    while not context.cancelled:
        threading.Event().wait(0.01)
    return "given up"


@tool(output_schema=None, **READ)
async def registers(context: ToolContext) -> object:
    """Say what the pack's own hook registered."""
    return NOTES


RAW = Tool.from_schema(
    name="raw",
    description="Take what a schema says.",
    input_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    effect="read",
    required_access=PUBLIC,
    execute=lambda args, context: {"n": args["n"] + 1},
    required_secrets=[SecretRequirement("api_key", env="EVERY_KIND_KEY")],
    aliases=("uncooked",),
    category="odd",
    display_name="Raw one",
    system_prompt="Use raw with care.",
    idempotent=True,
    cost=2.5,
)
SET = Toolset("pair", [add, add_async], system_prompt="These two add.")


# -- other kinds -------------------------------------------------------------------------------------------------------


@guardrail("input")
def no_curses(text, context):
    return GuardVerdict.block("a curse", "curse") if "damn" in text else None


@guardrail("output", sanitizes=True, holds_back=8)
async def no_numbers(text, context):
    if not any(char.isdigit() for char in text):
        return GuardVerdict.allow()
    hidden = "".join("#" if char.isdigit() else char for char in text)
    return GuardVerdict.sanitize(hidden, f"numbers, final {context.is_final}, after {len(context.preceding)}")


class Watch:
    tools = ("*add*",)
    timeout = 3.0
    on_failure = "allow"

    async def evaluate_tool_call(self, call, context):
        if call.arguments.get("a") == 13:
            return GuardVerdict.block(f"{call.name} of {call.tool} with {call.effect}: unlucky", "13")
        if call.arguments.get("a") == 14:
            raise OwnError("can't say")
        return None

    def evaluate_tool_result(self, result, context):
        if result.output == 100:
            return GuardVerdict.flag(f"round, {context.call.name}, {context.principal.id}", "round")
        if result.output == 99:
            other = context.call_tool("every:where", {})
            return GuardVerdict.block(f"nearly round, {other.success}", "near")
        return None


@middleware(tools="raw")
async def doubled(call, next):
    result = await next({"n": call.arguments["n"] * 2})
    return ToolResult.ok({**result.output, "by": [call.name, call.effect, call.idempotent, call.depth]})


@middleware(tools="raw", timeout=5)
def checked(call, next):
    if call.arguments["n"] == 7:
        return ToolResult.fail("Seven", f"no sevens for {call.principal.id}")
    if call.arguments["n"] == 8:
        raise OwnError("eight")
    return next()


def signed(response, context):
    if "raise" in response.text:
        raise OwnError("can't sign")
    return Response(f"{response.text} -- {context.principal.id}", metadata={"signed": True})


class Shout:
    timeout = 2.0

    async def process(self, response, context):
        return response.text.replace("loud", "LOUD")


class Person:
    async def on_proposal(self, proposal):
        name = proposal.arguments["name"]
        if name == "big fish":
            return Answer.approve()
        return Answer.reject(f"not {name}: {proposal.tool} {proposal.effect}") if name == "big bad" else None


class Store:
    limit = 3

    def __init__(self):
        self._kept = {}

    def put(self, key, value):
        self._kept[key] = value

    async def get(self, key):
        return self._kept.get(key)


class Notes:
    timeout = 4.0

    def __init__(self):
        self._hits = []

    def remember(self, record):
        self._hits.append(MemoryHit(f"m{len(self._hits)}", record.text, record.principal, tags=record.tags))
        return self._hits[-1].id

    async def recall(self, query, *, scope, limit):
        found = [one for one in self._hits if query in one.text and one.principal == scope.principal]
        return found[:limit]

    def forget(self, ids, *, scope):
        self._hits = [one for one in self._hits if one.id not in ids]
        return len(ids)

    def stats(self, scope):
        return MemoryStats(len(self._hits), details={"scope": scope.principal})


class Steps:
    async def plan(self, goal, context):
        asked = "nobody" if context.ask is None else await context.ask(f"how to {goal}?")
        names = sorted(one.name for one in context.tools)[:2]
        return Plan((PlanStep("1", f"{goal}: {asked}"), PlanStep("2", f"{names} for {context.principal.id}")))

    def refine(self, plan, results, context):
        return attrs.evolve(plan, steps=(attrs.evolve(plan.steps[0], status="done"), *plan.steps[1:]))


GUIDE = Persona("guide", "Shows around.", lambda context: f"You guide {context.principal.id}.", ("add*",), ("raw",))
PLAIN = Persona("plain", system_prompt="Be plain.", model={"temperature": 0})


@tool(output_schema=None, **READ)
def picture() -> object:
    """Return a picture."""
    return ToolResult.ok("a dot", media=[Media("image/png", b"\x89PNG\r\n", name="dot.png")])


async def app(scope, receive, send):
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": scope["headers"]})
    await send({"type": "http.response.body", "body": body[::-1]})


@tool(output_schema=None, **READ)
def much(size: int) -> str:
    """Return a long text."""
    return "x" * size


NOTES = []


@attrs.frozen
class Options:
    greeting: str = "hello"
    max_items: int = 5


async def _on(context):
    NOTES.append(["pack on", dict(context.options), context.source.pack, context.secret("api_key")])
    late = Tool.from_schema(
        name="late",
        description="Came late.",
        input_schema={"type": "object", "properties": {}},
        effect="read",
        required_access=PUBLIC,
        execute=lambda args, context: "here at last",
    )
    info = await context.tools.register_tool(late)
    own = [one.name for one in context.tools.own_tools()]
    NOTES.append([info.fully_qualified_id, "late" in own, "add" in own])


def _add_on(context):
    NOTES.append([context.entry.kind, context.entry.id, context.entry.pack, context.below])


def _off():
    NOTES.append("off")


def create_extension_pack(context):
    return ExtensionPack(
        "every",
        "1.2.3",
        [
            *SET,
            *(point, day, strange, deep, endless, raises, raises_async, letters, letters_async),
            *(seen, seen_async, undeclared, tells, tells_async, calls, calls_async, where, where_async),
            *(logs, counts, delete, careful, ruled, waits, hangs, registers),
            Descriptor("tool", "raw", RAW, on_activate=_add_on, on_deactivate=_off, metadata={"colour": "red"}),
            Descriptor("tool", "greet", greet_over, priority=50),
            *(no_curses, no_numbers, doubled, checked),
            Descriptor("guardrail", "watch", Watch()),
            Descriptor("response-processor", "signed", signed, check=lambda: [Trouble("warning", "ink", "low", "buy")]),
            Descriptor("response-processor", "shout", Shout(), priority=90),
            Descriptor("hitl-handler", "person", Person()),
            Descriptor("memory-provider", "notes", Notes()),
            Descriptor("planning-strategy", "steps", Steps()),
            *(GUIDE, PLAIN, picture, much),
            Descriptor("web-app", "app", app),
            Descriptor("notebook", "store", Store()),
            Descriptor("phrase", "hello", {"text": context.options.get("greeting", "hi")}),
            Descriptor("joke", "knock", lambda who: f"{who} who?", gate=lambda: "not today"),
        ],
        "Something of everything.",
        options=Options,
        on_activate=_on,
        on_deactivate=_off,
        check=lambda: [Trouble("error", "the pack", f"{len(NOTES)} notes", "read them")],
    )
