"""PDFs, real ones and hostile ones, from a site on loopback and from a folder."""

import zlib

import pytest
from agentos_pack_web_extract import _child
from agentos_pack_web_extract.pdfs import MAX_PAGES, page_numbers

from agentos import Principal, ToolCall

PDF = {"Content-Type": "application/pdf"}


async def call(host, principal=None, **arguments):
    return await host.tools.process_tool_call(ToolCall("extract_pdf", arguments), principal)


def raw_pdf(content, *, filters="/FlateDecode", pages="/Kids [3 0 R] /Count 1"):
    """Return a PDF of one page with *content* as it is, for what no library would write."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages {pages} >>".encode(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
        f"<< /Length {len(content)} /Filter {filters} >>\nstream\n".encode() + content + b"\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    body, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(body)
    body += b"xref\n0 6\n0000000000 65535 f \n" + table
    return body + b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % start


# -- through a host ----------------------------------------------------------------------------------------------


async def test_the_text_of_a_pdf_comes_page_by_page(hosting, site, make_pdf):
    site.pages["/r.pdf"] = (200, PDF, make_pdf("The first page\nhas two lines", "The second", "The third"))
    async with hosting(site) as host:
        result = await call(host, url=f"{site.url}/r.pdf", pages="1-2")

    assert result.output == {
        "source": f"{site.url}/r.pdf",
        "title": "A report",
        "author": "Ann",
        "page_count": 3,
        "pages": [
            {"number": 1, "text": "The first page\nhas two lines"},
            {"number": 2, "text": "The second"},
        ],
        "problems": [],
        "next_page": 3,
        "truncated": False,
    }


async def test_pages_beyond_the_end_are_left_out(hosting, site, make_pdf):
    site.pages["/r.pdf"] = (200, PDF, make_pdf("one", "two"))
    async with hosting(site) as host:
        some = await call(host, url=f"{site.url}/r.pdf", pages="2-50")
        none = await call(host, url=f"{site.url}/r.pdf", pages="3")

    assert ([page["number"] for page in some.output["pages"]], some.output["next_page"]) == ([2], None)
    assert "pages: the document has 2 pages" in none.content


async def test_what_has_no_room_is_left_for_the_next_call(hosting, site, make_pdf):
    site.pages["/r.pdf"] = (200, PDF, make_pdf("a" * 60, "b" * 60, "c" * 60))
    async with hosting(site) as host:
        first = await call(host, url=f"{site.url}/r.pdf", max_chars=130)
        rest = await call(host, url=f"{site.url}/r.pdf", max_chars=130, pages="3")

    assert [page["text"] for page in first.output["pages"]] == ["a" * 60, "b" * 60]
    assert (first.output["next_page"], first.output["truncated"]) == (3, True)
    assert rest.output["truncated"] is False


async def test_a_page_that_is_too_long_by_itself_is_cut_and_says_so(hosting, site, make_pdf):
    site.pages["/r.pdf"] = (200, PDF, make_pdf("a" * 150, "b"))
    async with hosting(site) as host:
        result = await call(host, url=f"{site.url}/r.pdf", max_chars=100)

    assert [page["text"] for page in result.output["pages"]] == ["a" * 100]
    assert (result.output["next_page"], result.output["truncated"]) == (2, True)


async def test_what_is_no_pdf_is_refused(hosting, site):
    site.pages["/"] = (200, PDF, b"<html>no</html>")
    async with hosting(site) as host:
        result = await call(host, url=f"{site.url}/")

    assert "is no PDF; for a web page use fetch_page" in result.content


async def test_a_stream_of_endless_work_is_ended_and_the_host_goes_on(hosting, site):
    site.pages["/r.pdf"] = (200, PDF, raw_pdf(zlib.compress(b"BT /F 1 Tf (a) Tj ET\n" * 3_000_000, 9)))
    async with hosting(site, extractSeconds=1) as host:
        result = await call(host, url=f"{site.url}/r.pdf")

    assert "the PDF can't be read: reading it took too long and was ended" in result.content


# -- files -------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, make_pdf):
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "root" / "sub" / "r.pdf").write_bytes(make_pdf("from a file"))
    (tmp_path / "outside.pdf").write_bytes(make_pdf("never shown"))
    (tmp_path / "root" / "link.pdf").symlink_to(tmp_path / "outside.pdf")
    (tmp_path / "root" / ".env").write_bytes(make_pdf("never shown"))
    return tmp_path / "root"


async def test_a_file_beneath_the_root_can_be_read(hosting, folder):
    async with hosting(root=str(folder)) as host:
        result = await call(host, Principal("ann", access={"files:read"}), path="sub/r.pdf")

    assert (result.output["source"], result.output["pages"][0]["text"]) == ("sub/r.pdf", "from a file")


@pytest.mark.parametrize(
    "path", ["../outside.pdf", "link.pdf", ".env", "sub", "missing.pdf", "/etc/passwd", "a\0b", ""]
)
async def test_nothing_else_can_be_read(hosting, folder, path):
    async with hosting(root=str(folder)) as host:
        result = await call(host, path=path)

    assert result.error.type == "ToolRaised"
    assert "path: " in result.content
    assert "never shown" not in str(result)
    assert str(folder.parent) not in str(result)


async def test_a_file_that_is_too_large_is_refused(hosting, folder):
    (folder / "big.pdf").write_bytes(b"%PDF-1.4" + b" " * 20_000)
    async with hosting(root=str(folder), maxBytes=10_000) as host:
        result = await call(host, path="big.pdf")

    assert "more than 10,000 bytes" in result.content


@pytest.mark.parametrize("arguments", [{}, {"url": "http://a.example/", "path": "a.pdf"}])
async def test_either_an_address_or_a_path_is_needed(hosting, folder, arguments):
    async with hosting(root=str(folder)) as host:
        result = await call(host, **arguments)

    assert "url: give either `url` or `path`" in result.content


async def test_with_a_root_addresses_work_too(hosting, folder, site, make_pdf):
    site.pages["/r.pdf"] = (200, PDF, make_pdf("from the web"))
    async with hosting(site, root=str(folder)) as host:
        result = await call(host, url=f"{site.url}/r.pdf")

    assert result.output["pages"][0]["text"] == "from the web"


# -- which pages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3", [3]),
        ("1-3", [1, 2, 3]),
        (" 2, 5 ,8 - 9", [2, 5, 8, 9]),
        ("3,1-3", [1, 2, 3]),
        ("1-100", list(range(1, 101))),
    ],
)
def test_pages_arepage_numbers_and_ranges(text, numbers):
    assert page_numbers(text) == numbers


@pytest.mark.parametrize("text", ["0", "3-1", "0-5", "", "x", "1-", "-1"])
def test_what_is_no_page_is_refused(text):
    with pytest.raises(ValueError, match=r"^pages: expected numbers from 1 on"):
        page_numbers(text)


@pytest.mark.parametrize("text", ["1-101", "1-99999", "1-60,100-160"])
def test_too_many_pages_are_refused(text):
    with pytest.raises(ValueError, match=f"^pages: at most {MAX_PAGES}"):
        page_numbers(text)


# -- hostile files, as the process reads them --------------------------------------------------------------------


def read(data, pages=(1,)):
    return list(_child.read_pdf(data, {"pages": list(pages)}))


def test_the_pdf_written_by_hand_can_be_read():
    (_, page) = read(raw_pdf(zlib.compress(b"BT /F 1 Tf (hello) Tj ET")))

    assert page["text"] == "hello"


def test_a_decompression_bomb_costs_its_page_and_no_more():
    bomb = zlib.compress(zlib.compress(b"\0" * 200_000_000, 9), 9)
    head, page = read(raw_pdf(bomb, filters="[/FlateDecode /FlateDecode]"))

    assert (head["count"], page["text"]) == (1, "")
    assert page["error"] == "LimitReachedError"


def test_an_encrypted_file_says_so(make_pdf):
    from reportlab.lib.pdfencrypt import StandardEncryption

    assert read(make_pdf("secret", encrypt=StandardEncryption("hunter2"))) == [{"error": "encrypted"}]


@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-1.4",
        b"%PDF-1.4\ntrailer << /Root 1 0 R >>\nstartxref\n0\n%%EOF",
        b"%PDF-1.4\nxref\n0 99999999\ntrailer\n<< /Size 99999999 >>\nstartxref\n9\n%%EOF",
        b"%PDF-1.4\n" + b"[" * 50_000 + b"\nstartxref\n9\n%%EOF",
        b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 1 0 R >>\nendobj\ntrailer << /Root 1 0 R >>\nstartxref\n0\n%%EOF",
    ],
)
def test_a_broken_file_is_told_and_nothing_is_raised(data):
    (said,) = read(data)

    assert "error" in said or said["count"] == 0


def test_a_tree_of_pages_that_contains_itself_ends():
    said = read(raw_pdf(b"", pages="/Kids [2 0 R 2 0 R] /Count 2"))

    assert len(said) <= 2
