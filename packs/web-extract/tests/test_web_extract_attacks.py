"""What servers and files may do to whoever reads them: none of it gets through, and none of it takes the host down."""

import asyncio
import gzip
import os

import pytest
from agentos_pack_web_extract.child import Reader
from loopback import speaking

from agentos import ToolCall

HTML = {"Content-Type": "text/html; charset=utf-8"}
TOOLS = ["fetch_page", "extract_links", "extract_pdf"]


async def call(host, name, **arguments):
    return await host.tools.process_tool_call(ToolCall(name, arguments))


def moved(url):
    return (302, {"Location": url}, b"")


# -- where it goes -----------------------------------------------------------------------------------------------


async def test_a_redirect_within_the_site_is_followed(hosting, site):
    site.pages["/"] = moved("/one")
    site.pages["/one"] = moved(f"{site.url}/two")
    site.pages["/two"] = (200, {"Content-Type": "text/plain"}, b"arrived")
    async with hosting(site) as host:
        result = await call(host, "fetch_page", url=f"{site.url}/")

    assert (result.output["text"], result.output["url"]) == ("arrived", f"{site.url}/two")


@pytest.mark.parametrize("name", TOOLS)
async def test_a_redirect_to_another_port_of_loopback_is_refused(hosting, site, other, name):
    site.pages["/"] = moved(f"{other.url}/")
    async with hosting(site) as host:
        result = await call(host, name, url=f"{site.url}/")

    assert "127.0.0.1 is refused" in result.content
    assert (len(site.seen), other.seen) == (1, [])


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://2130706433/",
        "http://0.0.0.0/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "file:///etc/hostname",
        "http://127.0.0.1:{port}\\@evil.example/",
    ],
)
async def test_a_redirect_into_the_machine_or_its_network_is_refused(hosting, site, target):
    site.pages["/"] = moved(target.format(port=site.server_port))
    async with hosting(site) as host:
        result = await call(host, "fetch_page", url=f"{site.url}/")

    assert "refused" in result.content
    assert len(site.seen) == 1


@pytest.mark.parametrize("name", TOOLS)
async def test_what_is_private_is_refused_by_default(hosting, site, name):
    async with hosting() as host:
        result = await call(host, name, url=f"{site.url}/")

    assert "refused" in result.content
    assert site.seen == []


async def test_redirects_without_end_are_given_up(hosting, site):
    site.pages["/"] = moved("/")
    async with hosting(site) as host:
        result = await call(host, "fetch_page", url=f"{site.url}/")

    assert "redirects more than 5 times" in result.content


# -- how much comes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [b"Content-Length: 100000000\r\n", b"Connection: close\r\n"])
async def test_a_hundred_megabytes_are_not_taken(hosting, head):
    sent = []

    async def flood(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + head + b"\r\n")
        for _ in range(100):
            writer.write(b"x" * 1_000_000)
            await writer.drain()
            sent.append(1)

    async with speaking(flood) as port, hosting(port) as host:
        result = await call(host, "fetch_page", url=f"http://127.0.0.1:{port}/")

    assert "answered with more than 10000000 bytes" in result.content
    assert len(sent) < 100


async def test_a_gzip_bomb_is_not_unpacked(hosting, site):
    site.pages["/"] = (200, {**HTML, "Content-Encoding": "gzip"}, gzip.compress(b"\0" * 100_000_000))
    async with hosting(site) as host:
        result = await call(host, "fetch_page", url=f"{site.url}/")

    assert "answered with more than 10000000 bytes" in result.content


async def test_a_slow_drip_is_given_up(hosting):
    async def drip(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\nx")
        await writer.drain()
        await asyncio.Event().wait()

    async with speaking(drip) as port, hosting(port, timeout=0.3) as host:
        result = await call(host, "fetch_page", url=f"http://127.0.0.1:{port}/")

    assert "did not answer within 0.3 s" in result.content


# -- what it does to the parser ----------------------------------------------------------------------------------

PAGES = {
    "20,000 levels": b"<div>" * 20_000 + b"at the bottom" + b"</div>" * 20_000,
    "a paragraph of ten megabytes": b"<p>" + b"word " * 1_900_000 + b"</p>",
}


@pytest.mark.parametrize("body", PAGES.values(), ids=PAGES.keys())
async def test_a_hostile_page_is_read_in_its_own_process(hosting, site, body):
    site.pages["/"] = (200, HTML, body)
    async with hosting(site) as host:
        result = await call(host, "fetch_page", url=f"{site.url}/")

    assert result.success, result.content
    assert result.output["extraction"] == "whole page"
    assert result.output["text"].startswith(("at the bottom", "word word"))


@pytest.mark.parametrize("name", ["fetch_page", "extract_links"])
async def test_a_page_that_takes_too_long_is_ended(hosting, site, monkeypatch, name):
    from agentos_pack_web_extract import child

    monkeypatch.setattr(child, "_START", 0.0)
    site.pages["/"] = (200, HTML, b"<p>" * 100)
    async with hosting(site, extractSeconds=0.001) as host:
        result = await call(host, name, url=f"{site.url}/")

    assert "the page can't be read: reading it took too long and was ended" in result.content


@pytest.fixture
def holding(monkeypatch, tmp_path):
    """Put a reader in place that opens a pipe and then waits; return the pipe."""
    from agentos_pack_web_extract import child

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = tmp_path / "holding.py"
    script.write_text(f"import signal\nwith open({str(pipe)!r}, 'w') as pipe:\n    signal.pause()\n", "utf-8")
    monkeypatch.setattr(child, "_CHILD", script)
    return pipe


async def test_the_host_goes_on_while_a_page_is_read(hosting, site, holding):
    site.pages["/slow"] = (200, HTML, b"<p>Some words.</p>")
    site.pages["/fast"] = (200, {"Content-Type": "text/plain"}, b"fast")
    async with hosting(site) as host:
        slow = asyncio.create_task(call(host, "fetch_page", url=f"{site.url}/slow"))
        with await asyncio.to_thread(holding.open):
            fast = await call(host, "fetch_page", url=f"{site.url}/fast")
            is_waiting = not slow.done()
            slow.cancel()
            await asyncio.wait([slow])

    assert (fast.output["text"], is_waiting) == ("fast", True)


async def test_a_cancelled_call_ends_its_process(hosting, site, holding):
    site.pages["/"] = (200, HTML, b"<p>Some words.</p>")
    async with hosting(site) as host:
        task = asyncio.create_task(call(host, "fetch_page", url=f"{site.url}/"))
        with await asyncio.to_thread(holding.open) as pipe:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            ended = await asyncio.to_thread(pipe.read)  # returns when nobody holds the other end any more

    assert ended == ""


async def test_the_process_gets_nothing_of_the_environment(monkeypatch, tmp_path):
    from agentos_pack_web_extract import child

    script = tmp_path / "spy.py"
    script.write_text("import json, os; print(json.dumps(dict(os.environ)))", "utf-8")
    monkeypatch.setattr(child, "_CHILD", script)
    monkeypatch.setenv("GITHUB_TOKEN", "ghp-not-told")
    reading = await Reader(5).read(b"x", kind="page")

    assert {"GITHUB_TOKEN", "HOME"} & reading.lines[0].keys() == set()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import os; os.abort()", "reading it failed; it may be broken, or made to exhaust the reader"),
        ("raise SystemExit(3)", "reading it failed; it may be broken, or made to exhaust the reader"),
        ("bytearray(2_000_000_000)", "reading it failed; it may be broken, or made to exhaust the reader"),
        ("open('f', 'w').write('x' * 10_000)", "reading it failed; it may be broken, or made to exhaust the reader"),
        ("while True: pass", "reading it took too long and was ended"),
        ("while True: print('x' * 1_000_000)", "it has too much text"),
    ],
)
async def test_what_goes_wrong_in_the_process_is_told_in_words(monkeypatch, tmp_path, code, problem):
    from agentos_pack_web_extract import child

    script = tmp_path / "bad.py"
    script.write_text(f"import os; os.chdir({str(tmp_path)!r})\n{code}\n", "utf-8")
    monkeypatch.setattr(child, "_CHILD", script)
    monkeypatch.setattr(child, "_lines", lambda said: [])

    assert (await Reader(1).read(b"x", kind="page")).problem == problem


@pytest.fixture
def unusable(tmp_path, monkeypatch):
    """Return a function that puts a module that can't be imported in the place of a library."""

    def breaking(library, code):
        (tmp_path / f"{library}.py").write_text(code, "utf-8")
        monkeypatch.syspath_prepend(tmp_path)

    return breaking


@pytest.mark.parametrize(
    ("tool", "library", "code", "reason"),
    [
        ("fetch_page", "trafilatura", "import lxml_html_cleaner", "ModuleNotFoundError: lxml_html_cleaner"),
        ("extract_pdf", "pypdf", "raise RuntimeError('built for another Python')", "RuntimeError"),
    ],
)
async def test_a_library_that_cannot_be_imported_is_not_the_documents_fault(
    hosting, site, unusable, tool, library, code, reason
):
    unusable(library, code)
    body = b"%PDF-1.7" if library == "pypdf" else b"<p>text</p>"
    site.pages["/"] = (200, {"Content-Type": "text/html"}, body)
    async with hosting(site) as host:
        result = await host.tools.process_tool_call(ToolCall(tool, {"url": f"{site.url}/"}))

    assert f"the library {library} can't be imported on this machine ({reason})" in result.content
    assert "broken" not in result.content


async def test_what_was_told_before_the_end_is_kept(monkeypatch, tmp_path):
    from agentos_pack_web_extract import child

    script = tmp_path / "partly.py"
    script.write_text("""import os; print('{"a": 1}\\n{"b": ', end='', flush=True); os.abort()""", "utf-8")
    monkeypatch.setattr(child, "_CHILD", script)

    assert (await Reader(5).read(b"x", kind="page")).lines == ({"a": 1},)
