"""Messages that go out now, to real servers."""

import asyncio
import json
import re
from itertools import repeat
from pathlib import Path

import pytest
from agentos_pack_common import run_process
from agentos_pack_notify import delivery
from agentos_pack_notify.targets import SCHEMAS, DeliveryError, Options, Targets, UncertainError, read_targets
from apprise import NotificationManager

from agentos import Principal
from agentos.processes import programs

# apprise imports a module of Python that is going away, on Pythons that still have it.
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
SENDER = Principal("sue", access={"notify:send", "notify:read"})


def json_target(hook, name="ops"):
    return f"{name}=json://user:s3cr3t-pa55@127.0.0.1:{hook.port}/hook"


class TestSend:
    async def test_a_message_arrives(self, hosting, call, hook):
        async with hosting(json_target(hook)) as host:
            result = await call(host, "notify_send", SENDER, target="ops", title="Hi", body="It works.\nReally.")

        assert result.output == {"target": "ops", "title": "Hi", "characters": 17}
        assert [(one["title"], one["message"]) for one in hook.received] == [("Hi", "It works.\nReally.")]

    async def test_a_mail_arrives(self, hosting, call, mailbox):
        url = f"mail=mailto://robot:pass-word-9@127.0.0.1:{mailbox.port}?from=robot@example.org&to=ann@example.org&mode=insecure&format=text"

        async with hosting(url) as host:
            result = await call(host, "notify_send", SENDER, target="mail", title="Report", body="All <b>well</b>.")

        assert result.success, result.content
        (mail,) = mailbox.messages
        assert (mail["subject"], mail["to"]) == ("Report", "ann@example.org")
        assert mail.get_content().strip() == "All <b>well</b>."

    async def test_a_line_break_in_the_title_makes_no_header(self, hosting, call, mailbox):
        url = f"mail=mailto://robot:pass-word-9@127.0.0.1:{mailbox.port}?from=robot@example.org&to=ann@example.org&mode=insecure"

        async with hosting(url) as host:
            await call(host, "notify_send", SENDER, target="mail", title="A\r\nBcc: eve@example.org", body="x")

        assert (mailbox.messages[0]["subject"], mailbox.messages[0]["bcc"]) == ("A Bcc: eve@example.org", None)

    async def test_it_asks_first(self, hosting, call, hook):
        async with hosting(json_target(hook), mode="approve") as host:
            result = await call(host, "notify_send", SENDER, target="ops", title="Hi", body="there")
            (proposal,) = await host.approvals.pending()

            assert (result.error.type, hook.received) == ("ApprovalRequired", [])
            assert proposal.preview == {"would": "send to ops by json now", "title": "Hi", "body": "there"}

            assert (await host.approvals.approve(result.error.details["token"])).success

        assert len(hook.received) == 1

    async def test_nothing_in_the_text_is_interpreted(self, hosting, call, hook):
        text = r"{{app_id}} \n :smile: ${HOME} %s &amp; <script>"

        async with hosting(json_target(hook)) as host:
            await call(host, "notify_send", SENDER, target="ops", title="", body=text)

        assert hook.received[0]["message"] == text

    async def test_invisible_characters_do_not_go_out(self, hosting, call, hook):
        async with hosting(json_target(hook)) as host:
            await call(host, "notify_send", SENDER, target="ops", title="a\u202eb", body="x\u200by\x1b[31m")

        assert (hook.received[0]["title"], hook.received[0]["message"]) == ("ab", "xy")


class TestFailure:
    async def test_an_unknown_target_is_told_with_those_there_are(self, hosting, call, hook):
        async with hosting(json_target(hook)) as host:
            result = await call(host, "notify_send", SENDER, target="opps", title="", body="x")

        assert "target: 'opps' is not known; targets are ops" in result.error.message

    @pytest.mark.parametrize("status", ["500 Oops", "401 No", "404 Gone"])
    async def test_a_service_that_refuses_is_a_failure_without_its_address(self, hosting, call, hook, status):
        hook.status = status

        async with hosting(json_target(hook)) as host:
            result = await call(host, "notify_send", SENDER, target="ops", title="", body="x")

        assert not result.success
        assert "ops: the service did not take the message" in result.error.message
        assert "s3cr3t" not in json.dumps([result.content, result.error.message, dict(result.error.details)])

    async def test_redirects_are_not_followed(self, hosting, call, hook):
        hook.status, hook.headers = "307 Elsewhere", f"Location: http://127.0.0.1:{hook.port}/other\r\n"

        async with hosting(json_target(hook)) as host:
            result = await call(host, "notify_send", SENDER, target="ops", title="", body="x")

        assert (result.success, len(hook.received)) == (False, 1)

    async def test_a_service_that_does_not_answer_is_given_up(self, hook):
        hook.held = asyncio.Event()
        targets = Targets(Options(timeout=0.5), lambda: json_target(hook))
        try:
            with pytest.raises(DeliveryError, match=r"ops: "):
                await targets.deliver("ops", "", "x")
        finally:
            hook.held.set()

    async def test_a_service_that_is_slow_to_answer_is_not_taken_for_one_that_refused(self, hook):
        hook.held = asyncio.Event()
        targets = Targets(Options(timeout=0.5), lambda: json_target(hook))
        try:
            with pytest.raises(UncertainError, match="it may still arrive"):
                await targets.deliver("ops", "", "x")
        finally:
            hook.held.set()

    async def test_a_service_that_answers_drop_by_drop_is_given_up_and_left(self, hook):
        hook.pours, hook.pause = repeat(b"."), 0.1

        with pytest.raises(UncertainError, match=r"ops: no answer within 0\.5 s; it may still arrive"):
            await Targets(Options(timeout=0.5), lambda: json_target(hook)).deliver("ops", "", "x")

        await asyncio.wait_for(hook.gone.wait(), 60)

    async def test_a_service_that_answers_without_end_is_given_up_and_left(self, hook):
        hook.pours = repeat(bytes(1_000_000), 1_000)

        with pytest.raises(UncertainError, match="ops: the delivery broke off"):
            await Targets(Options(timeout=60), lambda: json_target(hook)).deliver("ops", "", "x")

        await asyncio.wait_for(hook.gone.wait(), 60)

    async def test_a_call_that_is_cancelled_ends_its_delivery(self, hook):
        hook.pours, hook.pause = repeat(b"."), 0.1
        targets = Targets(Options(timeout=120), lambda: json_target(hook))
        sending = asyncio.create_task(targets.deliver("ops", "", "x"))
        await asyncio.wait_for(hook.arrived.get(), 60)
        sending.cancel()

        with pytest.raises(asyncio.CancelledError):
            await sending
        await asyncio.wait_for(hook.gone.wait(), 60)

    async def test_a_delivery_that_did_not_begin_is_none_that_may_arrive(self, hook, monkeypatch):
        monkeypatch.setattr(delivery, "_CHILD", Path(__file__).with_name("no_such_file.py"))

        with pytest.raises(DeliveryError, match="ops: nothing was sent") as caught:
            await Targets(Options(), lambda: json_target(hook)).deliver("ops", "", "x")

        assert (type(caught.value), hook.received) == (DeliveryError, [])

    async def test_an_address_that_its_service_does_not_understand_is_told_without_it(self):
        with pytest.raises(DeliveryError, match="its address is not one that slack understands") as caught:
            await Targets(Options(), lambda: "ops=slack://s3cr3t").deliver("ops", "", "x")

        assert "s3cr3t" not in str(caught.value)

    async def test_no_address_stands_in_the_arguments_or_the_environment_of_a_process(self, hook, monkeypatch):
        started = []

        async def noted(argv, **settings):
            started.append((argv, settings["env"]))
            return await run_process(argv, **settings)

        monkeypatch.setattr(programs, "run_process", noted)
        monkeypatch.setenv("APPRISE_URLS", json_target(hook))
        await Targets(Options(), lambda: json_target(hook)).deliver("ops", "", "x")

        assert (len(started), len(hook.received)) == (1, 1)
        assert "s3cr3t" not in repr(started)

    async def test_the_proxy_of_the_host_is_used(self, hook, monkeypatch):
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{hook.port}")
        await Targets(Options(), lambda: "ops=json://127.0.0.2:1/hook").deliver("ops", "", "by proxy")

        assert [one["message"] for one in hook.received] == ["by proxy"]

    async def test_nothing_is_kept_on_disk(self):
        from agentos_pack_notify._child import service_of
        from apprise.common import PersistentStoreMode

        service = service_of("json://127.0.0.1/hook")

        assert (service.store.mode, service.asset.storage_path) == (PersistentStoreMode.MEMORY, None)

    @pytest.mark.parametrize(
        "address",
        [
            "json://ann:s3cr3t-word@127.0.0.1:{port}/s3cr3t-path",
            "tgram://s3cr3t-word-that-is-no-token/",
            "zulip://bot@org/s3cr3t-word-that-is-no-token/",
            "mmost://127.0.0.1:{port}/s3cr3t-word-s3cr3t-word",
        ],
    )
    async def test_no_part_of_an_address_is_logged(self, hosting, call, hook, caplog, address):
        hook.status = "401 No"
        caplog.set_level(1)

        async with hosting("ops=" + address.format(port=hook.port)) as host:
            await call(host, "notify_send", SENDER, target="ops", title="", body="x")

        assert "s3cr3t" not in caplog.text

    async def test_a_wrong_password_is_a_failure(self, hosting, call, mailbox):
        url = f"mail=mailto://robot:wrong-word@127.0.0.1:{mailbox.port}?from=robot@example.org&to=ann@example.org&mode=insecure"

        async with hosting(url) as host:
            result = await call(host, "notify_send", SENDER, target="mail", title="", body="x")

        assert (result.success, mailbox.messages) == (False, [])
        assert "wrong-word" not in result.content


class TestTargets:
    async def test_are_listed_without_addresses(self, hosting, call, hook):
        async with hosting(f"{json_target(hook)}\n{json_target(hook, 'dev')}") as host:
            result = await call(host, "notify_targets", SENDER)

        assert result.output == {"targets": [{"name": "ops", "service": "json"}, {"name": "dev", "service": "json"}]}
        assert "s3cr3t" not in result.content

    async def test_without_the_secret_no_tool_is_offered(self, hosting, monkeypatch):
        monkeypatch.delenv("APPRISE_URLS", raising=False)

        async with hosting(None) as host:
            assert host.tools.list_available_tools() == []
            assert "apprise.urls" in str(host.extensions.explain("tool", "notify_send"))

    async def test_a_changed_secret_counts_at_once(self, hosting, call, hook):
        async with hosting(json_target(hook)) as host:
            await host.extensions.set_secret("apprise.urls", json_target(hook, "new"))
            result = await call(host, "notify_targets", SENDER)

        assert [one["name"] for one in result.output["targets"]] == ["new"]

    @pytest.mark.parametrize("schema", ["dbus", "gnome", "macosx", "windows", "syslog", "script", "file", "exec"])
    def test_what_reaches_the_host_s_own_machine_is_not_allowed(self, schema):
        with pytest.raises(ValueError, match=f"'x' uses '{schema}', which the option `schemas` does not allow"):
            read_targets(f"x={schema}://secret-place", SCHEMAS)

    @pytest.mark.parametrize("text", ["json://host", "a b=", "=json://x", "a=json:/x", "a;b=json://x", "-=json://x"])
    def test_a_malformed_entry_is_told_by_its_number_alone(self, text):
        with pytest.raises(ValueError, match=r"^apprise.urls: entry 1 is not of the form name=schema://...$"):
            read_targets(text, SCHEMAS)

    def test_a_name_stands_once(self):
        with pytest.raises(ValueError, match="'a' stands twice"):
            read_targets("a=json://x a=json://y", SCHEMAS)

    def test_the_schema_s_case_does_not_get_past_the_list(self):
        with pytest.raises(ValueError, match="'dbus'"):
            read_targets("a=DBus://x", SCHEMAS)

    def test_there_are_not_too_many(self):
        with pytest.raises(ValueError, match="more than 100 targets"):
            read_targets(" ".join(f"t{number}=json://x" for number in range(101)), SCHEMAS)

    def test_no_repr_shows_an_address(self):
        assert "hidden-word" not in repr(read_targets("a=json://hidden-word", SCHEMAS))


class TestOptions:
    @pytest.mark.parametrize(
        ("schema", "message"),
        [("mailtoo", "'mailtoo' is no schema of apprise; did you mean 'mailto'?"), ("zzqx", "'zzqx' is no schema of")],
    )
    def test_a_schema_that_apprise_does_not_have_is_refused(self, schema, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            Options(schemas=("json", schema))

    def test_no_schema_that_runs_a_program_can_be_named(self):
        runs = re.compile(r"\bsubprocess\b|\bos\.(system|popen|exec|spawn|posix_spawn)|\bPopen\b|\bpty\b")
        plugins = Path(NotificationManager.module_path)
        running = [file.name for file in plugins.rglob("*.py") if runs.search(file.read_text(encoding="utf-8"))]

        assert running == ["macosx.py"]
        with pytest.raises(ValueError, match="expected schemas of apprise such as mailto, got 'macosx'"):
            Options(schemas=("json", "macosx"))

    def test_every_schema_of_apprise_may_be_named_but_those_that_run_or_write(self):
        assert Options(schemas=("json", "growl")).schemas == ("json", "growl")

    def test_the_usual_schemas_are_those_of_apprise(self):
        assert set(SCHEMAS) - {*NotificationManager().schemas()} == set()

    @pytest.mark.parametrize(
        ("options", "message"),
        [({"schemas": ["script"]}, "schemas"), ({"timout": 3}, "timeout"), ({"attempts": 0}, "attempts")],
        ids=["schemas", "unknown", "attempts"],
    )
    async def test_a_wrong_one_fails_the_load_and_is_named(self, hosting, options, message):
        with pytest.raises(ExceptionGroup) as caught:
            async with hosting("a=json://x", options=options):
                pass

        assert message in str(caught.value.exceptions[0])


async def test_who_may_only_read_can_not_send(hosting, call, hook):
    reader = Principal("ria", access={"notify:read"})

    async with hosting(json_target(hook)) as host:
        result = await call(host, "notify_send", reader, target="ops", title="", body="x")

    assert (result.error.type, hook.received) == ("UnknownTool", [])
