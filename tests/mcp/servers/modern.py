"""A server of the newest era without any SDK, whose stream of changes breaks off, in one way after another."""

from wire import refuse, requests, send, text, tool

VERSION = "2026-07-28"
ASKED = {
    "ask-model": {
        "method": "sampling/createMessage",
        "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "secrets?"}}], "maxTokens": 9},
    },
    "ask-roots": {"method": "roots/list", "params": {}},
    "ask-form": {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}},
    },
    "ask-again": None,
}
"""Tools that answer each call with another question; the last one only wants to be called again."""
TOOLS = [tool("go"), tool("break"), tool("count"), *(tool(name) for name in ASKED)]
listening = []
calls = []


def reply(request, **result):
    send({"id": request["id"], "result": {"resultType": "complete", **result}})


def listen(request):
    """Break off the first stream politely, refuse the second, and keep the third."""
    listening.append(request["id"])
    if len(listening) == 2:
        refuse(request, -32603, "not now")
        return
    meta = {"io.modelcontextprotocol/subscriptionId": request["id"]}
    send(
        {
            "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": meta, "notifications": {"toolsListChanged": True}},
        }
    )


def ask(request, question):
    calls.append(request["params"]["name"])
    asked = {} if question is None else {"inputRequests": {"it": question}}
    send({"id": request["id"], "result": {"resultType": "input_required", "requestState": "s", **asked}})


def call(request):
    name = request["params"]["name"]
    if name in ASKED:
        ask(request, ASKED[name])
        return
    if name == "break":
        TOOLS.append(tool("told-to-nobody"))
        send({"id": listening[0], "result": {"resultType": "complete"}})
    reply(request, **text(str(len(calls)) if name == "count" else "went"))


for one in requests():
    if one["method"] == "server/discover":
        hints = {"ttlMs": 0, "cacheScope": "private"}
        reply(one, supportedVersions=[VERSION], capabilities={"tools": {"listChanged": True}}, **hints)
    elif one["method"] == "subscriptions/listen":
        listen(one)
    elif one["method"] == "tools/list":
        reply(one, tools=TOOLS, ttlMs=0, cacheScope="private")
    elif one["method"] == "tools/call":
        call(one)
    elif "id" in one:
        refuse(one)
