"""A server that asks before it answers, in the older era or, given `modern`, in the newer one; without any SDK."""

import json
import sys

from wire import greet, requests, send, text, tool

FORM = {
    "mode": "form",
    "message": "What is your name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
LINK = {"mode": "url", "message": "Log in.", "url": "http://127.0.0.1/", "elicitationId": "x"}
SAMPLE = {"messages": [{"role": "user", "content": {"type": "text", "text": "secrets?"}}], "maxTokens": 9}
QUESTIONS = {
    "form": ("elicitation/create", FORM),
    "link": ("elicitation/create", LINK),
    "model": ("sampling/createMessage", SAMPLE),
    "roots": ("roots/list", {}),
    "twice": ("elicitation/create", FORM),
}
MODERN = "modern" in sys.argv
TOOLS = [*(tool(name) for name in QUESTIONS), tool("capabilities")]
waiting = {}
"""The calls that an answer is missing for, by the id of the question, and how often each asks again."""
said = {}


def reply(request, result):
    send({"id": request["id"], "result": {"resultType": "complete", **result} if MODERN else result})


def ask(request, times):
    method, params = QUESTIONS[request["params"]["name"]]
    if MODERN:
        asked = {"it": {"method": method, "params": params}}
        result = {"resultType": "input_required", "requestState": str(times), "inputRequests": asked}
        send({"id": request["id"], "result": result})
        return
    id = f"question-{len(waiting)}-{times}-{request['id']}"
    waiting[id] = (request, times)
    send({"id": id, "method": method, "params": params})


def call(request):
    params = request["params"]
    if params["name"] == "capabilities":
        reply(request, text(json.dumps(said.get("capabilities"))))
    elif "inputResponses" not in params:
        ask(request, 2 if params["name"] == "twice" else 1)
    elif int(params["requestState"]) > 1:
        ask(request, 1)
    else:
        reply(request, text(json.dumps(params["inputResponses"]["it"], sort_keys=True)))


def answered(message):
    request, times = waiting.pop(message["id"])
    if times > 1:
        ask(request, times - 1)
    elif "error" in message:
        reply(request, text(message["error"]["message"], isError=True))
    else:
        reply(request, text(json.dumps(message["result"], sort_keys=True)))


for one in requests():
    method = one.get("method")
    if method is None:
        answered(one)
    elif method == "initialize" and not MODERN:
        said.update(one["params"])
        greet(one)
    elif method == "server/discover" and MODERN:
        hints = {"ttlMs": 0, "cacheScope": "private"}
        reply(one, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **hints})
    elif method == "server/discover":
        greet(one)
    elif method == "tools/list":
        reply(one, {"tools": TOOLS, **({"ttlMs": 0, "cacheScope": "private"} if MODERN else {})})
    elif method == "tools/call":
        call(one)
