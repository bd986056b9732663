"""The conformance checks, by their ids.

loads       it can be loaded, and is in force
leaks       it leaves nothing behind: no task, thread, descriptor, process, file or setting
lints       it says what models and people need
schemas     parameters are closed, described, with fitting defaults
bounds      every parameter has its bounds
effects     what a call does is said, and true
wire-names  its names are accepted by every provider
gate        it is gated without its secrets, and in force with them
twice       it comes and goes as often as one likes
sabotage    it leaves nothing behind when a part of it fails
restores    it gives back what it displaced
hostile     its tools survive arguments of every kind
reach       no argument leads them astray
samples     its author's examples succeed
secrets     it tells nobody
quiet       it writes nothing to standard output
dry-run     a dry run shows, and changes nothing
cancel      calls end when they are cancelled
timeout     calls end when their time is up
parallel    calls can be made many at once
succeeds    a call of each tool succeeds
runs        what changes something is run for real
"""

from agentos.testing import _check_calls, _check_definitions, _check_endings, _check_lifecycle
from agentos.testing._check_registry import CHECKS, Check, tools_of

__all__ = ["CHECKS", "Check", "tools_of"]

_ORDER = (
    *("loads", "leaks", "lints", "schemas", "bounds", "effects", "wire-names", "gate", "twice", "sabotage"),
    *("restores", "hostile", "reach", "samples", "secrets", "quiet", "dry-run", "cancel", "timeout", "parallel"),
    *("succeeds", "runs"),
)
_MODULES = (_check_calls, _check_definitions, _check_endings, _check_lifecycle)

for _id in _ORDER:
    CHECKS[_id] = CHECKS.pop(_id)
