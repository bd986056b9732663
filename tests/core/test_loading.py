"""From what a manifest names to a pack, and back: files, modules, entry points, reloading, versions."""

import asyncio
import functools
import os
import sys
import textwrap
from importlib.machinery import FileFinder, SourceFileLoader

import pytest
from kit import Boom, Recorder, descriptor, pack, states

import agentos
from agentos import ExtensionManager, ExtensionManifest, ExtensionPack, PackEntry, PackLoadError

pytestmark = pytest.mark.anyio

HEAD = "from agentos import Descriptor, ExtensionPack\n"


def source(payload="one", name="p", *, version="1.0", more=""):
    """Return a module whose pack offers the tool x with *payload*."""
    return (
        HEAD
        + textwrap.dedent(more)
        + textwrap.dedent(f"""
            def create_extension_pack(context):
                return ExtensionPack({name!r}, {version!r}, [Descriptor("tool", "x", {payload!r})])
        """)
    )


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))
    return file


def rewrite(file, text):
    """Write *file* anew with the time stamp that it had, as an editor that is quick would."""
    before = file.stat()
    write(file, text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def active(manager, id="x"):
    entry = manager.registry("tool").get_active(id)
    return None if entry is None else entry.payload


def modules_of_packs():
    return {name: module for name, module in sys.modules.items() if name.startswith("_agentos_pack_")}


@pytest.fixture(autouse=True)
def clean_modules(monkeypatch):
    """Take out what a test imports, and let bytecode be written: caches are part of what can go wrong."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("demo", "_agentos_pack_")):
            del sys.modules[name]


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder that modules are imported from."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def install(site, name, *, version="1.0", **entry_points):
    """Make it look as if a distribution were installed that announces *entry_points*."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "".join(f"{point.replace('_', '-')} = {value}\n" for point, value in entry_points.items())
    write(info / "entry_points.txt", f"[agentos.packs]\n{lines}")


# -- the three ways ------------------------------------------------------------------------------------------------


async def test_a_factory_is_a_way_to_name_a_pack(manager):
    outcome = await manager.load(PackEntry(factory=lambda: pack("p", descriptor("x", "one"))))

    assert (outcome.status, outcome.key, outcome.pack, active(manager)) == ("loaded", "p", "p", "one")
    assert manager.packs()[0].source.origin == "factory"


async def test_a_dotted_name_is_a_way_to_name_a_pack(manager, site):
    file = write(site / "demo_host" / "packs" / "greeter.py", source())
    outcome = await manager.load(PackEntry(module="demo_host.packs.greeter"))

    assert (outcome.status, outcome.key, active(manager)) == ("loaded", "demo_host.packs.greeter", "one")
    assert manager.packs()[0].source.origin == str(file)


async def test_a_path_is_a_way_to_name_a_pack(manager, tmp_path):
    file = write(tmp_path / "greeter.py", source())
    outcome = await manager.load(PackEntry(module=str(file)))

    assert (outcome.status, outcome.key, active(manager)) == ("loaded", str(file), "one")
    assert manager.packs()[0].source.origin == str(file)


async def test_an_import_name_is_a_way_to_name_a_pack(manager, site):
    write(site / "demo_package" / "__init__.py", source())
    outcome = await manager.load(PackEntry(package="demo_package"))

    assert (outcome.status, outcome.key, active(manager)) == ("loaded", "demo_package", "one")


async def test_an_identifier_is_the_key_whatever_the_way(manager, tmp_path):
    file = write(tmp_path / "greeter.py", source())
    outcome = await manager.load(PackEntry(module=str(file), identifier="mine"))

    assert (outcome.key, manager.packs()[0].source.identifier) == ("mine", "mine")


async def test_a_manifest_loads_its_packs_in_order(site, tmp_path):
    write(site / "demo_first.py", source("first", "first"))
    file = write(tmp_path / "second.py", source("second", "second"))
    manifest = {
        "packs": [
            {"package": "demo_first"},
            {"module": str(file)},
            {"factory": lambda: pack("third", descriptor("x", "third"))},
        ]
    }
    async with ExtensionManager(manifest) as manager:
        assert [record.name for record in manager.packs()] == ["first", "second", "third"]
        assert [outcome.status for outcome in manager.report.outcomes] == ["loaded"] * 3


# -- paths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["./packs/greeter.py", "packs/greeter.py", "packs/../packs/greeter.py"])
async def test_a_path_is_relative_to_the_manifest_file(tmp_path, monkeypatch, path):
    write(tmp_path / "host" / "packs" / "greeter.py", source("beside the manifest"))
    write(tmp_path / "elsewhere" / "packs" / "greeter.py", source("in the working folder"))
    manifest = write(tmp_path / "host" / "manifest.json", f'{{"packs": [{{"module": "{path}"}}]}}')
    monkeypatch.chdir(tmp_path / "elsewhere")
    async with ExtensionManager(manifest) as manager:
        assert active(manager) == "beside the manifest"


async def test_a_path_in_a_manifest_that_was_named_relatively_stays_where_it_was(tmp_path, monkeypatch):
    write(tmp_path / "host" / "greeter.py", source("beside the manifest"))
    write(tmp_path / "host" / "manifest.json", '{"packs": [{"module": "./greeter.py"}]}')
    monkeypatch.chdir(tmp_path / "host")
    manifest = ExtensionManifest.from_file("manifest.json")
    monkeypatch.chdir(tmp_path)
    async with ExtensionManager(manifest) as manager:
        assert active(manager) == "beside the manifest"


async def test_a_path_in_a_mapping_is_relative_to_the_working_folder(tmp_path, monkeypatch):
    write(tmp_path / "packs" / "greeter.py", source("in the working folder"))
    monkeypatch.chdir(tmp_path)
    async with ExtensionManager({"packs": [{"module": "./packs/greeter.py"}]}) as manager:
        assert active(manager) == "in the working folder"


async def test_a_name_that_ends_in_py_is_a_path_even_without_a_slash(manager, tmp_path, monkeypatch):
    write(tmp_path / "greeter.py", source())
    monkeypatch.chdir(tmp_path)
    await manager.load(PackEntry(module="greeter.py"))

    assert active(manager) == "one"


async def test_a_path_that_leads_nowhere_fails_and_says_what_was_expected_where(manager, tmp_path):
    outcome = await manager.load(PackEntry(module=str(tmp_path / "nowhere.py")))

    assert outcome.status == "failed"
    assert f"expected a .py file or a folder at {tmp_path / 'nowhere.py'}" in outcome.reason


async def test_a_folder_without_an_init_file_fails_and_says_so(manager, tmp_path):
    outcome = await manager.load(PackEntry(module=str(tmp_path)))

    assert outcome.status == "failed"
    assert "__init__.py" in outcome.reason


def folder_pack(folder, payload="one"):
    """Write a pack of several modules that import each other in each of the usual ways."""
    write(
        folder / "__init__.py",
        HEAD
        + """
from . import tools
from .tools import payload as first
from .deep.inner import payload as second

def create_extension_pack(context):
    from .late import payload as third
    descriptors = [Descriptor("tool", id, value) for id, value in zip("xyz", (first, second, third))]
    return ExtensionPack("p", "1.0", descriptors)
""",
    )
    write(folder / "tools.py", f"payload = {payload!r}\n")
    write(folder / "late.py", f"payload = {payload + ' late'!r}\n")
    write(folder / "deep" / "__init__.py", "")
    write(folder / "deep" / "inner.py", "from ..tools import payload as base\npayload = base + ' inner'\n")
    return folder


async def test_a_folder_is_a_pack_with_submodules_and_relative_imports(manager, tmp_path):
    outcome = await manager.load(PackEntry(module=str(folder_pack(tmp_path / "greeter"))))

    assert outcome.status == "loaded", outcome.reason
    assert [active(manager, id) for id in "xyz"] == ["one", "one inner", "one late"]


async def test_two_folders_of_one_name_are_two_packs(manager, tmp_path):
    write(tmp_path / "a" / "greeter" / "__init__.py", source("a", "a", more="from .part import part"))
    write(tmp_path / "a" / "greeter" / "part.py", "part = 'a'\n")
    write(tmp_path / "b" / "greeter" / "__init__.py", source("b", "b", more="from .part import part"))
    write(tmp_path / "b" / "greeter" / "part.py", "part = 'b'\n")
    for name in "ab":
        await manager.load(PackEntry(module=str(tmp_path / name / "greeter")))

    assert states(manager, "x") == {"a": "shadowed", "b": "active"}


async def test_a_file_named_like_a_module_of_the_standard_library_does_not_hide_it(manager, tmp_path):
    outcome = await manager.load(PackEntry(module=str(write(tmp_path / "json.py", source()))))
    import json

    assert outcome.status == "loaded"
    assert json.loads("1") == 1


async def test_the_import_path_is_as_before(manager, tmp_path):
    before = list(sys.path)
    await manager.load(PackEntry(module=str(folder_pack(tmp_path / "greeter"))))

    assert sys.path == before


# -- what a module exports -----------------------------------------------------------------------------------------


async def test_create_extension_pack_comes_before_pack(manager, tmp_path):
    text = source("from the function", more="pack = ExtensionPack('q', descriptors=[Descriptor('tool', 'x', 'value')])")
    await manager.load(PackEntry(module=str(write(tmp_path / "m.py", text))))

    assert active(manager) == "from the function"


async def test_a_module_may_export_a_pack_as_a_value(manager, tmp_path):
    text = HEAD + "pack = ExtensionPack('q', descriptors=[Descriptor('tool', 'x', 'from the value')])\n"
    await manager.load(PackEntry(module=str(write(tmp_path / "m.py", text))))

    assert active(manager) == "from the value"


@pytest.mark.parametrize("text", ["", "pack = 5\n", "create_extension_pack = None\n", "def create(): pass\n"])
async def test_a_module_that_exports_neither_fails_and_says_what_was_looked_for(manager, tmp_path, text):
    outcome = await manager.load(PackEntry(module=str(write(tmp_path / "m.py", text))))

    assert outcome.status == "failed"
    assert all(word in outcome.reason for word in ("create_extension_pack", "pack", "ExtensionPack", "m.py"))


async def test_a_misspelled_export_is_told_from_the_right_one(manager, tmp_path):
    text = source().replace("create_extension_pack", "create_extention_pack")
    outcome = await manager.load(PackEntry(module=str(write(tmp_path / "m.py", text))))

    assert "did you mean 'create_extention_pack'?" in outcome.reason


async def test_a_module_that_exports_nothing_is_forgotten(manager, tmp_path):
    before = modules_of_packs()
    await manager.load(PackEntry(module=str(write(tmp_path / "m.py", ""))))

    assert modules_of_packs() == before


# -- factories -----------------------------------------------------------------------------------------------------


def wants(context):
    return pack("p", descriptor("x", context.options["word"]))


def wants_nothing():
    return pack("p", descriptor("x", "nothing"))


def wants_by_keyword(*, context):
    return wants(context)


def wants_if_given(context=None):
    return wants(context)


def wants_anything(*args):
    return wants(*args)


def wants_anything_at_all(*args, **kwargs):
    return wants(*args, **kwargs)


async def wants_asynchronously(context):
    await asyncio.sleep(0)
    return wants(context)


async def wants_nothing_asynchronously():
    await asyncio.sleep(0)
    return wants_nothing()


def wants_after(word, context):
    return pack("p", descriptor("x", context.options[word]))


def wants_before(context, word):
    return pack("p", descriptor("x", context.options[word]))


class Maker:
    def __call__(self, context):
        return wants(context)

    def method(self, context):
        return wants(context)

    def plain(self):
        return wants_nothing()

    @classmethod
    def of_class(cls, context):
        return wants(context)

    @staticmethod
    def static(context):
        return wants(context)


class KeywordMaker:
    def __call__(self, *, context):
        return wants(context)


class PlainMaker:
    def __call__(self):
        return wants_nothing()


class MadePack(ExtensionPack):
    def __init__(self, context):
        super().__init__("p", "1.0", [descriptor("x", context.options["word"])])


class MadePackByKeyword(ExtensionPack):
    def __init__(self, *, context):
        super().__init__("p", "1.0", [descriptor("x", context.options["word"])])


class PlainPack(ExtensionPack):
    def __init__(self):
        super().__init__("p", "1.0", [descriptor("x", "nothing")])


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


WITH_CONTEXT = {
    "a parameter": wants,
    "a parameter with default": wants_if_given,
    "keyword only": wants_by_keyword,
    "any arguments": wants_anything,
    "any arguments and keywords": wants_anything_at_all,
    "a lambda": lambda context: wants(context),
    "async": wants_asynchronously,
    "a callable object": Maker(),
    "a callable object, keyword only": KeywordMaker(),
    "a bound method": Maker().method,
    "a class method": Maker.of_class,
    "a static method": Maker.static,
    "a class": MadePack,
    "a class, keyword only": MadePackByKeyword,
    "a partial by position": functools.partial(wants_after, "word"),
    "a partial by keyword": functools.partial(wants_before, word="word"),
    "a partial that leaves only a keyword": functools.partial(wants_after, word="word"),
    "a partial of async": functools.partial(wants_asynchronously),
    "a partial of keyword only": functools.partial(wants_by_keyword),
    "decorated": decorated(wants),
    "decorated, keyword only": decorated(wants_by_keyword),
}
WITHOUT_CONTEXT = {
    "no parameter": wants_nothing,
    "async": wants_nothing_asynchronously,
    "a callable object": PlainMaker(),
    "a bound method": Maker().plain,
    "a class": PlainPack,
    "a partial": functools.partial(wants_nothing),
    "decorated": decorated(wants_nothing),
    "cached": functools.cache(wants_nothing),
}


@pytest.mark.parametrize("factory", WITH_CONTEXT)
async def test_a_factory_that_takes_a_parameter_gets_the_context(manager, factory):
    outcome = await manager.load(PackEntry(factory=WITH_CONTEXT[factory], options={"word": "given"}))

    assert outcome.status == "loaded", outcome.reason
    assert active(manager) == "given"


@pytest.mark.parametrize("factory", WITHOUT_CONTEXT)
async def test_a_factory_without_a_parameter_is_called_without(manager, factory):
    outcome = await manager.load(PackEntry(factory=WITHOUT_CONTEXT[factory]))

    assert outcome.status == "loaded", outcome.reason
    assert active(manager) == "nothing"


async def test_a_factory_is_called_once(manager):
    made = []

    def create(context):
        made.append(context)
        return pack("p")

    await manager.load(PackEntry(factory=create))

    assert len(made) == 1


async def test_a_factory_knows_its_entry_and_where_it_comes_from(manager):
    seen = []

    def create(context):
        seen.append((context.manifest_entry.priority, context.source.identifier, context.source.origin))
        return pack("p")

    await manager.load(PackEntry(factory=create, priority=4, identifier="mine"))

    assert seen == [(4, "mine", "factory")]


@pytest.mark.parametrize("returned", [None, 5, "pack", [pack("p")], ExtensionPack])
async def test_a_factory_that_returns_something_else_fails_and_says_what(manager, returned):
    outcome = await manager.load(PackEntry(factory=lambda: returned))

    assert outcome.status == "failed"
    assert f"returned {type(returned).__name__}; expected an ExtensionPack" in outcome.reason


@pytest.mark.parametrize(
    "error", [Boom("why"), SystemExit("why"), asyncio.CancelledError("why"), TimeoutError("why")], ids=repr
)
def test_whatever_a_factory_raises_is_the_outcome_and_other_packs_go_on(error):
    def create():
        raise error

    async def load():
        manifest = {"packs": [{"factory": create, "identifier": "bad"}, {"factory": lambda: pack("good")}]}
        async with ExtensionManager(manifest) as manager:
            return manager.report.outcomes

    bad, good = asyncio.run(load())

    assert (bad.status, good.status) == ("failed", "loaded")
    assert type(error).__name__ in bad.reason


async def test_a_failing_outcome_is_a_pack_load_error_with_key_and_origin(manager, tmp_path):
    file = write(tmp_path / "m.py", "raise ValueError('why')\n")
    outcome = await manager.load(PackEntry(module=str(file), identifier="mine"))

    assert isinstance(outcome.error, PackLoadError)
    assert (outcome.error.key, outcome.error.origin) == ("mine", str(file))
    assert isinstance(outcome.error.__cause__, ValueError)


# -- imports that fail ---------------------------------------------------------------------------------------------

BROKEN = {
    "a syntax error": ("def broken(:\n", "SyntaxError"),
    "an error": ("raise RuntimeError('while importing')\n", "RuntimeError: while importing"),
    "an exit": ("import sys\nsys.exit('leaving')\n", "SystemExit: leaving"),
    "a missing module": ("import demo_not_installed\n", "'demo_not_installed'"),
    "a missing name": ("from json import nothing_of_that_name\n", "nothing_of_that_name"),
}


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_file_that_can_not_be_imported_fails_with_the_reason(manager, tmp_path, broken):
    text, reason = BROKEN[broken]
    outcome = await manager.load(PackEntry(module=str(write(tmp_path / "m.py", text))))

    assert outcome.status == "failed"
    assert reason in outcome.reason


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_module_that_can_not_be_imported_fails_with_the_reason(manager, site, broken):
    text, reason = BROKEN[broken]
    write(site / "demo_broken.py", text)
    outcomes = [await manager.load(PackEntry(**{way: "demo_broken"})) for way in ("module", "package")]

    assert [outcome.status for outcome in outcomes] == ["failed", "failed"]
    assert all(reason in outcome.reason for outcome in outcomes)


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_file_that_can_not_be_imported_leaves_no_module(manager, tmp_path, broken):
    before = modules_of_packs()
    folder = tmp_path / "folder"
    write(folder / "good.py", "")
    write(folder / "__init__.py", "from . import good\n" + BROKEN[broken][0])
    await manager.load(PackEntry(module=str(folder)))

    assert modules_of_packs() == before


async def test_a_missing_module_is_told_with_the_way_out(manager, tmp_path):
    outcome = await manager.load(PackEntry(module=str(write(tmp_path / "m.py", "import demo_not_installed\n"))))

    assert "Install what provides 'demo_not_installed'" in outcome.reason


async def test_a_dotted_name_that_nobody_has_is_named(manager):
    outcome = await manager.load(PackEntry(module="demo_nowhere.packs"))

    assert "'demo_nowhere'" in outcome.reason


@pytest.mark.parametrize("name", [".", "..x", ".relative", "a..b", "not a name", "é\x00"])
async def test_a_name_that_is_none_fails_like_any_other(manager, name):
    outcomes = [await manager.load(PackEntry(**{way: name})) for way in ("module", "package")]

    assert [outcome.status for outcome in outcomes] == ["failed", "failed"]


async def test_a_pack_whose_import_failed_loads_when_its_file_is_mended(manager, tmp_path):
    file = write(tmp_path / "m.py", "import demo_not_installed\n")
    await manager.load(PackEntry(module=str(file)))
    write(file, source())

    assert (await manager.load(PackEntry(module=str(file)))).status == "loaded"


# -- entry points --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        ("demo_announced", "from the module"),
        ("demo_announced:create", "from the factory"),
        ("demo_announced:ready", "from the pack"),
        ("demo_announced:space.create", "from the factory"),
        ("demo_announced.sub", "from the submodule"),
        ("demo_announced:sub", "from the submodule"),
        ("demo_announced : create", "from the factory"),
    ],
)
async def test_an_entry_point_names_a_module_a_factory_or_a_pack(manager, site, value, payload):
    write(site / "demo_announced" / "sub.py", source("from the submodule"))
    write(
        site / "demo_announced" / "__init__.py",
        source("from the module")
        + textwrap.dedent("""
            from . import sub

            def create(context):
                return ExtensionPack("p", "1.0", [Descriptor("tool", "x", "from the factory")])

            class space:
                create = create

            ready = ExtensionPack("p", "1.0", [Descriptor("tool", "x", "from the pack")])
        """),
    )
    install(site, "demo-dist", version="2.3", demo_pack=value)
    outcome = await manager.load(PackEntry(package="demo-pack"))

    assert outcome.status == "loaded", outcome.reason
    assert active(manager) == payload
    assert manager.packs()[0].source.origin == "demo-dist 2.3"


async def test_an_entry_point_that_names_something_else_fails_and_says_what(manager, site):
    write(site / "demo_announced.py", "junk = 5\n")
    install(site, "demo-dist", demo_pack="demo_announced:junk")
    outcome = await manager.load(PackEntry(package="demo-pack"))

    assert outcome.status == "failed"
    assert "'demo_announced:junk' names a int" in outcome.reason
    assert "expected a module, a factory or an ExtensionPack" in outcome.reason


async def test_an_entry_point_that_names_nothing_fails_and_says_what_is_missing(manager, site):
    write(site / "demo_announced.py", "")
    install(site, "demo-dist", demo_pack="demo_announced:missing")
    outcome = await manager.load(PackEntry(package="demo-pack"))

    assert outcome.status == "failed"
    assert "missing" in outcome.reason


async def test_an_entry_point_whose_module_exports_no_pack_fails_and_names_the_distribution(manager, site):
    write(site / "demo_announced.py", "")
    install(site, "demo-dist", version="2.3", demo_pack="demo_announced")
    outcome = await manager.load(PackEntry(package="demo-pack"))

    assert outcome.status == "failed"
    assert "create_extension_pack" in outcome.reason
    assert "demo-dist 2.3" in outcome.reason


async def test_an_entry_point_wins_over_an_importable_module_of_that_name(manager, site):
    write(site / "demo_both.py", source("importable"))
    write(site / "demo_announced.py", source("announced"))
    info = site / "demo_dist-1.0.dist-info"
    write(info / "METADATA", "Metadata-Version: 2.1\nName: demo-dist\nVersion: 1.0\n")
    write(info / "entry_points.txt", "[agentos.packs]\ndemo_both = demo_announced\n")
    await manager.load(PackEntry(package="demo_both"))

    assert active(manager) == "announced"


async def test_a_module_by_name_is_not_looked_up_among_entry_points(manager, site):
    write(site / "demo_announced.py", source())
    install(site, "demo-dist", demo_pack="demo_announced")
    outcome = await manager.load(PackEntry(module="demo-pack"))

    assert outcome.status == "failed"


async def test_a_name_that_two_distributions_announce_is_refused_and_both_are_named(manager, site):
    write(site / "demo_announced.py", source())
    install(site, "demo-one", version="1.0", demo_pack="demo_announced")
    install(site, "demo-two", version="2.0", demo_pack="demo_announced")
    outcome = await manager.load(PackEntry(package="demo-pack"))

    assert outcome.status == "failed"
    assert "demo-one 1.0" in outcome.reason
    assert "demo-two 2.0" in outcome.reason


async def test_an_unknown_package_is_told_the_nearest_announced_name(manager, site):
    install(site, "demo-dist", demo_search="demo_announced", demo_other="demo_announced")
    outcome = await manager.load(PackEntry(package="demo-serach"))

    assert outcome.status == "failed"
    assert "did you mean 'demo-search'?" in outcome.reason
    assert "agentos.packs" in outcome.reason


async def test_a_package_that_is_installed_while_the_host_runs_is_found(manager, site):
    assert (await manager.load(PackEntry(package="demo-pack"))).status == "failed"
    write(site / "demo_announced.py", source())
    install(site, "demo-dist", demo_pack="demo_announced")

    assert (await manager.load(PackEntry(package="demo-pack"))).status == "loaded"


async def test_looking_for_a_package_imports_no_other_announced_one(manager, site):
    write(site / "demo_announced.py", source())
    write(site / "demo_bystander.py", source())
    install(site, "demo-dist", demo_pack="demo_announced", demo_other="demo_bystander")
    await manager.load(PackEntry(package="demo-pack"))

    assert "demo_announced" in sys.modules
    assert "demo_bystander" not in sys.modules


# -- reloading -----------------------------------------------------------------------------------------------------


def entry_for(way, site):
    """Return an entry that names the pack in site/demo_reloaded, and the folder it is in."""
    folder = site / "demo_reloaded"
    if way == "path":
        return PackEntry(module=str(folder), identifier="mine"), folder
    if way == "entry point":
        install(site, "demo-dist", demo_pack="demo_reloaded")
        return PackEntry(package="demo-pack", identifier="mine"), folder
    return PackEntry(**{way: "demo_reloaded"}, identifier="mine"), folder


WAYS = ["path", "module", "package", "entry point"]


@pytest.mark.parametrize("way", WAYS)
async def test_reloading_makes_every_module_anew_even_within_a_second_and_of_one_size(manager, site, way):
    entry, folder = entry_for(way, site)
    await manager.load_pack(pack("other"))
    folder_pack(folder, "one")
    await manager.load(entry)
    for file in ("tools.py", "late.py", "deep/inner.py"):
        rewrite(folder / file, (folder / file).read_text().replace("one", "two"))
    outcome = await manager.reload("mine")

    assert outcome.status == "loaded", outcome.reason
    assert [active(manager, id) for id in "xyz"] == ["two", "two inner", "two late"]


@pytest.fixture
def hooked():
    """Let every module be found by a loader of another class, as the import hooks of some libraries do."""

    class OtherLoader(SourceFileLoader):
        pass

    hook = FileFinder.path_hook((OtherLoader, [".py"]))
    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
    yield
    sys.path_hooks.remove(hook)
    sys.path_importer_cache.clear()


@pytest.mark.usefixtures("hooked")
@pytest.mark.parametrize("way", WAYS)
async def test_reloading_makes_every_module_anew_whatever_loads_it(manager, site, way):
    entry, folder = entry_for(way, site)
    folder_pack(folder, "one")
    await manager.load(entry)
    for file in ("tools.py", "late.py", "deep/inner.py"):
        rewrite(folder / file, (folder / file).read_text().replace("one", "two"))
    await manager.reload("mine")

    assert [active(manager, id) for id in "xyz"] == ["two", "two inner", "two late"]


@pytest.mark.parametrize("way", WAYS)
async def test_reloading_twice_gives_what_is_there_the_second_time(manager, site, way):
    entry, folder = entry_for(way, site)
    folder_pack(folder, "one")
    await manager.load(entry)
    for word in ("two", "six"):
        rewrite(folder / "tools.py", f"payload = {word!r}\n")
        await manager.reload("mine")

    assert active(manager) == "six"


@pytest.mark.parametrize("way", ["module", "package", "entry point"])
async def test_reloading_replaces_the_module_objects_submodules_too(manager, site, way):
    entry, folder = entry_for(way, site)
    folder_pack(folder)
    await manager.load(entry)
    names = [f"demo_reloaded{part}" for part in ("", ".tools", ".deep", ".deep.inner", ".late")]
    before = [sys.modules[name] for name in names]
    await manager.reload("mine")

    assert all(sys.modules[name] is not old for name, old in zip(names, before, strict=True))


@pytest.mark.parametrize("way", WAYS)
async def test_reloading_sees_a_submodule_that_was_added(manager, site, way):
    entry, folder = entry_for(way, site)
    write(folder / "__init__.py", source("one"))
    await manager.load(entry)
    write(folder / "added.py", "payload = 'added'\n")
    write(folder / "__init__.py", source("one", more="from .added import payload").replace("'one'", "payload"))
    outcome = await manager.reload("mine")

    assert outcome.status == "loaded", outcome.reason
    assert active(manager) == "added"


async def test_reloading_a_factory_calls_it_again(manager):
    words = iter(["one", "two"])
    await manager.load(PackEntry(factory=lambda: pack("p", descriptor("x", next(words)))))
    await manager.reload("p")

    assert active(manager) == "two"


async def test_reloading_activates_the_new_before_the_old_goes(manager):
    log = []
    names = iter(["old", "new"])

    def create():
        name = next(names)
        return pack("p", descriptor("x", name, log=log))

    await manager.load(PackEntry(factory=create))
    await manager.reload("p")

    assert log == [("+", "old"), ("+", "new"), ("-", "old")]


async def test_reloading_keeps_the_packs_place_in_every_tie(manager):
    await manager.load_pack(pack("before", descriptor("x", "before")))
    await manager.load(PackEntry(factory=lambda: pack("p", descriptor("x", "p"))))
    await manager.load_pack(pack("after", descriptor("x", "after")))
    await manager.reload("p")
    order = [entry.source.pack for entry in manager.registry("tool").stack("x")]

    assert order == ["after", "p", "before"]


async def test_reloading_by_the_packs_name_works_too(manager):
    await manager.load(PackEntry(factory=lambda: pack("p"), identifier="mine"))

    assert (await manager.reload("p")).key == "mine"


async def test_a_reloaded_pack_may_offer_something_else(manager):
    ids = iter(["x", "y"])
    await manager.load(PackEntry(factory=lambda: pack("p", descriptor(next(ids)))))
    await manager.reload("p")

    assert (active(manager, "x"), active(manager, "y")) == (None, "y")


async def test_the_modules_of_a_reloaded_file_are_not_kept_twice(manager, tmp_path):
    folder = folder_pack(tmp_path / "greeter")
    await manager.load(PackEntry(module=str(folder), identifier="mine"))
    count = len(modules_of_packs())
    await manager.reload("mine")

    assert len(modules_of_packs()) == count


FAILURES = {
    "a syntax error": "def broken(:\n",
    "an exit at import": "from . import tools\nraise SystemExit(1)\n",
    "a factory that raises": "from . import tools\ndef create_extension_pack(context):\n    raise RuntimeError('no')\n",
    "a factory that returns nothing": "def create_extension_pack(context):\n    pass\n",
    "a hook that raises": HEAD
    + """
from . import tools

def create_extension_pack(context):
    def hook(context):
        raise RuntimeError("no")
    return ExtensionPack("p", "1.0", [Descriptor("tool", "x", "new", on_activate=hook)])
""",
    "a pack hook that raises": HEAD
    + """
def create_extension_pack(context):
    def hook(context):
        raise RuntimeError("no")
    return ExtensionPack("p", "1.0", [Descriptor("tool", "x", "new")], on_activate=hook)
""",
    "nothing exported": "from . import tools\n",
    "a name that is taken": HEAD + "pack = ExtensionPack('other')\n",
    "a secret that is not declared": HEAD
    + """
def create_extension_pack(context):
    context.secret("some.key")
    return ExtensionPack("p")
""",
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("way", WAYS)
async def test_a_failed_reload_leaves_the_old_pack_running(manager, site, way, failure):
    log = []
    await manager.load_pack(pack("other", log=log))
    entry, folder = entry_for(way, site)
    folder_pack(folder)
    await manager.load(entry)
    write(folder / "__init__.py", FAILURES[failure])
    outcome = await manager.reload("mine")

    assert outcome.status == "failed"
    assert [active(manager, id) for id in "xyz"] == ["one", "one inner", "one late"]
    assert [record.key for record in manager.packs()] == ["other", "mine"]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("way", WAYS)
async def test_a_failed_reload_leaves_the_modules_as_they_were(manager, site, way, failure):
    await manager.load_pack(pack("other"))
    entry, folder = entry_for(way, site)
    folder_pack(folder)
    await manager.load(entry)
    write(folder / "__init__.py", FAILURES[failure])
    before = {name: module for name, module in sys.modules.items() if name.startswith(("demo", "_agentos_pack_"))}
    await manager.reload("mine")
    after = {name: module for name, module in sys.modules.items() if name.startswith(("demo", "_agentos_pack_"))}

    assert after == before


@pytest.mark.parametrize("text", ["", "create = 5\n", "def create():\n    raise RuntimeError\n"])
async def test_a_failed_reload_of_an_announced_factory_leaves_the_modules_as_they_were(manager, site, text):
    file = write(site / "demo_announced.py", source().replace("create_extension_pack", "create"))
    install(site, "demo-dist", demo_pack="demo_announced:create")
    await manager.load(PackEntry(package="demo-pack"))
    old = sys.modules["demo_announced"]
    write(file, text)
    outcome = await manager.reload("demo-pack")

    assert outcome.status == "failed"
    assert sys.modules["demo_announced"] is old


async def test_a_failed_reload_leaves_the_submodule_that_a_parent_package_knows(manager, site):
    write(site / "demo_parent" / "__init__.py", "")
    file = write(site / "demo_parent" / "child.py", source())
    await manager.load(PackEntry(module="demo_parent.child"))
    old = sys.modules["demo_parent.child"]
    write(file, "raise RuntimeError\n")
    await manager.reload("demo_parent.child")

    assert sys.modules["demo_parent"].child is old


async def test_a_failed_reload_runs_no_hook_of_the_old_pack(manager):
    log = []
    broken = []

    def create():
        if broken:
            raise Boom
        return pack("p", descriptor("x", "x", log=log), log=log)

    await manager.load(PackEntry(factory=create))
    log.clear()
    broken.append(True)
    await manager.reload("p")

    assert log == []


async def test_a_failed_reload_undoes_what_the_new_pack_began(manager):
    log = []
    broken = []

    def create():
        who = "new" if broken else "old"
        bad = descriptor("y", f"{who} y", log=log, bad_on="yes" if broken else "")
        return pack("p", descriptor("x", f"{who} x", log=log), bad, on_activate=lambda c: log.append(who))

    await manager.load(PackEntry(factory=create))
    log.clear()
    broken.append(True)
    await manager.reload("p")

    assert log == ["new", ("+", "new x"), ("+", "new y"), ("-", "new x")]


async def test_after_a_failed_reload_the_mended_pack_can_be_reloaded(manager, site):
    entry, folder = entry_for("module", site)
    folder_pack(folder)
    await manager.load(entry)
    good = (folder / "__init__.py").read_text()
    write(folder / "__init__.py", "def broken(:\n")
    await manager.reload("mine")
    write(folder / "__init__.py", good)
    rewrite(folder / "tools.py", "payload = 'two'\n")

    assert (await manager.reload("mine")).status == "loaded"
    assert active(manager) == "two"


async def test_a_failed_reload_of_a_required_pack_is_raised(manager):
    broken = []

    def create():
        if broken:
            raise Boom
        return pack("p", descriptor("x"))

    await manager.load(PackEntry(factory=create, required=True))
    broken.append(True)
    with pytest.raises(PackLoadError, match="Boom"):
        await manager.reload("p")

    assert active(manager) == "x"


async def test_a_pack_given_as_an_object_can_not_be_reloaded(manager):
    await manager.load_pack(pack("p", descriptor("x")))
    with pytest.raises(PackLoadError, match="no source to reload"):
        await manager.reload("p")

    assert active(manager) == "x"


async def test_a_pack_object_in_a_manifest_can_not_be_reloaded(manager):
    await manager.load(PackEntry(factory=pack("p", descriptor("x"))))
    with pytest.raises(PackLoadError, match="no source to reload"):
        await manager.reload("p")


# -- unloading -----------------------------------------------------------------------------------------------------


async def test_unloading_forgets_the_modules_of_a_file(manager, tmp_path):
    before = modules_of_packs()
    await manager.load(PackEntry(module=str(folder_pack(tmp_path / "greeter")), identifier="mine"))
    assert modules_of_packs() != before
    await manager.unload("mine")

    assert modules_of_packs() == before


async def test_shutdown_forgets_the_modules_of_a_file(tmp_path):
    before = modules_of_packs()
    async with ExtensionManager({"packs": [{"module": str(folder_pack(tmp_path / "greeter"))}]}):
        pass

    assert modules_of_packs() == before


async def test_a_file_that_is_loaded_again_after_unloading_is_read_again(manager, tmp_path):
    file = write(tmp_path / "m.py", source("one"))
    await manager.load(PackEntry(module=str(file)))
    await manager.unload(str(file))
    rewrite(file, source("two"))
    await manager.load(PackEntry(module=str(file)))

    assert active(manager) == "two"


async def test_a_pack_that_fails_in_a_hook_is_forgotten_with_its_modules(manager, tmp_path):
    before = modules_of_packs()
    folder = folder_pack(tmp_path / "greeter")
    write(folder / "__init__.py", FAILURES["a hook that raises"])
    await manager.load(PackEntry(module=str(folder)))

    assert modules_of_packs() == before


# -- versions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "has"), [(">=1.2,<2", "1.4"), ("~=1.4", "1.9.1"), ("==2.0.*", "2.0.7"), (">=1", "1.5.dev3"), ("", "1")]
)
async def test_a_pack_whose_version_fits_is_loaded(manager, asked, has):
    outcome = await manager.load(PackEntry(factory=lambda: pack("p", version=has), version=asked))

    assert outcome.status == "loaded", outcome.reason


@pytest.mark.parametrize(
    ("asked", "has"), [(">=1.2,<2", "2.0"), ("~=1.4", "2.0"), ("==2.0.*", "2.1"), (">=1", "not a version")]
)
async def test_a_pack_whose_version_does_not_fit_fails_and_both_versions_are_told(manager, asked, has):
    log = []
    outcome = await manager.load(PackEntry(factory=lambda: pack("p", version=has, log=log), version=asked))

    assert (outcome.status, log) == ("failed", [])
    assert asked in outcome.reason
    assert has in outcome.reason


async def test_a_pack_without_a_version_fits_no_specifier(manager):
    outcome = await manager.load(PackEntry(factory=lambda: ExtensionPack("p"), version=">=1"))

    assert outcome.status == "failed"
    assert "the pack has none" in outcome.reason


async def test_a_pack_that_needs_another_agentos_fails_and_both_versions_are_told(manager):
    log = []
    outcome = await manager.load(PackEntry(factory=lambda: pack("p", requires_agentos=">=99", log=log)))

    assert (outcome.status, log) == ("failed", [])
    assert ">=99" in outcome.reason
    assert agentos.__version__ in outcome.reason


async def test_a_pack_that_needs_this_agentos_is_loaded(manager):
    wanted = f">={agentos.__version__}"

    assert (await manager.load(PackEntry(factory=lambda: pack("p", requires_agentos=wanted)))).status == "loaded"


@pytest.mark.parametrize("wanted", ["latest", "1.0", 5])
async def test_a_requirement_that_is_no_specifier_fails_the_pack(manager, wanted):
    outcome = await manager.load(PackEntry(factory=lambda: pack("p", requires_agentos=wanted)))

    assert outcome.status == "failed"
    assert "version specifier" in outcome.reason


async def test_versions_count_for_a_pack_given_as_an_object(manager):
    outcome = await manager.load_pack(pack("p", requires_agentos=">=99"))

    assert outcome.status == "failed"


# -- required and strict -------------------------------------------------------------------------------------------


def fails():
    raise Boom("no")


def manifest_with(*entries, log):
    """Return a manifest of good packs a and b around *entries*."""
    return {
        "packs": [
            {"factory": lambda: pack("a", descriptor("a", log=log), log=log)},
            *entries,
            {"factory": lambda: pack("b", descriptor("b", log=log), log=log)},
        ]
    }


async def test_a_failing_pack_is_an_outcome_and_the_others_go_on():
    manager = ExtensionManager(manifest_with({"factory": fails, "identifier": "bad"}, log=[]))
    report = await manager.load_manifest()

    assert [(outcome.key, outcome.status) for outcome in report.outcomes] == [
        ("a", "loaded"),
        ("bad", "failed"),
        ("b", "loaded"),
    ]
    await manager.shutdown()


@pytest.mark.parametrize(("required", "strict"), [(True, False), (False, True), (True, True)])
async def test_a_required_pack_or_strict_loading_raises_a_group_of_pack_load_errors(required, strict):
    bad = [{"factory": fails, "identifier": name, "required": required} for name in ("bad", "worse")]
    manager = ExtensionManager(manifest_with(*bad, log=[]))
    with pytest.raises(ExceptionGroup) as caught:
        await manager.load_manifest(strict=strict)
    await manager.shutdown()

    assert [type(error) for error in caught.value.exceptions] == [PackLoadError, PackLoadError]
    assert [error.key for error in caught.value.exceptions] == ["bad", "worse"]


async def test_a_group_holds_the_errors_of_required_packs_only():
    bad = [{"factory": fails, "identifier": name, "required": name == "bad"} for name in ("bad", "optional")]
    manager = ExtensionManager(manifest_with(*bad, log=[]))
    with pytest.raises(ExceptionGroup) as caught:
        await manager.load_manifest()
    await manager.shutdown()

    assert [error.key for error in caught.value.exceptions] == ["bad"]


async def test_a_required_pack_that_fails_unloads_in_reverse_what_was_loaded():
    log = []
    manager = ExtensionManager(manifest_with({"factory": fails, "required": True}, log=log))
    with pytest.raises(ExceptionGroup):
        await manager.load_manifest()

    assert [line for line in log if line[0] == "-"] == [("-", "b"), ("-", "pack b"), ("-", "a"), ("-", "pack a")]
    assert manager.packs() == []
    await manager.shutdown()


async def test_a_required_pack_that_fails_leaves_what_was_loaded_before():
    log = []
    manager = ExtensionManager(manifest_with({"factory": fails, "required": True}, log=log))
    await manager.load_pack(pack("earlier", descriptor("x")))
    with pytest.raises(ExceptionGroup):
        await manager.load_manifest()

    assert [record.name for record in manager.packs()] == ["earlier"]
    await manager.shutdown()


async def test_entering_a_manager_whose_required_pack_fails_raises_and_shuts_it_down():
    log = []
    manager = ExtensionManager(manifest_with({"factory": fails, "required": True}, log=log))
    with pytest.raises(ExceptionGroup):
        async with manager:
            pass

    assert log.count(("-", "pack a")) == log.count(("+", "pack a")) == 1


async def test_a_required_pack_that_is_disabled_is_skipped():
    manager = ExtensionManager({"packs": [{"factory": fails, "required": True, "enabled": False}]})
    report = await manager.load_manifest(strict=True)

    assert [(outcome.status, outcome.reason) for outcome in report.outcomes] == [("skipped", "disabled")]
    await manager.shutdown()


async def test_loading_one_required_pack_that_fails_raises(manager):
    with pytest.raises(PackLoadError, match="Boom: no"):
        await manager.load(PackEntry(factory=fails, required=True))


async def test_a_report_can_raise_its_failures_later():
    async with ExtensionManager({"packs": [{"factory": fails}]}) as manager:
        with pytest.raises(ExceptionGroup) as caught:
            manager.report.raise_on_failure()

    assert [type(error) for error in caught.value.exceptions] == [PackLoadError]


async def test_a_report_without_failures_raises_nothing():
    async with ExtensionManager({"packs": [{"factory": lambda: pack("p")}]}) as manager:
        manager.report.raise_on_failure()

        assert (len(manager.report.loaded), manager.report.failed, manager.report.skipped) == (1, [], [])


async def test_loading_a_manifest_again_loads_only_what_is_not_loaded():
    broken = [True]

    def create():
        if broken:
            raise Boom
        return pack("late")

    async with ExtensionManager({"packs": [{"factory": lambda: pack("p")}, {"factory": create}]}) as manager:
        broken.clear()
        report = await manager.load_manifest()

        assert [(one.status, one.reason) for one in report.outcomes] == [
            ("skipped", "already_loaded"),
            ("loaded", None),
        ]


# -- names and places ----------------------------------------------------------------------------------------------


async def test_two_files_whose_packs_have_one_name_are_refused_and_both_are_named(manager, tmp_path):
    files = [write(tmp_path / name / "m.py", source()) for name in ("one", "two")]
    outcomes = [await manager.load(PackEntry(module=str(file))) for file in files]

    assert [outcome.status for outcome in outcomes] == ["loaded", "failed"]
    assert all(str(file) in outcomes[1].reason for file in files)


async def test_two_factories_whose_packs_have_one_name_are_refused(manager):
    outcomes = [await manager.load(PackEntry(factory=factory)) for factory in (lambda: pack("p"), lambda: pack("p"))]

    assert [outcome.status for outcome in outcomes] == ["loaded", "failed"]
    assert "the name 'p' is taken" in outcomes[1].reason


async def test_a_name_is_free_again_after_unloading(manager, tmp_path):
    files = [write(tmp_path / name / "m.py", source(name)) for name in ("one", "two")]
    await manager.load(PackEntry(module=str(files[0])))
    await manager.unload("p")

    assert (await manager.load(PackEntry(module=str(files[1])))).status == "loaded"


async def test_isolation_in_a_process_is_refused_clearly_and_nothing_is_imported(manager, tmp_path):
    file = write(tmp_path / "m.py", "raise RuntimeError('imported')\n")
    outcome = await manager.load(PackEntry(module=str(file), isolation="process"))

    assert outcome.status == "failed"
    assert "isolation 'process'" in outcome.reason
    assert "imported" not in outcome.reason


async def test_a_failing_load_is_told_once(manager, tmp_path):
    recorder = Recorder()
    manager.on(recorder)
    await manager.load(PackEntry(module=str(tmp_path / "nowhere.py")))

    assert recorder.types == ["pack:failed"]
