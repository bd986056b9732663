"""The pages of the studio as a person uses them, in a real browser on a real host with real packs."""

import contextlib

import pytest
from browsing import axe_source, browsing, violations
from studios import ANN, EVIL, evil_host, served

from agentos import AgentOS
from agentos.studio.pages import PAGES
from agentos.tools.tool_events import ToolFinished, ToolStarted

pytestmark = pytest.mark.proof

ALL = [page.id for page in PAGES]


@contextlib.asynccontextmanager
async def opened(host, **options):
    async with served(host, **options) as site, browsing(site) as browser:
        yield browser


@contextlib.asynccontextmanager
async def real_host(folder):
    """Give a host of curated packs, whose notes and files are in a folder."""
    packs = [
        {"package": "calculator"},
        {"package": "files", "options": {"root": str(folder), "writable": True}},
        {"package": "giphy"},
        {"package": "tasks", "options": {"path": str(folder / "tasks.db")}},
        {"package": "calculater"},
    ]
    async with AgentOS(extension_manifest={"packs": packs}, store=str(folder / "agentos.db")) as host:
        yield host


async def test_a_pack_is_enabled_its_tool_tried_approved_in_place_and_found_in_the_audit_log(tmp_path):
    async with real_host(tmp_path) as host:
        await host.extensions.disable("files")
        async with opened(host) as browser:
            page = await browser.page()
            await page.goto(f"{browser.site.base}/packs")
            await page.get_by_role("button", name="Enable files").click()
            await page.get_by_text("files is enabled.").wait_for()
            await page.get_by_role("link", name="Tools").click()
            await page.get_by_role("searchbox").fill("write_file")
            await page.get_by_role("link", name="write_file").click()
            await page.get_by_label("path").first.wait_for(state="attached")
            await run_with(page, {"path": "hello.txt", "content": "good day"})
            await page.get_by_role("link", name="See what would run").click()
            await page.get_by_role("button", name="Approve files:write_file").click()
            await page.get_by_text("files:write_file ran.").wait_for()
            await page.get_by_role("link", name="Audit").click()
            await page.get_by_role("searchbox").fill("files:write_file")
            await page.get_by_role("cell", name="files:write_file").first.wait_for()
            await page.get_by_role("button", name="Verify the chain").click()
            await page.get_by_text("The chain is whole").wait_for()

    assert (tmp_path / "hello.txt").read_text() == "good day"
    assert browser.complaints == []
    assert browser.outside == []


async def run_with(page, arguments):
    """Fill in the form of a tool, and run it."""
    for name, value in arguments.items():
        await page.locator(f"#panel [name='a/{name}']").fill(value)
    await page.get_by_role("button", name="Run it").click()


async def test_the_inbox_fills_by_itself_and_each_row_decides_for_itself(tmp_path):
    store = str(tmp_path / "shared.db")
    async with evil_host(store=store) as host, evil_host(store=store) as other, opened(host) as browser:
        page = await browser.page()
        await page.goto(f"{browser.site.base}/approvals")
        await page.get_by_text("Nothing waits.").wait_for()
        await other.tools.process_tool_call({"name": "write", "arguments": {"text": "one"}}, ANN)
        await page.get_by_role("article", name="evil:write").wait_for()
        await page.get_by_label("Why not").fill("because ")
        await other.tools.process_tool_call({"name": "wipe", "arguments": {"text": "two"}}, ANN)
        await page.get_by_role("article", name="evil:wipe").wait_for()
        kept = await page.get_by_label("Why not").first.input_value()
        await page.get_by_role("button", name="Reject evil:write").click()
        await page.get_by_role("article", name="evil:write, rejected").wait_for()
        await page.get_by_label("Type wipe to let it run").fill("wipe")
        await page.get_by_role("button", name="Approve evil:wipe").click()
        await page.get_by_role("article", name="evil:wipe, applied").wait_for()

    assert kept == "because "
    assert browser.complaints == []


async def test_an_expired_row_loses_its_buttons(tmp_path):
    async with evil_host(proposal_ttl=1.5) as host, opened(host) as browser:
        page = await browser.page()
        await host.tools.process_tool_call({"name": "write", "arguments": {"text": "one"}}, ANN)
        await page.goto(f"{browser.site.base}/approvals")
        await page.get_by_role("button", name="Approve evil:write").wait_for(state="hidden")


async def test_live_calls_appear_pause_and_open(tmp_path):
    async with evil_host() as host, opened(host) as browser:
        page = await browser.page()
        await page.goto(f"{browser.site.base}/calls")
        await page.locator("body[data-live=on]").wait_for()
        await host.tools.process_tool_call({"name": "look", "arguments": {"text": "x"}})
        row = page.get_by_role("row", name="evil:look")
        await row.wait_for()
        await page.get_by_role("button", name="Pause").click()
        await host.tools.process_tool_call({"name": "fail", "arguments": {"text": "x"}})
        await page.get_by_role("button", name="Resume").click()
        await page.get_by_role("row", name="evil:fail").wait_for()
        await row.get_by_role("link").click()
        await page.get_by_role("heading", name="Steps").wait_for()
        steps = await page.locator(".steps li").all_text_contents()

    assert [step.split()[2] for step in steps] == ["started", "progress", "finished"]
    assert browser.complaints == []


async def test_ten_thousand_stacks_are_fetched_as_they_are_looked_at():
    from agentos import Descriptor, ExtensionPack

    many = ExtensionPack("many", "1", tuple(Descriptor("thing", f"thing-{n}", n) for n in range(10_000)))
    async with AgentOS() as host:
        await host.extensions.load_pack(many)
        async with opened(host) as browser:
            page = await browser.page()
            await page.get_by_text("10,000 stacks").wait_for()
            first = await page.locator(".pile").count()
            await page.locator(".more").scroll_into_view_if_needed()
            await page.get_by_role("link", name="thing-40", exact=True).wait_for(state="attached")
            await page.get_by_role("searchbox").fill("thing-9999")
            await page.get_by_text("1 stack", exact=True).wait_for()
            address = page.url

    assert first <= 48
    assert "text=thing-9999" in address


async def test_what_is_shown_stands_in_the_address_and_back_works(tmp_path):
    async with real_host(tmp_path) as host, opened(host) as browser:
        page = await browser.page()
        await page.get_by_label("State").select_option("gated")
        await page.get_by_text("1 stack", exact=True).wait_for()
        await page.get_by_role("link", name="giphy_search").click()
        await page.get_by_role("heading", name="tool:giphy_search").wait_for()
        await page.wait_for_url("**why=tool%3Agiphy_search**")
        shown = page.url
        await page.goto(shown)
        await page.get_by_role("heading", name="tool:giphy_search").wait_for()
        await page.keyboard.press("Escape")
        await page.get_by_role("heading", name="tool:giphy_search").wait_for(state="detached")
        await page.go_back()
        await page.get_by_text("1 stack", exact=True).wait_for()

    assert "state=gated" in shown
    assert "why=tool%3Agiphy_search" in shown
    assert browser.complaints == []


async def test_script_in_foreign_text_never_runs():
    async with evil_host() as host, opened(host) as browser:
        page = await browser.page()
        for name in ("write", "wipe"):
            await host.tools.process_tool_call({"name": name, "arguments": {"text": EVIL}}, ANN)
        for name in ("look", "fail"):
            await host.tools.process_tool_call({"name": name, "arguments": {"text": EVIL}})
        stolen = []
        for path in (*ALL, "stacks?why=tool:look", "tools?of=evil:write", f"stacks?text={EVIL}"):
            await page.goto(f"{browser.site.base}/{path}")
            stolen.append(await page.evaluate("window.stolen"))
        await page.goto(f"{browser.site.base}/calls")
        await page.locator("body[data-live=on]").wait_for()
        await host.tools.process_tool_call({"name": "look", "arguments": {"text": EVIL}})
        await page.get_by_role("row", name="evil:look").nth(1).wait_for()
        stolen.append(await page.evaluate("window.stolen"))

    assert set(stolen) == {None}
    assert browser.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_no_page_has_a_serious_violation_by_axe(scheme):
    source = axe_source()
    async with evil_host() as host, opened(host) as browser:
        await host.tools.process_tool_call({"name": "write", "arguments": {"text": "x"}}, ANN)
        await host.tools.process_tool_call({"name": "fail", "arguments": {"text": "x"}})
        await host.grants.add("evil:look", "never", principal="ann")
        page = await browser.page(color_scheme=scheme, reduced_motion="reduce")
        found = {}
        for path in (*ALL, "stacks?why=tool:look", "tools?of=evil:write", "calls?call=1", "sign-in"):
            await page.goto(f"{browser.site.base}/{path}")
            await page.locator("h1").wait_for()
            found[path] = await violations(page, source)

    assert {path: bad for path, bad in found.items() if bad} == {}


async def test_every_page_fits_360_pixels_and_has_one_heading():
    async with evil_host() as host, opened(host) as browser:
        await host.tools.process_tool_call({"name": "write", "arguments": {"text": EVIL * 3}}, ANN)
        page = await browser.page(viewport={"width": 360, "height": 700})
        wide, headings = {}, {}
        for path in (*ALL, "stacks?why=tool:look", "tools?of=evil:write"):
            await page.goto(f"{browser.site.base}/{path}")
            wide[path] = await page.evaluate("document.documentElement.scrollWidth")
            headings[path] = await page.locator("h1").count()

    assert {path: width for path, width in wide.items() if width > 360} == {}
    assert set(headings.values()) == {1}


async def test_a_call_is_approved_by_the_keyboard_alone():
    async with evil_host() as host, opened(host) as browser:
        await host.tools.process_tool_call({"name": "write", "arguments": {"text": "x"}}, ANN)
        page = await browser.page()
        await page.goto(f"{browser.site.base}/approvals")
        await page.get_by_role("button", name="Approve evil:write").wait_for()
        for _ in range(60):
            await page.keyboard.press("Tab")
            focused = await page.evaluate("document.activeElement.getAttribute('aria-label') || ''")
            if focused.startswith("Approve"):
                break
        outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        await page.keyboard.press("Enter")
        await page.get_by_role("article", name="evil:write, applied").wait_for()

    assert outline == "solid"


async def test_a_flood_of_events_leaves_the_page_usable_and_the_memory_flat():
    calls = 20_000
    async with evil_host() as host, opened(host) as browser:
        page = await browser.page()
        await page.goto(f"{browser.site.base}/calls")
        await page.locator("body[data-live=on]").wait_for()
        events = host.extensions.events
        for number in range(calls):
            named = {"tool": "evil:look", "call_id": f"c{number}", "principal": "ann"}
            events.post(ToolStarted(**named))
            events.post(ToolFinished(**named, success=True, error=None, seconds=0.001))
            await events.deliver()
        await host.tools.process_tool_call({"name": "fail", "arguments": {"text": "x"}})
        await page.get_by_role("row", name="evil:fail").wait_for()
        rows = await page.locator("#calls tr").count()
        await page.get_by_role("searchbox").fill("evil:fail")
        await page.get_by_role("row", name="evil:fail").wait_for()

    assert rows <= 200
    assert browser.complaints == []


async def test_a_workflow_is_started_drawn_and_goes_on_once_it_is_approved(tmp_path):
    definition = {
        "version": "1",
        "inputs": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        "tasks": [
            {"id": "ask", "human": "Greet ${inputs.name}?"},
            {"id": "sum", "tool": "calculate", "arguments": {"expression": "40 + 2"}, "needs": ["ask"]},
        ],
        "output": {"answer": "${sum.output}"},
    }
    manifest = {"packs": [{"package": "calculator"}], "workflows": {"greeting": definition}}
    async with (
        AgentOS(extension_manifest=manifest, store=str(tmp_path / "agentos.db")) as host,
        opened(host) as browser,
    ):
        page = await browser.page()
        await page.goto(f"{browser.site.base}/workflows")
        await page.get_by_text("Start it").click()
        await page.get_by_label("Inputs (JSON)").fill('{"name": 3}')
        await page.get_by_role("button", name="Start greeting").click()
        await page.locator("#notice .problem").wait_for()
        await page.get_by_label("Inputs (JSON)").fill('{"name": "<b>Ada</b>"}')
        await page.get_by_role("button", name="Start greeting").click()
        await page.get_by_role("cell", name="waiting").wait_for()
        await page.locator("tbody a").click()
        await page.get_by_role("link", name="Decide").click()
        await page.get_by_role("button", name="Approve").first.click()
        await page.get_by_role("link", name="Workflows").click()
        await page.get_by_role("cell", name="finished").wait_for()
        await page.locator("tbody a").click()
        drawn = page.locator("#panel img.graph")
        await drawn.wait_for()
        width = await drawn.evaluate("image => image.decode().then(() => image.naturalWidth)")
        await page.get_by_role("region", name="Output").wait_for()

    assert width > 0
    assert [one for one in browser.complaints if "409 (Conflict)" not in one] == []
    assert browser.outside == []
