"""A pack is made in its process as it is in the host: with the same problems, told in the same words."""

import pytest
from worker_children import in_process, placed

from agentos import ExtensionPack, PackEntry, PackLoadError
from agentos.model.pack_context import PackContext
from agentos.model.source import Source
from agentos.testing import make_host
from agentos.workers.declaration import pack_request


async def outcome(place, name, **fields):
    async with placed(place, name, **fields) as entry, make_host(entry, strict=False) as host:
        return [one.reason for one in host.extensions.report.outcomes]


@pytest.mark.parametrize("options", [{"fault": "raise"}, {"fault": "import"}, {"fault": "tool"}, {"fault": "return"}])
async def test_a_factory_that_fails_fails_the_load_with_the_same_words(options):
    (inline,), (process,) = [await outcome(place, "faulty", options=options) for place in ("inline", "process")]

    assert after_name(process) == after_name(inline)


@pytest.mark.parametrize("options", [{"size": "large"}, {"colour": 1}, {"maxItems": "many"}])
async def test_options_that_the_pack_does_not_have_fail_the_load_with_the_same_words(options):
    (inline,), (process,) = [await outcome(place, "faulty", options=options) for place in ("inline", "process")]

    assert after_name(process) == after_name(inline)


@pytest.mark.parametrize("options", [{}, {"maxItems": 7}, {"max_items": 8}])
async def test_options_are_completed_the_same(options):
    found = []
    for place in ("inline", "process"):
        async with placed(place, "faulty", options=options) as entry, make_host(entry) as host:
            (active,) = host.extensions.registry("note").list_active()
            found.append((dict(active.options), active.payload))

    assert found[1] == found[0]


async def test_the_environment_of_the_process_has_no_secrets(monkeypatch):
    monkeypatch.setenv("FAULTY_KEY", "s3cret")
    async with in_process("faulty") as (entry, _), make_host(entry) as host:
        assert host.extensions.registry("note").get_active("env").payload == "unset, asked: s3cret"


def test_a_factory_that_no_other_process_can_import_is_refused():
    def make():
        return ExtensionPack("local")

    context = PackContext(
        options={}, services=None, logger=None, manifest_entry=PackEntry(factory=make), source=Source("x"), secrets=None
    )
    with pytest.raises(PackLoadError, match="can't import its factory by name"):
        pack_request(context)


def after_name(text):
    return text.partition("could not be made")[2] or text.rpartition("': ")[2]
