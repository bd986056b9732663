"""A host whose studio talks to a model on loopback: what the tests of its chat share."""

import contextlib

import pytest
from model_wires import Chat, serving

from agentos import AgentOS, Display, ExtensionPack, Persona, Tool
from agentos.studio.studio_chats import ChatModel

KEY = "sk-a-key-that-is-never-shown"
WRITE = ("c1", "write", '{"path": "a.txt", "text": "good day"}')


def pack(written):
    """Return tools for notes, and a persona that has one of them."""

    async def write(arguments, context):
        written.append(arguments)
        return {"path": arguments["path"], "size": len(arguments["text"])}

    async def look(arguments, context):
        return {"hits": [{"title": "Cats"}, {"title": "<b>Dogs</b>"}]}

    texts = {name: {"type": "string"} for name in ("path", "text")}
    schema = {"type": "object", "properties": texts, "required": list(texts), "additionalProperties": False}
    writes = Tool.from_schema(
        name="write",
        description="Write a note.",
        input_schema=schema,
        effect="mutate",
        required_access=("notes:write",),
        execute=write,
        dry_run=lambda arguments, context: {"before": "", "after": arguments["text"]},
        display=Display("table", title="Write {args.path}", fields=("path", "size")),
    )
    looks = Tool.from_schema(
        name="look",
        description="Look for notes.",
        input_schema={"type": "object", "properties": {}},
        effect="read",
        required_access=("notes:write",),
        execute=look,
        display=Display("table", title="Notes", fields=("hits[].title",)),
    )
    persona = Persona("quiet", "Says little.", "You say little.", tools=["look"], greeting="Hm.")
    return ExtensionPack("notes", "1.0", [writes, looks, persona])


@contextlib.asynccontextmanager
async def chatting(*script, **options):
    """Give a host, the model that its studio talks to, its endpoint, and what the tools wrote."""
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")
    written = []
    with serving(Chat()) as endpoint:
        endpoint.script = list(script)
        sdk = lambda: openai.AsyncOpenAI(base_url=f"{endpoint.url}/v1", api_key=KEY, max_retries=0)  # noqa: E731
        model = ChatModel(client=sdk, model="m", place="loopback", system="Be kind.")
        async with AgentOS(**options) as host:
            await host.extensions.load_pack(pack(written))
            yield host, model, endpoint, written
            await model.end()
