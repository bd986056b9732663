"""agentos: the extension layer for programs that have an agent in them.

errors.py     the one tree of errors
model/        frozen values: what packs, manifests and operators say
stacks/       who is active on a stack, and why; registries
secrets/      catalog, sources in order, the scope of each pack, the mask on everything that leaves
loading/      a factory, a module or a package becomes a pack
events.py     what happened, told to observers who can't vote
services.py   shared services, made once, released in reverse
manager.py    ExtensionManager: the only writer of stacks
tools/        tools: authoring, schemas, validation, execution, results
web/          HTTP to foreign hosts, every hop checked
store/        what must last, in SQL: SQLite embedded, PostgreSQL shared
access/       who may do what: gate, approvals, grants, budgets, pins, audit
kinds/        what is special about each kind
orchestrator.py  the one door for calls
interop/      other SDKs: schemas out, calls in
chat.py       a turn with a model
host.py       AgentOS: the facade
"""

import importlib
from typing import TYPE_CHECKING, Any

from agentos._version import __version__

if TYPE_CHECKING:
    from agentos.access.audit import AuditHead, AuditRecord, AuditVerdict
    from agentos.access.budgets import Budget
    from agentos.access.gate import Decision
    from agentos.access.grants import Grant, GrantError
    from agentos.access.lock import Difference, Lock
    from agentos.access.pins import Pin, PinError
    from agentos.access.proposals import Proposal, ProposalError
    from agentos.calls.answers import Answer
    from agentos.calls.approvals import Approvals
    from agentos.calls.executor import ToolExecutor
    from agentos.calls.orchestrator import ToolExplanation, ToolOrchestrator
    from agentos.errors import (
        AgentOSError,
        DescriptorError,
        HookError,
        ManagerClosedError,
        ManifestError,
        NotPermittedError,
        PackLoadError,
        Problem,
        RuleError,
        SecretError,
        SecretNotDeclaredError,
        ServiceError,
        StoreError,
        ToolDefinitionError,
        UnknownPackError,
    )
    from agentos.extensions.events import (
        DescriptorActivated,
        DescriptorDeactivated,
        DescriptorFailed,
        DescriptorGated,
        Event,
        OverrideChanged,
        PackFailed,
        PackLoaded,
        PackSkipped,
        PackUnloaded,
        SecretChanged,
    )
    from agentos.extensions.manager import ExtensionManager
    from agentos.host import AgentOS
    from agentos.kinds import KINDS
    from agentos.loading.curated import CuratedManifest, CuratedReport, create_curated_manifest
    from agentos.model.descriptor import Descriptor, SecretRequirement
    from agentos.model.kind import Kind, declare_kind
    from agentos.model.manifest import ExtensionManifest, PackEntry
    from agentos.model.overrides import Override, Overrides
    from agentos.model.pack import ExtensionPack
    from agentos.model.pack_context import PackContext
    from agentos.model.principal import Principal
    from agentos.model.report import LoadReport, PackOutcome, PackRecord
    from agentos.model.source import Source
    from agentos.model.tool_call import Batch, ToolCall, ToolError, ToolResult
    from agentos.openapi.document import OpenAPIDocument, OpenAPIOperation
    from agentos.openapi.projection import ProjectedTool, project, requires
    from agentos.rules.intervention import ArgumentPattern, InterventionRule
    from agentos.schema.docs import Schema
    from agentos.secrets.catalog import SecretCatalog, SecretDefinition
    from agentos.secrets.masking import Masker
    from agentos.stacks.entry import Entry, EntryState, Explanation, LifecycleContext
    from agentos.stacks.registry import Registry
    from agentos.tools.lint.findings import Finding, lint_pack
    from agentos.tools.listing import ToolInfo
    from agentos.tools.service import ToolsService
    from agentos.tools.tool import PUBLIC, Tool, Toolset, tool
    from agentos.tools.tool_context import ToolContext
    from agentos.tools.tool_events import (
        ToolApproval,
        ToolContent,
        ToolFinished,
        ToolProgress,
        ToolsChanged,
        ToolStarted,
    )

_HOMES = {
    "AgentOS": "agentos.host",
    "AgentOSError": "agentos.errors",
    "Answer": "agentos.calls.answers",
    "Approvals": "agentos.calls.approvals",
    "ArgumentPattern": "agentos.rules.intervention",
    "AuditHead": "agentos.access.audit",
    "AuditRecord": "agentos.access.audit",
    "AuditVerdict": "agentos.access.audit",
    "Batch": "agentos.model.tool_call",
    "Budget": "agentos.access.budgets",
    "CuratedManifest": "agentos.loading.curated",
    "CuratedReport": "agentos.loading.curated",
    "Decision": "agentos.access.gate",
    "Descriptor": "agentos.model.descriptor",
    "DescriptorActivated": "agentos.extensions.events",
    "DescriptorDeactivated": "agentos.extensions.events",
    "DescriptorError": "agentos.errors",
    "DescriptorFailed": "agentos.extensions.events",
    "DescriptorGated": "agentos.extensions.events",
    "Difference": "agentos.access.lock",
    "Entry": "agentos.stacks.entry",
    "EntryState": "agentos.stacks.entry",
    "Event": "agentos.extensions.events",
    "Explanation": "agentos.stacks.entry",
    "ExtensionManager": "agentos.extensions.manager",
    "ExtensionManifest": "agentos.model.manifest",
    "ExtensionPack": "agentos.model.pack",
    "Finding": "agentos.tools.lint.findings",
    "Grant": "agentos.access.grants",
    "GrantError": "agentos.access.grants",
    "HookError": "agentos.errors",
    "InterventionRule": "agentos.rules.intervention",
    "KINDS": "agentos.kinds",
    "Kind": "agentos.model.kind",
    "LifecycleContext": "agentos.stacks.entry",
    "LoadReport": "agentos.model.report",
    "Masker": "agentos.secrets.masking",
    "Lock": "agentos.access.lock",
    "ManagerClosedError": "agentos.errors",
    "ManifestError": "agentos.errors",
    "NotPermittedError": "agentos.errors",
    "OpenAPIDocument": "agentos.openapi.document",
    "OpenAPIOperation": "agentos.openapi.document",
    "Override": "agentos.model.overrides",
    "OverrideChanged": "agentos.extensions.events",
    "Overrides": "agentos.model.overrides",
    "PUBLIC": "agentos.tools.tool",
    "PackContext": "agentos.model.pack_context",
    "PackEntry": "agentos.model.manifest",
    "PackFailed": "agentos.extensions.events",
    "PackLoadError": "agentos.errors",
    "PackLoaded": "agentos.extensions.events",
    "PackOutcome": "agentos.model.report",
    "PackRecord": "agentos.model.report",
    "PackSkipped": "agentos.extensions.events",
    "PackUnloaded": "agentos.extensions.events",
    "Pin": "agentos.access.pins",
    "PinError": "agentos.access.pins",
    "Principal": "agentos.model.principal",
    "Problem": "agentos.errors",
    "ProjectedTool": "agentos.openapi.projection",
    "Proposal": "agentos.access.proposals",
    "ProposalError": "agentos.access.proposals",
    "Registry": "agentos.stacks.registry",
    "RuleError": "agentos.errors",
    "Schema": "agentos.schema.docs",
    "SecretCatalog": "agentos.secrets.catalog",
    "SecretChanged": "agentos.extensions.events",
    "SecretDefinition": "agentos.secrets.catalog",
    "SecretError": "agentos.errors",
    "SecretNotDeclaredError": "agentos.errors",
    "SecretRequirement": "agentos.model.descriptor",
    "ServiceError": "agentos.errors",
    "Source": "agentos.model.source",
    "StoreError": "agentos.errors",
    "Tool": "agentos.tools.tool",
    "ToolApproval": "agentos.tools.tool_events",
    "ToolCall": "agentos.model.tool_call",
    "ToolContent": "agentos.tools.tool_events",
    "ToolContext": "agentos.tools.tool_context",
    "ToolDefinitionError": "agentos.errors",
    "ToolError": "agentos.model.tool_call",
    "ToolExecutor": "agentos.calls.executor",
    "ToolExplanation": "agentos.calls.orchestrator",
    "ToolFinished": "agentos.tools.tool_events",
    "ToolInfo": "agentos.tools.listing",
    "ToolOrchestrator": "agentos.calls.orchestrator",
    "ToolProgress": "agentos.tools.tool_events",
    "ToolResult": "agentos.model.tool_call",
    "ToolStarted": "agentos.tools.tool_events",
    "ToolsChanged": "agentos.tools.tool_events",
    "ToolsService": "agentos.tools.service",
    "Toolset": "agentos.tools.tool",
    "UnknownPackError": "agentos.errors",
    "create_curated_manifest": "agentos.loading.curated",
    "declare_kind": "agentos.model.kind",
    "lint_pack": "agentos.tools.lint.findings",
    "project": "agentos.openapi.projection",
    "requires": "agentos.openapi.projection",
    "tool": "agentos.tools.tool",
}
"""Where each public name lives. It is imported when it is first asked for: a program pays for what it uses."""

__all__ = [
    "KINDS",
    "PUBLIC",
    "AgentOS",
    "AgentOSError",
    "Answer",
    "Approvals",
    "ArgumentPattern",
    "AuditHead",
    "AuditRecord",
    "AuditVerdict",
    "Batch",
    "Budget",
    "CuratedManifest",
    "CuratedReport",
    "Decision",
    "Descriptor",
    "DescriptorActivated",
    "DescriptorDeactivated",
    "DescriptorError",
    "DescriptorFailed",
    "DescriptorGated",
    "Difference",
    "Entry",
    "EntryState",
    "Event",
    "Explanation",
    "ExtensionManager",
    "ExtensionManifest",
    "ExtensionPack",
    "Finding",
    "Grant",
    "GrantError",
    "HookError",
    "InterventionRule",
    "Kind",
    "LifecycleContext",
    "LoadReport",
    "Lock",
    "ManagerClosedError",
    "ManifestError",
    "Masker",
    "NotPermittedError",
    "OpenAPIDocument",
    "OpenAPIOperation",
    "Override",
    "OverrideChanged",
    "Overrides",
    "PackContext",
    "PackEntry",
    "PackFailed",
    "PackLoadError",
    "PackLoaded",
    "PackOutcome",
    "PackRecord",
    "PackSkipped",
    "PackUnloaded",
    "Pin",
    "PinError",
    "Principal",
    "Problem",
    "ProjectedTool",
    "Proposal",
    "ProposalError",
    "Registry",
    "RuleError",
    "Schema",
    "SecretCatalog",
    "SecretChanged",
    "SecretDefinition",
    "SecretError",
    "SecretNotDeclaredError",
    "SecretRequirement",
    "ServiceError",
    "Source",
    "StoreError",
    "Tool",
    "ToolApproval",
    "ToolCall",
    "ToolContent",
    "ToolContext",
    "ToolDefinitionError",
    "ToolError",
    "ToolExecutor",
    "ToolExplanation",
    "ToolFinished",
    "ToolInfo",
    "ToolOrchestrator",
    "ToolProgress",
    "ToolResult",
    "ToolStarted",
    "ToolsChanged",
    "ToolsService",
    "Toolset",
    "UnknownPackError",
    "__version__",
    "create_curated_manifest",
    "declare_kind",
    "lint_pack",
    "project",
    "requires",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'agentos' has no attribute {name!r}")
    importlib.import_module("agentos.kinds")  # our own kinds declare themselves, before anybody uses one
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
