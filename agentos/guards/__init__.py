"""Guardrails: asked about texts, calls and results, and what their answers come to."""
