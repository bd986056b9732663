"""What is known of secrets: the shipped catalog, what a host adds to it, and what packs say of their own."""

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from agentos.model.descriptor import SecretRequirement
from agentos.secrets.catalog import SecretCatalog, SecretDefinition


class KnownSecrets:
    """Definitions by id. What the catalog says of an id counts first; what a pack says is added to it.

    What a pack says counts for that pack alone: none can change where another one's secrets are looked for.
    """

    def __init__(self, added: SecretCatalog | None = None) -> None:
        self._added = added
        self._catalog: SecretCatalog | None = None
        self._described: dict[object, tuple[str, list[SecretRequirement]]] = {}
        """By who says it: the pack's name, and what it says."""

    @property
    def catalog(self) -> SecretCatalog:
        """Return the shipped catalog with what the host added; it is read when it is first needed."""
        if self._catalog is None:
            shipped = SecretCatalog.shipped()
            self._catalog = shipped if self._added is None else shipped.extended(self._added)
        return self._catalog

    def get(self, id: str, owner: object = None) -> SecretDefinition | None:
        """Return what is known of *id*: from the catalog, and from what *owner* says of it; without one, from all."""
        known = self.catalog.get(id)
        for _, needs in self._described.values() if owner is None else [self._described.get(owner, ("", []))]:
            for need in needs:
                if need.id == id:
                    known = merged(known, definition_in(need))
        return known

    def hint(self, id: str, owner: object = None) -> str:
        """Name *id* with the way to set it."""
        known = self.get(id, owner)
        if known is None or not known.variables:
            return f"{id!r} (give it to the host as {id!r})"
        return f"{id!r} (set {known.env_var} in the environment or .env)"

    def describe(self, owner: object, pack: str, needs: Iterable[SecretRequirement]) -> None:
        """Note what *owner*, a pack called *pack*, says of its secrets."""
        said = [need for need in needs if need.env or need.url or need.description]
        if said:
            _, before = self._described.get(owner, (pack, []))
            self._described[owner] = (pack, list(dict.fromkeys([*before, *said])))

    def forget(self, owner: object) -> None:
        """Forget what *owner* said."""
        self._described.pop(owner, None)

    def rivals(self) -> dict[str, list[str]]:
        """Say of each pack which of its variables is claimed for another id as well: by a pack, or by the catalog."""
        claims = self._claims()
        told: dict[str, list[str]] = {}
        for pack, needs in self._described.values():
            for need in needs:
                others = {id: who for id, who in claims.get(need.env or "", {}).items() if id != need.id}
                told.setdefault(pack, []).extend(_rival(need, id, who) for id, who in others.items())
        return {pack: list(dict.fromkeys(said)) for pack, said in told.items() if said}

    def _claims(self) -> dict[str, dict[str, str]]:
        """Return who claims each variable that packs name: by variable, then by id."""
        claims: dict[str, dict[str, str]] = {}
        for pack, needs in self._described.values():
            for need in needs:
                if need.env:
                    claims.setdefault(need.env, {}).setdefault(need.id, f"the pack {pack!r}")
        for definition in self.catalog if claims else ():
            for variable in definition.variables:
                if variable in claims:
                    claims[variable][definition.id] = "the catalog"
        return claims


def _rival(need: SecretRequirement, other: str, who: str) -> str:
    return (
        f"it takes the variable {need.env} for {need.id!r}, and {who} for {other!r}: both get the same value; "
        "use one id for one secret, or another variable"
    )


def definition_in(need: SecretRequirement) -> SecretDefinition:
    """Return what a requirement says of its secret."""
    return SecretDefinition(need.id, need.env, description=need.description, docs_url=need.url)


def merged(known: SecretDefinition | None, more: SecretDefinition) -> SecretDefinition:
    """Return *known* with what *more* adds to it."""
    if known is None:
        return more
    first, *others = dict.fromkeys([*known.variables, *more.variables]) or [None]
    return attrs.evolve(
        known,
        env_var=first,
        aliases=tuple(filter(None, others)),
        description=known.description or more.description,
        docs_url=known.docs_url or more.docs_url,
    )


def needs_of(descriptors: Iterable[Any]) -> Iterator[SecretRequirement]:
    """Yield what *descriptors* declare."""
    for descriptor in descriptors:
        yield from descriptor.required_secrets
