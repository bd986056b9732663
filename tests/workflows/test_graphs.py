"""Graphs of definitions and of runs: as text, in mermaid's language, and as SVG."""

import itertools
import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import examples

from agentos import RunState, StepRecord, Task, WorkflowDefinition, WorkflowRun
from agentos.workflows.graph_pictures import graph_mermaid, graph_svg, layout_of
from agentos.workflows.graph_text import graph_lines, graph_text
from agentos.workflows.graphs import NODE_LIMIT, STATES, GraphNode, WorkflowGraph, graph_of_definition, graph_of_run

TRIAGE = WorkflowDefinition(
    "triage",
    "1",
    [
        Task("look", tool="incident_view"),
        Task("who", tool="contact_find"),
        Task("plan", executor="planner", arguments={"a": "${look.output}", "b": "${who.output}"}),
        Task("ok", human="Apply ${plan.output}?"),
        Task("fix", tool="shell", needs=["ok"]),
        Task("tell", workflow="tell", arguments={"a": "${look.output}", "b": "${fix.output}"}),
        Task("sorry", tool="notify_send", when="${fix.state} == 'failed'"),
    ],
)


def run_of(*steps, state=RunState.WAITING, workflow="triage"):
    return WorkflowRun(id="3f2a", workflow=workflow, version="1", state=state, steps=steps)


def step(key, name=None, *, kind="call", state="done", **fields):
    return StepRecord(key=key, name=name or f"s{key}", kind=kind, state=state, **fields)


def test_a_definition_is_drawn_as_text():
    assert graph_text(graph_of_definition(TRIAGE)).splitlines() == [
        "triage, version 1",
        "├── · look  incident_view",
        "│   · plan  executor planner  (also after who)",
        "│   · ok  a person: Apply ${plan.output}?",
        "│   · fix  shell",
        "│   ├── · tell  workflow tell  (also after look)",
        "│   └── · sorry  notify_send",
        "└── · who  contact_find",
    ]


def test_a_run_of_a_definition_shows_the_state_of_each_task():
    run = run_of(
        step("0.0.0", "look"),
        step("0.1.0", "who", state="failed", error={"type": "NotFound", "message": "nobody"}),
        step("0.2.0", "plan", kind="skip", state="skipped", reason="the task 'who', which it needs, failed"),
        step("u0.0.0", "look", kind="undo"),
    )

    assert graph_text(graph_of_run(run, TRIAGE), ascii_only=True).splitlines()[:3] == [
        "triage, version 1: run 3f2a, waiting",
        "|-- + look  incident_view  done  undone",
        "|   - plan  executor planner  skipped  the task 'who', which it needs, failed  (also after who)",
    ]
    assert "x who  contact_find  failed  NotFound: nobody" in graph_text(graph_of_run(run, TRIAGE), ascii_only=True)


def test_a_run_of_a_function_is_the_graph_of_its_steps():
    keys = ["0", "1", "2.0.0", "2.0.1", "2.1.0", "2.2.0.0.0", "2.2.0.1.0", "2.2.1", "3"]
    graph = graph_of_run(run_of(*map(step, keys)))

    assert graph.needs == {
        "0": (),
        "1": ("0",),
        "2.0.0": ("1",),
        "2.0.1": ("2.0.0",),
        "2.1.0": ("1",),
        "2.2.0.0.0": ("1",),
        "2.2.0.1.0": ("1",),
        "2.2.1": ("2.2.0.0.0", "2.2.0.1.0"),
        "3": ("2.0.1", "2.1.0", "2.2.1"),
    }
    assert graph_text(graph).splitlines()[1:4] == ["✓ s0  done", "✓ s1  done", "├── ✓ s2.0.0  done"]


def test_a_run_of_another_version_is_not_drawn_on_the_definition_of_now():
    run = WorkflowRun(id="1", workflow="triage", version="0", state=RunState.FAILED, steps=(step("0", "old"),))

    assert [one.name for one in graph_of_run(run, TRIAGE).nodes] == ["old"]


def test_a_definition_that_waits_for_itself_is_drawn_all_the_same():
    graph = graph_of_definition(
        WorkflowDefinition("x", "1", [Task("a", tool="t", needs="b"), Task("b", tool="t", needs="a")])
    )

    assert [len(layer) for layer in graph.layers] == [1, 1]


def test_only_so_many_steps_are_drawn():
    graph = graph_of_run(run_of(*(step(str(number)) for number in range(NODE_LIMIT + 7))))

    assert (len(graph.nodes), graph.left_out) == (NODE_LIMIT, 7)
    assert graph_text(graph).endswith("and 7 more")
    assert "(and 7 more)" in graph_svg(graph)


@pytest.mark.parametrize("state", [*STATES, None])
def test_a_state_has_its_style_in_the_terminal_and_stands_in_words(state):
    graph = WorkflowGraph(title="t", nodes=(GraphNode(id="a", name="a", state=state),), needs={"a": ()})
    styles = {style for line in graph_lines(graph)[1:] for _, style in line}

    assert styles - {"bold"}
    if state:
        assert state in graph_text(graph)
        assert f":::{state}" in graph_mermaid(graph)
        assert state in graph_svg(graph)


HOSTILE = "<script>alert(1)</script>\"]; click n0 'x' \x1b[31m\n%% end"


def test_foreign_text_means_nothing_in_a_picture():
    node = GraphNode(id=HOSTILE, name=HOSTILE, action=HOSTILE, state="done", note=HOSTILE)
    graph = WorkflowGraph(title=HOSTILE, nodes=(node,), needs={HOSTILE: ()})
    svg, mermaid = graph_svg(graph), graph_mermaid(graph)

    assert ET.fromstring(svg).findall(".//{*}script") == []
    assert "\x1b" not in svg + mermaid + graph_text(graph)
    assert len(mermaid.splitlines()) == 3
    assert re.findall(r'[<>"\'%]', re.sub(r'<br/>|n0\["|"\]|#\d+;', "", mermaid)) == []
    assert all(len(line) < 400 for line in graph_text(graph).splitlines())


texts = st.text(max_size=12)
graphs = st.integers(1, 9).flatmap(
    lambda size: st.tuples(
        st.lists(texts, min_size=size, max_size=size),
        st.lists(st.sets(st.integers(0, size - 1), max_size=3), min_size=size, max_size=size),
        st.lists(st.sampled_from([*STATES, None]), min_size=size, max_size=size),
    )
)


def made(parts):
    names, needs, states = parts
    nodes = [GraphNode(id=str(one), name=name, state=states[one]) for one, name in enumerate(names)]
    below = {str(one): tuple(str(other) for other in sorted(before) if other < one) for one, before in enumerate(needs)}
    return WorkflowGraph(title="any", nodes=tuple(nodes), needs=below)


@given(parts=graphs)
@settings(max_examples=examples(300))
def test_no_box_lies_on_another_and_every_line_goes_down(parts):
    graph = made(parts)
    layout = layout_of(graph)

    for one, other in itertools.combinations(layout.boxes.values(), 2):
        is_beside = one.x + one.width <= other.x or other.x + other.width <= one.x
        is_above = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert is_beside or is_above
    for way in layout.ways:
        assert all(layout.boxes[a].y < layout.boxes[b].y for a, b in itertools.pairwise(way))
    assert {(way[0], way[-1]) for way in layout.ways} == {(a, b) for b, before in graph.needs.items() for a in before}
    assert all(
        box.x + box.width <= layout.width and box.y + box.height <= layout.height for box in layout.boxes.values()
    )


@given(parts=graphs)
@settings(max_examples=examples(200))
def test_every_node_is_drawn_once_whatever_it_is_called(parts):
    graph = made(parts)
    svg = ET.fromstring(graph_svg(graph))

    assert len(svg.findall("{*}g")) == len(graph.nodes)
    assert len(graph_text(graph).splitlines()) == len(graph.nodes) + 1
    assert sum("-->" in line for line in graph_mermaid(graph).splitlines()) == sum(map(len, graph.needs.values()))
