"""`agentos chat`: a model behind a real HTTP server, tools as they run, approvals inline."""

import http.server
import json
import signal
import subprocess
import threading

import pytest
from commanding import Project
from terminal import AGENTOS, PATIENCE, environment, run_in_terminal

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
        body = json.dumps(self.server.answer(request)).encode()
        self.send_response(self.server.status_of(request))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

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

    assert (done.code, "agentos secrets set openai.apiKey" in done.err) == (3, True)


def test_an_endpoint_that_refuses_is_told_of_without_the_key(once, model):
    model.status = 401
    done = once("hello", OPENAI_API_KEY=KEY)

    assert (done.code, done.out) == (1, "")
    assert "the model did not answer: AuthenticationError" in done.err
    assert "agentos secrets set openai.apiKey" in done.err
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

    assert (done.code, "pip install 'agentos[openai]'" in done.err) == (3, True)


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
