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
    PackLoadError,
    Problem,
    SecretError,
    SecretNotDeclaredError,
    ServiceError,
    UnknownPackError,
)
from agentos.events import Event
from agentos.host import AgentOS
from agentos.manager import ExtensionManager
from agentos.model.context import PackContext
from agentos.model.descriptor import Descriptor, SecretRequirement
from agentos.model.kind import Kind, declare_kind
from agentos.model.manifest import ExtensionManifest, PackEntry
from agentos.model.overrides import Override, Overrides
from agentos.model.pack import ExtensionPack
from agentos.model.report import LoadReport, PackOutcome, PackRecord
from agentos.model.source import Source
from agentos.secrets.catalog import SecretCatalog, SecretDefinition
from agentos.stacks.entry import Entry, EntryState, Explanation, LifecycleContext
from agentos.stacks.registry import Registry

logging.getLogger("agentos").addHandler(logging.NullHandler())

__all__ = [
    "AgentOS",
    "AgentOSError",
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
    "Override",
    "Overrides",
    "PackContext",
    "PackEntry",
    "PackLoadError",
    "PackOutcome",
    "PackRecord",
    "Problem",
    "Registry",
    "SecretCatalog",
    "SecretDefinition",
    "SecretError",
    "SecretNotDeclaredError",
    "SecretRequirement",
    "ServiceError",
    "Source",
    "UnknownPackError",
    "__version__",
    "declare_kind",
]
