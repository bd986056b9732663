"""What a page does with a form that came back: draw it again, or go on with its arguments."""

from collections.abc import Sequence
from typing import Any

import attrs

from agentos.studio.forms.form_entries import ACTION, arguments_of, entered_of, problems_in, read_json
from agentos.studio.forms.form_fields import FormField, form_of

_RAW = "arguments"
"""The field of a program that sends arguments as JSON."""


@attrs.frozen(kw_only=True)
class SubmittedForm:
    """A form that came back: its arguments, or the form to draw again with what is wrong with them."""

    arguments: Any = attrs.field(default=None, repr=False)
    form: FormField = attrs.field(repr=False)
    is_ready: bool
    """The arguments fit their schema, and nothing in the form was to be changed first."""


def submitted_form(schema: Any, fields: Sequence[tuple[str, str]]) -> SubmittedForm:
    """Return what the fields of a request mean as arguments for *schema*."""
    given = dict(fields)
    if given.get(ACTION):
        return SubmittedForm(form=form_of(schema, entered_of(schema, fields)), is_ready=False)
    if _RAW in given:
        read = read_json(given[_RAW])
        is_object = isinstance(read, dict)
        return SubmittedForm(
            arguments=read if is_object else given[_RAW], form=form_of(schema, read if is_object else {}), is_ready=True
        )
    told = arguments_of(schema, fields)
    problems = [*told.problems, *(() if told.problems else problems_in(schema, told.value))]
    return SubmittedForm(arguments=told.value, form=form_of(schema, told.entered, problems), is_ready=not problems)
