"""One small module per kind: its payload contract, its check, its dispatcher. Importing this declares them."""

from agentos.kinds.hitl_handler import HITL_HANDLER
from agentos.kinds.tool import TOOL

KINDS = (TOOL, HITL_HANDLER)
"""The kinds that agentos knows more of than their name."""
