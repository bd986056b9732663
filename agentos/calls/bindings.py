"""What a proposal is bound to: its tool as it was, by its place, its definition and what it wraps."""

import attrs

from agentos.access.proposals import Stored
from agentos.base.canonical import digest
from agentos.calls.tool_catalog import ToolCatalog
from agentos.tools.ready import ReadyTool
from agentos.tools.tool import EFFECTS


@attrs.frozen
class Bindings:
    """Says what of a tool a proposal is bound to, and how the tool differs from that later."""

    catalog: ToolCatalog

    def fault(self, ready: ReadyTool, stored: Stored) -> str | None:
        """Say how the tool differs from the one that was proposed: by its place, its definition, or what it wraps."""
        proposal, place = stored.proposal, self.place(ready)
        if place.partition(" ")[0] != stored.entry_state.partition(" ")[0]:
            return self.why_not_in_force(stored)
        if ready.definition != proposal.definition:
            return f"the definition of {proposal.tool} changed since this was proposed"
        return None if place == stored.entry_state else f"what {proposal.tool} wraps changed since this was proposed"

    def place(self, ready: ReadyTool) -> str:
        """Return a tool's state on its stack, with what it wraps: a proposal is bound to both."""
        beneath = self.beneath(ready)
        return f"{ready.entry.state} over {digest(beneath)}" if beneath else str(ready.entry.state)

    def beneath(self, ready: ReadyTool) -> list[tuple[str, str]]:
        """Return the tools that one wraps, by id and definition."""
        return [(one.qualified_id, one.definition) for one in self.catalog.chain(ready)]

    def effect(self, ready: ReadyTool) -> str:
        """Return the strongest effect of a tool and of what it wraps: that is what a person approves."""
        tools = [ready.tool, *(one.tool for one in self.catalog.chain(ready))]
        return max((tool.effect for tool in tools), key=EFFECTS.index)

    def why_not_in_force(self, stored: Stored) -> str:
        """Say that the tool is not what it was on its stack when it was proposed."""
        proposal = stored.proposal
        name = proposal.tool.partition(":")[2]
        active = self.catalog.registry.get_active(name)
        now = f"; {active.source.pack}:{name} is active now" if active is not None else ""
        return (
            f"the tool {proposal.tool}, which was {stored.entry_state.partition(' ')[0]} then, is not so any more{now}"
        )
