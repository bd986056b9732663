"""agentos: the extension layer for programs that have an agent in them.

errors.py     the one tree of errors
model/        frozen values: what packs, manifests and operators say
stacks/       who is active on a stack, and why; registries
secrets/      catalog, sources in order, the scope of each pack, the mask on everything that leaves
loading/      a factory, a module or a package becomes a pack
events.py     what happened, told to observers who can't vote
services.py   shared services, made once, released in reverse
manager.py    ExtensionManager: the only writer of stacks
host.py       AgentOS: the facade
"""

import logging

from agentos._version import __version__
from agentos.errors import (
    AgentOSError,
    DescriptorError,
    HookError,
    ManagerClosedError,
    ManifestError,
    NotPermittedError,
    PackLoadError,
    Problem,
    SecretError,
    SecretNotDeclaredError,
    ServiceError,
    ToolDefinitionError,
    UnknownPackError,
)
from agentos.events import Event
from agentos.host import AgentOS
from agentos.kinds import KINDS
from agentos.manager import ExtensionManager
from agentos.model.context import PackContext
from agentos.model.descriptor import Descriptor, SecretRequirement
from agentos.model.kind import Kind, declare_kind
from agentos.model.manifest import ExtensionManifest, PackEntry
from agentos.model.overrides import Override, Overrides
from agentos.model.pack import ExtensionPack
from agentos.model.principal import Principal
from agentos.model.report import LoadReport, PackOutcome, PackRecord
from agentos.model.source import Source
from agentos.orchestrator import ToolOrchestrator
from agentos.secrets.catalog import SecretCatalog, SecretDefinition
from agentos.stacks.entry import Entry, EntryState, Explanation, LifecycleContext
from agentos.stacks.registry import Registry
from agentos.tools._docs import Schema
from agentos.tools.calls import Batch, ToolCall, ToolError, ToolResult
from agentos.tools.context import ToolContext
from agentos.tools.executor import ToolExecutor
from agentos.tools.listing import ToolInfo
from agentos.tools.service import ToolsService
from agentos.tools.tool import PUBLIC, Tool, Toolset, tool

logging.getLogger("agentos").addHandler(logging.NullHandler())

__all__ = [
    "KINDS",
    "PUBLIC",
    "AgentOS",
    "AgentOSError",
    "Batch",
    "Descriptor",
    "DescriptorError",
    "Entry",
    "EntryState",
    "Event",
    "Explanation",
    "ExtensionManager",
    "ExtensionManifest",
    "ExtensionPack",
    "HookError",
    "Kind",
    "LifecycleContext",
    "LoadReport",
    "ManagerClosedError",
    "ManifestError",
    "NotPermittedError",
    "Override",
    "Overrides",
    "PackContext",
    "PackEntry",
    "PackLoadError",
    "PackOutcome",
    "PackRecord",
    "Principal",
    "Problem",
    "Registry",
    "Schema",
    "SecretCatalog",
    "SecretDefinition",
    "SecretError",
    "SecretNotDeclaredError",
    "SecretRequirement",
    "ServiceError",
    "Source",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "ToolExecutor",
    "ToolInfo",
    "ToolOrchestrator",
    "ToolResult",
    "ToolsService",
    "Toolset",
    "UnknownPackError",
    "__version__",
    "declare_kind",
    "tool",
]
