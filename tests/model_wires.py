"""Endpoints on loopback that speak the providers' wire formats, for the real SDKs.

A `Wire` says what a model says in one provider's words, whole or in parts, and refuses what that provider would refuse.
"""

import contextlib
import json
import threading
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import attrs
import pytest

from agentos import PUBLIC, ToolResult, tool


@attrs.define
class Says:
    """What a model says: a text, calls as (id, name, JSON of the arguments), and how it ends."""

    text: str = ""
    calls: tuple = ()
    ended: str = "done"
    """`done`, `length` or `refusal`; or `cut`: the connection ends in the middle, `short`: it ends cleanly there."""


@attrs.define
class Endpoint:
    """An endpoint: answers what its script says, keeps what it was asked, and refuses what is not valid."""

    url: str = ""
    wire: "Wire | None" = None
    script: list = attrs.field(factory=list)
    requests: list = attrs.field(factory=list)
    faults: list = attrs.field(factory=list)

    def answer(self, path, body):
        """Return a status and a JSON answer, or 200 and the parts of a stream."""
        self.requests.append(body)
        if (fault := self.wire.fault(body)) is not None:
            self.faults.append(fault)
            return 400, {"error": {"message": fault, "type": "invalid_request_error", "code": 400}}, None
        says = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if body.get("stream") or "streamGenerateContent" in path:
            return 200, None, (self.wire.parts(says), says.ended)
        return 200, self.wire.whole(says), None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    endpoint: Endpoint

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer, streamed = self.endpoint.answer(self.path, body)
        with contextlib.suppress(ConnectionError):
            if streamed is None:
                self._send(status, json.dumps(answer).encode())
            else:
                self._stream(*streamed)

    def _send(self, status, data):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, parts, ended):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if ended in ("cut", "short"):
            parts = parts[: len(parts) // 2]
        for part in parts:
            half = len(part) // 2
            for piece in (part[:half], part[half:]):  # no reader may count on whole lines
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
        if ended == "cut":
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args):
        """Say nothing."""


@contextlib.contextmanager
def serving(wire):
    handler = type("ScriptHandler", (Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    handler.endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}", wire)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield handler.endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sse(data, event=None):
    head = b"" if event is None else f"event: {event}\n".encode()
    return head + b"data: " + json.dumps(data).encode() + b"\n\n"


def pieces(text, size=3):
    return [text[at : at + size] for at in range(0, len(text), size)]


class Wire:
    api: str
    options: dict = {}

    def asked(self, text="go"):
        return [{"role": "user", "content": text}]

    def key(self, messages):
        return {"messages": messages}


class Chat(Wire):
    api = "chat"
    finish = {"length": "length", "refusal": "content_filter"}

    def whole(self, says):
        message = {"role": "assistant", "content": says.text or None}
        if says.ended == "refusal":
            message |= {"content": None, "refusal": says.text}
        if says.calls:
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for id, name, arguments in says.calls
            ]
        choice = {"index": 0, "finish_reason": self._finish(says), "message": message}
        return {**self._frame("chat.completion"), "choices": [choice], "usage": self._usage()}

    def _finish(self, says):
        return self.finish.get(says.ended, "tool_calls" if says.calls else "stop")

    def _frame(self, object):
        return {"id": "chatcmpl-1", "object": object, "created": 1, "model": "m"}

    def _usage(self):
        return {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100}

    def parts(self, says):
        """Yield the calls' arguments in pieces, those of all calls mixed."""
        key = "refusal" if says.ended == "refusal" else "content"
        deltas = [{"role": "assistant", "content": ""}, *({key: piece} for piece in pieces(says.text))]
        for index, (id, name, _) in enumerate(says.calls):
            function = {"name": name, "arguments": ""}
            deltas.append({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})
        left = [pieces(arguments) for _, _, arguments in says.calls]
        while any(left):
            for index, one in enumerate(left):
                if one:
                    deltas.append({"tool_calls": [{"index": index, "function": {"arguments": one.pop(0)}}]})
        frame = self._frame("chat.completion.chunk")
        chunks = [{**frame, "choices": [{"index": 0, "delta": one, "finish_reason": None}]} for one in deltas]
        last = {"index": 0, "delta": {}, "finish_reason": self._finish(says)}
        chunks += [{**frame, "choices": [last]}, {**frame, "choices": [], "usage": self._usage()}]
        return [*map(sse, chunks), b"data: [DONE]\n\n"]

    def fault(self, request):
        waiting = []
        for message in request["messages"]:
            if message["role"] == "tool":
                if not waiting or message["tool_call_id"] != waiting.pop(0):
                    return f"unexpected tool message {message}"
            elif waiting:
                return f"no answer to {waiting}"
            calls = message.get("tool_calls", [])
            waiting += [call["id"] for call in calls]
            for call in calls:
                json.loads(call["function"]["arguments"])
        return f"no answer to {waiting}" if waiting else None

    @contextlib.asynccontextmanager
    async def client(self, endpoint, is_async):
        sdk = pytest.importorskip("openai", reason="the openai SDK is not installed")
        kind = sdk.AsyncOpenAI if is_async else sdk.OpenAI
        client = kind(base_url=f"{endpoint.url}/v1", api_key="-", max_retries=0)
        try:
            yield client
        finally:
            await client.close() if is_async else client.close()

    def answer_of(self, messages, id):
        return next(one["content"] for one in messages if one.get("tool_call_id") == id)

    def system_of(self, request):
        return "".join(one["content"] for one in request["messages"] if one["role"] == "system")


class Responses(Chat):
    api = "responses"
    options = {"api": "responses"}

    def key(self, messages):
        return {"input": messages}

    def _response(self, says):
        output = []
        if says.text:
            part = {"type": "output_text", "text": says.text, "annotations": []}
            part = {"type": "refusal", "refusal": says.text} if says.ended == "refusal" else part
            item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
            output.append({**item, "content": [part]})
        for id, name, arguments in says.calls:
            item = {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name}
            output.append({**item, "arguments": arguments, "status": "completed"})
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "m",
            "status": "incomplete" if says.ended == "length" else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if says.ended == "length" else None,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 60,
                "output_tokens": 40,
                "total_tokens": 100,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }

    def whole(self, says):
        return self._response(says)

    def parts(self, says):
        events = [{"type": "response.created", "response": {**self._response(Says()), "status": "in_progress"}}]
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        for piece in pieces(says.text):
            kind = "response.refusal.delta" if says.ended == "refusal" else "response.output_text.delta"
            events.append({"type": kind, **place, "delta": piece, "logprobs": []})
        for index, (id, _, arguments) in enumerate(says.calls):
            for piece in pieces(arguments):
                place = {"item_id": f"fc_{id}", "output_index": index + 1}
                events.append({"type": "response.function_call_arguments.delta", **place, "delta": piece})
        last = "response.incomplete" if says.ended == "length" else "response.completed"
        events.append({"type": last, "response": self._response(says)})
        return [sse({**one, "sequence_number": number}, one["type"]) for number, one in enumerate(events)]

    def fault(self, request):
        waiting = []
        for item in request["input"]:
            if item.get("type") == "function_call_output":
                if not waiting or item["call_id"] != waiting.pop(0):
                    return f"unexpected output {item}"
            elif item.get("type") == "function_call":
                waiting.append(item["call_id"])
                json.loads(item["arguments"])
            elif waiting:
                return f"no output for {waiting}"
        return f"no output for {waiting}" if waiting else None

    def answer_of(self, messages, id):
        return next(one["output"] for one in messages if one.get("call_id") == id and "output" in one)

    def system_of(self, request):
        return request.get("instructions") or ""


class Anthropic(Wire):
    api = "anthropic"
    stop = {"length": "max_tokens", "refusal": "refusal"}

    def _frame(self, says, content, stop):
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 60, "output_tokens": 40 if stop else 1},
        }

    def _stop(self, says):
        return self.stop.get(says.ended, "tool_use" if says.calls else "end_turn")

    def whole(self, says):
        content = [{"type": "text", "text": says.text}] if says.text else []
        for id, name, arguments in says.calls:
            content.append({"type": "tool_use", "id": id, "name": name, "input": self._input(arguments)})
        return self._frame(says, content, self._stop(says))

    def _input(self, arguments):
        try:
            return json.loads(arguments)
        except ValueError:
            return {}

    def parts(self, says):
        events = [{"type": "message_start", "message": self._frame(says, [], None)}, {"type": "ping"}]
        blocks = [({"type": "text", "text": ""}, "text_delta", "text", says.text)] if says.text else []
        for id, name, arguments in says.calls:
            block = {"type": "tool_use", "id": id, "name": name, "input": {}}
            blocks.append((block, "input_json_delta", "partial_json", arguments))
        for index, (block, kind, key, text) in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            for piece in ["", *pieces(text)]:
                events.append({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}})
            events.append({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": self._stop(says), "stop_sequence": None}
        events += [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 40}}, {"type": "message_stop"}]
        return [sse(one, one["type"]) for one in events]

    def fault(self, request):
        waiting = []
        for one in request["messages"]:
            blocks = one["content"] if isinstance(one["content"], list) else [{"type": "text", "text": one["content"]}]
            if not blocks or any(block["type"] == "text" and not block["text"].strip() for block in blocks):
                return "text content blocks must be non-empty"
            results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            if results != waiting:
                return f"asked {waiting}, answered {results}"
            waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
            if any(not isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use"):
                return "input is no object"
        return f"no result for {waiting}" if waiting else None

    @contextlib.asynccontextmanager
    async def client(self, endpoint, is_async):
        sdk = pytest.importorskip("anthropic", reason="the anthropic SDK is not installed")
        kind = sdk.AsyncAnthropic if is_async else sdk.Anthropic
        client = kind(base_url=endpoint.url, api_key="-", max_retries=0)
        try:
            yield client
        finally:
            await client.close() if is_async else client.close()

    def answer_of(self, messages, id):
        blocks = [block for one in messages if isinstance(one["content"], list) for block in one["content"]]
        return next(block["content"] for block in blocks if block.get("tool_use_id") == id)

    def system_of(self, request):
        return request.get("system") or ""


class Gemini(Wire):
    api = "gemini"
    finish = {"length": "MAX_TOKENS", "refusal": "SAFETY"}

    def asked(self, text="go"):
        return [{"role": "user", "parts": [{"text": text}]}]

    def key(self, messages):
        camel = {"function_call": "functionCall", "function_response": "functionResponse"}
        return {
            "contents": [
                {**one, "parts": [{camel.get(key, key): value for key, value in part.items()} for part in one["parts"]]}
                for one in messages
            ]
        }

    def _calls(self, says):
        return [
            {"functionCall": {"id": id, "name": name, "args": self._args(arguments)}}
            for id, name, arguments in says.calls
        ]

    def _args(self, arguments):
        try:
            return json.loads(arguments)
        except ValueError:
            return {}

    def _chunk(self, parts, finish=None):
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}}
        return {"candidates": [{**candidate, "finishReason": finish} if finish else candidate]}

    def _last(self, parts, says):
        usage = {"promptTokenCount": 60, "candidatesTokenCount": 40, "totalTokenCount": 100}
        return {**self._chunk(parts, self.finish.get(says.ended, "STOP")), "usageMetadata": usage}

    def whole(self, says):
        return self._last([*([{"text": says.text}] if says.text else []), *self._calls(says)], says)

    def parts(self, says):
        chunks = [self._chunk([{"text": piece}]) for piece in pieces(says.text)]
        chunks += [self._chunk([part]) for part in self._calls(says)]
        return [*map(sse, chunks), sse(self._last([], says))]

    def fault(self, request):
        waiting = []
        for content in request["contents"]:
            given = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
            answered = [(one["name"], one.get("id")) for one in given]
            if waiting != answered or not all(isinstance(one["response"], dict) for one in given):
                return f"asked {waiting}, answered {answered}"
            calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
            waiting = [(one["name"], one.get("id")) for one in calls]
        return f"no response to {waiting}" if waiting else None

    @contextlib.asynccontextmanager
    async def client(self, endpoint, is_async):
        genai = pytest.importorskip("google.genai", reason="google-genai is not installed")
        client = genai.Client(api_key="-", http_options=genai.types.HttpOptions(base_url=endpoint.url))
        try:
            yield client if is_async else types.SimpleNamespace(models=client.models)
        finally:
            await client.aio.aclose()
            client.close()

    def answer_of(self, messages, id):
        parts = [part["function_response"] for one in messages for part in one["parts"] if "function_response" in part]
        response = next(part["response"] for part in parts if part.get("id") == id)
        return response.get("output") or response.get("error")

    def system_of(self, request):
        return "".join(part["text"] for part in request.get("systemInstruction", {}).get("parts", ()))


WIRES = {wire.api: wire for wire in (Chat(), Responses(), Anthropic(), Gemini())}


def tools_of(log):
    """Return tools that note in *log* what they did."""

    @tool(effect="read", required_access=PUBLIC)
    async def add(a: int, b: int = 10) -> dict[str, int]:
        """Add two numbers."""
        log.append(("add", a, b))
        return {"sum": a + b}

    @tool(effect="mutate", required_access=PUBLIC, system_prompt="Send letters only when asked to.")
    async def send(to: str) -> str:
        """Send a letter."""
        log.append(("send", to))
        return f"sent to {to}"

    @tool(effect="read", required_access=PUBLIC)
    async def finish(text: str) -> ToolResult:
        """End the turn."""
        return ToolResult.ok(text, stop=True)

    return [add, send, finish]
