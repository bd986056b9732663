"""Handlers of HTTP requests: good ones, and such as fail in every way."""

import asyncio
import os

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route

from agentos import Descriptor, ExtensionPack

NOTES = []
"""What handlers noted about their ends."""


async def hello(request):
    context, body = request.state.context, await request.body()
    said = {"who": context.principal.key, "option": context.options.get("word"), "size": len(body)}
    headers = sorted(name for name in request.headers if name in ("authorization", "x-mine"))
    return JSONResponse({**said, "path": request.url.path, "headers": headers, "pid": os.getpid()})


async def raw(scope, receive, send):
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 201, "headers": [(b"x-root", scope["root_path"].encode())]})
    await send({"type": "http.response.body", "body": body[::-1], "more_body": True})
    await send({"type": "http.response.body", "body": b"."})


async def inner(request):
    return PlainTextResponse(f"inner {request.path_params['name']} {request.url_for('inner', name='x').path}")


site = Starlette(routes=[Route("/a/{name}", inner, name="inner")])


async def fails(request):
    raise RuntimeError("the inside of the pack")


async def exits(request):
    raise SystemExit("the inside of the pack")


async def nothing(request):
    return None


async def hangs(request):
    try:
        await asyncio.Event().wait()
    finally:
        NOTES.append("hangs ended")


async def notes(request):
    return JSONResponse(NOTES)


async def events(request):
    async def parts():
        try:
            yield "data: first\n\n"
            await asyncio.Event().wait()
        finally:
            NOTES.append("events ended")

    return StreamingResponse(parts(), media_type="text/event-stream")


async def stubborn(request):
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            NOTES.append("stubborn")
            if len(NOTES) > 1:
                raise


async def greedy(scope, receive, send):
    while (await receive())["type"] != "never":
        pass


async def later(request):
    async def note():
        await asyncio.sleep(0.05)
        NOTES.append("later")

    return PlainTextResponse("now", background=BackgroundTask(note))


async def endless(scope, receive, send):
    try:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 1000, "more_body": True})
    finally:
        NOTES.append("endless ended")


async def half(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10")]})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})
    raise RuntimeError("the inside of the pack")


def garbage(*messages):
    async def app(scope, receive, send):
        for message in messages:
            await send(message)

    return app


START = {"type": "http.response.start", "status": 200, "headers": []}
GARBAGE = {
    "not_a_message": ["hello"],
    "unknown": [{"type": "websocket.accept"}],
    "body_first": [{"type": "http.response.body", "body": b"x"}],
    "no_status": [{**START, "status": "fine"}],
    "low_status": [{**START, "status": 101}],
    "split_header": [{**START, "headers": [(b"x", b"a\r\nset-cookie: b")]}],
    "text_header": [{**START, "headers": [("x", "y")]}],
    "odd_headers": [{**START, "headers": 5}],
    "two_lengths": [{**START, "headers": [(b"content-length", b"1"), (b"content-length", b"2")]}],
    "many_headers": [{**START, "headers": [(b"x", b"y")] * 1000}],
    "silent": [],
}
CUT = {
    "text_body": [START, {"type": "http.response.body", "body": "text"}],
    "twice": [START, START],
    "too_long": [{**START, "headers": [(b"content-length", b"1")]}, {"type": "http.response.body", "body": b"four"}],
    "too_short": [{**START, "headers": [(b"content-length", b"9")]}, {"type": "http.response.body", "body": b"four"}],
    "unended": [START, {"type": "http.response.body", "body": b"four", "more_body": True}],
}


def create_extension_pack(context):
    plain = (hello, raw, fails, exits, nothing, hangs, notes, events, endless, half, stubborn, greedy, later)
    every = {one.__name__: one for one in plain} | {id: garbage(*sent) for id, sent in (GARBAGE | CUT).items()}
    return ExtensionPack(
        "web",
        "1.0",
        [
            *(Descriptor("http-handler", id, one) for id, one in every.items()),
            Descriptor("http-handler", "site", site),
            Descriptor("http-handler", "open", hello, metadata={"public": True}),
        ],
    )
