"""What a call gives away: no known value, in any encoding, in its result, its events, its records and its logs."""

import base64
import html
import io
import json
import logging
from contextlib import asynccontextmanager
from decimal import Decimal
from urllib.parse import quote

import attrs
import pytest

from agentos import (
    PUBLIC,
    AgentOS,
    Descriptor,
    ExtensionPack,
    Media,
    SecretRequirement,
    Tool,
    ToolCall,
    ToolError,
    ToolResult,
)

TEXT = 'it\'s-"sk"/é 0123456789abcdef'
DIGITS = "9081726354"
SECRETS = {"demo.text": TEXT, "demo.digits": DIGITS}


@asynccontextmanager
async def hosted(execute, **options):
    """Run a host whose one tool knows both secrets."""
    tool = Tool.from_schema(
        name="leak",
        description="Give it away.",
        effect="read",
        required_access=PUBLIC,
        input_schema={"type": "object"},
        execute=execute,
    )
    needs = tuple(SecretRequirement(id) for id in SECRETS)
    async with AgentOS(extension_secrets=SECRETS, audit_arguments=True, **options) as host:
        pack = ExtensionPack("p", "1.0", [Descriptor("tool", "leak", tool, required_secrets=needs)])
        assert (await host.extensions.load_pack(pack)).status == "loaded"
        yield host


def said(result):
    return json.dumps(attrs.asdict(result), default=repr, ensure_ascii=False)


async def called(execute, arguments=None, **options):
    async with hosted(execute, **options) as host:
        return await host.tools.process_tool_call(ToolCall("leak", arguments or {}))


ENCODED = {
    "html": html.escape(TEXT),
    "html with apos": html.escape(TEXT, quote=False).replace("'", "&apos;").replace('"', "&#034;"),
    "json in json": json.dumps(json.dumps(TEXT)),
    "repr of bytes": repr(TEXT.encode()),
    "ascii": ascii(TEXT),
    "base64 in lines": base64.encodebytes(TEXT.encode() * 3).decode(),
    "hex": TEXT.encode().hex().upper(),
    "quoted": quote(TEXT, safe="").lower(),
}


@pytest.mark.parametrize("form", ENCODED)
async def test_an_encoded_value_is_hidden_in_output_and_content(form):
    result = await called(lambda args, context: {"text": f"a {ENCODED[form]} b", "list": [ENCODED[form]]})

    assert "0123456789abcdef" not in said(result)
    assert ENCODED[form].strip("\"'b") not in said(result)
    assert "***" in result.output["text"]
    assert "***" in result.content


@pytest.mark.parametrize("form", ENCODED)
async def test_an_encoded_value_is_hidden_in_an_error(form):
    def execute(args, context):
        raise ValueError(ENCODED[form])

    result = await called(execute)

    assert ENCODED[form] not in said(result)
    assert "***" in result.error.message


@pytest.mark.parametrize("number", [int(DIGITS), float(DIGITS), -int(DIGITS), Decimal(DIGITS)], ids=repr)
async def test_a_value_of_digits_is_hidden_as_a_number(number):
    result = await called(lambda args, context: {"pin": number, "other": 12})

    assert result.output == {"pin": "***", "other": 12}
    assert json.loads(result.content) == result.output
    assert "9081726354" not in said(result)


async def test_a_value_is_hidden_in_keys():
    result = await called(lambda args, context: {TEXT: {int(DIGITS): 1}})

    assert result.output == {"***": {"***": 1}}


async def test_a_value_is_hidden_in_all_of_a_tools_own_result():
    def execute(args, context):
        error = ToolError(f"Bad{TEXT}", f"no {TEXT}", {TEXT: int(DIGITS)})
        return ToolResult(
            success=False,
            output={TEXT: TEXT},
            content=TEXT,
            error=error,
            state=[TEXT],
            meta={TEXT: [TEXT, int(DIGITS)]},
        )

    result = await called(execute)

    assert result.error == ToolError("Bad***", "no ***", {"***": "***"})
    assert (result.output, result.content, result.state) == ({"***": "***"}, "***", ["***"])
    assert result.meta["***"] == ["***", "***"]
    assert "0123456789abcdef" not in said(result)


async def test_a_value_is_hidden_in_the_type_of_an_error_without_content():
    result = await called(lambda args, context: ToolResult(success=False, error=ToolError(TEXT, "no")))

    assert (result.error.type, result.content) == ("***", "***: no")


async def test_a_value_is_hidden_in_events_records_and_logs(caplog):
    caplog.set_level(logging.DEBUG)
    heard = []

    async def execute(args, context):
        await context.report_progress(1, 2, f"{TEXT} {ENCODED['html']}")
        await context.send_content(json.dumps({"pin": int(DIGITS), "key": ENCODED["json in json"]}))
        context.logger.warning("it is %s", ENCODED["repr of bytes"], extra={"pin": int(DIGITS), "key": TEXT.encode()})
        return ToolResult(success=False, error=ToolError(TEXT, "no"))

    async with hosted(execute) as host:
        host.extensions.on(heard.append)
        await host.tools.process_tool_call(ToolCall("leak", {TEXT: [int(DIGITS), ENCODED["hex"]]}))
        records = await host.audit.records()

    logged = [repr(vars(record)) for record in caplog.records if record.name.startswith("agentos")]
    for text in (repr(heard), repr(records), *logged):
        assert "0123456789abcdef" not in text
        assert DIGITS not in text
        assert ENCODED["hex"] not in text


async def test_names_that_callers_choose_are_masked_before_the_audit_log_cuts_them():
    def execute(args, context):
        return "done"

    async with hosted(execute) as host:
        for length in range(200 - len(TEXT), 200):
            name = "x" * length + TEXT
            await host.tools.process_tool_call(ToolCall("leak", {}, id=name))
            await host.tools.process_tool_call(ToolCall(name, {}))
        recorded = [record.data for record in await host.audit.records()]

    names = [data.get("call_id", data.get("tool")) for data in recorded]
    assert len([name for name in names if str(name).startswith("xxx")]) == 2 * len(TEXT)
    assert not [name for name in names if TEXT[:4] in str(name)]


async def test_a_call_that_is_refused_has_no_half_of_a_value_in_the_audit_log_either():
    async with hosted(lambda args, context: "done") as host:
        for length in range(200 - len(TEXT), 200):
            await host.tools.process_tool_call(ToolCall("leak", {}, id="x" * length + TEXT, idempotency_key="k"))
        recorded = json.dumps([dict(record.data) for record in await host.audit.records()])

    assert TEXT[:4] not in recorded


async def test_media_have_no_value_in_their_type_their_name_or_their_words(tmp_path):
    word = "sk-0123456789abcdef"
    for length in range(200 - len(word), 200):
        (tmp_path / f"{'x' * length}{word}.png").write_bytes(b"png")
    given = [
        Media(f"image/{word}", b"one", name=f"a {word} b"),
        Media(f"image/png; key={word}", b"two"),
        Media("image/png", url=f"https://example.org/{word}", name="x" * 190 + word[:10]),
        *(Media("image/png", path=path) for path in sorted(tmp_path.iterdir())[-13:]),
    ]
    many = {"extension_secrets": {**SECRETS, "demo.word": word}, "media_folders": [tmp_path]}
    async with AgentOS(**many) as host:
        host.extensions.secret_sources.find("demo.word", {})
        await host.tools_service().sync([_tool_of(lambda args, context: ToolResult.ok("see", media=given))])
        told = await host.tools.process_tool_call(ToolCall("show"))
        await host.tools_service().sync([_tool_of(lambda args, context: given)])
        referred = await host.tools.process_tool_call(ToolCall("show"))

    assert [one.mime for one in told.media[:3]] == ["application/octet-stream"] * 2 + ["image/png"]
    assert [one.name for one in told.media[:2]] == ["a *** b", None]
    assert {one.name[:150] for one in told.media[3:]} == {"x" * 150}
    shown = [said(told), said(referred), *(one.in_words() for one in (*told.media, *referred.media))]
    assert not [one for one in shown if "sk-012" in one.replace(given[2].name, "")]


def _tool_of(execute):
    return Tool.from_schema(
        name="show",
        description="Show it.",
        effect="read",
        required_access=PUBLIC,
        input_schema={"type": "object"},
        execute=execute,
    )


async def test_a_bundle_of_the_audit_log_has_no_value():
    class Signer:
        public_key = b"k" * 32

        def sign(self, head):
            return b"s" * 64

        def anchor(self, checkpoint):
            return f"receipt {'x' * 9_980}{TEXT}"

    stream = io.StringIO()
    async with hosted(lambda args, context: {"text": TEXT}) as host:
        await host.extensions.load_pack(ExtensionPack("s", "1", [Descriptor("provenance", "signer", Signer())]))
        await host.tools.process_tool_call(ToolCall("leak", {"a": TEXT, TEXT: "b"}, id=TEXT))
        await host.audit.commit()
        await host.provenance.look(now=True)
        await host.provenance.export(stream)

    bundle = stream.getvalue()
    assert "receipt xxx" in bundle
    assert "0123456789abcdef" not in bundle
    assert "it's-" not in bundle
