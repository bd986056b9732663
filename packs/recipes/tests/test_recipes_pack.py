"""Three workflows on real servers: found, read, sent, approved; and what each says where something is missing."""

import asyncio
import datetime as dt

import pytest
from agentos_pack_recipes.digest import MOST_CHARACTERS, digest_of, section_of
from agentos_pack_recipes.feeds import entries_of, new_entries
from agentos_pack_recipes.passages import best_passages, quoted
from agentos_pack_recipes.research import report_of
from agentos_pack_recipes.triage import assessed

from agentos import Principal, ToolCall, WorkflowError

pytestmark = pytest.mark.anyio
ANN = Principal("ann", access={"*"})
RUNNER = Principal("runner", "service", access={"incidents:read", "incidents:write"})
BEES = """<html><head><title>Bees</title></head><body><article><h1>Bees</h1>
<p>Bees dance to show other bees where flowers are, and how far it is to fly there from the hive.</p>
<p>The weather was fine on that day, and nobody thought of anything else than of the sea.</p>
<p>A longer dance means that the flowers are farther away, as was found out a hundred years ago.</p>
</article></body></html>"""


def html(text):
    return 200, {"Content-Type": "text/html; charset=utf-8"}, text.encode()


def reading(site):
    allowed = [f"127.0.0.1:{site.server_port}"]
    return {"module": "agentos_pack_web_extract", "options": {"allowPrivate": allowed}, "required": True}


def searching(search):
    options = {"secrets": {"searxng.url": search.url}}
    return {"module": "agentos_pack_web_search", "options": options, "required": True}


async def test_research_cites_what_pages_say_and_tells_which_could_not_be_read(hosting, site, search):
    site.pages |= {"/bees": html(BEES), "/gone": (404, {}, b"")}
    site.pages["/cars"] = html(
        "<html><body><p>Cars are driven on roads by people who want to be elsewhere.</p></body></html>"
    )
    search.found = [("Bees", f"{site.url}/bees"), ("Gone", f"{site.url}/gone"), ("Cars", f"{site.url}/cars")]
    async with hosting(reading(site), searching(search)) as host:
        run = await host.workflows.start("web-research", {"question": "Why do bees dance?"}, principal=ANN)
        output = await host.workflows.result(run.id)
        steps = (await host.workflows.get(run.id)).steps

    assert [one["url"] for one in output["sources"]] == [f"{site.url}/bees"]
    assert [one["url"] for one in output["unread"]] == [f"{site.url}/gone", f"{site.url}/cars"]
    assert "## Bees [1]" in output["report"]
    assert "Bees dance to show other bees where flowers are" in output["report"]
    assert f"[1] Bees. <{site.url}/bees>" in output["report"]
    assert "weather" not in output["report"]
    assert next(step.tool for step in steps).endswith(":web_search")


async def test_a_digest_is_sent_as_one_mail_with_what_is_new(hosting, site, smtp, tmp_path):
    now = dt.datetime.now(dt.UTC)
    feed = f"""<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>
    <item><title>New &amp; true</title><link>https://example.org/new</link>
    <pubDate>{now:%a, %d %b %Y %H:%M:%S} +0000</pubDate></item>
    <item><title>Old</title><link>https://example.org/old</link>
    <pubDate>Mon, 02 Nov 2020 10:00:00 +0000</pubDate></item>
    </channel></rss>"""
    site.pages["/feed"] = (200, {"Content-Type": "application/rss+xml"}, feed.encode())
    site.pages["/gone"] = (404, {}, b"")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "notes.md").write_text("Buy milk", "utf-8")
    files = {"module": "agentos_pack_files", "options": {"root": str(tmp_path / "files")}, "required": True}
    options = {"smtpTls": "none", "imapTls": "none", "fromAddress": "agent@example.org", "smtpPort": smtp.port}
    mail = {
        "module": "agentos_pack_email",
        "options": {**options, "recipients": ["*@example.org"]},
        "required": True,
    }
    secrets = {"email.smtpHost": "localhost", "email.smtpUser": "robot", "email.smtpPassword": smtp.password}
    packs = (reading(site), files, mail)
    async with hosting(*packs, options={"principal": "runner"}, extension_secrets=secrets) as host:
        given = {"urls": [f"{site.url}/feed", f"{site.url}/gone"], "files": ["notes.md"], "to": ["ann@example.org"]}
        run = await host.workflows.start("nightly-digest", given)
        output = await host.workflows.result(run.id)

    [sent] = smtp.mails
    text = sent.get_content()
    assert sent["Subject"] == f"Digest, {now:%Y-%m-%d}"
    assert "- New & true <https://example.org/new>" in text
    assert "Old" not in text
    assert "Buy milk" in text
    assert "could not be read" in text
    assert (output["sources"], output["unread"]) == (3, [f"{site.url}/gone"])


@pytest.mark.parametrize(
    "given", [{}, {"urls": ["https://example.org"]}, {"files": ["a"], "to": ["a@b.c"], "target": "x"}]
)
async def test_a_digest_without_a_source_or_with_two_ways_fails(hosting, given):
    async with hosting() as host:
        run = await host.workflows.start("nightly-digest", given, principal=ANN)
        with pytest.raises(WorkflowError, match="expected up to 50 urls and files, and either to or target"):
            await host.workflows.result(run.id)


INCIDENTS = {"module": "agentos_pack_incidents", "required": True}


async def opened(host, **fields):
    made = await host.tools.process_tool_call(ToolCall("incident_open", {"severity": "low", **fields}), RUNNER)
    assert made.success, made.error
    return made.output["id"]


async def look(host, id):
    return (await host.tools.process_tool_call(ToolCall("incident_get", {"id": id}), RUNNER)).output


async def asked(host, id):
    """Start a triage and return the run and the proposal that it waits for."""
    waits = asyncio.Event()
    host.extensions.on(lambda event: waits.set() if event.type == "workflow:waiting" else None)
    run = await host.workflows.start("incident-triage", {"incident": id})
    await asyncio.wait_for(waits.wait(), 60)
    [proposal] = await host.approvals.pending()
    return run.id, proposal


@pytest.fixture
def triaging(hosting, tmp_path):
    entry = {**INCIDENTS, "options": {"path": str(tmp_path / "incidents.db")}}
    return lambda **options: hosting(entry, options={"principal": "runner", **options})


async def test_a_triage_asks_a_person_and_writes_down_what_was_approved(triaging):
    async with triaging() as host:
        id = await opened(host, title="Uploads fail", summary="They see errors.")
        run, proposal = await asked(host, id)
        before = await look(host, id)
        await host.approvals.approve(proposal.id, by=RUNNER)
        output = await host.workflows.result(run)
        after = await look(host, id)

    assert proposal.arguments["text"] == (
        f"Take incident {id}, Uploads fail, as high? It is low; it says errors, fail."
    )
    assert before["severity"] == "low"
    assert (after["severity"], after["status"]) == ("high", "investigating")
    assert output == {"severity": "high", "version": after["version"], "by": "service:runner"}


async def test_a_triage_that_is_rejected_changes_nothing(triaging):
    async with triaging() as host:
        id = await opened(host, title="Shop is down")
        run, proposal = await asked(host, id)
        await host.approvals.reject(proposal.id, "not so bad", by=RUNNER)
        with pytest.raises(WorkflowError, match="the task 'ok' failed"):
            await host.workflows.result(run)
        assert (await look(host, id))["severity"] == "low"
        states = {step.name: step.state for step in (await host.workflows.get(run)).steps}

    assert (states["ok"], states["apply"]) == ("failed", "skipped")


async def test_a_resolved_incident_is_left_alone(triaging):
    async with triaging() as host:
        id = await opened(host, title="Shop is down")
        resolve = {"id": id, "version": 1, "resolution": "it is up"}
        await host.tools.process_tool_call(ToolCall("incident_resolve", resolve), RUNNER)
        run = await host.workflows.start("incident-triage", {"incident": id})

        assert await host.workflows.result(run.id) == {"severity": None, "version": None, "by": None}
        assert await host.approvals.pending() == []


async def test_what_a_workflow_lacks_is_told_before_it_starts(hosting):
    async with hosting(options={"principal": "runner", "notify": "ops"}) as host:
        with pytest.raises(WorkflowError) as caught:
            await host.workflows.start("incident-triage", {})

    assert [one.path for one in caught.value.problems] == [
        *("tasks[0].tool", "tasks[3].tool", "tasks[4].tool", "inputs.incident"),
    ]


# -- texts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "present", "expected"),
    [
        ("All customers see it: the shop is down", "low", "critical"),
        ("Uploads fail with errors", "low", "high"),
        ("Uploads fail", "critical", "critical"),
        ("It is slow", "low", "medium"),
        ("It is slow", "high", "high"),
        ("A typo", "low", "low"),
    ],
)
def test_a_severity_is_proposed_by_words_and_never_a_lower_one(text, present, expected):
    assert assessed(text, present)[0] == expected


ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>
<entry><title type="html">&lt;b&gt;One&lt;/b&gt;</title><link href="https://e.org/1"/><updated>2026-11-18T10:00:00Z</updated></entry>
<entry><link href="https://e.org/2"/></entry></feed>"""


def test_feeds_are_read_and_what_is_none_is_not():
    entries = entries_of(ATOM)

    assert [(one.title, one.link) for one in entries] == [
        ("One", "https://e.org/1"),
        ("(without a title)", "https://e.org/2"),
    ]
    assert [one.link for one in new_entries(entries, dt.datetime(2026, 11, 19, tzinfo=dt.UTC))] == ["https://e.org/2"]
    for text in ("plain", "<html><p>x</p></html>", "<rss", '<!DOCTYPE x [<!ENTITY a "b">]><rss>&a;</rss>'):
        assert entries_of(text) is None


def test_passages_are_those_about_the_question_in_the_order_of_the_text():
    text = "\n\n".join([f"{word} " + "x" * 60 for word in ("second bees", "none", "bees dance", "why a dance")])

    assert [one.split(" x")[0] for one in best_passages(text, "Why do bees dance?", 2)] == ["second bees", "bees dance"]
    assert best_passages(text, "cars", 3) == []
    assert quoted(["a", "b"]) == "> a\n>\n> b"


def test_a_page_can_not_end_its_quotation_or_its_address():
    page = {
        "url": "https://e.org/>\n# Mine",
        "title": "T\n# Other",
        "date": "",
        "site": "",
        "text": "bees dance\n# Fake " + "y" * 60,
    }
    report = report_of("bees?\n# x", [{"url": "u", "title": "t"}], [page])["report"]

    assert [line for line in report.splitlines() if line.startswith("# ")] == ["# bees? # x"]


def test_a_digest_has_as_many_whole_sections_as_fit():
    sections = [section_of((f"source {number}", "word " * 200, ""), dt.datetime.now(dt.UTC)) for number in range(40)]
    digest = digest_of(sections)

    assert len(digest) <= MOST_CHARACTERS + 100
    assert _left_out(digest) == 40 - digest.count("* source")


def _left_out(digest):
    return int(digest.rpartition("and ")[2].split()[0])
