"""Where values come from, in order, and what one pack may read of them."""

import inspect
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from agentos.base.foreign import Border, settled
from agentos.errors import SecretError, SecretNotDeclaredError
from agentos.model.descriptor import SecretRequirement
from agentos.secrets.catalog import SecretCatalog, SecretDefinition
from agentos.secrets.known_secrets import KnownSecrets
from agentos.secrets.masking import Masker

Vault = Callable[[str], str | Awaitable[str | None] | None]

_PLACEHOLDERS = frozenset(
    [
        "changeme",
        "changethis",
        "replaceme",
        "replacethis",
        "todo",
        "tbd",
        "placeholder",
        "none",
        "null",
        "undefined",
        "yourkey",
        "yourtoken",
        "yoursecret",
        "yourpassword",
        "yourapikey",
        "yourapitoken",
        "yoursecretkey",
        "youraccesstoken",
        "yourkeyhere",
        "yourtokenhere",
        "yoursecrethere",
        "yourapikeyhere",
    ]
)
_PLACEHOLDER_SHAPES = re.compile(
    r"<.*>|\$\{.*\}|\{\{.*\}\}|x{3,}|\*{3,}|\.{3,}|your[-_ ].*(key|token|secret|password|id|url|sid)([-_ ]here)?"
    r"|(insert|enter|put|add|paste|replace)[-_ ].*([-_ ](here|me|this))|(sk|pk)-(x{3,}|\.{3,}|\*{3,}|your[-_].*)",
    re.IGNORECASE | re.DOTALL,
)


_NOBODY = object()
"""Owns nothing: what no pack says of its own secrets."""


def is_real(value: str | None) -> bool:
    """Tell a value from a blank or from what a template left in its place."""
    if value is None:
        return False
    bare = value.strip()
    if not bare or re.sub(r"[-_ ]", "", bare.lower()) in _PLACEHOLDERS:
        return False
    return _PLACEHOLDER_SHAPES.fullmatch(bare) is None


class Fallback:
    """A source of the host's that counts last: it is asked for what no other source has."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    def __call__(self, id: str) -> str | Awaitable[str | None] | None:
        """Return what the source has of *id*."""
        return self._vault(id)


class SecretSources:
    """Looks a secret up in the sources, in the order that `_candidates` states: nobody else puts them in order.

    A manager has one; whoever wants to know what a loaded pack sees asks that one. *catalog* is added to the shipped
    one.
    """

    def __init__(
        self,
        host: Mapping[str, str] | Vault | None = None,
        *,
        catalog: SecretCatalog | None = None,
        dotenv: str | Path | None = None,
        masker: Masker,
    ) -> None:
        self.known = KnownSecrets(catalog)
        self.masker = masker
        self._vault: Vault | None = None
        self._is_async = False
        self._is_last = isinstance(host, Fallback)
        self._given: dict[str, str] = {}
        if callable(host):
            self._vault = host
            self._is_async = inspect.iscoroutinefunction(_unwrapped(host))
        elif host is not None:
            self._given = {id: _text(id, value) for id, value in host.items() if value is not None}
        self._dotenv_path = None if dotenv is None else Path(dotenv)
        self._dotenv: Mapping[str, str | None] = {}
        self._fetched: dict[str, str | None] = {}
        self._runtime: dict[str, str] = {}
        self._last_seen: dict[str, str | None] = {}
        self.read_dotenv()
        for value in self._given.values():
            masker.learn(value)

    @property
    def fetches_later(self) -> bool:
        """Tell whether the host's source has to be awaited."""
        return self._is_async

    def read_dotenv(self) -> None:
        """Read the `.env` file again. Nothing of it enters the process environment."""
        if self._dotenv_path is not None and self._dotenv_path.is_file():
            from dotenv import dotenv_values

            self._dotenv = dotenv_values(self._dotenv_path, interpolate=False, encoding="utf-8")
        else:
            self._dotenv = {}

    def set(self, id: str, value: str | None) -> None:
        """Set a value for this run; None takes it away, and the sources below count again."""
        if value is None:
            self._runtime.pop(id, None)
        else:
            self._runtime[id] = _text(id, value)
            self.masker.learn(value)

    async def fetch(self, ids: Iterable[str], *, again: bool = False) -> None:
        """Ask the host's callable for *ids*. One that raises counts as not having them.

        One that counts last is left alone where everybody sees another value.
        """
        if self._vault is None:
            return
        for id in ids:
            if self._is_last and self._first(self._others(id, {}, _NOBODY)) is not None:
                continue
            if again or id not in self._fetched:
                answer = await self._ask(id)
                if again or id not in self._fetched:  # else somebody else's answer came first, and counts already
                    self._fetched[id] = answer

    async def _ask(self, id: str) -> str | None:
        assert self._vault is not None  # noqa: S101 - told by the caller
        with Border() as border:  # a vault is foreign code: without an answer the secret is missing
            value = await settled(self._vault(id))
        if border.error is not None:
            self._complain(id, self.masker.describe(border.error))
            return self._fetched.get(id)  # an outage does not take away what is known
        return None if value is None else _text(id, value)

    def _complain(self, id: str, why: str) -> None:
        import logging

        logging.getLogger("agentos.secrets").warning("the host's source failed for %r: %s", id, why)

    def is_unfetched(self, id: str) -> bool:
        """Tell whether the host's awaited source was not asked for *id* yet."""
        return self.fetches_later and id not in self._fetched

    def has_changed(self, id: str) -> bool:
        """Tell whether the value that everybody sees is another one than when this was last asked."""
        found = self.find(id, {})
        value = found[0] if found else None
        before = self._last_seen.get(id)
        self._last_seen[id] = value
        return value != before

    def find(self, id: str, own: Mapping[str, str], owner: object = None) -> tuple[str, str] | None:
        """Return the first real value of *id* and where it was found.

        *own* are the values of one pack's options; of what packs say of their secrets, that of *owner* counts.
        """
        return self._first(self._candidates(id, own, owner))

    def _first(self, candidates: Iterable[tuple[str, str | None]]) -> tuple[str, str] | None:
        for origin, value in candidates:
            if value is not None and is_real(value):
                self.masker.learn(value)
                return value, origin
        return None

    def _candidates(self, id: str, own: Mapping[str, str], owner: object) -> Iterable[tuple[str, str | None]]:
        """Yield what each source has of *id*, the one that counts most first, with its name."""
        yield "set at run time", self._runtime.get(id)
        if not self._is_last:
            yield "the host", self._from_host(id)
        yield from self._others(id, own, owner)
        if self._is_last:
            yield "the host", self._from_host(id)

    def _others(self, id: str, own: Mapping[str, str], owner: object) -> Iterable[tuple[str, str | None]]:
        """Yield what the pack's own options, the environment and `.env` have."""
        yield "the pack entry's options", own.get(id)
        known = self.known.get(id, owner)
        variables = known.variables if known else ()
        for name in variables:
            yield f"the environment variable {name}", os.environ.get(name)
        for name in variables:
            yield f"{name} in {self._dotenv_path}", self._dotenv.get(name)

    def _from_host(self, id: str) -> str | None:
        if self._vault is None:
            return self._given.get(id)
        if id not in self._fetched and not self.fetches_later:
            self._ask_now(id)
        return self._fetched.get(id)

    def _ask_now(self, id: str) -> None:
        """Ask a callable that answers at once; one that hands out an awaitable turns out to be async."""
        assert self._vault is not None  # noqa: S101 - told by the caller
        value = None
        with Border() as border:  # as in _ask
            value = self._vault(id)
        if border.error is not None:
            self._complain(id, self.masker.describe(border.error))
        if inspect.isawaitable(value):
            self._is_async = True
            if inspect.iscoroutine(value):
                value.close()
        else:
            self._fetched[id] = None if value is None else _text(id, value)


def _unwrapped(function: Any) -> Any:
    import functools

    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isfunction(function) or inspect.ismethod(function) or inspect.isclass(function):
        return function
    return type(function).__call__ if hasattr(type(function), "__call__") else function  # noqa: B004


def _text(id: str, value: object) -> str:
    if not isinstance(value, str):
        raise SecretError(f"the secret {id!r} must be a string, got {type(value).__name__}")
    return value


@attrs.frozen
class DeclaredSecret:
    """A secret that a descriptor declares: what is known of it, and where its value was found (None: it is missing)."""

    requirement: SecretRequirement
    definition: SecretDefinition | None
    origin: str | None


class SecretScope:
    """What one pack may read: the secrets its descriptors declare, its own values among them.

    While a pack is being made nothing is declared yet: reads are let through and remembered, and `declare`
    says which of them nobody declared.
    """

    def __init__(self, pack: str, sources: SecretSources, own: Mapping[str, str]) -> None:
        self.pack = pack
        self.own = dict(own)
        self._sources = sources
        self._declared: set[str] | None = None
        self._asked: dict[str, bool] = {}
        """What was read while the pack was made, and whether there was a value."""
        self.closed = False
        for value in self.own.values():
            sources.masker.learn(value)

    def read(self, id: str) -> str | None:
        """Return the value of now, or None if it is missing."""
        if self.closed:
            raise SecretNotDeclaredError(self.pack, id, "the pack is not loaded any more")
        if self._declared is not None and id not in self._declared:
            raise SecretNotDeclaredError(
                self.pack, id, "none of its descriptors declares it; add it to required_secrets"
            )
        found = self._sources.find(id, self.own, self)
        if self._declared is None:
            self._asked[id] = found is not None
        return found[0] if found else None

    def has(self, id: str) -> bool:
        """Tell whether a real value is there, without handing it out."""
        return self._sources.find(id, self.own, self) is not None

    def hint(self, id: str) -> str:
        """Name *id* with the way to set it."""
        return self._sources.known.hint(id, self)

    def look_up(self, need: SecretRequirement) -> "DeclaredSecret":
        """Say what is known of a secret and where its value was found; never the value."""
        found = self._sources.find(need.id, self.own, self)
        return DeclaredSecret(need, self._sources.known.get(need.id, self), found[1] if found else None)

    def mask(self, text: str) -> str:
        """Return *text* without any value that the host knows."""
        return self._sources.masker.mask(text)

    def unfetched(self) -> list[str]:
        """Return what was asked for while the pack was made, but waits for the host's source."""
        return [id for id in self._asked if self._sources.is_unfetched(id)]

    def describe(self, pack: str, needs: Iterable[SecretRequirement]) -> bool:
        """Note what the pack says of its secrets; tell whether one that it asked for in vain is there now."""
        self._sources.known.describe(self, pack, needs)
        return any(not was_there and self.has(id) for id, was_there in self._asked.items())

    def declare(self, pack: str, needs: Iterable[SecretRequirement]) -> list[str]:
        """Fix what the pack may read, and return what it had read without declaring it."""
        self.pack = pack
        self._declared = set()
        self.declare_more(needs)
        return [id for id in self._asked if id not in self._declared]

    def declare_more(self, needs: Iterable[SecretRequirement]) -> None:
        """Let the pack read what a descriptor declares that it registered later."""
        needs = list(needs)
        self._declared = (self._declared or set()) | {need.id for need in needs}
        self._sources.known.describe(self, self.pack, needs)

    def close(self) -> None:
        """Let nothing be read any more."""
        self.closed = True
        self._sources.known.forget(self)
