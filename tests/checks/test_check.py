"""`host.check()` and `extensions.explain`: what the command knows, a host knows too."""

import sys

from bridging import bridged, plain
from kit import descriptor, pack

from agentos import AgentOS, Descriptor, ExtensionPack, SecretRequirement, Trouble


def raises():
    raise RuntimeError("boom")


def host_of(*entries, **options):
    return AgentOS(
        extension_manifest={"packs": [one if isinstance(one, dict) else {"factory": one} for one in entries]}, **options
    )


async def checked(host):
    async with host:
        return await host.check()


async def test_nothing_is_wrong_with_a_good_host(tmp_path):
    report = await checked(host_of(lambda: pack("p", descriptor("x")), store=tmp_path / "s.db"))

    assert (report.ok, report.troubles, str(report)) == (True, [], "nothing is wrong")
    assert {one.check: one.ok for one in report.checks}["store"] is True


async def test_what_the_doctor_finds():
    needy = Descriptor("mood", "y", "", required_secrets=[SecretRequirement("my.own")])
    host = host_of(
        raises,
        lambda: pack("p", descriptor("x")),
        lambda: pack("q", descriptor("x"), needy),
        extension_overrides={"tools": {"z": {"priority": 1}}},
        dotenv="nothing.env",
    )
    report = await checked(host)
    found = {one.about: (one.level, one.message) for one in report.troubles}

    assert not report.ok
    assert found["pack raises"][0] == "error"
    assert found["secret my.own"] == ("error", "it is missing; q:y waits for it")
    assert found["tool:x"] == ("warning", "p's is in the shadow of q's")
    assert found["dotenv"] == ("warning", "there is no file nothing.env")
    assert {one.check: one.reason for one in report.checks if one.ok is None} == {
        "overrides": "because what raises would offer is not known"
    }


async def test_a_server_that_ends_at_once_is_an_error_with_the_cure():
    async with bridged({"dead": {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}}) as host:
        report = await host.check()
        explained = host.extensions.explain("mcp-server", "dead")
    (trouble,) = report.troubles

    assert (trouble.level, trouble.about) == ("error", "server dead")
    assert "is not connected" in trouble.message
    assert "mcpServers.dead" in trouble.cure
    assert "something is wrong with it" in str(explained)
    assert [one.about for one in explained.troubles] == ["server dead"]


async def test_a_server_whose_address_is_dead():
    async with bridged({"gone": {"url": "http://127.0.0.1:9/mcp"}}) as host:
        report = await host.check()

    assert [(one.level, one.about) for one in report.troubles] == [("error", "server gone")]


async def test_what_a_manifest_says_of_tools_that_a_server_does_not_have():
    said = plain(tools=["ech", "*"], effects={"*": "read", "ech": "read"})
    async with bridged({"plain": said}) as host:
        told = [(one.level, one.about, one.message) for one in host.extensions.report.troubles]

    assert told == [
        ("warning", "server plain", f"{field} names 'ech', and it offers no such tool; did you mean 'echo'?")
        for field in ("tools", "effects")
    ]


# -- packs that check themselves -----------------------------------------------------------------------------------


async def test_a_pack_may_find_something_wrong_with_itself():
    trouble = Trouble("error", "pack p", "it is tired", "let it rest")
    host = host_of(lambda: ExtensionPack("p", "1", check=lambda: [trouble]))
    async with host:
        assert host.extensions.report.troubles == [trouble]
        assert (await host.check()).troubles == [trouble]
        await host.extensions.disable("p")

        assert (await host.check()).troubles == []


async def test_a_check_that_raises_is_a_trouble_itself():
    host = host_of(lambda: ExtensionPack("p", "1", check=raises), lambda: ExtensionPack("q", "1", check=lambda: ["x"]))
    told = [(one.level, one.about, one.message) for one in (await checked(host)).troubles]

    assert told == [
        ("error", "pack p", "its check raised RuntimeError: boom"),
        ("error", "pack q", "its check raised TypeError: expected a Trouble, got str"),
    ]


async def test_what_a_pack_says_of_itself_holds_no_secret():
    value = "a-value-that-nobody-may-read"
    said = Trouble("error", "p", f"{value} is refused", f"replace {value}")
    one = Descriptor("mood", "y", "", required_secrets=["my.own"])
    host = host_of(lambda: ExtensionPack("p", "1", [one], check=lambda: [said]), extension_secrets={"my.own": value})

    assert value not in str(await checked(host))


# -- explaining ----------------------------------------------------------------------------------------------------


async def test_explain_knows_a_near_name_and_what_was_not_loaded():
    off = {"factory": lambda: pack("off"), "identifier": "off", "enabled": False}
    async with host_of(raises, off, lambda: pack("p", descriptor("search"))) as host:
        told = host.extensions.explain("tools", "serch")

    assert (told.near, [(one.key, one.status) for one in told.absent]) == (
        "search",
        [("raises", "failed"), ("off", "skipped")],
    )
    assert str(told).startswith("tool:serch is unknown: no loaded pack offers it; did you mean 'search'?")
    assert "raises was not loaded (failed): " in str(told)
    assert "off was not loaded (skipped): disabled" in str(told)


async def test_explain_forgets_a_failure_when_the_pack_is_loaded(manager):
    made = [RuntimeError("boom"), pack("p")]

    def fickle():
        one = made.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    await manager.load({"factory": fickle})
    assert [one.key for one in manager.explain("tool", "x").absent] == [fickle.__qualname__]
    await manager.load({"factory": fickle})

    assert manager.explain("tool", "x").absent == []


async def test_explain_finds_what_is_named_with_its_pack(manager):
    await manager.load_pack(pack("p", descriptor("x")))

    assert manager.explain("tool", "p:x").active.pack == "p"
    assert manager.explain("tool", "q:x").entries == []
    assert manager.explain("tool", "q:x").near == "p:x"


async def test_explain_of_an_unknown_kind_leads_to_the_kind(manager):
    await manager.load_pack(pack("p", descriptor("x", kind="mood")))

    assert manager.explain("mod", "x").near == "mood:x"


async def test_a_tool_that_a_dead_server_may_offer():
    async with bridged({"gone": {"url": "http://127.0.0.1:9/mcp"}}) as host:
        told = str(host.extensions.explain("tool", "echo"))

    assert "it may be offered by what was not loaded:\n  server gone: " in told
