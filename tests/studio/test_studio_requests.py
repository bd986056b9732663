"""Who is let in to the studio, what each may see and change, and that foreign text stays text."""

import asyncio
import gzip
import hashlib
import html.parser
import json
import re
from pathlib import Path

import httpx
import pytest
from studios import ANN, EVIL, GUEST, SECRET, Visitor, evil_host, served, visiting

import agentos.studio
from agentos import AgentOS, Principal
from agentos.studio.live_events import CALLS_KEPT, EVENTS_KEPT, LiveEvents
from agentos.studio.pages import PAGES
from agentos.studio.request_guard import BODY
from agentos.studio.studio_server import serve_studio
from agentos.studio.web_app import studio_app
from agentos.tools.tool_events import ToolProgress, ToolStarted

OURS = Path(agentos.studio.__file__).parent / "static"
ALL = list(PAGES)


def ids(pages):
    return [f"/{page.id}" for page in pages]


@pytest.fixture
async def host():
    async with evil_host() as host:
        yield host


async def propose(host, tool="write", principal=ANN, text="hello"):
    result = await host.tools.process_tool_call({"name": tool, "arguments": {"text": text}}, principal)
    return result.error.details["proposal_id"]


# -- being let in ------------------------------------------------------------------------------------------------------


async def test_the_link_is_exchanged_for_a_cookie_that_scripts_and_other_sites_never_get(host):
    async with served(host) as site, Visitor(site) as visitor:
        answer = await visitor.get(site.link)

    said = answer.headers["set-cookie"].lower()
    assert answer.headers["location"] == "/"
    assert "httponly" in said
    assert "samesite=strict" in said
    assert "path=/" in said


async def test_over_https_the_cookie_is_never_sent_in_the_clear(host):
    app = studio_app(host, principal=ANN, is_secure=True, allowed_hosts=["127.0.0.1"])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="https://127.0.0.1") as client:
        answer = await client.get(f"/sign-in?token={app.state.sign_in.token}")

    assert "; secure" in answer.headers["set-cookie"].lower()


async def test_without_a_cookie_every_page_leads_to_the_sign_in_and_nothing_else_answers(host):
    async with served(host) as site, Visitor(site) as visitor:
        pages = [await visitor.get(path) for path in (*ids(ALL), "/stacks/rows", "/stacks/why?name=tool:look")]
        stream = await visitor.get("/events?topics=calls")
        change = await visitor.submit("/packs/disable", {"key": "evil"}, csrf="00")

    assert {(one.status_code, one.headers.get("location")) for one in pages} == {(303, "/sign-in")}
    assert stream.status_code == 401
    assert change.status_code == 401
    assert host.extensions.packs()[0].enabled


async def test_a_wrong_token_is_refused(host):
    async with served(host) as site, Visitor(site) as visitor:
        answer = await visitor.get("/sign-in?token=guess")

    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


async def test_signing_out_ends_the_session_on_the_server(host):
    async with visiting(host) as visitor:
        kept = dict(visitor.cookies)
        await visitor.submit("/sign-out")
        visitor.cookies.update(kept)
        answer = await visitor.get("/stacks")

    assert answer.headers["location"] == "/sign-in"


async def test_a_principal_that_is_no_more_is_signed_out(host):
    present = [ANN]
    async with visiting(host, lambda: present[0]) as visitor:
        before = await visitor.get("/tools")
        present[0] = None
        after = await visitor.get("/tools")

    assert (before.status_code, after.status_code) == (200, 303)


def test_a_studio_is_never_opened_for_nobody_in_particular():
    with pytest.raises(ValueError, match="give a principal"):
        studio_app(AgentOS())


async def test_another_address_than_loopback_needs_https(host):
    with pytest.raises(ValueError, match="can be reached by others"):
        await serve_studio(host, principal=ANN, bind="0.0.0.0")
    with pytest.raises(ValueError, match="can be reached by others"):
        await serve_studio(host, principal=ANN, bind="0.0.0.0", url="http://studio.example.com")


# -- requests of others ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("csrf", ["", "00", "ab" * 64, "zz"])
async def test_a_change_without_the_token_of_a_form_changes_nothing(host, csrf):
    async with visiting(host) as visitor:
        answer = await visitor.submit("/packs/disable", {"key": "evil"}, csrf=csrf)

    assert answer.status_code == 403
    assert host.extensions.packs()[0].enabled


async def test_the_token_of_another_session_does_not_count(host):
    async with served(host) as site, Visitor(site) as one, Visitor(site) as other:
        await one.sign_in()
        await other.sign_in()
        answer = await one.submit("/packs/disable", {"key": "evil"}, csrf=await other.token())

    assert answer.status_code == 403
    assert host.extensions.packs()[0].enabled


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:1", "null", ""])
async def test_a_change_from_another_origin_changes_nothing(host, origin):
    async with visiting(host) as visitor:
        answer = await visitor.submit("/packs/disable", {"key": "evil"}, origin=origin)

    assert answer.status_code == 403
    assert host.extensions.packs()[0].enabled


async def test_a_page_that_points_its_own_name_here_reaches_nothing(host):
    async with visiting(host) as visitor:
        answer = await visitor.get("/stacks", headers={"Host": "evil.example"})

    assert answer.status_code == 421


async def test_what_another_site_embeds_is_refused(host):
    async with visiting(host) as visitor:
        answer = await visitor.get("/stacks", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})

    assert answer.status_code == 403


async def test_every_answer_says_that_nothing_inline_and_nothing_foreign_runs_and_nobody_frames_it(host):
    async with visiting(host) as visitor:
        answers = [await visitor.get(path) for path in ("/stacks", "/static/studio.js", "/nowhere", "/sign-in")]
        answers.append(await visitor.get("/stacks", headers={"Host": "evil.example"}))

    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_form_that_is_too_large_is_refused(host):
    async with visiting(host) as visitor:
        answer = await visitor.submit("/tools/run", {"of": "evil:look", "arguments": "x" * BODY})

    assert answer.status_code == 413


@pytest.mark.parametrize("path", ["../web_app.py", "..%2fweb_app.py", "vendor/../../view.py", "vendor", ""])
async def test_only_files_of_the_folder_are_served(host, path):
    async with visiting(host) as visitor:
        answer = await visitor.get(f"/static/{path}")

    assert answer.status_code == 404


# -- who may what ------------------------------------------------------------------------------------------------------


async def test_who_is_no_operator_sees_nothing_of_the_host(host):
    theirs = [page for page in ALL if page.is_for_operators]
    async with visiting(host, GUEST) as visitor:
        answers = [await visitor.get(path) for path in ids(theirs)]
        change = await visitor.submit("/packs/disable", {"key": "evil"})
        menu = (await visitor.get("/tools")).text

    assert {answer.status_code for answer in answers} == {403}
    assert change.status_code == 403
    assert host.extensions.packs()[0].enabled
    assert "/audit" not in menu


async def test_an_operator_is_who_holds_the_rule(host):
    async with visiting(host, Principal("olga", access={"studio:operate"})) as visitor:
        answer = await visitor.get("/stacks")

    assert answer.status_code == 200


async def test_a_tool_that_a_principal_may_not_call_is_not_there(host):
    async with visiting(host, GUEST) as visitor:
        listed = (await visitor.get("/tools")).text
        shown = await visitor.get("/tools/one?of=evil:look", headers={"HX-Request": "true"})
        called = await visitor.submit("/tools/run", {"of": "evil:look", "arguments": '{"text": "x"}'}, part=True)

    assert "evil:look" not in listed
    assert shown.status_code == 409
    assert called.status_code == 409
    assert "does" not in shown.text


async def test_proposals_of_others_are_neither_shown_nor_decided(host):
    id = await propose(host)
    async with visiting(host, Principal("bob", access={"notes:write"})) as visitor:
        page = (await visitor.get("/approvals")).text
        answers = [
            await visitor.submit(f"/approvals/{act}", {"id": id, "reason": "no", "arguments": "{}"})
            for act in ("approve", "reject", "edit")
        ]

    assert id not in page
    assert {answer.status_code for answer in answers} == {409}
    assert (await host.approvals.describe(id)).state == "proposed"


async def test_calls_of_others_are_not_shown(host):
    async with visiting(host, Principal("bob", access={"notes:read"})) as visitor:
        await host.tools.process_tool_call({"name": "look", "arguments": {"text": "x"}}, Principal.system())
        page = (await visitor.get("/calls")).text
        call = (await visitor.get("/calls/one?call=1")).text

    assert "evil:look" not in page
    assert "evil:look" not in call


# -- deciding ----------------------------------------------------------------------------------------------------------


async def test_a_call_that_waits_is_approved_and_its_result_stands_beneath(host):
    id = await propose(host)
    async with visiting(host) as visitor:
        before = (await visitor.get("/approvals")).text
        await visitor.submit("/approvals/approve", {"id": id})
        after = (await visitor.get("/approvals")).text

    assert f'id="p-{id}"' in before
    assert f'id="d-{id}"' in after
    assert (await host.approvals.describe(id)).state == "applied"


async def test_a_destructive_call_runs_only_if_the_name_of_its_tool_is_typed(host):
    id = await propose(host, "wipe")
    async with visiting(host) as visitor:
        refused = await visitor.submit("/approvals/approve", {"id": id, "typed": "yes"})
        state = (await host.approvals.describe(id)).state
        await visitor.submit("/approvals/approve", {"id": id, "typed": "wipe"})

    assert refused.status_code == 409
    assert state == "proposed"
    assert (await host.approvals.describe(id)).state == "applied"


async def test_other_arguments_make_a_proposal_in_the_place_of_one(host):
    id = await propose(host)
    async with visiting(host) as visitor:
        await visitor.submit("/approvals/edit", {"id": id, "arguments": '{"text": "other"}'})

    (waiting,) = await host.approvals.pending()
    assert (waiting.parent, waiting.arguments) == (id, {"text": "other"})


async def test_a_rejection_needs_a_reason(host):
    id = await propose(host)
    async with visiting(host) as visitor:
        refused = await visitor.submit("/approvals/reject", {"id": id, "reason": " "})
        await visitor.submit("/approvals/reject", {"id": id, "reason": "not today"})

    assert refused.status_code == 409
    assert (await host.approvals.describe(id)).note == "not today"


async def test_both_sides_of_a_preview_are_compared(host):
    await propose(host, text="fresh")
    async with visiting(host) as visitor:
        page = (await visitor.get("/approvals")).text

    assert "<ins>new fresh</ins>" in page
    assert "<del>old &lt;script&gt;" in page


async def test_packs_are_switched_by_the_same_calls_as_the_command_makes(host):
    async with visiting(host) as visitor:
        await visitor.submit("/packs/disable", {"key": "evil"})
        disabled = not host.extensions.packs()[0].enabled
        await visitor.submit("/packs/enable", {"key": "evil"})

    assert disabled
    assert host.extensions.packs()[0].enabled


async def test_a_try_out_says_what_came_of_it_and_where_it_is_recorded(host):
    async with visiting(host) as visitor:
        said = {"of": "evil:look", "arguments": '{"text": "x"}', "act": "run"}
        page = (await visitor.submit("/tools/run", said, part=True)).text

    assert "Output" in page
    assert "State" in page
    assert "/audit?text=" in page


async def test_the_chain_is_verified(host):
    async with visiting(host) as visitor:
        answer = await visitor.submit("/audit/verify", part=True)

    assert "The chain is whole" in answer.text


# -- foreign text ------------------------------------------------------------------------------------------------------


class Elements(html.parser.HTMLParser):
    """Collects what a browser would make of a page that is not text."""

    def __init__(self):
        super().__init__()
        self.bad = []

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        if tag == "script" and not names.get("src", "").startswith("/static/"):
            self.bad.append((tag, names))
        if tag in ("img", "iframe", "object", "embed", "style") and not names.get("src", "").startswith("/static/"):
            self.bad.append((tag, names))
        self.bad += [(tag, name) for name in names if name.startswith(("on", "style", "hx-on"))]


async def test_foreign_text_is_text_on_every_page(host):
    id = await propose(host, text=EVIL)
    rejected = await propose(host, text=f"{EVIL} again")
    await host.approvals.reject(rejected, EVIL)
    await host.grants.add("evil:write", "never", principal="ann")
    async with visiting(host) as visitor:
        for name in ("look", "fail"):
            await host.tools.process_tool_call({"name": name, "arguments": {"text": EVIL}, "id": EVIL})
        paths = [
            *ids(ALL),
            "/stacks?why=tool:look",
            "/stacks?why=tool:gated",
            f"/stacks?text={EVIL}&why={EVIL}",
            "/tools?of=evil:write",
            f"/calls?text={EVIL}",
            *(f"/calls/one?call={number}" for number in range(30)),
            f"/audit?text={EVIL}",
        ]
        pages = {path: (await visitor.get(path)).text for path in paths}
        said = {"of": "evil:look", "arguments": json.dumps({"text": EVIL}), "act": "run"}
        pages["tried"] = (await visitor.submit("/tools/run", said, part=True)).text
        pages["approved"] = (await visitor.submit("/approvals/approve", {"id": id}, part=True)).text
        pages["refused"] = (await visitor.submit("/packs/enable", {"key": EVIL}, part=True)).text

    found = {}
    for path, page in pages.items():
        elements = Elements()
        elements.feed(page)
        found[path] = elements.bad
    assert {path: bad for path, bad in found.items() if bad} == {}
    assert "&lt;script&gt;" in pages["/approvals"]


async def test_no_page_has_the_value_of_a_secret(host):
    await host.extensions.set_secret("evil.key", SECRET)
    await propose(host, text=f"send {SECRET}")
    async with visiting(host) as visitor:
        pages = [(await visitor.get(path)).text for path in (*ids(ALL), "/stacks?why=tool:gated")]
        said = {"of": "evil:look", "arguments": json.dumps({"text": SECRET}), "act": "run"}
        pages.append((await visitor.submit("/tools/run", said, part=True)).text)

    assert [page for page in pages if SECRET in page] == []


# -- what happens ------------------------------------------------------------------------------------------------------


async def heard(visitor, topics, act, wanted):
    """Return what a stream says of *wanted*, while something is done."""
    async with visitor.stream("GET", f"/events?topics={topics}") as answer:
        lines = answer.aiter_lines()
        await anext(lines)
        await act()
        async with asyncio.timeout(60):
            async for line in lines:
                if line.startswith("data: ") and wanted in line:
                    return json.loads(line.removeprefix("data: "))
    return None


async def test_what_waits_in_another_host_on_the_store_is_told(tmp_path):
    store = str(tmp_path / "shared.db")
    async with evil_host(store=store) as mine, evil_host(store=store) as other, visiting(mine) as visitor:
        said = await heard(visitor, "approvals", lambda: propose(other), "approvals")
        page = (await visitor.get("/approvals")).text

    assert said == {"topics": ["approvals"]}
    assert "evil:write" in page


async def test_a_call_is_told_as_a_row_of_text(host):
    async def call():
        await host.tools.process_tool_call({"name": "look", "arguments": {"text": EVIL}})

    async with visiting(host) as visitor:
        said = await heard(visitor, "calls", call, "done")

    elements = Elements()
    elements.feed(said["rows"])
    assert "evil:look" in said["rows"]
    assert elements.bad == []


async def test_what_happened_between_a_page_and_its_stream_is_told(host):
    async def nothing():
        """Do nothing more."""

    async with visiting(host) as visitor:
        page = (await visitor.get("/packs")).text
        since = re.search(r'data-since="(\d+)"', page)[1]
        await host.extensions.disable("evil")
        said = await heard(visitor, f"packs&since={since}", nothing, "packs")

    assert said == {"topics": ["packs"]}


async def test_a_stream_ends_when_its_session_does(host):
    async with visiting(host) as visitor, visitor.stream("GET", "/events?topics=calls") as answer:
        token = await visitor.token()
        await visitor.submit("/sign-out", csrf=token)
        await host.tools.process_tool_call({"name": "look", "arguments": {"text": "x"}})
        async with asyncio.timeout(60):
            rest = "".join([line async for line in answer.aiter_lines()])

    assert "rows" not in rest


# -- weight ------------------------------------------------------------------------------------------------------------


async def test_a_page_with_all_its_files_weighs_at_most_60_kb(host):
    files = [one for one in OURS.rglob("*") if one.suffix in (".css", ".js", ".svg")]
    common = sum(len(gzip.compress(file.read_bytes(), 6)) for file in files)
    async with visiting(host) as visitor:
        sizes = {path: len(gzip.compress((await visitor.get(path)).content, 6)) for path in ids(ALL)}

    assert {path: size for path, size in sizes.items() if size + common > 60_000} == {}


def test_vendored_files_are_what_they_were_when_they_were_taken():
    folder = OURS / "vendor"
    said = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    there = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.iterdir()}

    assert {name: mark for name, mark in there.items() if name != "SHA256SUMS"} == said
    assert "htmx.LICENSE" in said


async def test_however_much_happens_what_is_kept_of_it_is_bounded(host):
    live = LiveEvents(host)
    with live.listening():
        for number in range(3 * CALLS_KEPT):
            named = {"tool": f"evil:look{number}", "call_id": f"c{number}", "principal": "ann"}
            host.extensions.events.post(ToolStarted(**named))
            for done in range(3):
                host.extensions.events.post(ToolProgress(**named, done=done, total=None, message=EVIL))
        await host.extensions.events.deliver()

    assert len(live.calls) == CALLS_KEPT
    assert len(live._open) <= CALLS_KEPT
    assert len(live.events) == EVENTS_KEPT
