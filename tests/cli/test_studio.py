"""`agentos studio`: a link that lets in, an end in good order, and no address that others can reach in the clear."""

import json
import signal

import httpx
import pytest
from commanding import Project
from terminal import PATIENCE


@pytest.fixture
def opening(tmp_path, started):
    """Return a function that opens a studio of a project."""
    project = Project(tmp_path)
    return lambda *words: started("studio", *words, cwd=project.folder, env=project.env)


def test_the_link_lets_in_for_the_principal_and_sigterm_ends_it_well(opening):
    child = opening("--port", "0", "--principal", "ann")
    link = child.stdout.readline().strip()
    with httpx.Client(follow_redirects=True, trust_env=False, timeout=60) as client:
        page = client.get(link)
    code, *_ = child.end(signal.SIGTERM)

    assert page.status_code == 200
    assert "<b>ann</b>" in page.text
    assert code == 0


def test_with_json_the_link_is_a_document(opening):
    child = opening("--port", "0", "--json")
    said = ""
    while "}" not in said:
        said += child.stdout.readline()
    child.end(signal.SIGTERM)

    assert "/sign-in?token=" in json.loads(said)["link"]


def test_an_address_that_others_can_reach_needs_https(opening):
    child = opening("--bind", "0.0.0.0", "--port", "0")
    _, said = child.communicate(timeout=PATIENCE)

    assert child.returncode == 2
    assert "can be reached by others" in said
