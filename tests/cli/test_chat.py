"""`agentos chat`: a model behind a real HTTP server, tools as they run, approvals inline."""

import contextlib
import http.server
import json
import shlex
import signal
import stat
import subprocess
import threading
from pathlib import Path

import pytest
from commanding import Project
from model_wires import Anthropic, Gemini, Responses, Says, serving
from terminal import AGENTOS, PATIENCE, environment, run_in_terminal

from agentos.cli.terminal.message_editor import recalled
from agentos.cli.terminal.message_input import MessageHistory

KEY = "sk-a-key-that-is-never-shown"


class Model(http.server.ThreadingHTTPServer):
    """A stub of an OpenAI-compatible endpoint: says what it was told, or calls the tool that it is told to."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests, self.keys = [], []
        self.status = 200
        self.waits, self.is_asked = threading.Event(), threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    def status_of(self, request):
        return 400 if request["messages"][-1]["content"] == "fail" else self.status

    def answer(self, request):
        last = request["messages"][-1]
        if self.status_of(request) != 200:
            return {"error": {"message": f"no, {self.keys[-1]} is wrong"}}
        if last["role"] == "tool":
            return said(f"the tool said {last['content']}")
        self.is_asked.set()
        if last["content"] == "wait":
            self.waits.wait(PATIENCE)
        if last["content"] == "half":
            return said("partly cloudy")
        word, _, rest = last["content"].partition(" ")
        if word not in ("call", "again"):
            return said(f"you said {last['content']}")
        calls = [part.split(" ", 1) for part in rest.strip().split(" and ")]
        return said(None, *calls)


def said(content, *calls):
    made = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, "tool_calls": made or None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(request)
        self.server.keys.append(self.headers["Authorization"].removeprefix("Bearer "))
        if request.get("stream") and self.server.status_of(request) == 200:
            self.stream(request)
            return
        body = json.dumps(self.server.answer(request)).encode()
        self.send_response(self.server.status_of(request))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def finish(self):
        with contextlib.suppress(ConnectionError):  # who asked may have gone
            super().finish()

    def stream(self, request):
        """Say it in parts; after the first of what is said to `half`, wait."""
        message = self.server.answer(request)["choices"][0]["message"]
        calls = [{**call, "index": number} for number, call in enumerate(message["tool_calls"] or ())]
        words = (message["content"] or "").partition(" ")
        deltas = [{"role": "assistant"}, *({"content": word} for word in words if word), {"tool_calls": calls}]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            for number, delta in enumerate(deltas):
                if number == 2 and request["messages"][-1]["content"] == "half":
                    self.server.waits.wait(PATIENCE)
                last = "stop" if number == len(deltas) - 1 else None
                self.say({"choices": [{"index": 0, "delta": delta, "finish_reason": last}]})
            self.wfile.write(b"data: [DONE]\n\n")

    def say(self, chunk):
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", **chunk}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *_):
        pass


@pytest.fixture
def model():
    with Model() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.waits.set()
        server.shutdown()


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.fixture
def once(project, model):
    def run(question, *options, **env):
        return project.run("chat", "--model", "m", "--base-url", model.url, "--once", question, *options, **env)

    return run


@pytest.fixture
def talk(project, model):
    def run(*inputs, options=()):
        argv = [*AGENTOS, "chat", "--model", "m", "--base-url", model.url, *options]
        env = {**project.env, "NO_COLOR": "1"}
        return run_in_terminal(argv, inputs=inputs, width=200, cwd=project.folder, env=env)

    return run


# -- one question ------------------------------------------------------------------------------------------------------


def test_an_answer_is_printed_and_nothing_else(once):
    done = once("hello")

    assert (done.code, done.out) == (0, "you said hello\n")


def test_tools_are_shown_as_they_run(once):
    done = once('call add {"a": 1, "b": 2}')

    assert done.out == "the tool said 3\n"
    assert "→ demo:add" in done.err
    assert "✓ demo:add" in done.err


def test_a_tool_that_fails_is_shown_as_failing(once):
    assert "✗ demo:broken: ToolRaised" in once("call broken {}").err


def test_programs_get_the_whole_turn(once):
    told = once('call add {"a": 1}', "--json").json

    assert (told["content"], told["stoppedBy"], told["steps"]) == ("the tool said 6", "answer", 2)
    assert told["calls"] == [{"tool": "demo:add", "success": True, "content": "6"}]


def test_the_model_is_offered_what_the_principal_may_call(once, model):
    once("hello", "--principal", "ann")
    names = [tool["function"]["name"] for tool in model.requests[0]["tools"]]

    assert ("note" in names, "wipe" in names) == (True, False)


def test_the_system_prompt_comes_first(once, model):
    once("hello", "--system", "Be brief.")

    assert model.requests[0]["messages"][0] == {"role": "system", "content": "Be brief."}


def test_what_is_piped_in_is_the_question(project, model):
    for options in ([], ["--once", "-"]):
        done = project.run("chat", "--model", "m", "--base-url", model.url, *options, input="piped\n")
        assert done.out == "you said piped\n\n"


def test_without_anybody_to_ask_a_call_waits_and_is_named(project, once):
    done = once('call note {"text": "x"}')
    (proposal,) = project.run("approvals", "list", "--json").json["proposals"]

    assert done.code == 0
    assert f"demo:note waits for approval: `agentos approvals show {proposal['id']}`" in done.err


def test_a_model_that_does_not_come_to_an_end_is_a_failure(once, model, monkeypatch):
    monkeypatch.setattr(model, "answer", lambda _: said(None, ("add", '{"a": 1}')))

    stuck = once("go")
    assert (stuck.code, "again and again" in stuck.err) == (1, True)
    steps = once("go", "--max-steps", "2")
    assert (steps.code, "after 2 steps" in steps.err) == (1, True)


def test_the_model_is_named_on_the_command_line_or_in_the_environment(project, model):
    done = project.run("chat", "--once", "hello", "--base-url", model.url)
    assert (done.code, "--model" in done.err) == (2, True)

    env = {"AGENTOS_CHAT_MODEL": "other", "OPENAI_BASE_URL": model.url}
    assert project.run("chat", "--once", "hello", **env).code == 0
    assert model.requests[-1]["model"] == "other"


def test_nothing_to_ask_is_a_usage_error(once):
    assert once(" ").code == 2


# -- the key and the endpoint ------------------------------------------------------------------------------------------


def test_a_piped_question_is_asked_though_some_of_it_is_no_utf_8(project, model):
    argv = [*AGENTOS, "chat", "--model", "m", "--base-url", model.url, "--once", "-"]
    env = environment(project.env)
    done = subprocess.run(argv, cwd=project.folder, env=env, input=b"caf\xe9 open?", capture_output=True, check=False)

    assert (done.returncode, done.stdout.decode("utf-8")) == (0, "you said caf\ufffd open?\n"), done


def test_a_question_that_is_too_long_is_refused_not_cut(project, model):
    argv = ["chat", "--model", "m", "--base-url", model.url, "--once", "-"]

    assert project.run(*argv, input="x" * 1_000_001).code == 2


def test_the_key_comes_from_the_environment(once, model):
    once("hello", OPENAI_API_KEY=KEY)

    assert model.keys == [KEY]


def test_the_key_comes_from_the_secrets_that_are_kept(project, once, model):
    project.run("secrets", "set", "openrouter.apiKey", "--stdin", input=KEY)
    once("hello", "--key", "openrouter.apiKey")

    assert model.keys == [KEY]


def test_an_endpoint_of_ones_own_needs_no_key(once, model):
    assert once("hello").code == 0
    assert model.keys == ["none"]


def test_without_a_key_it_is_said_how_to_set_one(project):
    done = project.run("chat", "--model", "m", "--once", "hello")

    assert (done.code, "agentos secrets add openai.apiKey" in done.err) == (3, True)


def test_an_endpoint_that_refuses_is_told_of_without_the_key(once, model):
    model.status = 401
    done = once("hello", OPENAI_API_KEY=KEY)

    assert (done.code, done.out) == (1, "")
    assert "the model did not answer: AuthenticationError" in done.err
    assert "agentos secrets add openai.apiKey" in done.err
    assert KEY not in done.err


def test_an_endpoint_that_is_not_there_is_named_and_one_in_the_clear_warned_of(project):
    url = "http://endpoint.invalid/v1"
    done = project.run("chat", "--model", "m", "--base-url", url, "--once", "hello", OPENAI_API_KEY=KEY)

    assert (done.code, f"is {url} there?" in done.err) == (1, True)
    assert f"travel in the clear to {url}" in done.err


@pytest.mark.parametrize(
    "url", ["http://[half/v1", "nonsense", "http://a:b/v1", "ftp://x", "http:///v1", "http://x\x07"]
)
def test_an_address_that_is_none_is_a_usage_error(project, url):
    done = project.run("chat", "--model", "m", "--base-url", url, "--once", "hello")

    assert (done.code, "--base-url: expected an address" in done.err) == (2, True)


def test_without_the_library_it_is_said_what_to_install(once, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "openai", None)
    done = once("hello")

    assert (done.code, "pip install 'agentos-host[openai]'" in done.err) == (3, True)


# -- at the terminal ---------------------------------------------------------------------------------------------------


def test_a_conversation_goes_on_until_ctrl_d_even_if_the_endpoint_fails_once(talk, model):
    told = talk(
        ("you> ", "one\n"),
        ("you said one", ""),
        ("you> ", "fail\n"),
        ("the model did not answer", ""),
        ("you> ", "two\n"),
        ("you said two", ""),
        ("you> ", "\x04"),
    )

    assert told.code == 0
    assert [message["content"] for message in model.requests[-1]["messages"]] == ["one", "you said one", "two"]


def test_messages_may_have_several_lines(talk, model):
    told = talk(
        ("you> ", "\n"),
        ("you> ", "one \\\n"),
        ("...> ", "two\n"),
        ("you> ", '"""\n'),
        ("...> ", "three\n"),
        ("...> ", "four \\\n"),
        ("...> ", '"""\n'),
        ("you> ", "pasted\nat once\n"),
        ("you said pasted", ""),
        ("you> ", "half \\\n"),
        ("...> ", "\x04"),
        ("you said half", ""),
        ("you> ", "\x04"),
    )
    asked = [request["messages"][-1]["content"] for request in model.requests]

    assert told.code == 0
    assert asked == ["one \ntwo", "three\nfour \\", "pasted\nat once", "half "]


def test_approvals_are_asked_inline_one_at_a_time(talk, model):
    told = talk(
        ("you> ", 'call note {"text": "x"} and note {"text": "y"}\n'),
        ("[l]ater? ", "a\n"),
        ("[l]ater? ", "r\n"),
        ("Why? ", "enough\n"),
        ("the tool said", ""),
        ("you> ", "\x04"),
    )
    answers = [message["content"] for message in model.requests[-1]["messages"] if message["role"] == "tool"]

    assert told.code == 0
    assert min(answers).startswith("Refused: a person refused the call: enough")
    assert '"tags": []' in max(answers)


def test_ctrl_c_cancels_the_turn_and_the_conversation_goes_on(talk, model):
    told = talk(
        ("you> ", "\x03"),
        ("Ctrl-D ends.", ""),
        ("you> ", 'call slow {"steps": 1000, "seconds": 0.1}\n'),
        ("step 2", "\x03"),
        ("The turn was cancelled", ""),
        ("you> ", 'call note {"text": "x"}\n'),
        ("[l]ater? ", "\x03"),
        ("The turn was cancelled", ""),
        ("you> ", "wait\n"),
        ("m is thinking", "\x03"),
        ("The turn was cancelled", ""),
        ("you> ", "still there\n"),
        ("you said still there", ""),
        ("you> ", "\x04"),
    )
    messages = model.requests[-1]["messages"]

    assert told.code == 0
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert "cancelled" in messages[2]["content"]


def test_ctrl_c_ends_a_single_question(project, model, started):
    options = ("--model", "m", "--base-url", model.url, "--once", "wait")
    child = started("chat", *options, cwd=project.folder, env=project.env)
    assert model.is_asked.wait(PATIENCE)

    assert child.end(signal.SIGINT)[0] == 130


def test_foreign_text_does_nothing_to_a_terminal(once, model, monkeypatch):
    monkeypatch.setattr(model, "answer", lambda _: said("\x1b[2J\x9b[bold]loud[/bold]\x07"))
    done = once("hello")

    assert done.out == "\\x1b[2J\\x9b[bold]loud[/bold]\\x07\n"


# -- what is typed -----------------------------------------------------------------------------------------------------


def asked(model):
    return [
        request["messages"][-1]["content"] for request in model.requests if request["messages"][-1]["role"] == "user"
    ]


UP, LEFT, HOME, DELETE = "\x1b[A", "\x1b[D", "\x01", "\x1b[3~"


def test_a_line_is_edited_with_the_keys_of_a_line_editor(talk, model):
    told = talk(
        ("you> ", f"wold{LEFT}{LEFT}r{HOME}hello \x05!\x7f?\n"),
        ("you said", ""),
        ("you> ", f"wrong\x15right xy{LEFT}{DELETE}\n"),
        ("you said", ""),
        ("you> ", "\x04"),
    )

    assert told.code == 0
    assert asked(model) == ["hello world?", "right x"]


def test_messages_are_recalled_in_the_next_conversation_too(talk, model):
    talk(
        ("you> ", "one\n"),
        ("you said one", ""),
        ("you> ", f"{UP} more\n"),
        ("you said one more", ""),
        ("you> ", "\x04"),
    )
    talk(("you> ", f"{UP}{UP}\n"), ("you said one", ""), ("you> ", "\x04"))

    assert asked(model) == ["one", "one more", "one"]


def test_what_is_pasted_is_one_message_that_can_be_edited_and_recalled(talk, model):
    paste = "\x1b[200~first\nsecond\n\x1b[201~"
    told = talk(
        ("you> ", f"{paste}third\n"),
        ("you said", ""),
        ("you> ", f"{UP} again\n"),
        ("you said", ""),
        ("you> ", "\x04"),
    )

    assert told.code == 0
    assert asked(model) == ["first\nsecond\nthird", "first\nsecond\nthird again"]


def test_the_history_is_for_its_owner_alone_without_secrets_and_without_what_begins_with_a_space(talk, model, project):
    project.run("secrets", "set", "openai.apiKey", "--stdin", input=KEY)
    talk(
        ("you> ", f"my key is {KEY}\n"),
        ("you said", ""),
        ("you> ", " not kept\n"),
        ("you said", ""),
        ("you> ", "kept\n"),
        ("you said", ""),
        ("you> ", "\x04"),
    )
    file = Path(project.env["AGENTOS_DATA"]) / "chat-history.jsonl"
    kept = [json.loads(line) for line in file.read_text("utf-8").splitlines()]

    assert asked(model) == [f"my key is {KEY}", " not kept", "kept"]
    assert (len(kept), kept[-1]) == (2, "kept")
    assert KEY not in kept[0]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_history_that_is_damaged_or_can_not_be_written_is_no_reason_to_stop(talk, model, project):
    file = Path(project.env["AGENTOS_DATA"]) / "chat-history.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b'"good"\n\xff{not json\n17\n')
    talk(("you> ", f"{UP}\n"), ("you said", ""), ("you> ", "\x04"))
    file.unlink()
    file.mkdir()
    told = talk(("you> ", "hello\n"), ("you said", ""), ("you> ", "\x04"))

    assert (told.code, asked(model)) == (0, ["good", "hello"])


def test_the_terminal_is_left_as_it_was(project, model):
    argv = shlex.join([*AGENTOS, "chat", "--model", "m", "--base-url", model.url])
    told = run_in_terminal(
        ["bash", "-c", f"stty -a > before; {argv}; stty -a > after; cmp before after && echo the same"],
        inputs=[("you> ", "half a line\x03"), ("Ctrl-D ends.", ""), ("you> ", "\x04")],
        cwd=project.folder,
        env={**project.env, "NO_COLOR": "1"},
    )

    assert "the same" in told


def test_tools_are_shown_with_their_arguments_and_without_secrets(once, project):
    project.run("secrets", "set", "openai.apiKey", "--stdin", input=KEY)
    done = once(f'call echo {{"text": "{KEY}", "names": ["a", "b"]}}')

    shown = next(line for line in done.err.splitlines() if line.startswith("→"))
    assert shown.startswith("→ demo:echo text=")
    assert shown.endswith('names=["a", "b"]')
    assert KEY not in done.err


def test_arguments_that_are_long_are_cut_where_they_are_shown(once):
    done = once(f'call echo {{"text": "{"x" * 5000}"}}')

    shown = next(line for line in done.err.splitlines() if line.startswith("→"))
    assert shown.endswith("x…")
    assert len(shown) < 300


def test_old_messages_are_dropped_when_the_history_is_large(tmp_path):
    history = MessageHistory(tmp_path / "history.jsonl")
    for number in range(12):
        history.add(f"{number}" + "x" * 100_000)
    kept = list(recalled(str(history.path)))

    assert 1 < len(kept) < 12
    assert kept[-1].startswith("11x")


# -- streams, and turns that wait --------------------------------------------------------------------------------------


def contents(model):
    return [message["content"] for message in model.requests[-1]["messages"]]


def test_an_answer_is_shown_as_it_comes_and_what_was_shown_is_kept_when_ctrl_c_ends_it(talk, model):
    told = talk(
        ("you> ", "half\n"),
        ("partly", "\x03"),
        ("The turn was cancelled", ""),
        ("you> ", "next\n"),
        ("you said next", ""),
        ("you> ", "\x04"),
    )

    assert (told.code, "cloudy" in told) == (0, False)
    assert contents(model) == ["half", "partly", "next"]


def test_a_second_ctrl_c_ends_the_chat(talk):
    told = talk(("you> ", "half\n"), ("partly", "\x03"), ("The turn was cancelled", ""), ("you> ", "\x03"))

    assert told.code == 0


def test_ctrl_d_after_a_cancelled_answer_ends_the_chat(talk):
    told = talk(("you> ", "half\n"), ("partly", "\x03"), ("The turn was cancelled", ""), ("you> ", "\x04"))

    assert (told.code, "Ctrl-C again" in told) == (0, False)


def test_without_streams_the_endpoint_is_asked_for_whole_answers(talk, model):
    told = talk(
        *(("you> ", 'call add {"a": 1}\n'), ("the tool said 6", ""), ("you> ", "\x04")), options=["--no-stream"]
    )

    assert told.code == 0
    assert [request.get("stream") for request in model.requests] == [None, None]


def test_a_pipe_may_ask_for_a_stream_and_gets_the_same(once, model):
    done = once('call add {"a": 1}', "--stream")

    assert (done.code, done.out) == (0, "the tool said 6\n")
    assert "→ demo:add a=1" in done.err
    assert model.requests[0]["stream"] is True


def test_an_answer_that_was_cut_is_said_to_be(once, model, monkeypatch):
    cut = said("once upon")
    cut["choices"][0]["finish_reason"] = "length"
    monkeypatch.setattr(model, "answer", lambda _: cut)
    done = once("tell me a story")

    assert (done.code, done.out, "length limit" in done.err) == (0, "once upon\n", True)


def approving(project, typed):
    """Return what approves all that waits, as another process would, and then types."""

    def approve():
        for one in project.run("approvals", "list", "--json").json["proposals"]:
            assert project.run("approvals", "approve", one["id"], "--yes").code == 0
        return typed

    return approve


def test_what_another_process_decides_ends_the_question_and_the_answer_goes_on(talk, model, project):
    told = talk(
        ("you> ", 'call note {"text": "x"}\n'),
        ("[l]ater? ", approving(project, "")),
        ("Somebody else has decided", ""),
        ("the tool said", ""),
        ("you> ", "\x04"),
    )

    assert told.code == 0
    assert '"tags": []' in contents(model)[-1]


def test_what_is_decided_later_is_gone_on_with(talk, model, project):
    told = talk(
        ("you> ", 'call note {"text": "x"}\n'),
        ("[l]ater? ", "l\n"),
        ("A call waits for approval: `agentos approvals show", ""),
        ("you> ", "\n"),
        ("A call waits for approval: `agentos approvals show", ""),
        ("you> ", approving(project, "and now?\n")),
        ("the tool said", ""),
        ("you said and now?", ""),
        ("you> ", "\x04"),
    )
    messages = model.requests[-1]["messages"]

    assert told.code == 0
    assert [one["role"] for one in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert (messages[2]["tool_call_id"], '"tags": []' in messages[2]["content"]) == ("c0", True)


def test_a_message_goes_on_without_what_is_not_decided(talk, model):
    told = talk(
        ("you> ", 'call note {"text": "x"}\n'),
        ("[l]ater? ", "l\n"),
        ("A call waits", ""),
        ("you> ", "never mind\n"),
        ("you said never mind", ""),
        ("you> ", "\x04"),
    )

    assert told.code == 0
    assert contents(model)[2].startswith("Pending: ")


# -- persona, memory, plan, media --------------------------------------------------------------------------------------

AIDS = """
store = "state.db"

[[packs]]
module = "pack.py"

[[packs]]
package = "sqlite-memory"
options = { path = "memory.db" }

[[packs]]
package = "planning"

[personas.friendly]
systemPrompt = "Be kind."
tools = ["add"]
planning = "checklist"
model = { model = "kind-model" }
greeting = "Hello there!"
"""


@pytest.fixture
def aided(tmp_path, model):
    project = Project(tmp_path, AIDS)

    def run(question, *options):
        return project.run("chat", "--base-url", model.url, "--once", question, *options)

    run.project = project
    return run


def system(request):
    return "".join(one["content"] for one in request["messages"] if one["role"] == "system")


def test_a_persona_says_its_prompt_narrows_the_tools_and_names_the_model(aided, model):
    assert aided("hello", "--persona", "friendly", "--no-plan").out == "you said hello\n"

    asked = model.requests[-1]
    assert (asked["model"], system(asked)) == ("kind-model", "Be kind.")
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["add"]


def test_a_persona_greets_at_the_terminal(aided, model):
    told = run_in_terminal(
        [*AGENTOS, "chat", "--base-url", model.url, "--persona", "friendly"],
        inputs=[("Hello there!", ""), ("you> ", "\x04")],
        cwd=aided.project.folder,
        env={**aided.project.env, "NO_COLOR": "1"},
    )

    assert told.code == 0


def test_an_unknown_persona_is_said_to_be(aided):
    done = aided("hello", "--persona", "frendly")

    assert (done.code, "did you mean 'friendly'" in done.err) == (3, True)


def test_what_was_said_is_remembered_and_recalled_where_that_is_wanted(aided, model):
    aided("my cat is called Miez", "--model", "m", "--memory")
    aided("what is my cat called", "--model", "m", "--memory")
    assert "Miez" in system(model.requests[-1])

    aided("what is my cat called", "--model", "m")
    assert "Miez" not in system(model.requests[-1])


def test_a_plan_is_shown_and_brought_up_to_date(aided, model):
    done = aided('call add {"a": 1}', "--persona", "friendly")
    assert "[ ] 1. " in done.err
    assert "[x] 1. " in done.err
    assert "[ ] 1. " in system(model.requests[0])

    told = aided('call add {"a": 1}', "--persona", "friendly", "--json").json
    assert [step["status"] for step in told["plan"]] == ["done"]


@pytest.mark.parametrize("option", ["--memory", "--plan"])
def test_what_no_pack_offers_is_refused_with_the_pack_that_does(once, option):
    done = once("hello", option)

    assert (done.code, "agentos packs add" in done.err) == (3, True)


SHOT = """
from agentos import PUBLIC, ExtensionPack, Media, tool


@tool(effect="read", required_access=PUBLIC)
async def shoot() -> Media:
    \"\"\"Take a picture.\"\"\"
    return Media("image/png", b"PNG", name="shot.png")


def create_extension_pack():
    return ExtensionPack("shooting", "1.0", [shoot])
"""


@pytest.mark.parametrize("how", ["--stream", "--no-stream", "--json"])
def test_media_of_results_are_saved_where_it_is_said(tmp_path, model, monkeypatch, how):
    project = Project(tmp_path, pack=SHOT)
    monkeypatch.setattr(
        model, "answer", lambda request: said(*((None, ("shoot", "{}")) if len(request["messages"]) == 1 else ("ok",)))
    )
    argv = ("chat", "--model", "m", "--base-url", model.url, "--once", "go", "--save-media", "shots", how)
    done = project.run(*argv)

    assert done.code == 0
    assert (tmp_path / "shots" / "shot.png").read_bytes() == b"PNG"
    if how == "--json":
        assert done.json["calls"][0]["saved"] == ["shots/shot.png"]


# -- other APIs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
@pytest.mark.parametrize("wire", [Responses(), Anthropic(), Gemini()], ids=lambda wire: wire.api)
def test_endpoints_of_other_apis_are_talked_to_as_well(project, wire, stream):
    with serving(wire) as endpoint:
        endpoint.script[:] = [Says(calls=(("c1", "add", '{"a": 1}'),)), Says("It is 6.")]
        url = f"{endpoint.url}/v1" if wire.api == "responses" else endpoint.url
        argv = ("chat", "--api", wire.api, "--model", "m", "--base-url", url, "--system", "Be brief.", "--once", "add")
        done = project.run(*argv, stream, OPENAI_BASE_URL="http://elsewhere.invalid/v1")

    assert (done.code, done.out, endpoint.faults) == (0, "It is 6.\n", [])
    assert "→ demo:add a=1" in done.err
    assert wire.system_of(endpoint.requests[-1]) == "Be brief."
