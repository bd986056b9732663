"""The picker of tools: what is ticked is a persona that turns and chats use, in this host and in the manifest."""

import pytest
from browsing import browsing
from model_wires import Says
from studios import ANN, Visitor, evil_host, served
from talking import chatting

from agentos import AgentOS, Persona
from agentos.cli.studio_settings import save_persona
from agentos.model.manifest import ExtensionManifest


async def saving(visitor, picks, **fields):
    csrf = await visitor.token()
    said = {"csrf": csrf, "persona": "reader", "pick": picks, **fields}
    return await visitor.post("/tools/save", data=said, headers={"Origin": visitor.site.base})


async def test_what_is_ticked_is_a_persona_that_narrows_the_tools():
    async with evil_host() as host, served(host) as site, Visitor(site) as visitor:
        await visitor.sign_in()
        answer = await saving(visitor, ["evil:look", "evil:write"], description="Reads.")
        again = await saving(visitor, ["evil:look"])
        (stack,) = [host.extensions.registry("persona").stack("reader")]
        page = await visitor.get("/tools?persona=reader")

        assert (answer.status_code, again.status_code) == (303, 303)
        assert [(one.payload.description, one.payload.tools) for one in stack] == [("Reads.", ("evil:look",))]
        left = host.tools.list_available_tools(host.personas.narrow("reader"))
    assert [info.fully_qualified_id for info in left] == ["evil:look"]
    assert page.text.count(" checked") == 1


async def test_a_persona_keeps_what_else_it_says():
    async with evil_host() as host, served(host) as site, Visitor(site) as visitor:
        await host.extensions.load_pack(_pack(Persona("reader", "Reads.", "Be brief.", greeting="Hm.", deny=["write"])))
        await visitor.sign_in()
        await saving(visitor, ["evil:write"])
        reader = host.personas.get("reader")

    assert (reader.system_prompt, reader.greeting, reader.tools, reader.deny) == (
        "Be brief.",
        "Hm.",
        ("evil:write",),
        (),
    )


def _pack(*offered):
    from agentos import ExtensionPack

    return ExtensionPack("voices", "1", offered)


@pytest.mark.parametrize("picks", [["evil:nothing"], [], ["*"]])
async def test_what_is_no_tool_is_not_saved(picks):
    async with evil_host() as host, served(host) as site, Visitor(site) as visitor:
        await visitor.sign_in()
        answer = await saving(visitor, picks)

        assert (answer.status_code, [one.id for one in host.personas.active()]) == (409, ["odd"])


async def test_who_is_no_operator_saves_nothing():
    async with evil_host() as host, served(host, ANN) as site, Visitor(site) as visitor:
        await visitor.sign_in()
        answer = await saving(visitor, ["evil:write"])
        page = await visitor.get("/tools")

        assert [one.id for one in host.personas.active()] == ["odd"]
    assert (answer.status_code, 'name="pick"' in page.text) == (409, False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("agentos.toml", '# mine\n[personas.reader]\nsystemPrompt = "Be brief."\n'),
        ("agentos.toml", ""),
        ("agentos.toml", '[personas.other] # mine\nsystemPrompt = "Be brief."\n\n[budget]\ncalls = 3\n'),
        ("agentos.json", "{}"),
        ("agentos.yaml", "personas:\n  reader:\n    systemPrompt: Be brief. # mine\n"),
    ],
)
async def test_the_manifest_says_it_to_the_next_host(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)

    assert save_persona(path, "reader", {"description": "Reads.", "tools": ["files:read_file"]}) == name
    manifest = ExtensionManifest.from_file(path)
    async with AgentOS(extension_manifest=manifest) as host:
        reader = host.personas.get("reader")

    assert (reader.description, reader.tools) == ("Reads.", ("files:read_file",))
    assert reader.system_prompt == ("Be brief." if "reader" in text else "")
    assert ("mine" in path.read_text()) == ("mine" in text)


@pytest.mark.proof
async def test_a_person_ticks_a_tool_saves_and_talks_to_a_model_that_has_no_other():
    async with (
        chatting(Says("Hm.")) as (host, model, endpoint, _),
        served(host, settings={"chat": model}) as site,
        browsing(site) as browser,
    ):
        page = await browser.page()
        await page.goto(f"{site.base}/tools")
        await page.get_by_label("Pick notes:look").check()
        await page.get_by_label("Name", exact=True).fill("looker")
        await page.get_by_role("button", name="Save").click()
        await page.get_by_text("looker is saved with 1 tools").wait_for()
        await page.get_by_role("link", name="Chat as looker").click()
        await page.get_by_label("Message").fill("hello")
        await page.get_by_role("button", name="Send").click()
        await page.get_by_text("Hm.").wait_for()

    assert [one["function"]["name"] for one in endpoint.requests[0]["tools"]] == ["look"]
    assert (browser.complaints, browser.outside) == ([], [])
