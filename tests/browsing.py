"""A real browser for the tests of the studio: Chromium, driven by Playwright; where it is missing they skip."""

import contextlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
AXE = "axe-core@4.10.2"
PATIENCE = 60_000


class Browsing:
    """A browser, and what its pages complained of or asked of others."""

    def __init__(self, browser, site):
        self._browser = browser
        self.site = site
        self.complaints = []
        self.outside = []

    async def page(self, **options):
        """Return a page that is signed in."""
        context = await self._browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        page = await context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._asked)
        await page.goto(self.site.link)
        return page

    def _heard(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _asked(self, request):
        if not request.url.startswith((self.site.base, "data:", "about:")):
            self.outside.append(request.url)


@contextlib.asynccontextmanager
async def browsing(site):
    """Give a browser for a studio, or skip the test and say what is missing."""
    playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no Chromium at {CHROMIUM}; CHROMIUM names another place")
    async with playwright.async_playwright() as started:
        browser = await started.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        try:
            yield Browsing(browser, site)
        finally:
            await browser.close()


def axe_source():
    """Return the script of axe-core, taken from npm; skip the test where that is not to be had."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, so axe-core is not to be had")
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, AXE]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120, cwd=folder)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"{AXE} is not to be had from npm: {type(error).__name__}")
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as opened:
            return opened.extractfile("package/axe.min.js").read().decode()


async def violations(page, source):
    """Return what axe-core finds on a page that is serious: rule, and where."""
    await page.evaluate(source)
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        (one["id"], node["target"], node["failureSummary"])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
