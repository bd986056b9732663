"""Serve pages and PDFs of our own on loopback."""

import io
from contextlib import asynccontextmanager

import pytest
from loopback import Site, serving

from agentos import AgentOS


@pytest.fixture
def site():
    with serving(Site()) as made:
        yield made


@pytest.fixture
def other():
    with serving(Site()) as made:
        made.pages["/"] = (200, {"Content-Type": "text/plain"}, b"the other")
        yield made


@pytest.fixture
def hosting():
    """Return a context manager for a host with the pack that may reach *places*: sites, or ports of loopback."""

    @asynccontextmanager
    async def host(*places, **options):
        ports = [place if isinstance(place, int) else place.server_port for place in places]
        settings = {"allowPrivate": [f"127.0.0.1:{port}" for port in ports], **options}
        entry = {"module": "agentos_pack_web_extract", "options": settings, "required": True}
        async with AgentOS(extension_manifest={"packs": [entry]}) as made:
            yield made

    return host


@pytest.fixture(scope="session")
def make_pdf():
    """Return a function that makes a real PDF with a page for each text."""
    from reportlab.pdfgen.canvas import Canvas

    def make(*texts, title="A report", author="Ann", **settings):
        file = io.BytesIO()
        canvas = Canvas(file, invariant=True, **settings)
        canvas.setTitle(title)
        canvas.setAuthor(author)
        for text in texts:
            for index, line in enumerate(text.split("\n")):
                canvas.drawString(72, 750 - 14 * index, line)
            canvas.showPage()
        canvas.save()
        return file.getvalue()

    return make
