"""A server as a pack: `mcp/<name>`, with one tool for each of the server's.

The pack has one descriptor, of kind `mcp-server`, whose payload is the `Bridge`. While it is in force the server is
connected; it is gated while a secret is missing that the server needs. The tools are registered by the running pack,
as the server lists them; they are gated, with the reason, while the server is not connected.
"""

import asyncio
import contextlib
import contextvars
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcp import MCPError
from mcp_types import ResourceLink

from agentos.access.pins import FOREIGN
from agentos.base.foreign import to_the_end
from agentos.errors import AgentOSError
from agentos.extensions.deferral import DeferredActivation, defer_activation, defer_end
from agentos.mcp.client.bridged_documents import BridgedDocuments
from agentos.mcp.client.bridged_tools import BridgedToolMaker, SkippedTool, UnusableToolError
from agentos.mcp.client.call_results import result_of
from agentos.mcp.client.connection import ServerConnection
from agentos.mcp.client.limits import ServerLimits
from agentos.mcp.client.progress_reports import ProgressReports
from agentos.mcp.client.server_faults import not_connected, shadowed, unmatched_keys, unusable
from agentos.mcp.client.server_questions import refusal_in
from agentos.mcp.client.server_spec import ServerSpec
from agentos.mcp.client.server_text import ServerText
from agentos.mcp.client.session import ConnectionLostError, ToolListing
from agentos.model.descriptor import Descriptor
from agentos.model.extension_pack import ExtensionPack
from agentos.model.pack_context import PackContext
from agentos.model.tool_call import ToolResult
from agentos.model.trouble import Trouble
from agentos.tools.definition import definition_hash
from agentos.tools.tool import Tool
from agentos.tools.tool_context import ToolContext

KIND = "mcp-server"
_AT_ONCE = 100
_LOGGED_SKIPS = 5
_MESSAGE = 2_000


class NotConnectedError(AgentOSError):
    """A server that the manifest requires can't be reached."""


def make_pack(
    server: ServerSpec, limits: ServerLimits | None = None, *, starts_when_called: bool = False
) -> ExtensionPack:
    """Return the pack that *server* becomes. It is connected when the pack is loaded, or when it is first called."""
    bridge = Bridge(server, limits or ServerLimits(), starts_when_called=starts_when_called)
    return ExtensionPack(
        server.owner,
        descriptors=[
            Descriptor(
                KIND,
                server.name,
                bridge,
                required_secrets=server.secrets,
                on_activate=bridge.activate,
                on_deactivate=bridge.deactivate,
                check=bridge.check,
            )
        ],
        description=f"The tools of the MCP server {server.name!r}.",
    )


class Bridge:
    """Keeps the tools of one server on the stacks in step with the server.

    `skipped` lists the tools that were left out, with the reason of each.
    """

    def __init__(self, server: ServerSpec, limits: ServerLimits, *, starts_when_called: bool = False) -> None:
        self.server = server
        self._starts_when_called = starts_when_called
        self._context: PackContext | None = None
        self._waking = asyncio.Lock()
        self.is_asleep = False
        """It is not started: its tools are known from earlier runs, and the first call starts it."""
        self.skipped: tuple[SkippedTool, ...] = ()
        self._limits = limits
        self._connection: ServerConnection | None = None
        self._follower: asyncio.Task[None] | None = None
        self._tools: Any = None
        self._logger: Any = None
        self._text = ServerText()
        self._maker = BridgedToolMaker(server, limits, self._text, lambda name: functools.partial(self._run, name))
        self.documents = BridgedDocuments(server, limits, self._text, self._woken)
        self.watchers: set[Callable[[], None]] = set()
        """Are called when the server came or went, or says that its resources or prompts are others."""
        self._documents_version = 0
        self._descriptors: dict[str, Descriptor[Any]] = {}
        self._applied: ToolListing | None = None
        self._gates_closed = asyncio.Event()
        """The tools were asked, and are out of force."""
        self._epoch = -1
        """The epoch of the connection that the gates were last asked in."""

    # -- what is known -----------------------------------------------------------------------------------------

    def why_not(self, *, is_whole: bool = True) -> str | None:
        """Say why the server's tools can't be called now, with its own last message if *is_whole*; None if they can."""
        if self._connection is None:
            return None if self.is_asleep else f"{self.server.owner} is not connected: it is not in force"
        return self._connection.why_not(is_whole=is_whole)

    def _gate(self) -> str | None:
        """Say what keeps a tool out of force, as a model may read it, and note that this was asked."""
        reason = self.why_not(is_whole=False)
        (self._gates_closed.clear if reason is None else self._gates_closed.set)()
        return reason

    def check(self) -> Iterator[Trouble]:
        """Yield what is wrong.

        It is not connected, what is said of its tools fits none, or some are left out, or in the shadow of another
        server's.
        """
        if (why := self.why_not()) is not None:
            yield not_connected(self.server, why)
        elif self._applied is not None:
            yield from unmatched_keys(self.server, map(self._shown_name, self._applied.tools))
            left_out = (one for one in self.skipped if one.reason != _NOT_NAMED)
            yield from (unusable(self.server, str(one)) for one in left_out)
            yield from shadowed(self.server, self._tools.list_tools())

    @property
    def status(self) -> str:
        """Say whether the server is connected, or why not."""
        if self.is_asleep:
            return f"{self.server.owner} is not started; the first call of one of its tools starts it"
        return self.why_not() or f"{self.server.owner} is connected (protocol {self.protocol})"

    @property
    def protocol(self) -> str | None:
        """Return the version of the protocol that is spoken; None while not connected."""
        return None if self._connection is None else self._connection.protocol

    def __repr__(self) -> str:
        return f"<Bridge {self.status}; {len(self._descriptors)} tools, {len(self.skipped)} skipped>"

    # -- life --------------------------------------------------------------------------------------------------

    async def activate(self, context: PackContext) -> None:
        """Connect, and register what the server offers. One that can't be reached is tried again and again.

        While a manifest is loaded, its servers are waited for together.
        """
        self._tools, self._logger, self._epoch, self._context = context.tools, context.logger, -1, context
        if self._starts_when_called and await self._register_remembered():
            return
        connection = self._connect(context)
        activation = DeferredActivation(
            f"on_activate of {KIND}:{self.server.name} (pack {self.server.owner})",
            functools.partial(connection.wait, self.server.start_timeout, for_success=self.server.required),
            functools.partial(self._register, connection),
        )
        try:
            if not defer_activation(activation):
                await activation.wait()
                await activation.finish()
        except BaseException:
            await to_the_end(self._close(connection))
            raise

    def _connect(self, context: PackContext) -> ServerConnection:
        connection = self._connection = ServerConnection(
            self.server, secret=context.secret, text=self._text, logger=context.logger, limits=self._limits
        )
        connection.start()
        return connection

    async def _register(self, connection: ServerConnection) -> None:
        """Register what a server offers that was waited for, and follow it from now on."""
        if connection is not self._connection:  # out of force by now
            return
        is_open = connection.is_open
        if not is_open and self.server.required:
            raise NotConnectedError(str(self.why_not()))
        await self._apply(connection)
        if not is_open:
            self._logger.warning("%s is loaded, but degraded: %s", self.server.owner, self.why_not())
        self._start_following(connection)

    def _start_following(self, connection: ServerConnection) -> None:
        # In a context of its own: what it does later is no part of the change that is under way here.
        self._follower = asyncio.create_task(
            self._follow(connection), name=f"{self.server.owner} tools", context=contextvars.Context()
        )

    # -- started when it is called -----------------------------------------------------------------------------

    async def _register_remembered(self) -> bool:
        """Register the tools that are known from earlier runs; False if there are none, or if one is not as it was."""
        accepted = self._tools.accepted()
        remembered = self._maker.remembered(accepted)
        if not remembered or len(remembered) < sum(id.startswith(self.server.prefix) for id in accepted):
            return False
        self._descriptors = {
            name: self._descriptor(name, tool) for name, tool in remembered.items() if self.server.takes(name)
        }
        self.is_asleep = True
        await self._tools.sync(self._descriptors.values())
        return True

    async def wake(self) -> None:
        """Start the server if it was not started yet, and have its tools be those that it lists."""
        connection = await self._woken()
        if connection is not None and self._applied is None:
            await self._apply(connection)

    async def _woken(self) -> ServerConnection | None:
        """Return the connection; start the server, and wait as long as for one that is loaded, if it was not."""
        async with self._waking:
            if self.is_asleep and self._context is not None:
                connection = self._connection or self._connect(self._context)
                await connection.wait(self.server.start_timeout, for_success=False)
                self.is_asleep = False
                if connection is self._connection and not connection.is_closing:
                    self._start_following(connection)
        return self._connection

    def _fault_of(self, tool: str, connection: ServerConnection) -> ToolResult | None:
        """Say what keeps a remembered tool from being called; None if the server lists it as it was accepted."""
        listing, standing = connection.listing, self._descriptors.get(tool)
        if self._applied is not None or listing is None or standing is None:
            return None
        self._maker.take_instructions(listing.instructions)
        for raw in listing.tools:
            with contextlib.suppress(UnusableToolError):
                if self._maker.name_of(raw) == tool:
                    is_same = definition_hash(self._maker.tool(raw)) == definition_hash(standing.payload)
                    return None if is_same else ToolResult.fail("DefinitionChanged", _CHANGED.format(standing.id))
        return ToolResult.fail("UnknownTool", f"{self.server.owner} does not offer {tool!r} any more")

    # -- the end -----------------------------------------------------------------------------------------------

    async def deactivate(self) -> None:
        """Disconnect. The tools stay on their stacks, gated, until the pack goes or the server is back in force."""
        self.is_asleep = False
        if self._connection is not None:
            closing = asyncio.ensure_future(self._close(self._connection))
            wait = functools.partial(asyncio.wait, [closing])
            if not defer_end(wait):
                await to_the_end(wait())
        with contextlib.suppress(AgentOSError):  # at the end of the host nothing is decided any more
            await self._tools.refresh()

    async def _close(self, connection: ServerConnection) -> None:
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.cancel()
        await connection.close()  # ends the calls that the follower may be waiting for
        if follower is not None:
            await asyncio.wait([follower])
        self._connection = None

    # -- in step with the server -------------------------------------------------------------------------------

    async def _follow(self, connection: ServerConnection) -> None:
        while True:
            await connection.changed.wait()
            try:
                await self._apply(connection)
            except AgentOSError as error:  # the host may be closing; if not, the next change tries again
                self._logger.warning("the tools of %s are not in step: %s", self.server.owner, error)

    async def _apply(self, connection: ServerConnection) -> None:
        """Register what the server listed last, and ask the gates again if it came or went."""
        connection.changed.clear()
        listing, epoch = connection.listing, connection.epoch
        had_any = bool(self._descriptors)
        if listing is not None and listing is not self._applied:
            wanted = await self._wanted(listing)
            await self._tools.sync(wanted.values())
            self._descriptors, self._applied = wanted, listing
        if had_any and epoch != self._epoch:
            await self._tools.refresh()
        self._tell_watchers(listing, epoch)
        self._epoch = epoch

    def _tell_watchers(self, listing: ToolListing | None, epoch: int) -> None:
        version = 0 if listing is None else listing.documents_version
        if epoch != self._epoch or version != self._documents_version:
            for watcher in list(self.watchers):
                watcher()
        self._documents_version = version

    async def _wanted(self, listing: ToolListing) -> dict[str, Descriptor[Any]]:
        """Return a descriptor for every tool that can be taken, by the server's name of it.

        Those that did not change are the same objects.
        """
        skipped = [] if listing.cut is None else [SkippedTool("...", listing.cut)]
        if fault := self._maker.take_instructions(listing.instructions):
            skipped.append(SkippedTool("(instructions)", fault))
        wanted: dict[str, Descriptor[Any]] = {}
        for number, raw in enumerate(listing.tools):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)  # others may run meanwhile
            try:
                name, tool = self._make_tool(raw, wanted)
            except UnusableToolError as error:
                skipped.append(SkippedTool(self._shown_name(raw), str(error)))
            else:
                wanted[name] = self._descriptor(name, tool)
        self._maker.keep_only(set(wanted))
        self._note_skipped(skipped)
        return wanted

    def _make_tool(self, raw: Any, others: Mapping[str, Any]) -> tuple[str, Tool]:
        name = self._maker.name_of(raw)
        if name in others:
            raise UnusableToolError("the server has two tools of this name")
        if not self.server.takes(name):
            raise UnusableToolError(_NOT_NAMED)
        return name, self._maker.tool(raw)

    def _shown_name(self, raw: Any) -> str:
        name = raw.get("name") if isinstance(raw, dict) else None
        return self._text.clip(name, 100) if isinstance(name, str) and name else "(no name)"

    def _descriptor(self, name: str, tool: Tool) -> Descriptor[Any]:
        standing = self._descriptors.get(name)
        if standing is not None and (standing.payload is tool or self._is_as_remembered(standing, tool)):
            return standing
        return Descriptor(
            "tool",
            tool.name,
            tool,
            priority=self.server.rank,
            required_secrets=self.server.secrets,
            metadata={"mcp_server": self.server.name, FOREIGN: not self.server.trust},
            gate=self._gate,
        )

    def _is_as_remembered(self, standing: Descriptor[Any], tool: Tool) -> bool:
        """Tell whether a tool that is known from earlier runs is the one that the server lists: calls of it go on."""
        return self._applied is None and definition_hash(standing.payload) == definition_hash(tool)

    def _note_skipped(self, skipped: list[SkippedTool]) -> None:
        cut = tuple(skipped[: self._limits.skipped])
        logged = [one for one in cut if one.reason != _NOT_NAMED]
        if logged and cut != self.skipped:
            more = f", and {len(logged) - _LOGGED_SKIPS} more" if len(logged) > _LOGGED_SKIPS else ""
            shown = ", ".join(str(one) for one in logged[:_LOGGED_SKIPS])
            self._logger.warning("%s: left out: %s%s", self.server.owner, shown, more)
        self.skipped = cut

    # -- calls -------------------------------------------------------------------------------------------------

    async def _run(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Run one call of the server's tool; however it ends, it returns one result."""
        connection = await self._woken() if self.is_asleep else self._connection
        if connection is None:
            return ToolResult.fail("WorkerDied", str(self.why_not()), {"may_have_run": False})
        if (fault := self._fault_of(tool, connection)) is not None:
            return fault
        progress = ProgressReports(context.report_progress, self._text.clip)
        try:
            answer = await connection.call(tool, arguments, progress)
            await progress.finish()
        except ConnectionLostError as error:
            await self._wait_until_gated(connection)
            return ToolResult.fail("WorkerDied", str(error), {"may_have_run": error.may_have_run})
        except MCPError as error:
            said = f"answers with an error: {self._text.clip(error.message, _MESSAGE)}"
            if (reason := refusal_in(error.message)) is not None:
                said = f"asked for what is refused: {reason}"
            return ToolResult.fail("ToolRaised", f"{self.server.owner} {said}", {"code": error.code})
        except Exception as error:  # noqa: BLE001 - whatever an answer breaks in the SDK: it is the server's fault
            said = self._text.clip(_first_line(error))
            message = f"{self.server.owner} gave an answer that can't be used: {type(error).__name__}: {said}"
            return ToolResult.fail("ToolRaised", message)
        finally:
            progress.stop()
        self.documents.note_links([block.uri for block in answer.content if isinstance(block, ResourceLink)])
        return result_of(answer, self._text, media_limit=self._limits.media)

    async def _wait_until_gated(self, connection: ServerConnection) -> None:
        """Wait until the tools of a server that went away are gated, so that the caller finds them so."""
        if connection is self._connection and not connection.is_closing:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.grace):
                    await self._gates_closed.wait()


_NOT_NAMED = "it is not named in `tools`"
_CHANGED = "the server changed the definition of {} since it was accepted; a person has to accept it"


_URL = re.compile(r"\S*https?://\S*")


def _first_line(error: Exception) -> str:
    """Say in one line what is wrong with an answer, without the addresses that libraries like to add."""
    return _URL.sub("", next(iter(str(error).strip().splitlines()), "")).strip()
