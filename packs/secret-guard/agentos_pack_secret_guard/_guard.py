"""The guardrail and the tool."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs
from agentos_pack_common.text_guard import Action, TextGuard

from agentos import PUBLIC, Descriptor, Schema, Tool, read_options, tool
from agentos_pack_secret_guard.detector import find

_reads = tool(effect="read", required_access=PUBLIC, timeout=20, idempotent=True, category="safety")
Stage = Literal["input", "output", "tool_call", "tool_result"]
HELD_BACK = 1_024
"""How many characters of a stream are seen together: most tokens are shorter, and a key is held as a whole."""


@attrs.frozen
class SecretOptions:
    """The options of the pack."""

    action: Action = "sanitize"
    """What is done about a secret: `block`, `sanitize` (its format stands in its place) or `flag`."""
    stages: tuple[Stage, ...] = ("output", "tool_call", "tool_result")
    """Where it is looked for."""
    allowed: tuple[str, ...] = ()
    """Values that look like secrets and are known not to be, such as a public key of a web page."""


def create_descriptors(options: Mapping[str, Any]) -> tuple[Descriptor[TextGuard] | Tool, ...]:
    """Return the guardrail `secrets` and the tool `scan_secrets`."""
    chosen = read_options(SecretOptions, options)
    guard = TextGuard(
        find,
        chosen.action,
        "secrets",
        "SecretFound",
        stages=frozenset(chosen.stages),
        holds_back=HELD_BACK,
        allowed=frozenset(chosen.allowed),
    )
    return Descriptor("guardrail", "secrets", guard), scan_secrets


@attrs.frozen
class FoundSecret:
    """A secret that was found: where, and what it looks like; never the secret itself."""

    format: str
    start: int
    end: int


@_reads
def scan_secrets(
    text: Annotated[str, "The text to look at", Schema(maxLength=200_000)],
) -> list[FoundSecret]:
    """Tell where a text has tokens, keys or passwords, and of which kind; their values are not repeated."""
    return [FoundSecret(one.kind, one.start, one.end) for one in find(text)][:1_000]
