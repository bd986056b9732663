"""The part of a host that a server needs. The host itself stands above: it takes MCP servers in as packs."""

from typing import Protocol

from agentos.access.approvals import Approvals
from agentos.manager import ExtensionManager
from agentos.orchestrator import ToolOrchestrator


class Host(Protocol):
    """What is served: an AgentOS."""

    extensions: ExtensionManager
    tools: ToolOrchestrator
    approvals: Approvals
