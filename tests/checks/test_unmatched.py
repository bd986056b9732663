"""What names something and matches nothing: in the load report, in the log, and with the name that was meant."""

import logging

import pytest
from kit import Recorder, descriptor, pack

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    ExtensionManager,
    ExtensionPack,
    Principal,
    RequiredGuardrailError,
    guardrail,
    middleware,
    tool,
)

READS = {"effect": "read", "required_access": ("notes:read",)}


@tool(**READS, aliases=("hello",))
def greet(name: str) -> str:
    """Greet a person.

    name: whom to greet
    """
    return f"hello {name}"


@tool(effect="mutate", required_access=PUBLIC)
def act(what: str) -> str:
    """Do something.

    what: what to do
    """
    return what


def notes():
    return ExtensionPack("notes", "1", [greet, act])


def raises():
    raise RuntimeError("boom")


def host_of(*packs, **options):
    return AgentOS(extension_manifest=[{"factory": one} for one in packs or (notes,)], **options)


async def told_of(host):
    """Return the messages of the load report, by what they are about."""
    async with host:
        return [(one.level, one.about, one.message) for one in host.extensions.report.troubles]


async def test_an_override_about_nothing_is_in_the_report_and_in_the_log(caplog):
    overrides = {"tools": {"gret": {"enabled": False}, "notes:act": {"priority": 1}, "greet": {"priority": 2}}}
    with caplog.at_level(logging.WARNING, "agentos"):
        told = await told_of(host_of(extension_overrides=overrides))

    message = "the override 'gret' of tool is about nothing that is there; did you mean 'greet'?"
    assert told == [("warning", "overrides", message)]
    assert [message in record.getMessage() for record in caplog.records] == [True]


async def test_a_manager_without_a_host_tells_too():
    async with ExtensionManager([{"factory": notes}], overrides={"tols": {"greet": {"priority": 1}}}) as manager:
        (trouble,) = manager.report.troubles

    assert "the override 'greet' of tols" in trouble.message
    assert "did you mean 'tools'?" in trouble.message
    assert str(trouble) in str(manager.report)


@pytest.mark.parametrize(
    ("pattern", "meant"), [("gret", "greet"), ("note:act", "notes:act"), ("notse:*", None), ("helo", "hello")]
)
async def test_a_denial_of_nothing(pattern, meant, caplog):
    with caplog.at_level(logging.WARNING, "agentos"):
        ((level, about, message),) = await told_of(host_of(deny=[pattern]))

    assert (level, about, f"{pattern!r} denies nothing" in message) == ("warning", "deny", True)
    assert meant is None or f"did you mean {meant!r}?" in message
    assert [message in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize("pattern", ["greet", "notes:greet", "notes:*", "hello", "gr?et"])
async def test_a_denial_of_something_is_no_trouble(pattern):
    """By id, by pack, by a pattern, and by an alias."""
    assert await told_of(host_of(deny=[pattern])) == []


async def test_a_grant_about_nothing(tmp_path):
    async with host_of(store=tmp_path / "s.db") as host:
        await host.grants.add("gret", "never")
        await host.grants.add("gre*", "never")
        await host.grants.add("notes:act", "always")
    ((level, about, message),) = await told_of(host_of(store=tmp_path / "s.db"))

    assert (level, about) == ("warning", "grants")
    assert "never gret by everybody: it is about nothing that is there; did you mean 'greet'?" in message


async def test_a_grant_of_what_is_gone_or_has_changed(tmp_path):
    async with host_of(store=tmp_path / "s.db") as host:
        await host.grants.add("notes:act", "always")
        await host.grants.add("notes:greet", "always")

    def changed():
        @tool(effect="mutate", required_access=PUBLIC, name="act")
        def other(what: str) -> str:
            """Do something else.

            what: what to do
            """
            return what

        return ExtensionPack("notes", "1", [other])

    told = await told_of(host_of(changed, store=tmp_path / "s.db", pins="off"))

    assert sorted("changed since" in message for _, _, message in told) == [False, True]


async def test_a_rule_that_nothing_requires():
    principals = {
        "ann": Principal("ann", access={"note:read"}),
        "bob": Principal("bob", access={"notes:read"}),
        "eve": Principal("eve", access={"*"}, scopes={"notes:red"}),
    }
    told = await told_of(host_of(principals=principals))

    assert [(about, "did you mean 'notes:read'?" in message) for _, about, message in told] == [
        ("principal ann", True),
        ("principal eve", True),
    ]


async def test_a_required_guardrail_that_is_not_there():
    @guardrail(stage="input")
    async def polite(text, context):
        return None

    host = host_of(lambda: ExtensionPack("guards", "1", [polite]), required_guardrails=["polit"])
    with pytest.raises(RequiredGuardrailError):
        await host.initialize()
    (trouble,) = host.extensions.report.troubles
    found = (await host.check()).troubles
    await host.shutdown()

    assert (trouble.level, trouble.about) == ("error", "requiredGuardrails")
    assert "did you mean 'polite'?" in trouble.message
    assert found == [trouble]


async def test_a_pack_that_was_not_loaded_may_be_meant():
    ((_, _, message),) = await told_of(host_of(notes, raises, deny=["shell"]))

    assert message.endswith("; what is not loaded, or not whole, may offer it: raises")


async def test_set_override_says_that_it_is_about_nothing_and_counts_later(manager, caplog):
    recorder = Recorder()
    manager.on(recorder)
    await manager.load_pack(pack("p", descriptor("search")))
    trouble = await manager.set_override("tools", "serch", {"enabled": False})
    await manager.load_pack(pack("q", descriptor("serch")))

    assert "did you mean 'search'?" in trouble.message
    assert [event.trouble for event in recorder.of("override:changed")] == [trouble]
    assert manager.registry("tool").get_active("serch") is None
    assert trouble.message in caplog.text


async def test_set_override_says_nothing_of_what_is_there(manager):
    recorder = Recorder()
    manager.on(recorder)
    await manager.load_pack(pack("p", descriptor("x")))
    said = [
        await manager.set_override("tools", "x", {"priority": 1}),
        await manager.set_override("tools", "p:x", {"priority": 1}),
        await manager.set_override("tools", "y", None),
    ]

    assert said == [None, None, None]
    assert [event.trouble for event in recorder.of("override:changed")] == [None, None, None]


async def test_replaced_overrides_tell_too(manager):
    from agentos import Overrides

    recorder = Recorder()
    manager.on(recorder)
    await manager.load_pack(pack("p", descriptor("search")))
    await manager.replace_overrides(
        host=Overrides.from_dict({"tools": {"serch": {"priority": 1}}}), manifest=Overrides()
    )

    assert ["did you mean 'search'?" in event.trouble.message for event in recorder.of("override:changed")] == [True]


# -- what guardrails and middleware are about --------------------------------------------------------------------------


def guards(*patterns):
    """Return a factory of a pack whose guardrail and middleware are about these tools."""

    @guardrail(stage="tool_call", tools=patterns)
    async def polite(call, context):
        return None

    @middleware(tools=patterns)
    async def around(invocation, next):
        return await next()

    return lambda: ExtensionPack("guards", "1", [polite, around])


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("gret", "greet"),
        ("notes:gret", "notes:greet"),
        ("note:act", "notes:act"),
        ("notes:zzzzzz", None),
        ("zzz", None),
    ],
)
async def test_a_guardrail_or_middleware_of_no_tool(pattern, meant, caplog):
    with caplog.at_level(logging.WARNING, "agentos"):
        told = await told_of(host_of(notes, guards("greet", pattern)))

    assert [(level, about) for level, about, _ in told] == [
        ("warning", "guardrail:polite"),
        ("warning", "tool-middleware:around"),
    ]
    for _, _, message in told:
        assert f"{pattern!r} in its `tools` in guards is about no tool that is there" in message
        assert (f"did you mean {meant!r}?" in message) == (meant is not None)
        assert any(message in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("pattern", ["*", "greet", "hello", "notes:*", "gr?et", "shell:*", "delete_*", "shell:run"])
async def test_patterns_that_are_about_something_or_about_what_others_load_are_no_trouble(pattern):
    """A pack may guard what only other hosts have: by a glob, and by a name of a pack that is not loaded here."""
    assert await told_of(host_of(notes, guards(pattern))) == []


@pytest.mark.parametrize("pattern", ["note:*", "shell:*", "shell:run", "gret"])
async def test_every_pattern_that_an_operator_wrote_is_told(pattern):
    def factory(context):
        @middleware(tools=tuple(context.options["tools"]))
        async def around(invocation, next):
            return await next()

        return ExtensionPack("around", "1", [around])

    entry = {"factory": factory, "options": {"tools": {pattern: {"seconds": 1}, "notes:*": {"seconds": 2}}}}
    async with AgentOS(extension_manifest=[{"factory": notes}, entry]) as host:
        (trouble,) = (await host.check()).troubles

    assert (trouble.level, trouble.about) == ("warning", "tool-middleware:around")
    assert f"{pattern!r} in the options of around is about no tool" in trouble.message
    assert pattern != "note:*" or "did you mean 'notes:*'?" in trouble.message
    assert trouble.cure == "correct it in the options of around, or take it out"


async def test_middleware_that_does_not_say_its_tools_any_more_is_passed_over():
    class Fickle:
        is_broken = False

        @property
        def tools(self):
            if self.is_broken:
                raise SystemExit(3)
            return ("gret",)

        async def __call__(self, invocation, next):
            return await next()

    def break_it(_):
        Fickle.is_broken = True

    fickle = Descriptor("tool-middleware", "fickle", Fickle())
    host = host_of(notes, lambda: ExtensionPack("guards", "1", [fickle], on_activate=break_it))

    assert await told_of(host) == []
    assert Fickle.is_broken
