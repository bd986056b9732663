"""`agentos memory`: what the memory-providers remember of a principal: listed, searched, forgotten."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from agentos.cli.app import App, Fail, examples, run_async
from agentos.cli.host_session import working_host
from agentos.cli.terminal.harmless_text import one_line

if TYPE_CHECKING:
    from agentos.host import AgentOS
    from agentos.model.memory import MemoryHit

_MOST = 50
_SHOWN = 300

_namespace = click.option("--namespace", metavar="NAME", help="Only what is in that namespace.")
_limit = click.option(
    "--limit", type=click.IntRange(1, _MOST), default=20, show_default=True, help="How many at the most."
)


@click.group(
    epilog=examples(
        "agentos memory list --principal ann",
        'agentos memory search "what does she drink" --principal ann',
        "agentos memory forget sqlite-memory:m_3f2a91c0d4e5f607 --principal ann",
    )
)
def memory() -> None:
    """List, search and forget what is remembered of a principal.

    With --principal, of that one, else of the host itself; nobody sees what is remembered of another.
    """


@memory.command(
    "list", epilog=examples("agentos memory list", "agentos memory list --principal ann --namespace work --json")
)
@_namespace
@_limit
@run_async
async def list_(app: App, *, namespace: str | None, limit: int) -> None:
    """List what is remembered, the newest first."""
    await _show(app, "", namespace, limit, empty="Nothing is remembered.")


@memory.command(epilog=examples('agentos memory search "tea or coffee"', "agentos memory search tea --limit 3 --json"))
@click.argument("query")
@_namespace
@_limit
@run_async
async def search(app: App, *, query: str, namespace: str | None, limit: int) -> None:
    """Search what is remembered for QUERY, the best first."""
    if not query.strip():
        raise click.UsageError("QUERY is empty; `agentos memory list` shows all")
    await _show(app, query, namespace, limit, empty="Nothing that is remembered fits.")


async def _show(app: App, query: str, namespace: str | None, limit: int, *, empty: str) -> None:
    async with working_host(app, starts_servers=False) as host:
        _require_provider(host)
        hits = await host.memory.recall(query, principal=app.principal, namespace=namespace or "", limit=limit)
        stats = await host.memory.stats(principal=app.principal, namespace=namespace or "")
    count = sum(one.memories for one in stats.values())
    app.out.data({"principal": app.principal.key, "memories": [_data(hit) for hit in hits], "count": count})
    rows = [((hit.id, "bold"), hit.namespace, (hit.saved_at or "")[:10], one_line(hit.text)[:_SHOWN]) for hit in hits]
    app.out.table(("id", "namespace", "saved", "text"), rows, empty=empty)


def _data(hit: "MemoryHit") -> dict[str, Any]:
    return {
        "id": hit.id,
        "also": list(hit.also),
        "text": hit.text,
        "namespace": hit.namespace,
        "tags": list(hit.tags),
        "metadata": dict(hit.metadata),
        "savedAt": hit.saved_at,
    }


@memory.command(
    epilog=examples(
        "agentos memory forget sqlite-memory:m_3f2a91c0d4e5f607",
        "agentos memory forget sqlite-memory:m_3f2a91c0d4e5f607 --principal ann --json",
    )
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@_namespace
@run_async
async def forget(app: App, *, ids: Sequence[str], namespace: str | None) -> None:
    """Forget memories for good, by ids as `agentos memory list` shows them. There is no way back."""
    from agentos.errors import MemoryProviderError

    async with working_host(app, starts_servers=False) as host:
        _require_provider(host)
        try:
            count = await host.memory.forget(ids, principal=app.principal, namespace=namespace or "")
        except MemoryProviderError as error:
            raise Fail(str(error)) from None
    if count == 0:
        raise Fail("nothing of that id is remembered", hint="`agentos memory list` shows what is")
    app.out.data({"principal": app.principal.key, "forgotten": count})
    app.out.say(f"{count} {'memory is' if count == 1 else 'memories are'} forgotten")


def _require_provider(host: "AgentOS") -> None:
    if not host.memory.providers:
        raise Fail("no memory-provider is active", hint="`agentos packs add sqlite-memory` adds one")
