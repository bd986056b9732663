"""`incident-triage`: how severe an incident is, proposed by rules, decided by a person. The example of a definition."""

import re
from collections.abc import Mapping
from typing import Any

import attrs

from agentos import Task, WorkflowDefinition

LEVELS: Mapping[str, re.Pattern[str]] = {
    "critical": re.compile(r"\b(outage|is down|are down|data loss|breach|leaked|corrupt\w*|all (?:users|customers))\b"),
    "high": re.compile(r"\b(fail\w*|errors?|unavailable|can(?:no|')t|timeouts?|crash\w*|refused)\b"),
    "medium": re.compile(r"\b(slow\w*|delay\w*|degraded|retries|intermittent\w*|sometimes)\b"),
}
"""Words that speak for a severity, the most severe first."""
_ORDER = ("low", "medium", "high", "critical")


@attrs.frozen(kw_only=True)
class RecipeOptions:
    """The options of the pack."""

    principal: str | None = None
    """The principal of the manifest that the workflows call their tools as; without it, who starts one says which."""
    notify: str | None = None
    """The target of the pack notify that is told of a triage."""


class IncidentAssessor:
    """The workflow-executor `incident-assessor`: proposes a severity by what an incident says of itself."""

    def execute(self, task: Any, inputs: Mapping[str, Any], context: Any) -> dict[str, Any]:  # noqa: ARG002 - the contract
        """Return `severity`, `why` and a `note` for the timeline."""
        incident = inputs["incident"]
        severity, words = assessed(f"{incident['title']}\n{incident['summary']}", incident["severity"])
        why = f"it says {', '.join(words)}" if words else "nothing speaks for another severity"
        return {"severity": severity, "why": why, "note": f"Triage: {severity}, since {why}."}


def assessed(text: str, present: str) -> tuple[str, list[str]]:
    """Return the severity that a text speaks for, never less than the *present* one, and the words that do."""
    for severity, pattern in LEVELS.items():
        words = sorted({found[0] for found in pattern.finditer(text.lower())})
        if words and _ORDER.index(severity) >= _ORDER.index(present):
            return severity, words
    return present, []


def triage_definition(principal: str | None, notify: str | None) -> WorkflowDefinition:
    """Return the workflow; with a target, that one is told of it in the end."""
    tasks = [
        Task("look", tool="incident_get", arguments={"id": "${inputs.incident}"}),
        Task(
            "assess",
            executor="incident-assessor",
            arguments={"incident": "${look.output}"},
            when="${look.output.status} != 'resolved'",
        ),
        Task(
            "ok",
            human="Take incident ${inputs.incident}, ${look.output.title}, as ${assess.output.severity}? "
            "It is ${look.output.severity}; ${assess.output.why}.",
            arguments={"service": "${look.output.service}", "summary": "${look.output.summary}"},
        ),
        Task(
            "apply",
            tool="incident_update",
            arguments={
                "id": "${inputs.incident}",
                "version": "${look.output.version}",
                "severity": "${assess.output.severity}",
                "status": "investigating",
                "note": "${assess.output.note}",
            },
            needs=["ok"],
            description="On the version that was shown: what changed meanwhile is looked at again.",
        ),
    ]
    if notify is not None:
        body = "${look.output.title}\n${assess.output.note} Approved by ${ok.output.by}."
        said = {"target": notify, "title": "Incident ${inputs.incident} is ${assess.output.severity}", "body": body}
        tasks.append(Task("tell", tool="notify_send", arguments=said, needs=["apply"]))
    return WorkflowDefinition(
        "incident-triage",
        "1" if notify is None else "1-notify",
        tasks,
        description="Proposes how severe an incident is, asks a person, and writes it down.",
        principal=principal,
        inputs={
            "properties": {"incident": {"type": "integer", "minimum": 1, "description": "The incident's number"}},
            "required": ["incident"],
        },
        output={"severity": "${assess.output.severity}", "version": "${apply.output.version}", "by": "${ok.output.by}"},
    )
