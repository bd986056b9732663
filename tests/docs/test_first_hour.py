"""The newcomer's first hour, done for real: what it says is what the page says."""

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def hour(first_hour, tmp_path_factory):
    return first_hour.run(tmp_path_factory.mktemp("hour"))


def test_every_command_ends_as_it_should(first_hour, hour):
    done = [act for acts in hour for act in acts if isinstance(act, first_hour.Done)]

    assert [(one.command.line, one.code, one.said) for one in done if one.code != one.command.code] == []


def test_the_page_shows_what_happens_now(first_hour, hour):
    page = first_hour.PAGE.read_text("utf-8")

    assert first_hour.untimed(page) == first_hour.untimed(first_hour.render(hour, "Measured now."))


def test_the_page_is_timed(first_hour):
    page = first_hour.PAGE.read_text("utf-8")

    assert page != first_hour.untimed(page)
    assert "Measured 20" in page


def test_no_key_is_on_the_page(first_hour):
    page = first_hour.PAGE.read_text("utf-8")

    assert "a-key-from-giphy" not in page
