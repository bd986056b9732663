"""Which secrets are there, and what waits for those that are not. No value is ever shown."""

from collections.abc import Iterator

import attrs
from starlette.responses import Response

from agentos.secrets.sources import DeclaredSecret
from agentos.stacks.entry import Entry
from agentos.studio.page import Page
from agentos.studio.row_table import Cell, TableChoice, TableRow, table
from agentos.studio.view import PageView


@attrs.define
class NeededSecret:
    """A secret, and who declares it."""

    found: DeclaredSecret
    entries: list[Entry]

    @property
    def is_optional(self) -> bool:
        """Tell whether nobody waits for it."""
        return all(
            one.optional for entry in self.entries for one in entry.descriptor.required_secrets if one.id == self.id
        )

    @property
    def id(self) -> str:
        """Return its id."""
        return self.found.requirement.id

    @property
    def state(self) -> str:
        """Say in a word whether it is there."""
        if self.found.origin is not None:
            return "set"
        return "not-set" if self.is_optional else "missing"


async def show(view: PageView) -> Response:
    """Show which secrets are declared, and whether they are there."""
    return table(
        view,
        ("secret", "state", "from", "needed by", "what it is"),
        map(_row, _needed(view)),
        empty="No loaded pack needs a secret.",
        choices=(TableChoice(name="state", label="State"),),
        topic="secrets",
    )


def _needed(view: PageView) -> list[NeededSecret]:
    found: dict[str, NeededSecret] = {}
    for entry in _entries(view):
        for one in view.host.extensions.secrets_of(entry):
            known = found.setdefault(one.requirement.id, NeededSecret(one, []))
            known.entries.append(entry)
            if known.found.origin is None:
                known.found = one
    return list(found.values())


def _entries(view: PageView) -> Iterator[Entry]:
    manager = view.host.extensions
    for kind in manager.kinds():
        registry = manager.registry(kind)
        for id in registry.ids():
            yield from (entry for entry in registry.stack(id) if entry.descriptor.required_secrets)


def _row(secret: NeededSecret) -> TableRow:
    known, requirement = secret.found.definition, secret.found.requirement
    what = requirement.description or (known.description if known is not None else "")
    way = "" if secret.found.origin is not None else f"agentos secrets add {secret.id}"
    return TableRow(
        cells=(
            Cell(secret.id, "code"),
            Cell(secret.state, "state"),
            Cell(secret.found.origin or way),
            Cell(", ".join(dict.fromkeys(f"{entry.pack}:{entry.id}" for entry in secret.entries)), "wide"),
            Cell(what, "wide"),
        ),
        traits={"state": secret.state},
    )


SECRETS = Page(id="secrets", title="Secrets", question="What is set, and what is missing?", group="Who may", show=show)
