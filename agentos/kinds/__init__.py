"""One small module per kind: its payload contract, its check, its dispatcher. Importing this declares them."""

from agentos.kinds.communication_channel import COMMUNICATION_CHANNEL
from agentos.kinds.guardrail import GUARDRAIL
from agentos.kinds.hitl_handler import HITL_HANDLER
from agentos.kinds.http_handler import HTTP_HANDLER
from agentos.kinds.mcp_server import MCP_SERVER
from agentos.kinds.memory_provider import MEMORY_PROVIDER
from agentos.kinds.messaging_channel import MESSAGING_CHANNEL
from agentos.kinds.persona import PERSONA
from agentos.kinds.planning_strategy import PLANNING_STRATEGY
from agentos.kinds.provenance import PROVENANCE
from agentos.kinds.response_processor import RESPONSE_PROCESSOR
from agentos.kinds.tool import TOOL
from agentos.kinds.tool_middleware import TOOL_MIDDLEWARE
from agentos.kinds.workflow import WORKFLOW
from agentos.kinds.workflow_executor import WORKFLOW_EXECUTOR

KINDS = (
    TOOL,
    HITL_HANDLER,
    GUARDRAIL,
    TOOL_MIDDLEWARE,
    RESPONSE_PROCESSOR,
    PROVENANCE,
    HTTP_HANDLER,
    MCP_SERVER,
    MEMORY_PROVIDER,
    PERSONA,
    PLANNING_STRATEGY,
    MESSAGING_CHANNEL,
    COMMUNICATION_CHANNEL,
    WORKFLOW,
    WORKFLOW_EXECUTOR,
)
"""The kinds that agentos knows more of than their name."""
