"""Serve what the conformance suite asks for: over stdin and stdout, or over HTTP until SIGTERM.

python tests/conformance/serve.py --stdio
python tests/conformance/serve.py --port 8000 [--only pack | nothing] [--calls FILE]
"""

import argparse
import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import additions
import fixture_pack
import uvicorn

from agentos import AgentOS, ExtensionManifest, PackEntry
from agentos.mcp import MCPServer
from agentos.mcp.http.serving import app_for, serve_http

PATH = "/mcp"


def manifest_of(only: str | None) -> ExtensionManifest:
    """Return what is loaded: both packs, the fixture pack alone, or nothing."""
    fixtures = PackEntry(factory=fixture_pack.create_extension_pack, permissions=("tools:register",))
    extra = PackEntry(factory=additions.create_extension_pack)
    return ExtensionManifest({None: [fixtures, extra], "pack": [fixtures], "nothing": []}[only])


async def serve(options: argparse.Namespace) -> None:
    """Serve until the client is gone, or until told to end."""
    async with AgentOS(extension_manifest=manifest_of(options.only), budget=None) as host:
        host.extensions.report.raise_on_failure()
        await host.approvals.pending()  # opens the store, which the first question would else wait for
        if options.port is None:
            await _server_of(host, options.only).run_stdio()
        elif options.only is None:
            await _serve_extended(_server_of(host, None), options.port)
        else:
            how = {"path": PATH, "allowed_origins": _origins(options.port), "search_above": None}
            task = asyncio.create_task(serve_http(host, port=options.port, verifier=None, ready=_tell, **how))
            await _until_told(task, task.cancel)


def _server_of(host: AgentOS, only: str | None) -> MCPServer:
    mcp = MCPServer(host, search_above=None)
    if only is None:
        additions.add_to(mcp.server)
    return mcp


def _origins(port: int) -> list[str]:
    """Return the origins that the suite wants to be let in: this machine's own."""
    return [f"http://{name}:{port}" for name in ("127.0.0.1", "localhost")]


class _Uvicorn(uvicorn.Server):
    """Leaves signals to this program, and tells when requests are taken."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        _tell(f"http://127.0.0.1:{self.config.port}{PATH}")

    def end(self) -> None:
        self.should_exit = True


async def _serve_extended(mcp: MCPServer, port: int) -> None:
    app = app_for(mcp.server, verifier=None, close=mcp.close, path=PATH, allowed_origins=_origins(port))
    server = _Uvicorn(uvicorn.Config(app, port=port, log_config=None, access_log=False, timeout_graceful_shutdown=2))
    await _until_told(asyncio.create_task(server.serve()), server.end)


async def _until_told(serving: asyncio.Task[None], end: Callable[[], object]) -> None:
    """Serve until SIGTERM."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    with suppress(asyncio.CancelledError):
        await serving


def _tell(address: str) -> None:
    print(address, flush=True)  # noqa: T201 - it is waited for


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser()
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--stdio", action="store_true")
    where.add_argument("--port", type=int)
    parser.add_argument("--only", choices=("pack", "nothing"), help="leave the additions out, or the pack too")
    parser.add_argument("--calls", type=Path, help="note which fixtures were called")
    options = parser.parse_args()
    fixture_pack.write_calls_to(options.calls)
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
