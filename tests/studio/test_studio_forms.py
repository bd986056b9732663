"""Forms made of schemas in a real browser: they fill, submit and say what is wrong without losing a value."""

import json

import bfcl_calls
import pytest
from browsing import browsing
from studios import served

from agentos import PUBLIC, AgentOS, ExtensionPack, Tool
from agentos.studio.forms.form_entries import arguments_of, pairs_of
from agentos.studio.forms.form_fields import controls_of, form_of
from agentos.studio.forms.form_shapes import exactly

pytestmark = pytest.mark.proof

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 2, "description": "What it is called"},
        "count": {"type": "integer", "minimum": 1},
        "day": {"type": "string", "format": "date"},
        "level": {"enum": ["low", "high"]},
        "note": {"type": ["string", "null"]},
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
    },
    "required": ["title"],
    "additionalProperties": False,
}


def tool(schema=SCHEMA):
    async def note(arguments, context):
        return arguments

    return Tool.from_schema(
        name="note_it", description="Note it.", input_schema=schema, effect="read", required_access=PUBLIC, execute=note
    )


async def test_a_form_is_filled_and_sends_what_was_entered():
    async with AgentOS() as host:
        await host.extensions.load_pack(ExtensionPack("notes", "1", [tool()]))
        async with served(host) as site, browsing(site) as browser:
            page = await browser.page()
            await page.goto(f"{site.base}/tools?of=notes:note_it")
            await page.get_by_role("textbox", name="title").fill("x")
            await page.get_by_role("textbox", name="count").fill("many")
            await page.get_by_role("button", name="Add rows").click()
            await page.get_by_role("button", name="Add to rows").click()
            await page.get_by_role("textbox", name="name").fill("first\nsecond")
            await page.get_by_label("note: what it is").select_option("nothing (null)")
            await page.get_by_role("button", name="Run it").click()
            await page.get_by_text('expected an integer, got "many"').wait_for()
            await page.get_by_role("textbox", name="count").fill("3")
            await page.get_by_role("button", name="Run it").click()
            await page.get_by_text("expected at least 2 characters").wait_for()
            await page.get_by_role("textbox", name="title").fill("a <b>title</b>")
            await page.get_by_label("day").fill("2026-02-03")
            await page.get_by_label("level").select_option("high")
            await page.get_by_role("button", name="Edit as JSON").click()
            await page.get_by_role("button", name="Edit as a form").click()
            await page.get_by_role("button", name="Run it").click()
            await page.get_by_role("heading", name="In the audit log").wait_for()
            output = await page.locator("#tried pre[aria-label='Output']").text_content()

    assert json.loads(output) == {
        "title": "a <b>title</b>",
        "count": 3,
        "day": "2026-02-03",
        "level": "high",
        "note": None,
        "rows": [{"name": "first\nsecond"}],
    }
    assert browser.complaints == []


@pytest.mark.skipif(not bfcl_calls.read(), reason=bfcl_calls.MISSING)
async def test_what_a_browser_submits_of_a_form_is_what_was_put_into_it():
    """Let Chromium parse and submit the forms of many calls, and read them back."""
    from agentos.secrets.masking import Masker
    from agentos.studio.markup import templates

    draw = templates(Masker()).from_string(
        '{% import "form_macros.html" as f %}<form>{{ f.schema_form(form, "/") }}</form>'
    )
    calls = [*bfcl_calls.read()[::4], ("odd", SCHEMA, {"title": "\n\n a\n", "rows": [{"name": "<>&\"'"}, {"x": "\t"}]})]
    async with AgentOS() as host, served(host) as site, browsing(site) as browser:
        page = await browser.page()
        await page.goto(f"{site.base}/tools")
        for id, schema, value in calls:
            form = form_of(schema, value)
            body = await page.evaluate(
                "html => { const whole = new DOMParser().parseFromString(html, 'text/html');"
                " document.body.replaceChildren(document.adoptNode(whole.querySelector('form')));"
                " return new URLSearchParams(new FormData(document.querySelector('form'))).toString() }",
                draw.render(form=form),
            )
            told = arguments_of(schema, pairs_of(body.encode()))
            ours = arguments_of(schema, controls_of(form))
            assert (id, exactly(told.value)) == (id, exactly(ours.value))
