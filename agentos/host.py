"""AgentOS: the one object that a host needs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from agentos.manager import ExtensionManager
from agentos.model.manifest import ExtensionManifest
from agentos.model.overrides import Overrides
from agentos.model.report import LoadReport
from agentos.orchestrator import ToolOrchestrator
from agentos.secrets.catalog import SecretCatalog
from agentos.secrets.sources import Vault
from agentos.tools.service import ToolsService

if TYPE_CHECKING:
    from agentos.chat import Turn


class AgentOS:
    """A host's view of agentos: hand over a manifest, initialize, use, shut down.

    `async with AgentOS(...) as host` does the first and the last for you.
    """

    def __init__(
        self,
        *,
        extension_manifest: ExtensionManifest | Mapping[str, Any] | str | Path | None = None,
        extension_secrets: Mapping[str, str] | Vault | None = None,
        extension_overrides: Overrides | Mapping[str, Any] | str | Path | None = None,
        secret_catalog: SecretCatalog | Mapping[str, Any] | str | Path | None = None,
        dotenv: str | Path | None = None,
    ) -> None:
        self.extensions = ExtensionManager(
            extension_manifest,
            secrets=extension_secrets,
            overrides=extension_overrides,
            catalog=secret_catalog,
            dotenv=dotenv,
        )
        self.tools = ToolOrchestrator(self.extensions)

    def tools_service(self, owner: str = "builtin") -> ToolsService:
        """Return what running code registers tools with, as *owner*: `builtin`, a pack's name, or `mcp/<server>`."""
        return ToolsService(self.extensions.port(owner))

    async def run_turn(
        self, client: Any, messages: Sequence[Any], *, model: str | None = None, **request: Any
    ) -> "Turn":
        """Ask *client*'s *model*, run the calls it makes, and go on until it answers: see `agentos.chat.run_turn`.

        *client* is any OpenAI-compatible one, sync or async. Further keywords: principal, session, max_steps, strict,
        transcript, and what the client's `create` takes.
        """
        from agentos.chat import run_turn

        return await run_turn(self, client, messages, model=model, **request)

    async def initialize(self, *, strict: bool = False) -> LoadReport:
        """Load the manifest and report each entry. Calling it again loads only what is not loaded yet."""
        return await self.extensions.load_manifest(strict=strict)

    async def shutdown(self) -> list[Exception]:
        """Deactivate everything in reverse order; return what raised on the way."""
        return await self.extensions.shutdown()

    async def __aenter__(self) -> Self:
        await self.extensions.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.extensions.__aexit__(kind, error, trace)
