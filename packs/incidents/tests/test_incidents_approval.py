"""The whole way of a change: proposed, previewed, approved or rejected, applied or found stale, and recorded."""

import pytest

from agentos import ProposalError


@pytest.fixture
def proposed(call):
    """Return a function that makes a call that has to wait, and returns its proposal's id."""

    async def proposing(host, name, principal, **arguments):
        result = await call(host, name, principal, **arguments)
        assert result.error.type == "ApprovalRequired", result.content
        return result.error.details["proposal_id"]

    return proposing


async def test_reading_needs_no_approval(hosting, call, people):
    async with hosting() as host:
        assert (await call(host, "incident_list", people.ria)).success


async def test_a_change_waits_with_a_preview(hosting, proposed, people):
    async with hosting() as host:
        id = await proposed(host, "incident_open", people.wim, title="Login fails", severity="high", service="auth")

        proposal = await host.approvals.describe(id)

    assert proposal.preview == {
        "would": "open a new incident of severity high: 'Login fails'",
        "details": ["service: auth"],
    }
    assert (proposal.tool, proposal.effect, proposal.principal.id) == ("incidents:incident_open", "mutate", "wim")


async def test_nothing_happens_before_the_approval(hosting, call, proposed, people):
    async with hosting() as host:
        await proposed(host, "incident_open", people.wim, title="Login fails", severity="high")

        assert (await call(host, "incident_list", people.ria)).output["total"] == 0


async def test_an_approved_change_is_done_for_its_proposer(hosting, call, proposed, people):
    async with hosting() as host:
        id = await proposed(host, "incident_open", people.wim, title="Login fails", severity="high")
        done = await host.approvals.approve(id, by=people.wim)
        incident = (await call(host, "incident_get", people.ria, id=done.output["id"])).output

    assert (done.output["version"], incident["opened_by"]) == (1, "wim")
    assert incident["timeline"][0]["proposal"] == id


async def test_somebody_else_may_not_approve_by_default(hosting, call, proposed, people):
    async with hosting() as host:
        id = await proposed(host, "incident_open", people.wim, title="Login fails", severity="high")
        refused = await host.approvals.approve(id, by=people.ada)

        assert refused.error.type == "ProposalInvalid"
        assert "somebody else" in refused.content
        assert (await call(host, "incident_list")).output["total"] == 0


async def test_somebody_else_may_approve_where_the_host_allows_it(hosting, proposed, people):
    async with hosting(allow_other_approver=True) as host:
        id = await proposed(host, "incident_open", people.wim, title="Login fails", severity="high")
        done = await host.approvals.approve(id, by=people.ada)
        proposal = await host.approvals.describe(id)

    assert done.success, done.content
    assert (proposal.state, proposal.decided_by, proposal.principal.id) == ("applied", "ada", "wim")


async def test_a_rejected_change_is_not_done(hosting, call, proposed, people):
    async with hosting() as host:
        id = await proposed(host, "incident_open", people.wim, title="Login fails", severity="high")
        await host.approvals.reject(id, "known already", by=people.wim)
        late = await host.approvals.approve(id, by=people.wim)

        assert late.error.type == "ProposalInvalid"
        assert (await call(host, "incident_list")).output["total"] == 0
        with pytest.raises(ProposalError):
            await host.approvals.reject(id, "again", by=people.wim)


async def test_a_change_that_went_stale_while_it_waited_is_not_done(hosting, call, opened, proposed, people):
    async with hosting(mode="auto") as host:
        incident = await opened(host)
        id = await proposed(
            host, "incident_update", people.wim, id=incident["id"], version=1, severity="critical", note="worse"
        )
        assert (await call(host, "incident_update", id=incident["id"], version=1, note="found it")).success
        stale = await host.approvals.approve(id, by=people.wim)
        now = (await call(host, "incident_get", id=incident["id"])).output

    assert stale.error.details == {"exception": "StaleError"}
    assert "is at version 2, and this call was made for version 1; nothing was done" in stale.content
    assert (now["severity"], now["version"]) == ("high", 2)


async def test_the_preview_of_a_stale_change_says_so(hosting, call, opened, proposed, people):
    async with hosting(mode="auto") as host:
        incident = await opened(host)
        assert (await call(host, "incident_update", id=incident["id"], version=1, note="found it")).success
        id = await proposed(host, "incident_update", people.wim, id=incident["id"], version=1, severity="critical")
        preview = (await host.approvals.describe(id)).preview

    assert "is at version 2" in preview["dry_run_failed"]


async def test_an_edited_proposal_is_done_as_edited(hosting, proposed, people):
    async with hosting() as host:
        id = await proposed(host, "incident_open", people.wim, title="Login fails", severity="low")
        edited = await host.approvals.edit(id, {"title": "Login fails", "severity": "medium"}, by=people.wim)
        done = await host.approvals.approve(edited.token, by=people.wim)

    assert done.output["severity"] == "medium"


async def test_a_purge_always_asks_and_shows_what_is_lost(hosting, call, opened, proposed, people):
    async with hosting(mode="auto") as host:
        first, second = await opened(host, "Login fails"), await opened(host, "Mail is late")
        await call(host, "incident_resolve", id=first["id"], version=1, resolution="restarted")
        targets = [{"id": first["id"], "version": 2}, {"id": second["id"], "version": 1}]
        id = await proposed(host, "incident_purge", people.ada, incidents=targets)
        preview = (await host.approvals.describe(id)).preview
        done = await host.approvals.approve(id, by=people.ada)
        left = (await call(host, "incident_list", status="any")).output

    assert preview == {
        "would": "delete 1 incident with 2 timeline entries; they can't be had back",
        "details": [
            "lost: 1 'Login fails' with 2 timeline entries",
            "stays: incident 2 is open; only resolved incidents can be purged",
        ],
    }
    assert done.error.type == "PartialFailure"
    assert (done.output["succeeded"], done.output["failed"]) == (1, 1)
    assert [line["id"] for line in left["incidents"]] == [second["id"]]


async def test_no_grant_lets_a_purge_run_unasked(hosting, opened, proposed, people):
    async with hosting(mode="auto") as host:
        incident = await opened(host)
        await host.grants.add("incidents:incident_purge", "always", principal="ada")

        await proposed(host, "incident_purge", people.ada, incidents=[{"id": incident["id"], "version": 1}])


async def test_a_critical_incident_is_asked_about_in_every_mode(hosting, opened, proposed, people):
    async with hosting(mode="auto") as host:
        incident = await opened(host)

        await proposed(host, "incident_open", people.wim, title="All is down", severity="critical")
        await proposed(host, "incident_update", people.wim, id=incident["id"], version=1, severity="critical")


async def test_whether_to_ask_looks_at_the_incident_itself(hosting, call, proposed, people):
    """Nothing in the arguments of incident_resolve tells that the incident is critical."""
    async with hosting(mode="auto") as host:
        id = await proposed(host, "incident_open", people.wim, title="All is down", severity="critical")
        incident = (await host.approvals.approve(id, by=people.wim)).output

        await proposed(host, "incident_resolve", people.wim, id=incident["id"], version=1, resolution="power is back")


async def test_a_grant_waives_the_question_about_critical_incidents(hosting, call, people):
    async with hosting() as host:
        await host.grants.add("incidents:incident_open", "always", principal="wim")
        done = await call(host, "incident_open", people.wim, title="All is down", severity="critical")

    assert done.success, done.content


async def test_where_nobody_can_be_asked_changes_are_refused(hosting, call, people):
    async with hosting(mode="unattended") as host:
        result = await call(host, "incident_open", people.wim, title="Login fails", severity="high")

    assert result.error.type == "Refused"


async def test_a_dry_run_changes_nothing(hosting, opened, call):
    async with hosting(mode="auto") as host:
        incident = await opened(host)
        arguments = {"id": incident["id"], "version": 1, "severity": "low", "note": "calmer"}
        shown = await host.tools.preview({"name": "incident_update", "arguments": arguments})
        now = (await call(host, "incident_get", id=incident["id"])).output

    assert shown.output == {
        "would": "change incident 1 'Login fails' (high, open, version 1); it will be at version 2",
        "details": ["severity: high -> low", "note: calmer"],
    }
    assert (now["version"], now["severity"], now["timeline_total"]) == (1, "high", 1)


async def test_narrowing_a_principal_hides_tools(hosting, people):
    def names(host, principal):
        return [info.name for info in host.tools.list_available_tools(principal)]

    async with hosting() as host:
        everything = names(host, people.ada)
        narrowed = names(host, people.ada.narrow({"incidents:read"}))
        nothing = names(host, people.ada.narrow({"mail:send"}))

    assert everything == [
        *("incident_list", "incident_get", "incident_open", "incident_update", "incident_resolve", "incident_purge")
    ]
    assert (narrowed, nothing) == (["incident_list", "incident_get"], [])


async def test_what_is_hidden_can_not_be_called(hosting, call, people):
    async with hosting(mode="auto") as host:
        result = await call(host, "incident_open", people.ada.narrow({"incidents:read"}), title="x", severity="low")

    assert result.error.type == "UnknownTool"


async def test_the_prompt_is_for_those_who_see_a_tool(hosting, people):
    async with hosting() as host:
        assert "incident_purge destroys records" in host.tools.system_prompt(people.ria)
        assert host.tools.system_prompt(people.ria.narrow(())) == ""


async def test_the_audit_has_every_step(hosting, call, proposed, people):
    async with hosting(allow_other_approver=True) as host:
        first = await proposed(host, "incident_open", people.wim, title="Login fails", severity="high")
        second = await proposed(host, "incident_open", people.wim, title="Login fails", severity="high")
        await host.approvals.approve(first, by=people.ada)
        await host.approvals.reject(second, "twice", by=people.ada)
        await call(host, "incident_list", people.ria)
        verdict = await host.audit.verify()
        records = await host.audit.records()

    steps = [(record.event, record.data.get("proposal"), record.data.get("by")) for record in records]
    assert verdict.ok, verdict.reason
    assert steps == [
        ("proposal", first, None),
        ("proposal", second, None),
        ("proposal:applying", first, "ada"),
        ("proposal:applied", first, None),
        ("proposal:rejected", second, "ada"),
        ("call", None, None),
    ]


async def test_the_audit_tells_of_a_stale_change(hosting, call, opened, proposed, people):
    async with hosting(mode="auto") as host:
        await opened(host)
        id = await proposed(host, "incident_update", people.wim, id=1, version=1, severity="critical")
        await call(host, "incident_update", id=1, version=1, note="first")
        await host.approvals.approve(id, by=people.wim)
        records = await host.audit.records()

    (failed,) = [record for record in records if record.event == "proposal:failed"]
    assert (failed.data["proposal"], failed.data["outcome"]["error"]) == (id, "ToolRaised")


async def test_a_proposal_outlives_the_host(hosting, proposed, people, tmp_path):
    async with hosting(store=tmp_path / "state.db") as host:
        id = await proposed(host, "incident_open", people.wim, title="Login fails", severity="high")

    async with hosting(store=tmp_path / "state.db") as host:
        done = await host.approvals.approve(id, by=people.wim)

    assert done.success, done.content
