"""The guardrail and the tools."""

import functools
import importlib.util
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import attrs
from agentos_pack_common.findings import hidden
from agentos_pack_common.text_guard import Action, TextGuard

from agentos import PUBLIC, Descriptor, Schema, Tool, read_options, tool
from agentos_pack_pii_guard.detector import find

_reads = tool(effect="read", required_access=PUBLIC, timeout=20, idempotent=True, category="safety")
Stage = Literal["input", "output", "tool_call", "tool_result"]
Kind = Literal["email", "card", "iban", "ssn", "ip", "phone"]
Text = Annotated[str, "The text to look at", Schema(maxLength=200_000)]


@attrs.frozen
class PiiOptions:
    """The options of the pack."""

    action: Action = "sanitize"
    """What is done about personal data: `block`, `sanitize` (its type stands in its place) or `flag`."""
    stages: tuple[Stage, ...] = ("input", "output")
    """Where it is looked for."""
    kinds: tuple[Kind, ...] = ("email", "card", "iban", "ssn", "ip")
    """What is looked for; `phone` needs the extra of the same name."""
    region: str | None = None
    """The country whose phone numbers are known without their `+`, such as `DE`."""
    allowed: tuple[str, ...] = ()
    """Values that may pass, such as the address of one's own support."""


def create_descriptors(options: Mapping[str, Any]) -> tuple[Descriptor[TextGuard] | Tool, ...]:
    """Return the guardrail `pii` and the tools `pii_scan` and `pii_redact`."""
    chosen = read_options(PiiOptions, options)
    if "phone" in chosen.kinds and importlib.util.find_spec("phonenumbers") is None:
        raise ValueError("options.kinds: `phone` needs the extra: pip install 'agentos-pack-pii-guard[phone]'")
    found = functools.partial(find, kinds=frozenset(chosen.kinds), region=chosen.region)
    guard = TextGuard(
        found,
        chosen.action,
        "personal data",
        "PersonalData",
        stages=frozenset(chosen.stages),
        allowed=frozenset(chosen.allowed),
    )

    @_reads
    def pii_scan(text: Text) -> list[FoundData]:
        """Tell where a text has personal data, and of which type; the data are not repeated."""
        return [FoundData(one.kind, one.start, one.end) for one in found(text)][:1_000]

    @_reads
    def pii_redact(text: Text) -> str:
        """Return a text with the type in brackets in place of personal data that has a format; names stay."""
        return hidden(text, found(text))

    return Descriptor("guardrail", "pii", guard), pii_scan, pii_redact


@attrs.frozen
class FoundData:
    """Personal data that was found: where, and of which type; never the data themselves."""

    type: str
    start: int
    end: int
