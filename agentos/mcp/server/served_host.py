"""The part of a host that a server needs. The host itself stands above: it takes MCP servers in as packs."""

from typing import Protocol

from agentos.calls.approvals import Approvals
from agentos.calls.orchestrator import ToolOrchestrator
from agentos.extensions.manager import ExtensionManager

BRIDGES = "mcp-server"
"""The kind of the servers that the host took in."""


class ServedHost(Protocol):
    """What is served: an AgentOS."""

    extensions: ExtensionManager
    tools: ToolOrchestrator
    approvals: Approvals
