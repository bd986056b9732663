"""Every combination of what decides about a call, against the promises and against a table written by hand."""

import itertools

import attrs
import pytest

from agentos.access.gate import MODES, Decision, Question, decide

STEPS = ("access", "denials", "destructive", "always", "grants", "mode", "rules", "default")
CAUTION = {"run": 0, "ask": 1, "refuse": 2}
TOOL = "mail:send"

EFFECTS = ["read", "mutate", "destructive"]
POLICIES = ["never", None, "required", "always"]
MODES_BY_CAUTION = ["auto", "approve", "unattended"]
GRANTS = [None, "grant 7: always mail:send by ann"]
DENIALS = [None, "the host's deny list, 'mail:*'"]
MISSING = [(), ("mail.write",)]
GARBAGE = ["", "READ", " read", "x{y}", 0, 1, True, 2.5, ["read"], {}, object(), b"read", float("nan")]


def questions(
    effects=EFFECTS, policies=POLICIES, modes=MODES_BY_CAUTION, grants=GRANTS, denials=DENIALS, missing=MISSING
):
    for effect, policy, mode, grant, denial, lacks in itertools.product(
        effects, policies, modes, grants, denials, missing
    ):
        yield Question(
            tool=TOOL, effect=effect, policy=policy, mode=mode, grant=grant, denial=denial, missing_access=lacks
        )


KNOWN = list(questions())
STRANGE = [
    *questions(effects=GARBAGE),
    *questions(policies=GARBAGE),
    *questions(modes=[*GARBAGE, None]),
    *questions(effects=GARBAGE[:4], policies=GARBAGE[:4], modes=GARBAGE[:4]),
]
ALL = [*KNOWN, *STRANGE]


def broken(promise, among=ALL):
    """Return the first few questions whose decision breaks *promise*."""
    return [(one, decision) for one in among if not promise(one, decision := decide(one))][:3]


def less_cautious(change, among=ALL):
    """Return the first few questions that get a less cautious answer once they are changed to be more dangerous."""
    pairs = ((one, changed) for one in among for changed in change(one))
    return [pair for pair in pairs if rank(pair[1]) < rank(pair[0])][:3]


def rank(question):
    return CAUTION[decide(question).answer]


def above(value, order):
    return order[order.index(value) + 1 :] if value in order else []


# -- promises over all combinations --------------------------------------------------------------------------------


def test_every_known_combination_is_there():
    assert len(KNOWN) == 3 * 4 * 3 * 2 * 2 * 2


def test_no_destructive_call_runs_unasked():
    assert broken(lambda one, decision: one.effect != "destructive" or decision.answer != "run") == []


def test_no_call_that_its_tool_wants_asked_always_runs_unasked():
    assert broken(lambda one, decision: one.policy != "always" or decision.answer != "run") == []


def test_an_unknown_effect_never_runs():
    among = list(questions(effects=GARBAGE))

    assert broken(lambda one, decision: decision.answer != "run", among) == []


def test_an_unknown_policy_never_runs():
    among = list(questions(policies=GARBAGE))

    assert broken(lambda one, decision: decision.answer != "run", among) == []


def test_an_unknown_mode_decides_as_unattended_does():
    among = list(questions(modes=[*GARBAGE, None]))

    assert [one for one in among if rank(one) != rank(attrs.evolve(one, mode="unattended"))] == []


def test_an_unknown_effect_decides_as_destructive_does():
    among = list(questions(effects=GARBAGE))

    assert [one for one in among if rank(one) != rank(attrs.evolve(one, effect="destructive"))] == []


def test_an_unknown_policy_decides_as_always_does():
    among = list(questions(policies=GARBAGE))

    assert [one for one in among if rank(one) != rank(attrs.evolve(one, policy="always"))] == []


def test_where_nobody_is_there_nothing_asks():
    assert broken(lambda one, decision: one.mode != "unattended" or decision.answer != "ask") == []


def test_a_denial_refuses():
    assert broken(lambda one, decision: one.denial is None or decision.answer == "refuse") == []


def test_missing_access_refuses():
    assert broken(lambda one, decision: not one.missing_access or decision.answer == "refuse") == []


def test_every_decision_has_a_step_of_the_order():
    assert broken(lambda one, decision: decision.step in STEPS) == []


def test_every_reason_begins_with_the_tool():
    assert broken(lambda one, decision: decision.reason.startswith(f"{TOOL} ")) == []


def test_every_answer_is_one_of_three():
    assert broken(lambda one, decision: decision.answer in CAUTION) == []


def test_where_nobody_is_there_the_step_is_that_of_what_would_have_asked():
    def promise(one, decision):
        return decide(attrs.evolve(one, mode="approve")).step == decision.step

    assert broken(promise, [one for one in ALL if one.mode == "unattended"]) == []


def test_a_denial_makes_no_answer_less_cautious():
    assert less_cautious(lambda one: [attrs.evolve(one, denial="no")]) == []


def test_missing_access_makes_no_answer_less_cautious():
    assert less_cautious(lambda one: [attrs.evolve(one, missing_access=("x",))]) == []


def test_taking_a_grant_away_makes_no_answer_less_cautious():
    assert less_cautious(lambda one: [attrs.evolve(one, grant=None)]) == []


def test_a_stronger_effect_makes_no_answer_less_cautious():
    assert less_cautious(lambda one: [attrs.evolve(one, effect=effect) for effect in above(one.effect, EFFECTS)]) == []


def test_a_stricter_policy_makes_no_answer_less_cautious():
    assert less_cautious(lambda one: [attrs.evolve(one, policy=more) for more in above(one.policy, POLICIES)]) == []


def test_a_stricter_mode_makes_no_answer_less_cautious():
    assert less_cautious(lambda one: [attrs.evolve(one, mode=mode) for mode in above(one.mode, MODES_BY_CAUTION)]) == []


# -- the core by hand ----------------------------------------------------------------------------------------------

# For each effect and policy: the answers in approve, auto and unattended without a grant, then with one.
TABLE = """
    read         never     run           run   run      run   run   run
    read         None      run           run   run      run   run   run
    read         required  ask           ask   refuse   run   run   run
    read         always    ask           ask   refuse   ask   ask   refuse
    mutate       never     run           run   run      run   run   run
    mutate       None      ask           run   refuse   run   run   run
    mutate       required  ask           ask   refuse   run   run   run
    mutate       always    ask           ask   refuse   ask   ask   refuse
    destructive  never     ask           ask   refuse   ask   ask   refuse
    destructive  None      ask           ask   refuse   ask   ask   refuse
    destructive  required  ask           ask   refuse   ask   ask   refuse
    destructive  always    ask           ask   refuse   ask   ask   refuse
"""

CORE = [
    (effect, None if policy == "None" else policy, mode, granted, answer)
    for effect, policy, *answers in (line.split() for line in TABLE.strip().splitlines())
    for (granted, mode), answer in zip(
        itertools.product((False, True), ("approve", "auto", "unattended")), answers, strict=True
    )
]


def test_the_table_has_every_core_case():
    assert len({case[:-1] for case in CORE}) == 3 * 4 * 3 * 2


@pytest.mark.parametrize(("effect", "policy", "mode", "granted", "answer"), CORE)
def test_the_core_decides_as_the_table_says(effect, policy, mode, granted, answer):
    question = Question(tool=TOOL, effect=effect, policy=policy, mode=mode, grant="a grant" if granted else None)

    assert decide(question).answer == answer


# -- steps and words -----------------------------------------------------------------------------------------------


def decided(**facts):
    return decide(Question(**{"tool": TOOL, "effect": "mutate", **facts}))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            {"missing_access": ("mail.read", "mail.write")},
            Decision(
                "refuse",
                "access",
                "mail:send requires access that the principal does not hold: mail.read, mail.write",
            ),
        ),
        ({"denial": "the deny list"}, Decision("refuse", "denials", "mail:send is denied: the deny list")),
        ({"denial": ""}, Decision("refuse", "denials", "mail:send is denied: no reason")),
        (
            {"denial": "mail:send is denied by 'mail:*'"},
            Decision("refuse", "denials", "mail:send is denied by 'mail:*'"),
        ),
        (
            {"effect": "destructive"},
            Decision(
                "ask",
                "destructive",
                "mail:send may destroy something, and no grant, rule or mode waives asking for that",
            ),
        ),
        (
            {"effect": "erase"},
            Decision(
                "ask",
                "destructive",
                "mail:send has the effect 'erase', which is unknown and counts as destructive,"
                " and no grant, rule or mode waives asking for that",
            ),
        ),
        (
            {"policy": "always", "policy_reason": "rule 1 (any arguments) says always"},
            Decision(
                "ask",
                "always",
                "mail:send always asks, since rule 1 (any arguments) says always; no grant or mode waives it",
            ),
        ),
        (
            {"policy": "sometimes", "policy_reason": "it said so"},
            Decision(
                "ask",
                "always",
                "mail:send always asks, since its intervention is 'sometimes', which is unknown and counts as always;"
                " no grant or mode waives it",
            ),
        ),
        ({"grant": "grant 7"}, Decision("run", "grants", "mail:send is allowed by grant 7")),
        (
            {"mode": "auto"},
            Decision("run", "mode", "mail:send changes something, and mode auto runs such a call without asking"),
        ),
        (
            {"policy": "required"},
            Decision(
                "ask",
                "rules",
                "mail:send asks, since its intervention says required; a grant can waive it, a mode can't",
            ),
        ),
        (
            {"policy": "never", "policy_reason": "rule 2 (glob $.to = '{x}') says never"},
            Decision("run", "rules", "mail:send runs without asking, since rule 2 (glob $.to = '{x}') says never"),
        ),
        (
            {"effect": "read"},
            Decision("run", "default", "mail:send only reads, and reading runs without asking"),
        ),
        (
            {},
            Decision("ask", "default", "mail:send changes something, and mode approve asks before every such call"),
        ),
        (
            {"mode": "unattended"},
            Decision(
                "refuse",
                "default",
                "mail:send changes something, and without a grant one has to ask before every such call;"
                " in mode unattended nobody is there to ask, so it is refused",
            ),
        ),
        (
            {"mode": "yolo", "policy": "required"},
            Decision(
                "refuse",
                "rules",
                "mail:send asks, since its intervention says required; a grant can waive it, a mode can't;"
                " in mode 'yolo', which is unknown and counts as unattended, nobody is there to ask, so it is refused",
            ),
        ),
    ],
)
def test_each_step_says_why(facts, expected):
    assert decided(**facts) == expected


STRONGEST_FIRST = [
    ("access", {"missing_access": ("x",)}),
    ("denials", {"denial": "no"}),
    ("destructive", {"effect": "destructive"}),
    ("always", {"policy": "always"}),
    ("grants", {"grant": "a grant"}),
    ("mode", {"mode": "auto"}),
]


@pytest.mark.parametrize("first", range(len(STRONGEST_FIRST)))
def test_a_step_answers_before_all_that_come_after_it(first):
    facts = {}
    for _, more in STRONGEST_FIRST[first:]:
        facts = {**more, **facts}

    assert decided(**facts).step == STRONGEST_FIRST[first][0]


def test_a_mode_does_not_waive_what_a_rule_requires():
    assert decided(mode="auto", policy="required").step == "rules"


@pytest.mark.parametrize("grant", ["", 0, False, True, 1, ["a grant"]])
def test_a_grant_without_words_grants_nothing(grant):
    assert decided(grant=grant).answer == "ask"


def test_an_unknown_value_is_cut_in_the_reason():
    assert len(decided(mode="x" * 10_000).reason) < 400


def test_the_modes_are_these():
    assert MODES == ("approve", "auto", "unattended")
