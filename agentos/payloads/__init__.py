"""Payloads that agentos asks: in which order, with what context, and for how long."""
