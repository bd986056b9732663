"""What must not run, whoever asks: the host's `deny` list and the `never` grants."""

from collections.abc import Mapping
from typing import Any

import attrs

from agentos.access.grants import Grant, Grants
from agentos.access.policy import Policy
from agentos.tools.ready import ReadyTool
from agentos.tools.tool import Tool


@attrs.frozen
class Denials:
    """Says in words what denies a call. Denials come first: nothing that allows can outweigh them."""

    _policy: Policy
    _grants: Grants

    def bar(self, tool: Tool, qualified_id: str, principal: str | None) -> str | None:
        """Return what denies every call of a tool to *principal*, or (None) to everybody."""
        pattern = self._policy.denies(tool, qualified_id)
        if pattern is not None:
            return _by_host(qualified_id, pattern)
        barring = self._grants.barring(principal)
        return next((_by_grant(qualified_id, one) for one in barring if one.names(tool, qualified_id)), None)

    def of_tool(self, prepared: ReadyTool) -> str | None:
        """Return what the host denies to everybody: every call of a tool."""
        pattern = self._policy.denies(prepared.tool, prepared.qualified_id)
        return None if pattern is None else _by_host(prepared.qualified_id, pattern)

    def of_call(
        self, prepared: ReadyTool, principal: str, session: str | None, arguments: Mapping[str, Any]
    ) -> str | None:
        """Return what denies one call."""
        denied = self.of_tool(prepared)
        if denied is not None:
            return denied
        grant = self._grants.denying(prepared, principal, session, arguments)
        return None if grant is None else _by_grant(prepared.qualified_id, grant)


def _by_host(qualified_id: str, pattern: str) -> str:
    return f"{qualified_id} is denied by {pattern!r} in the host's deny list"


def _by_grant(qualified_id: str, grant: Grant) -> str:
    return f"{qualified_id} is denied by {grant}"
