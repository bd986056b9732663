"""A well-behaved server without any SDK: it imports little, so that it starts in a few milliseconds."""

# ruff: noqa: PTH109, PTH123, PTH208 - pathlib takes longer to import than all the rest

import os
import sys
import time

from wire import greet, raw, refuse, requests, send, text, tool

TOOLS = {
    "echo": tool("echo", {"text": {"type": "string"}}, description="Say it again.", annotations={"readOnlyHint": True}),
    "add": tool(
        "add",
        {"a": {"type": "integer"}, "b": {"type": "integer"}},
        description="Add two numbers.",
        outputSchema={"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
        annotations={"destructiveHint": False, "idempotentHint": True},
    ),
    "wrong": tool("wrong", outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}}),
    "fail": tool("fail"),
    "refuse": tool("refuse"),
    "environment": tool("environment"),
    "media": tool("media"),
    "steps": tool("steps"),
    "wait": tool("wait", {"mark": {"type": "string"}}),
    "die": tool("die"),
    "pid": tool("pid"),
    "change": tool("change"),
    "grow": tool("grow"),
    "where": tool("where"),
}
waiting = {}


def media():
    return [
        {"type": "image", "data": "QUJD", "mimeType": "image/png"},
        {"type": "audio", "data": "QUJD" * 4, "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "title": "The letter A"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "what b says"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "QUJD", "mimeType": "image/gif"}},
    ]


def steps(request):
    token = request["params"]["_meta"]["progressToken"]
    for done in (1, 2, 3):
        progress = {"progressToken": token, "progress": done, "total": 3, "message": f"step {done}"}
        send({"method": "notifications/progress", "params": progress})
    return text("done")


def changed(name):
    if name == "change":
        TOOLS["echo"] = {**TOOLS["echo"], "description": "Say it again, and tell everybody."}
    else:
        TOOLS[f"grown{len(TOOLS)}"] = tool(f"grown{len(TOOLS)}")
    send({"method": "notifications/tools/list_changed"})
    return text("changed")


def answer(request):
    name, args = request["params"]["name"], request["params"].get("arguments") or {}
    if name == "echo":
        return text(args.get("text", ""))
    if name == "add":
        total = args["a"] + args["b"]
        return text(f"it is {total}", structuredContent={"sum": total})
    if name == "wrong":
        return text("bad", structuredContent={"n": "three"})
    if name == "fail":
        return text("it went wrong", isError=True)
    if name == "environment":
        return text("ok", structuredContent=dict(os.environ))
    if name == "media":
        return {"content": media()}
    if name == "steps":
        return steps(request)
    if name == "pid":
        return text(str(os.getpid()))
    if name == "where":
        return text(os.getcwd())
    if name in ("change", "grow"):
        return changed(name)
    if name == "die":
        os._exit(3)
    return text(f"called {name}")


def mark(path, word):
    with open(path, "a") as file:
        file.write(word + "\n")


def meet(flag):
    """Wait until as many servers came here as the command line says after *flag*: a folder and a number."""
    if flag in sys.argv:
        folder, count = sys.argv[sys.argv.index(flag) + 1 :][:2]
        mark(f"{folder}/{os.getpid()}", "here")
        while len(os.listdir(folder)) < int(count):
            time.sleep(0.01)


def main():
    meet("--after")
    for flag in sys.argv[1:]:
        if flag == "--banner":
            raw(b"Welcome to the server!\n\n")
        if flag == "--slow":
            time.sleep(0.4)
        if flag == "--changed":
            TOOLS["echo"] = {**TOOLS["echo"], "description": "Say it again, to everybody."}
    for request in requests():
        method = request.get("method")
        if "id" not in request:
            if method == "notifications/cancelled" and request["params"]["requestId"] in waiting:
                mark(waiting.pop(request["params"]["requestId"]), "cancelled")
        elif greet(request, instructions="Be brief."):
            pass
        elif method == "tools/list":
            send({"id": request["id"], "result": {"tools": list(TOOLS.values())}})
        elif method == "tools/call" and request["params"]["name"] == "wait":
            waiting[request["id"]] = request["params"]["arguments"]["mark"]
            mark(waiting[request["id"]], "started")
        elif method == "tools/call" and request["params"]["name"] == "refuse":
            refuse(request, -32602, "not with me")
        elif method == "tools/call":
            send({"id": request["id"], "result": answer(request)})
        else:
            refuse(request)
    meet("--ends-with")


main()
