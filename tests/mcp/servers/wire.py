"""Newline-delimited JSON-RPC on standard input and output, without any SDK: what the fixture servers are made of."""

import json
import sys

VERSION = "2025-11-25"
OPEN = {"type": "object", "properties": {}}


def send(message):
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def raw(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def requests():
    for line in sys.stdin.buffer:
        yield json.loads(line)


def tool(name, properties=None, **said):
    return {"name": name, "inputSchema": {**OPEN, "properties": properties or {}}, **said}


def text(*texts, **said):
    return {"content": [{"type": "text", "text": one} for one in texts], **said}


def refuse(request, code=-32601, message="no such method"):
    send({"id": request["id"], "error": {"code": code, "message": message}})


def greet(request, **said):
    """Answer the handshake of the older era; tell whether *request* was part of it."""
    if request["method"] == "initialize":
        result = {
            "protocolVersion": VERSION,
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "fixture", "version": "1"},
            **said,
        }
        send({"id": request["id"], "result": result})
    elif request["method"] == "server/discover":
        refuse(request)
    return request["method"] in ("initialize", "server/discover")
