"""Documents made to blow up: each is read by the real process with its real limits, and the host sees an answer.

What `docs/security.md` says of the number of attempts is the number of cases here.
"""

import asyncio
import json
import zlib

import pytest
from agentos_pack_web_extract.child import Reader

SECONDS = 2
OUTPUT = 16_000_000
FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def stream(content, entries=""):
    return f"<< /Length {len(content)} {entries} >>\nstream\n".encode() + content + b"\nendstream"


def flated(content, times=1, entries=""):
    for _ in range(times):
        content = zlib.compress(content, 9)
    return stream(content, f"/Filter [{'/FlateDecode ' * times}] {entries}")


def pdf(content=b"", *more, pages="/Kids [3 0 R] /Count 1", page="/Font << /F 5 0 R >>", root=""):
    """Return a PDF of one page: object 4 is its content, 5 its font, *more* are those from 6 on."""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {root} >>".encode(),
        f"<< /Type /Pages {pages} >>".encode(),
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << {page} >> >>".encode(),
        content if content.startswith(b"<<") else stream(content),
        *(more or (FONT,)),
    ]
    body, places = b"%PDF-1.7\n", []
    for number, one in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    start = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n%b" % (count, table)
    return body + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (count, start)


TEXT = b"BT /F 1 Tf (a) Tj ET\n"
FORM = "/Type /XObject /Subtype /Form /BBox [0 0 9 9]"


def table(rows, entries):
    return b"%PDF-1.7\nxref\n" + rows + b"trailer\n<< " + entries + b" /Root 1 0 R >>\nstartxref\n9\n%%EOF"


def pdfs():
    """Return them all; some take a while to be made."""
    return {
        "zeros": pdf(flated(bytes(200_000_000))),
        "zeros in zeros": pdf(flated(bytes(200_000_000), 2)),
        "packed ten times": pdf(flated(bytes(50_000_000), 10)),
        "packed a thousand times": pdf(stream(zlib.compress(b""), f"/Filter [{'/FlateDecode ' * 1_000}]")),
        "LZW": pdf(stream(b"\x80" * 5_000_000, "/Filter /LZWDecode")),
        "runs": pdf(stream(b"\x81a" * 4_000_000, "/Filter /RunLengthDecode")),
        "runs in runs": pdf(
            stream(b"\x81\x81" * 2_000_000, "/Filter [/RunLengthDecode /RunLengthDecode /RunLengthDecode]")
        ),
        "ASCII85": pdf(stream(b"z" * 9_000_000 + b"~>", "/Filter /ASCII85Decode")),
        "wide rows": pdf(flated(b"\x02" * 9_000_000, 1, "/DecodeParms << /Predictor 15 /Columns 2000000000 >>")),
        "rows without width": pdf(flated(b"\x02" * 9_000_000, 1, "/DecodeParms << /Predictor 15 /Columns 0 >>")),
        "much text": pdf(flated(TEXT * 2_000_000)),
        "one long text": pdf(flated(b"BT /F 1 Tf (" + b"a" * 60_000_000 + b") Tj ET")),
        "operands": pdf(flated(b"1 " * 20_000_000 + b"Tj")),
        "open brackets": pdf(b"[" * 2_000_000),
        "open dictionaries": pdf(b"<<" * 1_000_000),
        "open text": pdf(b"(" * 5_000_000),
        "states": pdf(flated(b"q " * 10_000_000)),
        "an inline image without end": pdf(b"BI /W 1 /H 1 ID " + b"x" * 9_000_000),
        "a length that is itself": pdf(b"<< /Length 4 0 R >>\nstream\nx\nendstream"),
        "a filter that is itself": pdf(b"<< /Length 1 /Filter 4 0 R >>\nstream\nx\nendstream"),
        "a form that draws itself": pdf(
            b"/X Do",
            FONT,
            stream(b"/X Do /X Do", f"{FORM} /Resources << /XObject << /X 6 0 R >> >>"),
            page="/XObject << /X 6 0 R >>",
        ),
        "forms that draw forms": pdf(
            b"/X Do",
            FONT,
            *(
                stream(
                    b"/X Do " * 10 if number < 29 else TEXT,
                    f"{FORM} /Resources << /XObject << /X {number + 7} 0 R >> >>",
                )
                for number in range(30)
            ),
            page="/XObject << /X 6 0 R >>",
        ),
        "a tree of pages without end": pdf(pages="/Kids [2 0 R 2 0 R 3 0 R] /Count 3"),
        "a billion pages": pdf(pages="/Kids [3 0 R] /Count 1000000000"),
        "a page a million times": pdf(TEXT, pages=f"/Kids [{'3 0 R ' * 1_000_000}] /Count 1000000"),
        "pages beneath pages": pdf(
            b"",
            FONT,
            *(f"<< /Type /Pages /Kids [{n + 7} 0 R {n + 7} 0 R] /Count 9 >>".encode() for n in range(40)),
            b"<< /Type /Page >>",
            pages="/Kids [6 0 R 6 0 R] /Count 9",
        ),
        "a map of all characters": pdf(
            TEXT,
            FONT[:-2] + b"/ToUnicode 6 0 R >>",
            flated(b"1 beginbfrange\n<00000000> <FFFFFFFF> <0000>\nendbfrange\n" * 1_000),
        ),
        "a map of long characters": pdf(
            TEXT,
            FONT[:-2] + b"/ToUnicode 6 0 R >>",
            flated(b"1 beginbfrange\n<0000> <FFFF> <" + b"0041" * 100_000 + b">\nendbfrange\n"),
        ),
        "widths": pdf(TEXT, FONT[:-2] + b"/FirstChar 0 /LastChar 2000000000 /Widths [" + b"1 " * 2_000_000 + b"] >>"),
        "a table of a billion": table(b"0 999999999\n", b"/Size 999999999"),
        "a table before itself": table(b"0 1\n0000000000 65535 f \n", b"/Prev 9"),
        "names as actions": pdf(root="/OpenAction << /S /Launch /F (/bin/sh) >> /Names << /JavaScript 1 0 R >>"),
        "a file of the reader": pdf(b"<< /Length 0 /F (/etc/passwd) /FFilter [] >>\nstream\n\nendstream"),
    }


ENTITIES = b"".join(b'<!ENTITY l%d "%b">' % (number + 1, b"&l%d;" % number * 10) for number in range(12))
LAUGHS = b'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY l0 "lol">' + ENTITIES + b"]>"


def pages():
    """Return them all."""
    return {
        "entities of entities": LAUGHS + b"<html><body><p>&l12;</p></body></html>",
        "one long entity": b'<!DOCTYPE html [<!ENTITY a "' + b"a" * 1_000_000 + b'">]><p>' + b"&a;" * 100_000,
        "a file as an entity": b'<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><p>&x; and words</p>',
        "a file as a parameter": b'<!DOCTYPE html [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]><p>&x; and words</p>',
        "a document type elsewhere": b'<!DOCTYPE html SYSTEM "http://127.0.0.1:1/x.dtd"><html><p>words</p></html>',
        "XInclude": b'<p xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/etc/passwd" parse="text"/></p>',
        "an entity that is itself": b'<!DOCTYPE html [<!ENTITY a "&a;">]><p>&a;</p>',
        "deep": b"<div>" * 2_000_000,
        "deep and closed": b"<b><i>" * 500_000 + b"</b></i>" * 500_000,
        "attributes": b"<p " + b" ".join(b"a%d=1" % number for number in range(500_000)) + b">words</p>",
        "a long attribute": b'<a href="' + b"a" * 9_000_000 + b'">words</a>',
        "links": b"".join(b'<a href="/%d">x</a>' % number for number in range(400_000)),
        "open comments": b"<!--" * 2_000_000,
        "open tags": b"<a " * 3_000_000,
        "open ends": b"</" * 4_000_000,
        "open declarations": b"<!" * 4_000_000,
        "open instructions": b"<?" * 4_000_000,
        "open sections": b"<![CDATA[" * 1_000_000,
        "open references": b"&" * 9_000_000,
        "numbers of characters": b"&#" + b"9" * 9_000_000 + b";",
        "tables in tables": b"<table><tr><td>" * 300_000,
        "formatting": b"<font><b><i><u>" * 400_000 + b"words",
        "lists": b"<ul><li>" * 500_000,
        "scripts": b"<script>" * 1_000_000,
        "a page of zeros": bytes(9_000_000),
        "words": b"<p>" + b"word " * 1_900_000,
    }


async def told(kind, documents, **task):
    """Return what is wrong with the answers about *documents*: nothing may be, however bad the document is."""
    reader = Reader(SECONDS)
    faults = []

    async def one(name, data):
        reading = await reader.read(data, kind=kind, **task)
        size = len(json.dumps([dict(line) for line in reading.lines]))
        if size > OUTPUT or "root:" in json.dumps([dict(line) for line in reading.lines]):
            faults.append((name, size))

    await asyncio.gather(*(one(name, data) for name, data in documents.items()))
    return faults


@pytest.mark.proof
async def test_a_pdf_that_blows_up_is_an_answer():
    assert await told("pdf", pdfs(), pages=[1, 2, 3]) == []


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["page", "links"])
async def test_a_page_that_blows_up_is_an_answer(kind):
    assert await told(kind, pages(), url="http://example.org/", format="markdown") == []
