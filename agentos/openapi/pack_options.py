"""What an operator says of an OpenAPI pack: its options, checked."""

import base64
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

import attrs

from agentos.errors import ManifestError, Problem, SecretError
from agentos.model.field_checks import did_you_mean
from agentos.openapi.document import OpenAPIDocument, OpenAPIOperation
from agentos.openapi.projection import OUTPUT_CHECKS, OutputCheck
from agentos.schema.build import Json
from agentos.schema.validation import BadArguments, Checker
from agentos.tools.tool import EFFECTS, Effect

Place = Literal["header", "query", "cookie"]

METHOD_EFFECTS: Mapping[str, Effect] = {
    **dict.fromkeys(("GET", "HEAD", "OPTIONS"), "read"),
    **dict.fromkeys(("POST", "PUT", "PATCH"), "mutate"),
    "DELETE": "destructive",
}
"""What a method does unless `effects` says otherwise."""
_STRINGS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_AUTH = {
    "type": "object",
    "additionalProperties": False,
    "required": ["type", "secret"],
    "properties": {
        "type": {"enum": ["bearer", "header", "query", "basic", "cookie"]},
        "name": {"type": "string", "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$"},
        "secret": {"type": "string", "minLength": 1},
        "username": {"type": "string", "pattern": "^[ -9;-~]+$"},
    },
}
_OPTIONS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["openapi"],
    "properties": {
        "openapi": {"type": ["string", "object"], "minLength": 1, "maxLength": 2_000},
        "server": {"type": "string", "minLength": 1},
        "effects": {"type": "object", "additionalProperties": {"enum": list(EFFECTS)}},
        "include": {**_STRINGS, "minItems": 1},
        "exclude": _STRINGS,
        "requiredAccess": {"anyOf": [{"const": "PUBLIC"}, {**_STRINGS, "minItems": 1}]},
        "auth": {"anyOf": [_AUTH, {"type": "array", "items": _AUTH, "maxItems": 10}]},
        "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 3_600, "default": 30},
        "allowPrivate": {"anyOf": [{"type": "boolean"}, _STRINGS]},
        "redirects": {"type": "integer", "minimum": 0, "maximum": 10, "default": 0},
        "prefix": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,40}$"},
        "checkOutput": {"enum": [*OUTPUT_CHECKS, True, False], "default": "warn"},
    },
}


@attrs.frozen
class Auth:
    """A credential: where it goes, and the secret that it is."""

    type: str
    secret: str
    name: str = "Authorization"
    username: str | None = None

    @property
    def place(self) -> Place:
        """Return which part of a request carries it."""
        return "query" if self.type == "query" else "cookie" if self.type == "cookie" else "header"

    def value(self, read: Callable[[str], str | None]) -> str:
        """Return what is sent, with the secret's value of now."""
        secret = (read(self.secret) or "").strip()
        if not secret:
            raise SecretError(f"the secret {self.secret!r} has no value any more; set it and call again")
        if self.type == "basic":
            pair = secret if self.username is None else f"{self.username}:{secret}"
            pair = pair if ":" in pair else f"{pair}:"
            return f"Basic {base64.b64encode(pair.encode()).decode()}"
        return f"Bearer {secret}" if self.type == "bearer" else secret


@attrs.frozen(kw_only=True)
class Options:
    """What an operator says of a document, checked."""

    openapi: str | Json = attrs.field(repr=False)
    server: str | None = None
    effects: Mapping[str, Effect] = attrs.field(factory=dict)
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    required_access: tuple[str, ...] | None = None
    is_public: bool = False
    auth: tuple[Auth, ...] = ()
    timeout: float = 30.0
    allow_private: tuple[str, ...] | bool = False
    redirects: int = 0
    prefix: str = ""
    check_output: OutputCheck = "warn"

    def takes(self, operation: OpenAPIOperation) -> bool:
        """Tell whether the operator wants an operation."""
        return _fits_any(operation, self.include) and not _fits_any(operation, self.exclude)

    def effect_of(self, operation: OpenAPIOperation) -> Effect | None:
        """Return what an operation does: as its own name says, else the first pattern that fits, else its method."""
        if operation.id in self.effects:
            return self.effects[operation.id]
        said = (effect for pattern, effect in self.effects.items() if _fits_any(operation, [pattern]))
        return next(said, METHOD_EFFECTS.get(operation.method))

    def private_with(self, host: str) -> tuple[str, ...]:
        """Return what may be reached although it is private, if *host* is what the operator named."""
        if isinstance(self.allow_private, bool):
            return (f"[{host}]" if ":" in host else host,) if self.allow_private else ()
        return self.allow_private


def _fits_any(operation: OpenAPIOperation, patterns: Iterable[str]) -> bool:
    """Tell whether an operation is meant, by its id or as `GET /pets/{id}`; patterns of either are known too."""
    names = (operation.id, str(operation))
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns for name in names)


@functools.cache
def _checker() -> Checker:
    return Checker(_OPTIONS, "the options of an OpenAPI pack")


def read_options(given: Mapping[str, Any], origin: str) -> Options:
    """Return checked options; ManifestError lists what is wrong with them."""
    try:
        said = _checker().arguments(given)
    except BadArguments as error:
        found = [Problem(one.path.replace("$", "options", 1), one.message) for one in error.problems]
        raise ManifestError(origin, found or [Problem("options", str(error))]) from None
    auths = said.get("auth", [])
    auths = auths if isinstance(auths, list) else [auths]
    if problems := [Problem("options.auth", fault) for auth in auths if (fault := _fault_of_auth(auth))]:
        raise ManifestError(origin, problems)
    fields = {
        re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key): tuple(value) if isinstance(value, list) else value
        for key, value in said.items()
    }
    access = fields.get("required_access")
    fields |= {"auth": tuple(Auth(**auth) for auth in auths), "is_public": access == "PUBLIC"}
    fields["check_output"] = {True: "error", False: "off"}.get(said["checkOutput"], said["checkOutput"])
    return Options(**fields | {"required_access": access if isinstance(access, tuple) else None})


def _fault_of_auth(auth: Json) -> str | None:
    needs_name = auth["type"] in ("header", "query", "cookie")
    if needs_name != ("name" in auth):
        return f"the type {auth['type']} {'needs a' if needs_name else 'takes no'} `name`"
    if "username" in auth and auth["type"] != "basic":
        return "only the type basic takes a `username`"
    return None


def check_names(options: Options, document: OpenAPIDocument, origin: str) -> None:
    """Refuse unknown names of operations: a slip there would leave in what was meant to be left out."""
    known = dict.fromkeys(name for one in document.operations().values() for name in (one.id, str(one)))
    said = {"effects": options.effects, "include": options.include, "exclude": options.exclude}
    problems = [
        Problem(f"options.{option}", f"there is no operation {name!r}{did_you_mean(name, known)}")
        for option, names in said.items()
        for name in names
        if not set(name) & set("*?[") and name not in known
    ]
    if problems:
        raise ManifestError(origin, problems)
