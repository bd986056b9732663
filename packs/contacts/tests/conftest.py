"""Offer books and hosts."""

import contextlib
import json

import pytest


@pytest.fixture
async def book(tmp_path):
    """Return an open, empty book."""
    from agentos_pack_common.sqlite import Database
    from agentos_pack_contacts.book import APPLICATION_ID, MIGRATIONS, ContactBook

    database = Database(tmp_path / "book.db", application_id=APPLICATION_ID, migrations=MIGRATIONS)
    made = ContactBook(database, max_contacts=500, clock=lambda: 1_700_000_000.0)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def hosted():
    """Return a function that opens a host with the pack, permitted to register tools unless told otherwise."""
    from agentos import AgentOS, PackEntry

    @contextlib.asynccontextmanager
    async def opened(path=None, *, mode="auto", permissions=("tools:register",), store=None, **options):
        given = options if path is None else {"path": str(path), **options}
        entry = PackEntry(module="agentos_pack_contacts", options=given, permissions=permissions, required=True)
        async with AgentOS(extension_manifest=[entry], mode=mode, store=store) as host:
            yield host

    return opened


@pytest.fixture
def call():
    """Return a function that calls a tool of a host."""
    from agentos import ToolCall

    async def called(host, name, /, **arguments):
        return await host.tools.process_tool_call(ToolCall(name, json.dumps(arguments)))

    return called
