"""Known values never leave: not in errors and their chains, events, reasons, logs, reprs, in whatever spelling."""

import asyncio
import base64
import html
import io
import json
import logging
import re
import traceback
from urllib.parse import quote, quote_plus, urlencode

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import Recorder, descriptor, pack, states

from agentos import ExtensionManager, ExtensionManifest, ExtensionPack, HookError, PackEntry, PackLoadError
from agentos.secrets.masking import Masker

pytestmark = pytest.mark.anyio

ID = "demo.key"
VALUE = "sk-live-0123456789abcdef"

VALUES = {
    "a token": VALUE,
    "slashes and plus": "wJalrXUtnFEMI/K7MDENG+bPxRfiCY==",
    "quotes": 'it\'s "quoted" 4 times',
    "an apostrophe": "it's-one-0123456789",
    "backslashes": "C:\\new\\table",
    "other alphabets": "pässwörd-ключ-鍵",
    "spaces": "correct horse  battery   staple",
    "lines": "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ\n-----END KEY-----\n",
    "a line end after it": "0123456789abcdef\n",
    "a pattern": "a.*b[c]+(d)?\\d{4}",
    "a blank, a slash, a plus": "pass word/with+everything?",
    "per cent": "100%s-%d-%(x)s-safe",
    "a tab and a null": "before\tafter\x00end",
}

FORMS = {
    "as it is": str,
    "in a sentence": lambda value: f"401 for Bearer {value}.",
    "repr": repr,
    "repr of a mapping": lambda value: repr({"headers": [("X-Key", value)]}),
    "repr in a text with both quotes": lambda value: repr(f'don\'t say "{value}"'),
    "json": json.dumps,
    "json that is not ascii": lambda value: json.dumps({"key": value}, ensure_ascii=False),
    "quoted for a URL": quote,
    "quoted with slashes": lambda value: quote(value, safe=""),
    "quoted for a form": quote_plus,
    "a query": lambda value: urlencode({"api_key": value}),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 for a URL": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "base64 without padding": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
    "quoted in lower case": lambda value: re.sub("%..", lambda code: code[0].lower(), quote(value, safe="")),
    "json with slashes escaped": lambda value: json.dumps(value).replace("/", "\\/"),
    "html": html.escape,
}


def bare(value, form):
    """Return what of *value* can be found in a text of that form."""
    whole = form(value)
    marks = form("|").split("|") if "|" in form("|") else ["", ""]
    return whole[len(marks[0]) : len(whole) - len(marks[-1])]


def squeezed(text):
    """Return *text* with runs of white space as single blanks, so that a new layout hides nothing."""
    return " ".join(text.split())


def chain(error):
    """Yield an exception and everything that hangs on it."""
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]


def shown(error):
    """Return every text that a program or a person could get out of an exception."""
    texts = ["".join(traceback.format_exception(error))]
    for one in chain(error):
        texts += [str(one), repr(one), repr(one.args), repr(getattr(one, "__notes__", ())), repr(vars(one))]
    return "\n".join(texts)


def assert_hidden(text, value, form=str):
    for needle in {value, bare(value, form)}:
        assert needle not in text
        assert squeezed(needle) not in squeezed(text)


def raising(make):
    """Return a hook that raises what *make* makes of the secret's value."""

    def hook(context):
        raise make(context.secret(ID))

    return hook


async def load_failing(value, make):
    """Return the outcome of a pack whose descriptor's hook raises what *make* makes of the secret's value."""
    async with ExtensionManager(secrets={ID: value}) as manager:
        return await manager.load_pack(pack("p", descriptor("x", required_secrets=[ID], on_activate=raising(make))))


# -- in whatever spelling ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", VALUES)
async def test_a_value_is_hidden_in_every_spelling(value, form):
    value, form = VALUES[value], FORMS[form]
    outcome = await load_failing(value, lambda secret: ValueError(form(secret)))

    assert outcome.status == "failed"
    assert_hidden(shown(outcome.error) + outcome.reason, value, form)


@pytest.mark.parametrize("form", FORMS)
async def test_what_is_around_a_value_is_still_readable(form):
    outcome = await load_failing(VALUE, lambda secret: ValueError(f"before {FORMS[form](secret)} after"))

    assert "ValueError: before " in outcome.reason
    assert outcome.reason.endswith(" after")
    assert "***" in outcome.reason


secrets = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="*"), min_size=4, max_size=30).map(
    lambda inside: f"Zq9{inside}9qZ"
)
around = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(value=secrets, before=around, after=around)
def test_any_value_is_hidden_in_any_text(value, before, after):
    outcome = asyncio.run(load_failing(value, lambda secret: ValueError(before + secret + after)))

    assert_hidden(shown(outcome.error) + outcome.reason, value)


@pytest.mark.parametrize("form", ["repr", "json", "json that is not ascii", "quoted for a URL", "a query"])
@given(value=secrets, before=around, after=around)
def test_any_value_is_hidden_in_any_text_that_is_quoted_as_a_whole(form, value, before, after):
    form = FORMS[form]
    outcome = asyncio.run(load_failing(value, lambda secret: ValueError(form(before + secret + after))))

    assert_hidden(shown(outcome.error) + outcome.reason, value, form)


@given(value=secrets, more=st.lists(secrets, max_size=4), order=st.randoms())
def test_every_one_of_several_values_is_hidden(value, more, order):
    values = [value, *more, value + "tail", "head" + value]
    order.shuffle(values)

    async def load():
        async with ExtensionManager(secrets={f"id{n}": one for n, one in enumerate(values)}) as manager:

            def hook(context):
                raise ValueError(", ".join(values))

            return await manager.load_pack(pack("p", on_activate=hook))

    outcome = asyncio.run(load())

    for one in values:
        assert_hidden(shown(outcome.error), one)


# -- errors and their chains ---------------------------------------------------------------------------------------


def caused(value):
    error = RuntimeError("outer")
    error.__cause__ = KeyError(value)
    return error


def in_context(value):
    try:
        try:
            raise KeyError(value)
        except KeyError:
            raise RuntimeError("outer")  # noqa: B904 - the context is the point
    except RuntimeError as error:
        return error


def suppressed(value):
    try:
        try:
            raise KeyError(value)
        except KeyError:
            raise RuntimeError("outer") from None
    except RuntimeError as error:
        return error


def deep(value):
    error = KeyError(value)
    for level in range(5):
        outer = RuntimeError(f"level {level}")
        outer.__cause__ = error
        error = outer
    return error


def noted(value):
    error = RuntimeError("outer")
    error.add_note(f"the key was {value}")
    return error


class Response(Exception):
    """An error that keeps what it was about, as those of HTTP clients do."""

    def __init__(self, value):
        super().__init__("401")
        self.request = {"headers": {"Authorization": f"Bearer {value}"}}

    def __repr__(self):
        return f"Response(401, {self.request})"


class Structured(Exception):
    """An error whose str says nothing of its arguments."""

    def __str__(self):
        return "something went wrong"


CHAINS = {
    "the error itself": ValueError,
    "its cause": caused,
    "its context": in_context,
    "a suppressed context": suppressed,
    "far down the chain": deep,
    "a note": noted,
    "a group": lambda value: ExceptionGroup("several", [OSError("fine"), KeyError(value)]),
    "a group as cause": lambda value: caused_by(ExceptionGroup("several", [KeyError(value)])),
    "its repr": Response,
    "an argument that str leaves out": Structured,
    "two arguments": lambda value: ValueError("bad", {"key": value}),
    "an exit code": SystemExit,
    "an error of our own": lambda value: HookError("here", f"raised {value}"),
    "a load error of our own": lambda value: PackLoadError("p", f"no access with {value}"),
}


def caused_by(cause):
    error = RuntimeError("outer")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("made", CHAINS)
async def test_what_a_hook_raises_shows_no_value_anywhere_in_its_chain(made):
    outcome = await load_failing(VALUE, CHAINS[made])

    assert outcome.status == "failed"
    assert_hidden(shown(outcome.error) + outcome.reason + repr(outcome), VALUE)


@pytest.mark.parametrize("made", CHAINS)
async def test_what_a_factory_raises_shows_no_value_anywhere_in_its_chain(made):
    def create(context):
        raise CHAINS[made](context.secret(ID))

    async with ExtensionManager(secrets={ID: VALUE}) as manager:
        outcome = await manager.load(PackEntry(factory=create))

    assert outcome.status == "failed"
    assert_hidden(shown(outcome.error) + outcome.reason + repr(outcome), VALUE)


@pytest.mark.parametrize("made", CHAINS)
async def test_what_register_raises_shows_no_value_anywhere_in_its_chain(made):
    one = descriptor("x", required_secrets=[ID], on_activate=raising(CHAINS[made]))
    async with ExtensionManager(secrets={ID: VALUE}) as manager:
        with pytest.raises(HookError) as caught:
            await manager.registry("tool").register(one)

    assert_hidden(shown(caught.value), VALUE)


@pytest.mark.parametrize("made", CHAINS)
async def test_what_unload_returns_shows_no_value_anywhere_in_its_chain(made):
    hook = raising(CHAINS[made])
    async with ExtensionManager(secrets={ID: VALUE}) as manager:
        await manager.load_pack(
            pack("p", descriptor("x", required_secrets=[ID], on_deactivate=hook), on_deactivate=hook)
        )
        raised = await manager.unload("p")

    assert len(raised) == 2
    for error in raised:
        assert_hidden(shown(error), VALUE)


@pytest.mark.parametrize("made", [made for made in CHAINS if made != "an exit code"])
async def test_what_disposing_a_service_raises_shows_no_value_anywhere_in_its_chain(made):
    def dispose(instance):
        raise CHAINS[made](VALUE)

    manager = ExtensionManager(secrets={ID: VALUE})
    await manager.services.get_or_create("s", object, dispose=dispose)
    raised = await manager.shutdown()

    assert len(raised) == 1
    assert_hidden(shown(raised[0]), VALUE)


async def test_what_shutdown_returns_shows_no_value():
    manager = ExtensionManager(secrets={ID: VALUE})
    await manager.load_pack(pack("p", descriptor("x", required_secrets=[ID], on_deactivate=raising(caused))))
    (error,) = await manager.shutdown()

    assert_hidden(shown(error), VALUE)


async def test_what_enable_raises_shows_no_value():
    broken = []

    def hook(context):
        if broken:
            raise caused(context.secret(ID))

    async with ExtensionManager(secrets={ID: VALUE}) as manager:
        await manager.load_pack(pack("p", descriptor("x", required_secrets=[ID], on_activate=hook)))
        await manager.disable("p")
        broken.append(True)
        with pytest.raises(HookError) as caught:
            await manager.enable("p")

    assert_hidden(shown(caught.value), VALUE)


async def test_a_failed_reload_shows_no_value():
    broken = []

    def create(context):
        if broken:
            raise caused(context.secret(ID))
        return pack("p", descriptor("x", required_secrets=[ID]))

    async with ExtensionManager(secrets={ID: VALUE}) as manager:
        await manager.load(PackEntry(factory=create))
        broken.append(True)
        outcome = await manager.reload("p")

    assert outcome.status == "failed"
    assert_hidden(shown(outcome.error) + repr(outcome), VALUE)


async def test_what_a_required_pack_raises_shows_no_value():
    def create(context):
        raise caused(context.secret(ID))

    manager = ExtensionManager({"packs": [{"factory": create, "required": True}]}, secrets={ID: VALUE})
    with pytest.raises(ExceptionGroup) as caught:
        await manager.load_manifest()
    await manager.shutdown()

    assert_hidden(shown(caught.value), VALUE)


async def test_a_value_that_comes_in_a_message_while_a_module_is_imported_is_hidden(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text(f"backwards = {VALUE[::-1]!r}\nraise OSError('401 for ' + backwards[::-1])\n")
    async with ExtensionManager(secrets={ID: VALUE}) as manager:
        outcome = await manager.load(PackEntry(module=str(file)))

    assert outcome.status == "failed"
    assert_hidden(outcome.reason + shown(outcome.error), VALUE)


class Hostile(Exception):
    """An error that can't be shown."""

    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__


class Misleading(Exception):
    """An error that looks like a group and is none."""

    exceptions = ("some text",)
    __notes__ = (1, None)


@pytest.mark.parametrize("error", [Hostile, Misleading])
async def test_an_error_that_can_not_be_shown_is_contained_like_any_other(error):
    outcome = await load_failing(VALUE, lambda secret: error())

    assert outcome.status == "failed"
    assert error.__name__ in outcome.reason


@pytest.mark.parametrize("error", [Hostile, Misleading])
async def test_an_error_of_a_factory_that_can_not_be_shown_is_contained_like_any_other(manager, error):
    def create():
        raise error

    outcome = await manager.load(PackEntry(factory=create))

    assert outcome.status == "failed"
    assert error.__name__ in outcome.reason


async def test_an_error_without_a_value_keeps_its_cause_as_it_is():
    error = caused("nothing secret")
    outcome = await load_failing(VALUE, lambda secret: error)

    assert error in list(chain(outcome.error))


# -- which values are known ----------------------------------------------------------------------------------------


async def reason_with(manager, text):
    """Return the reason of a failing pack that knows *text* from somewhere."""

    def hook(context):
        raise ValueError(text)

    return (await manager.load_pack(pack("failing", on_activate=hook))).reason


async def test_a_hosts_value_is_known_before_any_pack_asks_for_it():
    async with ExtensionManager(secrets={ID: VALUE}) as manager:
        assert_hidden(await reason_with(manager, VALUE), VALUE)


async def test_a_packs_own_value_is_known():
    async with ExtensionManager() as manager:
        await manager.load(PackEntry(factory=lambda: pack("p"), options={"secrets": {ID: VALUE}}))

        assert_hidden(await reason_with(manager, VALUE), VALUE)


async def test_a_value_set_at_run_time_is_known_even_if_no_pack_declares_it(manager):
    await manager.set_secret(ID, VALUE)

    assert_hidden(await reason_with(manager, VALUE), VALUE)


@pytest.mark.parametrize("style", ["sync", "async"])
async def test_a_vaults_value_is_known_when_it_has_been_fetched(style):
    async def later(id):
        return VALUE

    async with ExtensionManager(secrets={"sync": lambda id: VALUE, "async": later}[style]) as manager:
        await manager.load_pack(pack("p", descriptor("x", required_secrets=[ID])))

        assert_hidden(await reason_with(manager, VALUE), VALUE)


@pytest.mark.parametrize("source", ["environment", ".env"])
async def test_a_value_of_the_environment_is_known_when_a_pack_declares_it(source, tmp_path, monkeypatch):
    monkeypatch.delenv("AGENTOS_DEMO_KEY", raising=False)
    if source == "environment":
        monkeypatch.setenv("AGENTOS_DEMO_KEY", VALUE)
    else:
        (tmp_path / ".env").write_text(f"AGENTOS_DEMO_KEY={VALUE}\n")
    async with ExtensionManager(catalog={ID: "AGENTOS_DEMO_KEY"}, dotenv=tmp_path / ".env") as manager:
        await manager.load_pack(pack("p", descriptor("x", required_secrets=[ID])))

        assert_hidden(await reason_with(manager, VALUE), VALUE)


async def test_a_value_that_was_replaced_stays_hidden(manager):
    await manager.load_pack(pack("p", descriptor("x", required_secrets=[ID])))
    await manager.set_secret(ID, VALUE)
    await manager.set_secret(ID, "another value entirely")
    await manager.set_secret(ID, None)

    assert_hidden(await reason_with(manager, VALUE), VALUE)


async def test_a_value_is_hidden_without_the_white_space_around_it_too():
    async with ExtensionManager(secrets={ID: f"  {VALUE}\n"}) as manager:
        assert_hidden(await reason_with(manager, VALUE), VALUE)


async def test_one_managers_values_are_not_another_managers():
    async with ExtensionManager(secrets={ID: VALUE}), ExtensionManager() as other:
        assert VALUE in await reason_with(other, VALUE)


# -- events, reasons, explanations ---------------------------------------------------------------------------------


def shown_of_event(event):
    fields = attrs.asdict(event, recurse=False)
    errors = [value for value in fields.values() if isinstance(value, BaseException)]
    return "\n".join([repr(event), str(event), *map(shown, errors)])


async def everything_that_can_happen(manager):
    """Drive a manager through each kind of event, with hooks that leak the value wherever they can."""
    broken = []

    def sometimes(context):
        if broken:
            raise caused(context.secret(ID))

    leaks = raising(caused)
    need = {"required_secrets": [ID]}
    await manager.load_pack(pack("base", descriptor("x", **need, on_activate=sometimes, on_deactivate=leaks)))
    await manager.load_pack(pack("over", descriptor("x", **need), on_deactivate=leaks))
    await manager.load_pack(pack("over", descriptor("x", **need)))
    broken.append(True)
    await manager.unload("over")
    await manager.load_pack(pack("bad", descriptor("y", **need, on_activate=leaks)))
    await manager.load(PackEntry(factory=lambda: pack("off"), enabled=False, options={"secrets": {ID: VALUE}}))
    await manager.set_override("tools", "x", {"options": {"token": VALUE}})
    await manager.set_secret(ID, VALUE + "2")
    await manager.set_secret(ID, "changeme")
    await manager.load_pack(pack("later", descriptor("z", required_secrets=["never.there"])))


async def test_no_event_shows_a_value():
    recorder = Recorder()
    manager = ExtensionManager(secrets={ID: VALUE})
    manager.on(recorder)
    await everything_that_can_happen(manager)
    await manager.shutdown()

    assert {"pack:failed", "descriptor:failed", "descriptor:gated", "override:changed"} <= set(recorder.types)
    for event in recorder.events:
        assert_hidden(shown_of_event(event), VALUE)


async def test_no_reason_and_no_explanation_shows_a_value():
    async with ExtensionManager(secrets={ID: VALUE}) as manager:
        await everything_that_can_happen(manager)
        await manager.set_override("tools", "base:x", {"enabled": True})
        explanation = manager.explain("tool", "x")

        assert states(manager, "x")["base"] == "failed"
        assert_hidden(str(explanation) + repr(explanation), VALUE)


async def test_no_log_of_our_own_shows_a_value(caplog):
    caplog.set_level(logging.DEBUG)
    manager = ExtensionManager(secrets={ID: VALUE})
    await manager.services.get_or_create("s", object, dispose=lambda instance: 1 / len(VALUE[:0]))

    def listener(event):
        raise caused(VALUE)

    manager.on(listener)
    await everything_that_can_happen(manager)
    await manager.shutdown()

    assert "a listener raised" in caplog.text
    assert_hidden(caplog.text + repr([vars(record) for record in caplog.records]), VALUE)


# -- the logger of a pack ------------------------------------------------------------------------------------------


@attrs.frozen
class Client:
    """Something that a pack would log."""

    key: str


LOGGED = {
    "the message": lambda logger, value: logger.info(value),
    "an argument": lambda logger, value: logger.info("key %s", value),
    "an argument that is repr'd": lambda logger, value: logger.info("key %r of %d", value, 3),
    "a mapping as argument": lambda logger, value: logger.info("key %s", {"key": value}),
    "a mapping that fills names": lambda logger, value: logger.info("key %(key)s", {"key": value}),
    "an object as argument": lambda logger, value: logger.info("client %s", Client(value)),
    "an object as message": lambda logger, value: logger.info(Client(value)),
    "an error as message": lambda logger, value: logger.error(ValueError(value)),
    "debug": lambda logger, value: logger.debug("key %s", value),
    "warning": lambda logger, value: logger.warning("key %s", value),
    "exc_info": lambda logger, value: log_exception(logger, value, exc_info=True),
    "exc_info as an error": lambda logger, value: logger.error("failed", exc_info=caused(value)),
    "exc_info as a tuple": lambda logger, value: logger.error("failed", exc_info=(RuntimeError, caused(value), None)),
    "exception": lambda logger, value: log_exception(logger, value),
    "stack_info": lambda logger, value: logger.info("key %s", value, stack_info=True),
    "an extra": lambda logger, value: logger.info("key", extra={"key": value}),
    "an extra in a mapping": lambda logger, value: logger.info("key", extra={"request": {"headers": {"Key": value}}}),
    "an extra in a list": lambda logger, value: logger.info("key", extra={"keys": [value, ("a", value)]}),
    "an extra in a set": lambda logger, value: logger.info("key", extra={"keys": {value}}),
    "an extra as key": lambda logger, value: logger.info("key", extra={"keys": {value: 1}}),
    "an extra as bytes": lambda logger, value: logger.info("key", extra={"key": value.encode()}),
    "an extra that is an error": lambda logger, value: logger.info("key", extra={"error": caused(value)}),
    "an extra that is an object": lambda logger, value: logger.info("key", extra={"client": Client(value)}),
}


def log_exception(logger, value, **kwargs):
    try:
        raise caused(value)
    except RuntimeError:
        (logger.error if kwargs else logger.exception)("failed", **kwargs)


@pytest.mark.parametrize("what", LOGGED)
async def test_a_packs_logger_hides_values_in(what, caplog):
    caplog.set_level(logging.DEBUG)

    def create(context):
        LOGGED[what](context.logger, context.secret(ID))
        return pack("p", descriptor("x", required_secrets=[ID]))

    async with ExtensionManager(secrets={ID: VALUE}) as manager:
        outcome = await manager.load(PackEntry(factory=create))

    assert outcome.status == "loaded", outcome.reason
    (record,) = [record for record in caplog.records if record.name.startswith("agentos.packs")]
    extras = [f"{value}{value!r}" for value in vars(record).values()]
    chains = [shown(value) for value in vars(record).values() if isinstance(value, BaseException)]
    assert_hidden("\n".join([caplog.text, record.getMessage(), *extras, *chains]), VALUE)


async def test_a_packs_logger_keeps_the_rest_of_a_record(caplog):
    caplog.set_level(logging.DEBUG)

    def hook(context):
        context.logger.warning("%s of %d", "one", 2, extra={"step": 3})

    async with ExtensionManager() as manager:
        await manager.load_pack(pack("p", on_activate=hook))

    (record,) = [record for record in caplog.records if record.name.startswith("agentos.packs")]
    assert (record.name, record.levelname, record.getMessage(), record.step, record.funcName) == (
        "agentos.packs.p",
        "WARNING",
        "one of 2",
        3,
        "hook",
    )


@pytest.mark.parametrize("line", ["%d apples", "100%", "%(name)s"])
async def test_a_line_that_its_arguments_do_not_fit_is_no_failure_of_the_pack(manager, monkeypatch, line):
    logger = logging.getLogger("agentos.packs.p")
    handler = logging.StreamHandler(io.StringIO())
    handler.handleError = lambda record: None
    monkeypatch.setattr(logger, "propagate", False)
    monkeypatch.setattr(logger, "handlers", [handler])
    outcome = await manager.load_pack(pack("p", on_activate=lambda context: context.logger.error(line, "many")))

    assert outcome.status == "loaded", outcome.reason


@given(value=secrets, before=around, after=around)
def test_a_packs_logger_hides_any_value_in_any_line(value, before, after):
    lines = []

    class Keeping(logging.Handler):
        def emit(self, record):
            lines.append(self.format(record))

    async def log():
        async with ExtensionManager(secrets={ID: value}) as manager:
            await manager.load_pack(
                pack("p", on_activate=lambda context: context.logger.error("%s%r", before + value + after, value))
            )

    handler = Keeping()
    logging.getLogger("agentos.packs.p").addHandler(handler)
    try:
        asyncio.run(log())
    finally:
        logging.getLogger("agentos.packs.p").removeHandler(handler)

    assert len(lines) == 1
    assert_hidden(lines[0], value)


# -- reprs ---------------------------------------------------------------------------------------------------------


async def all_parts(manager):
    """Return one of everything that has a repr and has to do with secrets."""
    kept = {}

    def create(context):
        kept["factory's context"] = context
        return ExtensionPack(
            "p",
            "1.0",
            [
                descriptor(
                    "x",
                    required_secrets=[ID],
                    metadata={"token": VALUE},
                    on_activate=lambda context: kept.update({"descriptor's context": context}),
                )
            ],
            on_activate=lambda context: kept.update({"pack's context": context}),
        )

    entry = PackEntry(factory=create, options={"secrets": {ID: VALUE}, "header": VALUE})
    kept["outcome"] = await manager.load(entry)
    context = kept["pack's context"]
    registry = manager.registry("tool")
    return kept | {
        "manager": manager,
        "manifest": manager.manifest,
        "manifest entry": entry,
        "seen entry": context.manifest_entry,
        "entry": registry.get_active("x"),
        "descriptor": registry.get_active("x").descriptor,
        "registry": registry,
        "records": manager.packs(),
        "explanation": manager.explain("tool", "x"),
        "services": context.services,
        "logger": context.logger,
        "masker": manager.masker,
    }


PARTS = [
    *("factory's context", "pack's context", "descriptor's context", "outcome", "manager", "manifest"),
    *("manifest entry", "seen entry", "entry", "descriptor", "registry", "records", "explanation", "services"),
    *("logger", "masker"),
]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("show", [repr, str, lambda part: f"{part}"])
async def test_no_repr_shows_a_value(part, show):
    manifest = ExtensionManifest.from_dict(
        {
            "packs": [{"module": "never.loaded", "enabled": False, "options": {"secrets": {ID: VALUE}}}],
            "overrides": {"tools": {"x": {"options": {"token": VALUE}}}},
        }
    )
    async with ExtensionManager(manifest, secrets={"other.key": VALUE}) as manager:
        assert_hidden(show((await all_parts(manager))[part]), VALUE)


def test_an_error_whose_causes_go_in_a_circle_is_itself_if_it_says_nothing_secret():
    masker = Masker()
    masker.learn(VALUE)
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one

    assert masker.cleanse(one) is one


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_a_value_in_base64_over_several_lines_of_json_is_masked(end):
    masker = Masker()
    masker.learn(VALUE)
    encoded = base64.b64encode(f"key={VALUE}".encode()).decode()
    folded = end.join(encoded[at : at + 8] for at in range(0, len(encoded), 8))

    assert encoded[8:24] not in masker.mask(json.dumps(folded)).replace("\\n", "").replace("\\r", "")


def test_a_value_in_octal_escapes_is_masked():
    masker = Masker()
    masker.learn(VALUE)

    assert masker.mask("".join(f"\\{ord(one):03o}" for one in VALUE)) == "***"
