"""Workflows as data: values, mappings, manifests, and everything that is wrong with one at once."""

import datetime as dt
import itertools
import json
from typing import Annotated, Literal

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos import (
    PUBLIC,
    ExtensionManifest,
    ManifestError,
    Retry,
    Schema,
    Task,
    UndoCall,
    WorkflowDefinition,
    tool,
)
from agentos.schema.validation import BadArguments
from agentos.workflows.definition_checks import Surroundings, completed_inputs, problems_of, problems_of_inputs
from agentos.workflows.task_order import cycles_in, layers_of, needs_of

ONBOARD = {
    "version": "2",
    "description": "Make an account and say so.",
    "principal": "runner",
    "timeout": 3600.0,
    "inputs": {"properties": {"customer": {"type": "string"}}, "required": ["customer"]},
    "output": {"account": "${account.output.id}"},
    "tasks": [
        {
            "id": "account",
            "tool": "create_account",
            "arguments": {"name": "${inputs.customer}"},
            "retry": {"attempts": 5, "maxDelay": 60.0, "notOn": ["Denied"]},
            "timeout": 30.0,
            "undo": {"tool": "delete_account", "arguments": {"id": "${account.output.id}"}},
        },
        {"id": "ok", "human": "Welcome ${inputs.customer}?", "when": "${account.output.seats} > 1"},
        {"id": "bill", "executor": "billing", "needs": ["account"]},
        {"id": "tell", "workflow": "tell-sales", "arguments": {"who": "${account.output.id}"}},
    ],
}
TOML = """
[workflows.onboard]
version = "2"
description = "Make an account and say so."
principal = "runner"
timeout = 3600
inputs = { properties = { customer = { type = "string" } }, required = ["customer"] }
output = { account = "${account.output.id}" }

[[workflows.onboard.tasks]]
id = "account"
tool = "create_account"
arguments = { name = "${inputs.customer}" }
retry = { attempts = 5, maxDelay = 60, notOn = ["Denied"] }
timeout = 30
undo = { tool = "delete_account", arguments = { id = "${account.output.id}" } }

[[workflows.onboard.tasks]]
id = "ok"
human = "Welcome ${inputs.customer}?"
when = "${account.output.seats} > 1"

[[workflows.onboard.tasks]]
id = "bill"
executor = "billing"
needs = ["account"]

[[workflows.onboard.tasks]]
id = "tell"
workflow = "tell-sales"
arguments = { who = "${account.output.id}" }
"""
YAML = """
workflows:
  onboard:
    version: "2"
    description: Make an account and say so.
    principal: runner
    timeout: 3600
    inputs: {properties: {customer: {type: string}}, required: [customer]}
    output: {account: "${account.output.id}"}
    tasks:
      - id: account
        tool: create_account
        arguments: {name: "${inputs.customer}"}
        retry: {attempts: 5, maxDelay: 60, notOn: [Denied]}
        timeout: 30
        undo: {tool: delete_account, arguments: {id: "${account.output.id}"}}
      - {id: ok, human: "Welcome ${inputs.customer}?", when: "${account.output.seats} > 1"}
      - {id: bill, executor: billing, needs: [account]}
      - {id: tell, workflow: tell-sales, arguments: {who: "${account.output.id}"}}
"""
PYTHON = WorkflowDefinition(
    "onboard",
    "2",
    [
        Task(
            "account",
            tool="create_account",
            arguments={"name": "${inputs.customer}"},
            retry=Retry(5, max_delay=60.0, not_on="Denied"),
            timeout=30.0,
            undo=UndoCall("delete_account", {"id": "${account.output.id}"}),
        ),
        Task("ok", human="Welcome ${inputs.customer}?", when="${account.output.seats} > 1"),
        Task("bill", executor="billing", needs="account"),
        Task("tell", workflow="tell-sales", arguments={"who": "${account.output.id}"}),
    ],
    description="Make an account and say so.",
    principal="runner",
    timeout=3600.0,
    inputs={"properties": {"customer": {"type": "string"}}, "required": ["customer"]},
    output={"account": "${account.output.id}"},
)


@pytest.mark.parametrize(("suffix", "text"), [("toml", TOML), ("yaml", YAML), ("json", None)])
def test_a_workflow_is_the_same_in_python_and_in_every_file(tmp_path, suffix, text):
    file = tmp_path / f"manifest.{suffix}"
    file.write_text(text or json.dumps({"workflows": {"onboard": ONBOARD}}))
    read = ExtensionManifest.from_file(file).settings.workflows["onboard"]

    assert read == PYTHON == WorkflowDefinition.from_dict(ONBOARD, id="onboard")
    assert read.digest == PYTHON.digest


def test_a_definition_survives_being_written_down():
    written = json.loads(json.dumps(PYTHON.to_dict()))

    assert WorkflowDefinition.from_dict(written) == PYTHON
    assert PYTHON.digest != attrs.evolve(PYTHON, tasks=PYTHON.tasks[:2]).digest


def test_unknown_keys_are_told_with_their_path_and_the_nearest_name():
    with pytest.raises(ManifestError) as caught:
        ExtensionManifest.from_dict(
            {
                "workflows": {
                    "a b": {"version": "1", "tasks": [{"id": "x", "tol": "t"}, {"tool": "t", "retry": {"atempts": 1}}]},
                    "c": {"verson": "1", "tasks": []},
                }
            }
        )

    assert [str(one).partition(". ")[0].partition("? ")[0] for one in caught.value.problems] == [
        "workflows['a b'].tasks[0].tol: unknown key; did you mean 'tool'",
        "workflows['a b'].tasks[1]: expected the key 'id'",
        "workflows['a b'].tasks[1].retry.atempts: unknown key; did you mean 'attempts'",
        "workflows.c: expected the key 'version'",
        "workflows.c.verson: unknown key; did you mean 'version'",
        "workflows.c.tasks: expected at least 1 items",
    ]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"version": "1", "tasks": [{"id": "inputs", "tool": "t"}]}, "tasks[0].id: expected at most 64 letters"),
        ({"version": "1", "tasks": [{"id": "9", "tool": "t"}]}, "tasks[0].id: expected at most 64 letters"),
        (
            {"version": "1", "tasks": [{"id": "a", "tool": "t", "arguments": {"at": dt.date(2026, 1, 1)}}]},
            "tasks[0].arguments: expected JSON: a date is not JSON",
        ),
        ({"version": 1, "tasks": [{"id": "a", "tool": "t"}]}, "version: expected a string, got an int"),
        ([], "(top level): expected a mapping, got list"),
    ],
)
def test_what_can_not_be_a_definition_is_refused(data, problem):
    with pytest.raises(ManifestError) as caught:
        WorkflowDefinition.from_dict(data, id="x")

    assert str(caught.value.problems[0]).startswith(problem)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Task("a", tool=""),
        lambda: Task("a", tool="t", timeout=0),
        lambda: Task("a", tool="t", retry=5),
        lambda: Task("a", tool="t", arguments={"x": {1, 2}}),
        lambda: UndoCall(""),
        lambda: WorkflowDefinition("x", "1 2", []),
        lambda: WorkflowDefinition("x", "1", ["a"]),
        lambda: WorkflowDefinition("x", "1", {"a": Task("a", tool="t")}),
        lambda: WorkflowDefinition("x", "1", [Task(f"t{n}", tool="t") for n in range(501)]),
        lambda: WorkflowDefinition("x", "1", [], output=object()),
    ],
)
def test_values_are_refused_where_they_are_written(make):
    with pytest.raises(ManifestError, match="expected"):
        make()


# -- everything that is wrong, at once ---------------------------------------------------------------------------------


@attrs.frozen
class Account:
    id: int
    tags: list[str]
    note: str | None = None


@tool(effect="mutate", required_access=PUBLIC)
def create_account(
    name: str, seats: Annotated[int, Schema(minimum=1)] = 1, kind: Literal["free", "paid"] = "free"
) -> Account:
    """Create an account."""


@tool(effect="mutate", required_access=PUBLIC)
def send_mail(to: str, text: str) -> None:
    """Send a mail."""


TOOLS = {"create_account": create_account, "send_mail": send_mail, "mail:send_mail": send_mail}
AROUND = Surroundings(
    tool=TOOLS.get,
    tool_names=lambda: TOOLS,
    executors=["billing"],
    workflows={"tell-sales": {"type": "object", "properties": {"who": {"type": "integer"}}, "required": ["who"]}},
    principals=["runner"],
)


def told(*tasks, around=AROUND, **fields):
    return [str(one) for one in problems_of(WorkflowDefinition("x", "1", tasks, **fields), around)]


def test_nothing_is_said_of_a_definition_that_is_right():
    account = Task("account", tool="create_account", arguments={"name": "${inputs.who}", "seats": "${inputs.seats}"})
    tasks = [
        account,
        Task("tell", workflow="tell-sales", arguments={"who": "${account.output.id}"}),
        Task("ok", human="Bill ${account.output.tags[0]} of ${run.date}?"),
        Task("bill", executor="billing", arguments={"by": "${ok.output.by}"}, retry=Retry()),
        Task(
            "sorry",
            tool="mail:send_mail",
            arguments={"to": "a", "text": "${bill.error.message}"},
            when="${bill.state} == 'failed'",
            undo=UndoCall("send_mail", {"to": "a", "text": "${account.output.note}"}),
            needs="account",
        ),
    ]
    inputs = {"properties": {"who": {"type": "string"}, "seats": {"type": "integer"}}}

    assert told(*tasks, inputs=inputs, output="${tell.output.anything}", principal="runner") == []


def test_all_mistakes_are_told_at_once_each_with_its_path():
    found = told(
        Task("a", tool="create_acount", arguments={"x": 1}),
        Task("b", tool="create_account", arguments={"seats": 0, "nam": "x", "kind": "gratis"}),
        Task("c", tool="create_account", arguments={"name": "${inputs.custmer}", "seats": "${inputs.who} x"}),
        Task("d", tool="send_mail", arguments={"to": "${c.output.idd}", "text": "${nope.state} ${c.foo} ${run.tim}"}),
        Task("e", tool="send_mail", human="x", needs=["zz"]),
        Task("f", retry=Retry()),
        Task("f", human="${c.output.tags.x}", retry=Retry(), when="${c.stat} == 1"),
        Task("g", executor="biling", when="x"),
        Task("h", workflow="tel-sales", undo=UndoCall("send_mail", {"to": "${a.output}", "tex": "${ x"})),
        Task("i", workflow="tell-sales", arguments={"who": "ann"}),
        inputs={"properties": {"customer": {"type": "string"}, "who": {"type": "string"}}},
        output=["${x.output}"],
        principal="runer",
    )

    assert found == [
        "principal: there is no principal 'runer'; did you mean 'runner'?",
        "tasks[0].tool: no tool 'create_acount' is there for the workflow's principal; did you mean 'create_account'?",
        "tasks[1].arguments.seats: expected at least 1",
        'tasks[1].arguments.kind: expected one of "free", "paid"',
        "tasks[1].arguments.nam: unknown key; did you mean 'name'? Known keys: name, seats, kind",
        "tasks[1].arguments: expected the key 'name'",
        (
            "tasks[2].arguments.name: ${inputs.custmer}: inputs has no key 'custmer'; did you mean 'customer'?; it has "
            "'customer', 'who'"
        ),
        "tasks[2].arguments.seats: expected an int, got a string",
        (
            "tasks[3].arguments.to: ${c.output.idd}: c.output has no key 'idd'; did you mean 'id'?; it has 'id', "
            "'tags', 'note'"
        ),
        "tasks[3].arguments.text: ${nope.state}: there is no task 'nope'",
        "tasks[3].arguments.text: ${c.foo}: expected one of c.output, c.content, c.state, c.error",
        (
            "tasks[3].arguments.text: ${run.tim}: expected one of run.id, run.workflow, run.version, run.principal, "
            "run.time, run.date"
        ),
        "tasks[4]: expected exactly one of tool, executor, workflow, human; got tool and human",
        "tasks[4].needs[0]: there is no task 'zz'",
        "tasks[4].arguments: expected the key 'to'",
        "tasks[4].arguments: expected the key 'text'",
        "tasks[5]: expected exactly one of tool, executor, workflow, human; got none",
        "tasks[6].id: 'f' stands twice; each task has an id of its own",
        "tasks[6].retry: counts only for a task with tool or executor",
        "tasks[6].when: ${c.stat}: expected one of c.output, c.content, c.state, c.error",
        "tasks[6].human: ${c.output.tags.x}: c.output.tags is a list, and has no key 'x'",
        "tasks[7].when: expected a value, got 'x'; a text stands in quotes",
        "tasks[7].executor: no workflow-executor 'biling' is active; did you mean 'billing'?",
        "tasks[8].undo.arguments.to: ${a.output}: 'a' may not be over by then; name it in `needs`",
        "tasks[8].undo.arguments.tex: '${ x' is never closed by a '}'; write '$${' for a plain '${'",
        "tasks[8].workflow: no workflow 'tel-sales' is active; did you mean 'tell-sales'?",
        "tasks[9].arguments.who: expected an int, got a string",
        "output[0]: ${x.output}: there is no task 'x'",
    ]


def test_cycles_are_named_each_once():
    chain = {"to": "x", "text": "${c.output}"}
    found = told(
        Task("a", human="?", needs=["b"]),
        Task("b", human="?", needs="a", when="${a.state}"),
        Task("c", tool="send_mail", arguments=chain),
        Task("d", human="?", needs=["c", "f"]),
        Task("e", human="?", needs="d"),
        Task("f", human="?", needs="e"),
    )

    assert found == [
        "tasks[0]: waits for itself: a -> b -> a; leave one of them out of `needs` or references",
        "tasks[2]: waits for itself: c -> c; leave one of them out of `needs` or references",
        "tasks[3]: waits for itself: d -> e -> f -> d; leave one of them out of `needs` or references",
    ]


def test_without_surroundings_what_it_names_is_not_asked_for():
    assert told(Task("a", tool="nobody_has_this", arguments={"x": "${inputs.y}"}), around=None) == [
        "tasks[0].arguments.x: ${inputs.y}: inputs has no key 'y'"
    ]


def test_a_workflow_needs_tasks_and_inputs_that_are_a_schema():
    assert told(inputs={"type": "array"}) == [
        "tasks: expected at least one task",
        "inputs: expected a JSON Schema with type 'object'",
    ]
    assert told(Task("a", human="?"), inputs={"properties": {"x": {"type": "sting"}}})[0].startswith(
        "inputs: it: no usable"
    )


CLOSED = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
OPTIONAL = {"anyOf": [CLOSED, {"type": "null"}]}
NUMBERS = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
TREE = {**CLOSED, "properties": {"t": {"$ref": "#/$defs/t"}}}
NESTED = {"$ref": "#/$defs/t", "$defs": {"t": TREE}}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "path", "is_known"),
    [
        (OPTIONAL, "a", True),
        (OPTIONAL, "b", False),
        ({"type": "object"}, "b.c[0]", True),
        (NUMBERS, "a[3]", True),
        (NUMBERS, "a[3].x", False),
        (NESTED, "t.t.t", True),
        (NESTED, "t.t.x", False),
        ({"allOf": [{"type": "object"}]}, "x", True),
        (TEXTS, "x", True),
        (TEXTS, "x.y", False),
        ({"type": "string"}, "x", False),
        ({"type": ["string", "object"]}, "x", True),
    ],
)
def test_ways_through_an_output_are_checked_by_its_schema(schema, path, is_known):
    @attrs.frozen
    class Known:
        input_schema = {"type": "object"}
        output_schema = schema

    around = Surroundings(tool=lambda _: Known())
    found = told(Task("a", tool="t"), around=around, output=f"${{a.output.{path}}}")

    assert (found == []) is is_known


def test_inputs_are_checked_and_completed():
    inputs = {"properties": {"who": {"type": "string"}, "n": {"type": "integer", "default": 3}}, "required": ["who"]}
    definition = WorkflowDefinition("x", "1", [Task("a", human="?")], inputs=inputs)

    assert completed_inputs(definition, {"who": "ann"}) == {"who": "ann", "n": 3}
    assert [one.path for one in problems_of_inputs(definition, {"wo": 1})] == ["inputs.wo", "inputs.who"]
    with pytest.raises(BadArguments):
        completed_inputs(definition, {})


# -- the order of tasks ------------------------------------------------------------------------------------------------

graphs = st.integers(1, 8).flatmap(
    lambda size: st.lists(st.lists(st.integers(0, size - 1), max_size=3), min_size=size, max_size=size)
)


@given(graph=graphs)
@settings(max_examples=examples(500))
def test_either_cycles_are_named_or_there_are_layers(graph):
    tasks = [Task(f"t{one}", human="?", needs=[f"t{other}" for other in needs]) for one, needs in enumerate(graph)]
    needs = needs_of(tasks)
    cycles = cycles_in(needs)
    if cycles:
        for cycle in cycles:
            assert cycle[0] == cycle[-1]
            assert all(before in needs[after] for before, after in itertools.pairwise(cycle))
    else:
        layers = layers_of(needs)
        place = {id: depth for depth, layer in enumerate(layers) for id in layer}
        assert place.keys() == needs.keys()
        assert all(place[need] < place[id] for id, named in needs.items() for need in named)
