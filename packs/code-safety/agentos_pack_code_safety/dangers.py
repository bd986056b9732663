"""What a rule found."""

from typing import Literal

import attrs

Severity = Literal["block", "flag"]


@attrs.frozen(order=True)
class Danger:
    """A rule that a text breaks: `shell.delete-everything`."""

    rule: str
    severity: Severity = attrs.field(order=False)
    reason: str = attrs.field(order=False)
