"""Images, sound and files on their way from a tool to whoever reads its result."""

import os

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentos import (
    PUBLIC,
    AgentOS,
    Batch,
    ExtensionPack,
    GuardVerdict,
    Media,
    Principal,
    ToolCall,
    ToolDefinitionError,
    ToolResult,
    guardrail,
    tool,
)
from agentos.access.stored_results import STORED_MEDIA, result_from_text, result_to_text

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
ADA = Principal("ada", access=frozenset({"*"}))


def made(function, effect="read", **options):
    return tool(effect=effect, required_access=PUBLIC, **options)(function)


async def result_of(value, *, guards=(), annotation=None, **options):
    """Return what a call comes to whose tool returns *value*."""

    async def show():
        """Show something."""
        return value

    if annotation is not None:
        show.__annotations__["return"] = annotation
    async with AgentOS(**options) as host:
        await host.extensions.load_pack(ExtensionPack("shown", "1.0", [made(show), *guards]))
        return await host.tools.process_tool_call(ToolCall("show", {}, "c1"), ADA)


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mime": "png", "data": b""}, "mime: expected a media type"),
        ({"mime": "image/png\r\nx: y", "data": b""}, "mime: expected a media type"),
        ({"mime": "image/png"}, "exactly one of data, path and url, got nothing"),
        ({"mime": "image/png", "data": b"", "url": "https://a"}, "got data and url"),
        ({"mime": "image/png", "data": "text"}, "data: expected bytes"),
        ({"mime": "image/png", "path": 1}, "path: expected a path"),
        ({"mime": "image/png", "url": "a.png"}, "url: expected an address"),
        ({"mime": "image/png", "url": "data:image/png;base64,AA=="}, "url: expected an address"),
        ({"mime": "image/png", "url": "https://a\nb"}, "url: expected an address"),
        ({"mime": "image/png", "url": f"https://a/{'b' * 9_000}"}, "url: expected an address"),
        ({"mime": "image/png", "data": b"", "name": "a\nb"}, "name: expected printable text"),
        ({"mime": "image/png", "data": b"", "name": "a" * 201}, "name: expected printable text"),
    ],
)
def test_what_is_no_media_is_refused_where_it_is_made(given, words):
    with pytest.raises(ValueError, match=words):
        Media(**given)


def test_bytes_are_not_in_the_repr_and_can_not_change():
    given = bytearray(PNG)
    media = Media("image/png", given)
    given[:] = b""

    assert media.data == PNG
    assert "PNG" not in repr(media)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        media.data = b""


# -- what a tool returns -----------------------------------------------------------------------------------------------


async def test_a_tool_may_return_an_image():
    result = await result_of(Media("image/png", PNG, name="chart.png"), annotation=Media)

    assert result.media == (Media("image/png", PNG, name="chart.png"),)
    assert result.content == "[image image/png chart.png, 264 bytes]"
    assert result.output == {"mime": "image/png", "name": "chart.png", "size": 264}
    assert result.call_id == "c1"


async def test_a_tool_may_return_images_among_other_things():
    found = ["Two of them:", Media("image/png", PNG), Media("audio/wav", b"RIFF"), {"n": 2}]
    result = await result_of(found, annotation=list[str | Media | dict[str, int]])

    assert [one.mime for one in result.media] == ["image/png", "audio/wav"]
    assert result.content.splitlines() == [
        "Two of them:",
        "[image image/png, 264 bytes]",
        "[audio audio/wav, 4 bytes]",
        '{"n": 2}',
    ]


@attrs.frozen
class Report:
    """A report."""

    title: str
    chart: Media


async def test_a_class_may_have_an_image_in_it():
    result = await result_of(Report("May", Media("image/png", PNG)), annotation=Report)

    assert result.output == {"title": "May", "chart": {"mime": "image/png", "size": 264}}
    assert [one.data for one in result.media] == [PNG]


async def test_a_result_may_have_media_beside_what_it_says():
    media = [Media("application/pdf", b"%PDF", name="a.pdf")]

    said = await result_of(ToolResult.ok({"pages": 1}, "It is done.", media=media))
    silent = await result_of(ToolResult.ok(media=media))

    assert (said.output, said.content, said.media) == ({"pages": 1}, "It is done.", tuple(media))
    assert silent.content == "[file application/pdf a.pdf, 4 bytes]"


async def test_a_failure_keeps_its_media():
    failed = attrs.evolve(ToolResult.fail("Broken", "see the picture"), media=[Media("image/png", PNG)])
    result = await result_of(failed)

    assert (result.error.type, [one.data for one in result.media]) == ("Broken", [PNG])


async def test_what_is_no_media_among_media_is_told():
    result = await result_of(attrs.evolve(ToolResult.ok("x"), media=["a.png"]))

    assert result.error.type == "ResultNotSerialisable"
    assert "media: expected Media, got a str" in result.error.message


def test_a_tool_does_not_take_media():
    async def take(picture: Media) -> None:
        """Take a picture."""

    with pytest.raises(ToolDefinitionError, match="which a tool returns and does not take"):
        made(take)


def test_many_results_as_one_have_the_media_of_all():
    picture = Media("image/png", PNG)
    results = [
        ToolResult.ok("a", media=[picture]),
        ToolResult.fail("Broken", "no"),
        ToolResult.ok("b", media=[picture]),
    ]

    assert Batch.of(results).media == (picture, picture)


async def test_the_result_of_a_nested_call_keeps_its_media():
    async def inner() -> Media:
        """Show."""
        return Media("image/png", PNG)

    async def outer(*, context) -> ToolResult:
        """Hand on."""
        return await context.call("inner", {})

    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("nested", "1.0", [made(inner), made(outer)]))
        result = await host.tools.process_tool_call(ToolCall("outer", {}), ADA)

    assert [one.data for one in result.media] == [PNG]


# -- bounds ------------------------------------------------------------------------------------------------------------


async def test_what_is_too_large_is_left_out_and_named():
    found = [Media("image/png", bytes(900), name="small"), Media("image/png", bytes(200), name="large")]
    result = await result_of(found, limits={"media": 1_000})

    assert [one.name for one in result.media] == ["small"]
    assert result.meta["media_dropped"] == 1
    assert "[image image/png large, 200 bytes] [Left out: too large (setting `limits.media`).]" in result.content


async def test_only_so_many_are_kept():
    result = await result_of([Media("image/png", b"x") for _ in range(40)])

    assert len(result.media) == 32
    assert result.meta["media_dropped"] == 8


async def test_names_and_addresses_are_masked_and_bytes_are_not():
    token = "s3cr3t-v4lue-of-mine"
    found = [Media("text/plain", token.encode(), name=token), Media("image/png", url=f"https://a/?k={token}")]

    async def show() -> list[Media]:
        """Show."""
        return found

    async with AgentOS() as host:
        host.extensions.masker.learn(token)
        await host.extensions.load_pack(ExtensionPack("shown", "1.0", [made(show)]))
        result = await host.tools.process_tool_call(ToolCall("show", {}), ADA)

    assert [one.data for one in result.media] == [token.encode(), None]
    assert (result.media[0].name, result.media[1].url) == ("***", "https://a/?k=***")
    assert token not in result.content
    assert token not in str(result.output)


# -- files -------------------------------------------------------------------------------------------------------------


async def test_a_file_is_read_from_a_folder_that_the_host_allows(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.png").write_bytes(PNG)
    found = [Media("image/png", path=tmp_path / "in" / "a.png"), Media("image/png", path="in/a.png", name="again")]
    result = await result_of(found, media_folders=[tmp_path])

    assert [(one.data, one.path, one.name) for one in result.media] == [(PNG, None, "a.png"), (PNG, None, "again")]


@pytest.mark.parametrize("folders", [(), ("allowed",)], ids=["none", "another"])
async def test_a_file_elsewhere_is_never_read(tmp_path, folders):
    (tmp_path / "allowed").mkdir()
    (tmp_path / "private").write_bytes(b"keep it")
    ways = [tmp_path / "private", tmp_path / "allowed" / ".." / "private", "../private", "/", "."]
    result = await result_of(
        [Media("text/plain", path=way) for way in ways], media_folders=[tmp_path / one for one in folders]
    )

    assert (result.media, result.meta["media_dropped"]) == ((), len(ways))
    assert "keep it" not in str(result)


async def test_no_link_leads_out_of_the_folder(tmp_path):
    allowed, private = tmp_path / "allowed", tmp_path / "private"
    allowed.mkdir()
    private.mkdir()
    (private / "key").write_bytes(b"keep it")
    (allowed / "file").symlink_to(private / "key")
    (allowed / "folder").symlink_to(private)
    os.mkfifo(allowed / "pipe")
    found = [Media("text/plain", path=name) for name in ("file", "folder/key", "pipe", "missing")]
    result = await result_of(found, media_folders=[allowed])

    assert result.media == ()
    assert [line.rpartition("[")[2] for line in result.content.splitlines()[4:]] == [
        "Left out: a link is in its way.]",
        "Left out: a link is in its way.]",
        "Left out: it is not a plain file.]",
        "Left out: no such file or directory.]",
    ]


async def test_a_file_counts_with_the_others(tmp_path):
    (tmp_path / "a").write_bytes(bytes(600))
    (tmp_path / "b").write_bytes(bytes(600))
    found = [Media("text/plain", path="a"), Media("text/plain", path="b"), Media("text/plain", b"x")]
    result = await result_of(found, media_folders=[tmp_path], limits={"media": 1_000})

    assert [one.name for one in result.media] == ["a", None]
    assert "it has 600 bytes, too many to keep" in result.content


async def test_a_manifests_folders_are_relative_to_it(tmp_path):
    (tmp_path / "shots").mkdir()
    (tmp_path / "shots" / "a.png").write_bytes(PNG)
    (tmp_path / "extensions.toml").write_text('mediaFolders = ["shots"]\npacks = []\n')
    result = await result_of(Media("image/png", path="a.png"), extension_manifest=tmp_path / "extensions.toml")

    assert [one.data for one in result.media] == [PNG]


# -- guardrails --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "replacement", ["nothing to see", ToolResult.ok("nothing"), ""], ids=["text", "result", "empty"]
)
async def test_a_replacement_leaves_nothing_of_the_media(replacement):
    @guardrail(stage="tool_result", sanitizes=True)
    async def blind(result, context):
        return GuardVerdict.sanitize(replacement, "not for you")

    result = await result_of(Media("image/png", PNG, name="private.png"), guards=[blind])

    assert result.media == ()
    assert "private" not in str(result)


async def test_a_block_leaves_nothing_of_the_media():
    @guardrail(stage="tool_result")
    async def blind(result, context):
        return GuardVerdict.block(f"{len(result.media)} of them")

    result = await result_of(Media("image/png", PNG, name="private.png"), guards=[blind])

    assert (result.error.details["reason"], result.media) == ("1 of them", ())


async def test_a_guard_may_leave_one_out_and_name_no_file(tmp_path):
    (tmp_path / "a").write_bytes(b"keep it")

    @guardrail(stage="tool_result", sanitizes=True)
    async def choosy(result, context):
        kept = [result.media[1], Media("text/plain", path=tmp_path / "a")]
        return GuardVerdict.sanitize(attrs.evolve(result, media=kept), "the first one is not for you")

    result = await result_of([Media("a/b", b"1"), Media("a/b", b"2")], guards=[choosy], media_folders=[tmp_path])

    assert [one.data for one in result.media] == [b"2"]
    assert "keep it" not in str(result)


# -- what lasts --------------------------------------------------------------------------------------------------------

MEDIA = st.builds(
    Media,
    st.sampled_from(["image/png", "text/plain; charset=utf-8", "application/pdf"]),
    st.binary(max_size=64),
    name=st.none() | st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20),
)


@given(st.lists(MEDIA | st.just(Media("image/png", url="https://example.org/a.png")), max_size=4))
def test_a_result_comes_back_from_the_store_with_its_media(media):
    result = ToolResult.ok({"n": 1}, "said", media=media)

    assert result_from_text(result_to_text(result)) == result


def test_what_is_too_large_for_the_store_is_named_there():
    small, large = Media("image/png", b"x", name="small"), Media("image/png", bytes(STORED_MEDIA), name="large")
    back = result_from_text(result_to_text(ToolResult.ok("said", media=[small, large])))

    assert back.media == (small,)
    assert "large, 2,000,000 bytes] [It was too large to be kept with the result.]" in back.content


async def test_a_repeat_of_a_key_and_an_approval_have_the_media(tmp_path):
    async def draw() -> Media:
        """Draw."""
        return Media("image/png", PNG, name="a.png")

    async def host_at():
        host = AgentOS(store=tmp_path / "store.db")
        await host.initialize()
        await host.extensions.load_pack(ExtensionPack("drawing", "1.0", [made(draw, "mutate", idempotent=True)]))
        return host

    host = await host_at()
    waiting = await host.tools.process_tool_call(ToolCall("draw", {}, idempotency_key="k"), ADA)
    approved = await host.approvals.approve(waiting.pending["proposal_id"], by=ADA)
    await host.shutdown()
    host = await host_at()
    try:
        again = await host.tools.process_tool_call(ToolCall("draw", {}, idempotency_key="k"), ADA)
        stored = await host.approvals.result(waiting.pending["proposal_id"])
    finally:
        await host.shutdown()

    expected = (Media("image/png", PNG, name="a.png"),)
    assert (approved.media, again.media, stored.media) == (expected, expected, expected)
