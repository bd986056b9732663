"""Who may do what."""

from agentos.model.principal import Principal

__all__ = ["Principal"]
