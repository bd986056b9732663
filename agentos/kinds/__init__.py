"""One small module per kind: its payload contract, its check, its dispatcher. Importing this declares them."""

from agentos.kinds.tool import TOOL

KINDS = (TOOL,)
"""The kinds that agentos knows more of than their name."""
