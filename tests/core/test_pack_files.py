"""Which files make up a pack: found on disk, and nothing of the pack is run to find them."""

import builtins
import functools
import hashlib
import importlib.abc
import importlib.util
import os
import subprocess
import sys
import textwrap
import types
import zipfile
from pathlib import Path

import pytest
from kit import pack

from agentos import ExtensionManager, ExtensionPack, PackEntry, PackLoadError
from agentos.loading import pack_files as subject
from agentos.loading.pack_files import PackFiles, files_of, hash_files

pytestmark = pytest.mark.anyio

GOOD = "from agentos import ExtensionPack\npack = ExtensionPack('p', '1.0')\n"


def write(file, text=""):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))
    return file


def names(entry):
    return list(files_of(entry).files)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder that modules are imported from."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def trap(tmp_path):
    """The text of a module that leaves a mark when it is run, and then raises; afterwards there is no mark."""
    mark = tmp_path / "it was run"
    before = set(sys.modules)
    yield f"open({str(mark)!r}, 'w').close()\nraise RuntimeError('it was run')\n"
    assert not mark.exists()
    assert [name for name in set(sys.modules) - before if name.startswith("demo")] == []


def install(site, name, *record, version="1.0", **entry_points):
    """Make it look as if a distribution were installed that lists *record* and announces *entry_points*."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "".join(f"{point.replace('_', '-')} = {value}\n" for point, value in entry_points.items())
    write(info / "entry_points.txt", f"[agentos.packs]\n{lines}")
    if record:
        listed = [*record, f"{info.name}/METADATA", f"{info.name}/entry_points.txt", f"{info.name}/RECORD"]
        write(info / "RECORD", "".join(f"{line},,\n" for line in listed))
    return info


# -- factories -----------------------------------------------------------------------------------------------------


def make():
    return pack("p")


class Maker:
    def __call__(self):
        return pack("p")

    def method(self):
        return pack("p")


@functools.wraps(make)
def wrapped(*args):
    return make(*args)


FACTORIES = {
    "a function": make,
    "a lambda": lambda: pack("p"),
    "a method": Maker().method,
    "a class": Maker,
    "a callable object": Maker(),
    "a partial of a partial": functools.partial(functools.partial(make)),
    "a decorated function": wrapped,
    "a function that another file wraps": functools.lru_cache(make),
}


@pytest.mark.parametrize("factory", FACTORIES.values(), ids=FACTORIES)
def test_the_file_of_a_factory_is_the_one_it_was_written_in(factory):
    found = files_of(PackEntry(factory=factory))

    assert (found.origin, found.version, found.files) == ("factory", None, {Path(__file__).name: Path(__file__)})


def typed_in():
    scope = {"__name__": "typed_in"}
    exec(compile("def factory(): ...\nclass Made: ...", "<stdin>", "exec"), scope)
    return scope


class Endless:
    """Says that it wraps something, whatever one asks."""

    def __call__(self):
        return pack("p")

    @property
    def __wrapped__(self):
        return Endless()


NOT_ON_DISK = {
    "a pack": ExtensionPack("p"),
    "a function typed in": typed_in()["factory"],
    "a class typed in": typed_in()["Made"],
    "a built-in": builtins.dict,
    "a built-in method": "".join,
    "what wraps without end": Endless(),
}


@pytest.mark.parametrize("factory", NOT_ON_DISK.values(), ids=NOT_ON_DISK)
def test_a_factory_without_a_file_has_nothing_to_find(factory):
    assert files_of(PackEntry(factory=factory)) is None


# -- paths ---------------------------------------------------------------------------------------------------------


def test_a_file_is_itself(tmp_path, trap):
    file = write(tmp_path / "greeter.py", trap)
    found = files_of(PackEntry(module=str(file)))

    assert (found.origin, found.version, found.files) == (str(file), None, {"greeter.py": file})


def test_a_folder_is_every_file_in_it_under_a_name_that_begins_within(tmp_path, trap):
    inside = ["__init__.py", "data/words.txt", "deep/__init__.py", "deep/er/inner.py", "tools.py"]
    for name in inside:
        write(tmp_path / "greeter" / name, trap)
    found = files_of(PackEntry(module=str(tmp_path / "greeter")))

    assert found.origin == str(tmp_path / "greeter" / "__init__.py")
    assert found.files == {name: tmp_path / "greeter" / name for name in inside}


def test_the_names_are_sorted(tmp_path):
    for name in ("b.py", "__init__.py", "a/x.py", "c/y.py", "a.py"):
        write(tmp_path / name)

    assert names(PackEntry(module=str(tmp_path))) == ["__init__.py", "a.py", "a/x.py", "b.py", "c/y.py"]


@pytest.mark.parametrize(
    "noise",
    ["__pycache__/tools.cpython-311.pyc", "deep/__pycache__/x.txt", "old.pyc", ".env", ".git/config", "deep/.x/y.py"],
)
def test_bytecode_and_hidden_files_are_no_part_of_a_folder(tmp_path, noise):
    write(tmp_path / "__init__.py")
    write(tmp_path / noise)

    assert names(PackEntry(module=str(tmp_path))) == ["__init__.py"]


def test_a_path_is_relative_to_the_manifest(tmp_path, monkeypatch):
    file = write(tmp_path / "host" / "packs" / "greeter.py")
    monkeypatch.chdir(tmp_path)
    found = files_of(PackEntry(module="./packs/../packs/greeter.py", base_path=tmp_path / "host"))

    assert found.files == {"greeter.py": file}


def test_a_path_without_a_manifest_file_is_relative_to_the_working_folder(tmp_path, monkeypatch):
    file = write(tmp_path / "greeter.py")
    monkeypatch.chdir(tmp_path)

    assert files_of(PackEntry(module="greeter.py")).files == {"greeter.py": file}


def test_a_path_that_leads_nowhere_is_an_error_that_names_it(tmp_path):
    with pytest.raises(PackLoadError, match=r"expected a \.py file or a folder at .*nowhere\.py") as caught:
        files_of(PackEntry(module=str(tmp_path / "nowhere.py"), identifier="mine"))

    assert caught.value.key == "mine"


def test_a_folder_without_an_init_file_is_an_error_that_says_so(tmp_path):
    with pytest.raises(PackLoadError, match=r"expected a folder with an __init__.py at"):
        files_of(PackEntry(module=str(tmp_path)))


def test_a_folder_that_can_not_be_listed_is_an_error_that_names_it(tmp_path, monkeypatch):
    def refuse(folder):
        raise PermissionError(13, "Permission denied")

    write(tmp_path / "__init__.py")
    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PackLoadError, match=rf"folder '{tmp_path}' can't be listed: Permission denied"):
        files_of(PackEntry(module=str(tmp_path)))


@pytest.mark.parametrize("name", ["link.py", "deep/link.py"])
@pytest.mark.parametrize("target", ["outside.py", "nowhere.py"])
def test_a_link_that_leaves_the_folder_is_refused_and_named(tmp_path, name, target):
    write(tmp_path / "outside.py")
    link = write(tmp_path / "greeter" / "__init__.py").parent / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / target)
    with pytest.raises(PackLoadError, match=rf"'{name}' is a symbolic link that leaves the pack"):
        files_of(PackEntry(module=str(tmp_path / "greeter")))


def test_a_link_that_stays_in_the_folder_is_a_file(tmp_path):
    write(tmp_path / "__init__.py", "x = 1\n")
    (tmp_path / "link.py").symlink_to("__init__.py")
    hashes = hash_files(files_of(PackEntry(module=str(tmp_path))))

    assert hashes["link.py"] == hashes["__init__.py"]


@pytest.mark.parametrize("target", [".", "..", "deep"])
def test_a_link_to_a_folder_is_refused_wherever_it_leads(tmp_path, target):
    write(tmp_path / "greeter" / "__init__.py")
    write(tmp_path / "greeter" / "deep" / "x.py")
    (tmp_path / "greeter" / "link").symlink_to(target)
    with pytest.raises(PackLoadError, match="'link' is a symbolic link to a folder"):
        files_of(PackEntry(module=str(tmp_path / "greeter")))


def test_a_link_to_nothing_in_the_folder_is_no_file(tmp_path):
    write(tmp_path / "__init__.py")
    (tmp_path / "link.py").symlink_to("nothing.py")

    assert names(PackEntry(module=str(tmp_path))) == ["__init__.py"]


def test_a_folder_may_be_named_by_a_link(tmp_path):
    write(tmp_path / "real" / "__init__.py")
    (tmp_path / "real" / "again.py").symlink_to("__init__.py")
    (tmp_path / "link").symlink_to("real")

    assert names(PackEntry(module=str(tmp_path / "link"))) == ["__init__.py", "again.py"]


def test_a_pipe_is_no_file(tmp_path):
    write(tmp_path / "__init__.py")
    os.mkfifo(tmp_path / "pipe.py")

    assert names(PackEntry(module=str(tmp_path))) == ["__init__.py"]


def test_a_folder_may_have_as_many_files_as_the_limit_says_and_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(subject, "FILE_LIMIT", 3)
    entry = PackEntry(module=str(tmp_path), identifier="mine")
    for name in ("__init__.py", "a.py", "deep/b.py"):
        write(tmp_path / name)

    assert len(names(entry)) == 3
    write(tmp_path / "deep" / "c.py")
    with pytest.raises(PackLoadError, match=r"pack 'mine': it has more than 3 files"):
        files_of(entry)


def test_a_folder_of_nothing_but_folders_is_bounded_too(tmp_path, monkeypatch):
    monkeypatch.setattr(subject, "FILE_LIMIT", 3)
    write(tmp_path / "__init__.py")
    (tmp_path / "a" / "b" / "c" / "d").mkdir(parents=True)
    with pytest.raises(PackLoadError, match="more than 3 files"):
        files_of(PackEntry(module=str(tmp_path)))


# -- modules by name -----------------------------------------------------------------------------------------------


def test_a_module_is_its_file_under_the_name_it_is_imported_by(site, trap):
    file = write(site / "demo_greeter.py", trap)
    found = files_of(PackEntry(module="demo_greeter"))

    assert (found.origin, found.version, found.files) == (str(file), None, {"demo_greeter.py": file})


def test_a_package_is_every_file_in_it(site, trap):
    for name in ("__init__.py", "tools.py", "deep/words.txt", "__pycache__/x.pyc"):
        write(site / "demo_greeter" / name, trap)

    assert names(PackEntry(module="demo_greeter")) == [
        *("demo_greeter/__init__.py", "demo_greeter/deep/words.txt", "demo_greeter/tools.py")
    ]


def test_the_packages_around_a_module_belong_to_it_since_importing_it_runs_them(site, trap):
    for name in ("__init__.py", "other.py", "packs/__init__.py", "packs/greeter.py", "packs/other.py"):
        write(site / "demo_host" / name, trap)

    assert names(PackEntry(module="demo_host.packs.greeter")) == [
        *("demo_host/__init__.py", "demo_host/packs/__init__.py", "demo_host/packs/greeter.py")
    ]


def test_a_package_in_a_package_is_its_own_folder_and_what_is_around_it(site, trap):
    for name in ("__init__.py", "other.py", "greeter/__init__.py", "greeter/tools.py"):
        write(site / "demo_host" / name, trap)

    assert names(PackEntry(module="demo_host.greeter")) == [
        *("demo_host/__init__.py", "demo_host/greeter/__init__.py", "demo_host/greeter/tools.py")
    ]


def test_a_module_is_found_in_nested_packages_without_init_files(site, trap):
    file = write(site / "demo_host" / "packs" / "greeter.py", trap)

    assert files_of(PackEntry(module="demo_host.packs.greeter")).files == {"demo_host/packs/greeter.py": file}


def test_packages_without_init_files_are_looked_through_in_every_folder_of_the_path(site, tmp_path, monkeypatch, trap):
    monkeypatch.syspath_prepend(str(tmp_path / "second"))
    write(tmp_path / "second" / "demo_host" / "packs" / "other.py", trap)
    file = write(site / "demo_host" / "packs" / "greeter.py", trap)

    assert files_of(PackEntry(module="demo_host.packs.greeter")).files == {"demo_host/packs/greeter.py": file}


def test_a_package_with_an_init_file_wins_over_one_without_that_comes_first(site, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path / "second"))
    write(tmp_path / "second" / "demo_host" / "greeter.py")
    write(site / "demo_host" / "__init__.py")
    file = write(site / "demo_host" / "greeter.py")

    assert files_of(PackEntry(module="demo_host.greeter")).files["demo_host/greeter.py"] == file


def test_the_folder_that_comes_first_on_the_path_wins(site, tmp_path, monkeypatch):
    write(site / "demo_greeter.py")
    monkeypatch.syspath_prepend(str(tmp_path / "first"))
    file = write(tmp_path / "first" / "demo_greeter.py")

    assert files_of(PackEntry(module="demo_greeter")).files == {"demo_greeter.py": file}


def test_an_empty_text_on_the_path_is_the_working_folder(tmp_path, monkeypatch):
    file = write(tmp_path / "demo_greeter.py")
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.chdir(tmp_path)

    assert files_of(PackEntry(module="demo_greeter")).files == {"demo_greeter.py": file}


def test_what_an_import_passes_over_on_the_path_is_passed_over(site, tmp_path, monkeypatch):
    write(tmp_path / "other" / "demo_greeter.py")
    monkeypatch.setattr(sys, "path", [tmp_path / "other", str(tmp_path / "nowhere"), *sys.path])
    file = write(site / "demo_greeter.py")

    assert files_of(PackEntry(module="demo_greeter")).files == {"demo_greeter.py": file}


def test_a_module_that_appears_is_found_at_once(site):
    with pytest.raises(PackLoadError):
        files_of(PackEntry(module="demo_greeter"))
    stamp = site.stat()
    write(site / "demo_greeter.py")
    os.utime(site, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    assert names(PackEntry(module="demo_greeter")) == ["demo_greeter.py"]


def test_a_module_without_its_source_is_the_bytecode_that_would_run(site, trap):
    import py_compile

    source = write(site / "demo_greeter.py", trap)
    py_compile.compile(str(source), cfile=str(site / "demo_greeter.pyc"), doraise=True)
    source.unlink()

    assert names(PackEntry(module="demo_greeter")) == ["demo_greeter.pyc"]


def test_a_module_in_an_archive_is_the_archive(tmp_path, monkeypatch, trap):
    archive = tmp_path / "packs.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("demo_host/__init__.py", trap)
        packed.writestr("demo_host/greeter/__init__.py", trap)
    monkeypatch.syspath_prepend(str(archive))
    found = files_of(PackEntry(module="demo_host.greeter"))

    assert found.files == {"packs.zip": archive}


class Mapped(importlib.abc.MetaPathFinder):
    """Finds one package where an editable install has it."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder

    def find_spec(self, fullname, path, target=None):
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.folder / "__init__.py")


def test_a_package_that_a_finder_of_the_process_knows_is_found_through_it(tmp_path, monkeypatch, trap):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Mapped("demo_mapped", tmp_path / "src")])
    write(tmp_path / "src" / "__init__.py", trap)
    file = write(tmp_path / "src" / "greeter.py", trap)

    assert files_of(PackEntry(module="demo_mapped.greeter")).files == {
        "demo_mapped/__init__.py": tmp_path / "src" / "__init__.py",
        "demo_mapped/greeter.py": file,
    }


def test_a_place_that_does_not_exist_is_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Mapped("demo_mapped", tmp_path / "nowhere")])

    assert files_of(PackEntry(module="demo_mapped")) is None


@pytest.mark.parametrize("name", ["demo_made_up", "sys", "demo_folder"])
def test_a_module_that_is_there_but_in_no_file_has_nothing_to_find(site, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "demo_made_up", types.ModuleType("demo_made_up"))
    (site / "demo_folder").mkdir()

    assert files_of(PackEntry(module=name)) is None


@pytest.mark.parametrize(
    "name", ["demo_nowhere", "demo_host.nowhere", "demo_host.greeter.inner", "demo_host..greeter", ".demo_host", "."]
)
def test_a_module_that_is_nowhere_is_an_error_that_names_it(site, trap, name):
    write(site / "demo_host" / "__init__.py", trap)
    write(site / "demo_host" / "greeter.py", trap)
    with pytest.raises(PackLoadError, match=r"install what provides it, or correct the name") as caught:
        files_of(PackEntry(module=name))

    assert f"no module named {name!r}" in str(caught.value)


# -- a real distribution, installed ----------------------------------------------------------------------------------

PROJECT = """
    [build-system]
    requires = ["hatchling"]
    build-backend = "hatchling.build"

    [project]
    name = "demo-dist"
    version = "2.3"

    [project.scripts]
    demo = "demo_dist:main"

    [project.entry-points."agentos.packs"]
    demo-pack = "demo_dist.inner:create_extension_pack"

    [tool.hatch.build.targets.wheel]
    packages = ["src/demo_dist", "src/demo_helper.py"]

    [tool.hatch.build]
    dev-mode-dirs = ["src"]
"""
INSTALLED = [
    "demo_dist-2.3.dist-info/entry_points.txt",
    "demo_dist/__init__.py",
    "demo_dist/inner.py",
    "demo_dist/words.txt",
]


def pip(*arguments, cwd):
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose modules leave a mark when they are run."""
    folder = tmp_path_factory.mktemp("project")
    trap = f"open({str(folder / 'mark')!r}, 'w').close()\nraise RuntimeError('it was run')\n"
    write(folder / "pyproject.toml", PROJECT)
    for name in ("demo_dist/__init__.py", "demo_dist/inner.py", "demo_helper.py"):
        write(folder / "src" / name, trap)
    write(folder / "src" / "demo_dist" / "words.txt", "hello\r\n")
    return folder


@pytest.fixture(scope="module")
def target(project, tmp_path_factory):
    folder = tmp_path_factory.mktemp("target")
    pip("--target", folder, "--compile", project, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def edited(project, tmp_path_factory):
    """The folder of an editable install; the project's own folder is to be put on the path as well."""
    folder = tmp_path_factory.mktemp("edited")
    pip("--prefix", folder, "--ignore-installed", "--editable", project, cwd=folder)
    return next(folder.rglob("demo_dist-2.3.dist-info")).parent


@pytest.fixture
def installed(target, project, monkeypatch):
    monkeypatch.syspath_prepend(str(target))
    yield target
    assert not (project / "mark").exists()
    assert "demo_dist" not in sys.modules


@pytest.fixture
def editable(edited, project, monkeypatch):
    (pth,) = edited.glob("*.pth")
    monkeypatch.syspath_prepend(pth.read_text().strip())
    monkeypatch.syspath_prepend(str(edited))
    yield project
    assert not (project / "mark").exists()
    assert "demo_dist" not in sys.modules


@pytest.mark.parametrize("way", ["demo-pack", "demo_dist", "demo_dist.inner"])
def test_an_installed_package_is_what_its_distribution_recorded(installed, way):
    found = files_of(PackEntry(package=way))

    assert found.version == "2.3"
    assert found.files == {name: installed / name for name in [*INSTALLED, "demo_helper.py"]}


def test_an_announced_package_has_its_distribution_as_origin(installed):
    assert files_of(PackEntry(package="demo-pack")).origin == "demo-dist 2.3"


def test_a_package_by_import_name_has_its_file_as_origin(installed):
    assert files_of(PackEntry(package="demo_dist")).origin == str(installed / "demo_dist" / "__init__.py")


def test_a_module_that_was_installed_has_its_own_files_and_no_version(installed):
    found = files_of(PackEntry(module="demo_dist"))

    assert found.version is None
    assert list(found.files) == [name for name in INSTALLED if "dist-info" not in name]


def test_the_mark_would_have_been_left(installed, project):
    done = subprocess.run(
        [sys.executable, "-c", "import demo_dist"], env={"PYTHONPATH": str(installed)}, capture_output=True, check=False
    )
    left = (project / "mark").exists()
    (project / "mark").unlink()

    assert b"it was run" in done.stderr
    assert left


@pytest.mark.parametrize("way", ["demo-pack", "demo_dist"])
def test_an_editable_install_is_the_package_in_its_project(editable, way):
    found = files_of(PackEntry(package=way))

    expected = [name for name in INSTALLED if way == "demo_dist" or "words" not in name]
    assert found.version == "2.3"
    assert list(found.files) == expected
    assert found.files["demo_dist/__init__.py"] == editable / "src" / "demo_dist" / "__init__.py"


def test_a_package_has_the_same_names_and_hashes_installed_and_editable(target, edited, project, monkeypatch):
    entry = PackEntry(package="demo_dist")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(target))
        first = hash_files(files_of(entry))
    monkeypatch.syspath_prepend(str(project / "src"))
    monkeypatch.syspath_prepend(str(edited))
    second = hash_files(files_of(entry))

    assert second == {name: first[name] for name in INSTALLED}


# -- distributions that are not as they should be ----------------------------------------------------------------------


def test_a_file_that_was_put_into_an_installed_package_is_found(site):
    for name in ("__init__.py", "smuggled.py"):
        write(site / "demo_dist" / name)
    install(site, "demo-dist", "demo_dist/__init__.py", demo_pack="demo_dist")

    assert "demo_dist/smuggled.py" in names(PackEntry(package="demo-pack"))


def test_a_file_that_was_taken_out_of_an_installed_package_is_not_listed(site):
    write(site / "demo_dist" / "__init__.py")
    install(site, "demo-dist", "demo_dist/__init__.py", "demo_dist/gone.py", demo_pack="demo_dist")

    assert names(PackEntry(package="demo-pack")) == [
        *("demo_dist-1.0.dist-info/entry_points.txt", "demo_dist/__init__.py")
    ]


@pytest.mark.parametrize("name", ["../outside.py", "{absolute}", "demo_dist/../../outside.py", "", ".", ".hidden.py"])
def test_what_a_record_lists_outside_its_folder_or_hidden_is_passed_over(site, tmp_path, name):
    write(tmp_path / "outside.py")
    write(site / ".hidden.py")
    write(site / "demo_dist.py")
    install(site, "demo-dist", "demo_dist.py", name.format(absolute=tmp_path / "outside.py"), demo_pack="demo_dist")

    assert names(PackEntry(package="demo-pack")) == ["demo_dist-1.0.dist-info/entry_points.txt", "demo_dist.py"]


@pytest.mark.parametrize("record", [None, b"\xff\xfe", b'"' + b"x" * 200_000, b"\n\n"])
def test_without_a_record_that_can_be_read_the_packages_folder_tells(site, record):
    for name in ("__init__.py", "tools.py"):
        write(site / "demo_dist" / name)
    info = install(site, "demo-dist", demo_pack="demo_dist")
    if record is not None:
        (info / "RECORD").write_bytes(record)
    found = files_of(PackEntry(package="demo-pack"))

    assert (found.version, list(found.files)) == ("1.0", ["demo_dist/__init__.py", "demo_dist/tools.py"])


def test_a_module_that_comes_before_the_installed_one_is_what_is_listed(site, tmp_path, monkeypatch):
    write(site / "demo_dist.py")
    write(site / "demo_helper.py")
    install(site, "demo-dist", "demo_dist.py", "demo_helper.py", demo_pack="demo_dist")
    monkeypatch.syspath_prepend(str(tmp_path / "first"))
    file = write(tmp_path / "first" / "demo_dist.py")
    found = files_of(PackEntry(package="demo-pack"))

    assert list(found.files) == ["demo_dist-1.0.dist-info/entry_points.txt", "demo_dist.py"]
    assert found.files["demo_dist.py"] == file


def test_an_installer_may_link_to_where_it_keeps_files(site, tmp_path):
    (site / "demo_dist").mkdir()
    (site / "demo_dist" / "__init__.py").symlink_to(write(tmp_path / "cache" / "init.py"))
    install(site, "demo-dist", "demo_dist/__init__.py", demo_pack="demo_dist")

    assert "demo_dist/__init__.py" in names(PackEntry(package="demo-pack"))


def test_nobody_else_may_link_out_of_an_installed_package(site, tmp_path):
    write(site / "demo_dist" / "__init__.py")
    (site / "demo_dist" / "tools.py").symlink_to(write(tmp_path / "cache" / "tools.py"))
    install(site, "demo-dist", "demo_dist/__init__.py", demo_pack="demo_dist")
    with pytest.raises(PackLoadError, match=r"'demo_dist/tools.py' is a symbolic link that leaves the pack"):
        files_of(PackEntry(package="demo-pack"))


def test_an_installer_may_not_link_to_folders(site, tmp_path):
    write(tmp_path / "cache" / "tools.py")
    write(site / "demo_dist" / "__init__.py")
    (site / "demo_dist" / "deep").symlink_to(tmp_path / "cache")
    install(site, "demo-dist", "demo_dist/__init__.py", "demo_dist/deep", demo_pack="demo_dist")
    with pytest.raises(PackLoadError, match="'demo_dist/deep' is a symbolic link to a folder"):
        files_of(PackEntry(package="demo-pack"))


def test_a_package_of_no_distribution_is_its_folder_and_has_no_version(site, trap):
    file = write(site / "demo_loose" / "__init__.py", trap)
    found = files_of(PackEntry(package="demo_loose"))

    assert (found.origin, found.version, found.files) == (str(file), None, {"demo_loose/__init__.py": file})


def test_a_distribution_that_lists_another_file_of_that_name_does_not_own_a_module(site, tmp_path, monkeypatch):
    write(site / "demo_dist.py")
    install(site, "demo-dist", "demo_dist.py")
    monkeypatch.syspath_prepend(str(tmp_path / "first"))
    write(tmp_path / "first" / "demo_dist.py")

    assert files_of(PackEntry(package="demo_dist")).version is None


def test_of_projects_within_each_other_the_innermost_owns_a_module(site, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path / "outer" / "inner"))
    write(tmp_path / "outer" / "inner" / "demo_inner.py")
    for version, folder in (("1.0", "outer"), ("2.0", "outer/inner"), ("3.0", "other")):
        info = install(site, f"demo-{version[0]}", version=version)
        url = (tmp_path / folder).as_uri()
        write(info / "direct_url.json", f'{{"url": "{url}", "dir_info": {{"editable": true}}}}')

    assert files_of(PackEntry(package="demo_inner")).version == "2.0"


@pytest.mark.parametrize(
    "said",
    [
        *("", "{", "[]", "5", "{}", "[" * 100_000, '{"url": "{url}"}', '{"url": "file://["}'),
        '{"url": 5, "dir_info": {"editable": true}}',
        '{"url": "{url}", "dir_info": {}}',
        '{"url": "{url}", "dir_info": {"editable": "yes"}}',
    ],
    ids=range(11),
)
def test_a_distribution_that_does_not_say_it_is_editable_owns_nothing_by_its_project(site, said):
    write(site / "demo_loose.py")
    info = install(site, "demo-dist")
    write(info / "direct_url.json", said.replace("{url}", site.as_uri()))

    assert files_of(PackEntry(package="demo_loose")).version is None


def test_a_name_that_two_distributions_announce_is_refused_and_both_are_named(site, trap):
    write(site / "demo_dist.py", trap)
    install(site, "demo-one", version="1.0", demo_pack="demo_dist")
    install(site, "demo-two", version="2.0", demo_pack="demo_dist")
    with pytest.raises(PackLoadError) as caught:
        files_of(PackEntry(package="demo-pack"))

    assert "demo-one 1.0" in str(caught.value)
    assert "demo-two 2.0" in str(caught.value)


def test_an_unknown_package_is_told_the_nearest_announced_name(site):
    install(site, "demo-dist", demo_search="demo_dist")
    with pytest.raises(PackLoadError, match="did you mean 'demo-search'") as caught:
        files_of(PackEntry(package="demo-serach"))

    assert "'agentos.packs'" in str(caught.value)


def test_an_unknown_package_that_is_near_to_nothing_is_told_what_is_installed(site):
    install(site, "demo-dist", demo_search="demo_dist")
    with pytest.raises(PackLoadError, match=r"Installed packs: .*demo-search"):
        files_of(PackEntry(package="qqqqqqqq"))


def test_an_announced_module_that_is_not_on_disk_has_nothing_to_find(site, monkeypatch):
    monkeypatch.setitem(sys.modules, "demo_made_up", types.ModuleType("demo_made_up"))
    install(site, "demo-dist", demo_pack="demo_made_up")

    assert files_of(PackEntry(package="demo-pack")) is None


# -- together with the loader ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["file", "folder", "module", "package", "entry point", "factory"])
async def test_the_origin_is_what_the_loader_says(site, way):
    file = write(site / "demo_origin" / "__init__.py", GOOD)
    install(site, "demo-dist", "demo_origin/__init__.py", demo_pack="demo_origin")
    entry = {
        "file": PackEntry(module=str(file)),
        "folder": PackEntry(module=str(file.parent)),
        "module": PackEntry(module="demo_origin"),
        "package": PackEntry(package="demo_origin"),
        "entry point": PackEntry(package="demo-pack"),
        "factory": PackEntry(factory=make),
    }[way]
    found = files_of(entry)
    async with ExtensionManager([entry]) as manager:
        assert found.origin == manager.packs()[0].source.origin
    sys.modules.pop("demo_origin", None)


# -- hashes ------------------------------------------------------------------------------------------------------------


def sha(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@pytest.mark.parametrize("data", [b"", b"x = 1\n", b"x = 1\r\n", b"\xff\x00", b"a" * (2 * 1024 * 1024 + 1)])
def test_the_hash_is_of_the_bytes_as_they_are(tmp_path, data):
    file = tmp_path / "a.py"
    file.write_bytes(data)

    assert hash_files(PackFiles("here", None, {"a.py": file})) == {"a.py": sha(data)}


def test_a_file_that_vanished_is_an_error_that_names_it_and_the_pack(tmp_path):
    found = files_of(PackEntry(module=str(write(tmp_path / "greeter.py")), identifier="mine"))
    (tmp_path / "greeter.py").unlink()
    with pytest.raises(PackLoadError, match=r"pack 'mine' .*file 'greeter.py' can't be read: No such") as caught:
        hash_files(found)

    assert caught.value.origin == str(tmp_path / "greeter.py")


@pytest.mark.parametrize("make_it", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_any_more_is_an_error_that_names_it(tmp_path, make_it):
    make_it(tmp_path / "a.py")
    with pytest.raises(PackLoadError, match=r"its file 'a.py' can't be read: it is no regular file"):
        hash_files(PackFiles("here", None, {"a.py": tmp_path / "a.py"}))


def test_a_file_that_can_not_be_read_is_an_error_that_names_it(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    files = PackFiles("here", None, {"a.py": write(tmp_path / "a.py")})
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PackLoadError, match=r"pack 'here': its file 'a.py' can't be read: Permission denied"):
        hash_files(files)


def test_more_files_than_the_limit_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(subject, "FILE_LIMIT", 1)
    files = {name: write(tmp_path / name) for name in ("a.py", "b.py")}
    with pytest.raises(PackLoadError, match=r"pack 'mine': it has more than 1 files"):
        hash_files(PackFiles("here", None, files, "mine"))


def test_as_many_bytes_as_the_limit_says_are_hashed_and_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(subject, "BYTE_LIMIT", 4)
    files = {name: write(tmp_path / name, "xx") for name in ("a.py", "b.py")}

    assert len(hash_files(PackFiles("here", None, files))) == 2
    write(tmp_path / "b.py", "xxx")
    with pytest.raises(PackLoadError, match=r"its files have more than 4 bytes"):
        hash_files(PackFiles("here", None, files))


def test_the_limits_are_those_that_were_promised():
    assert (subject.FILE_LIMIT, subject.BYTE_LIMIT) == (20_000, 1_000_000_000)


def test_a_place_that_the_system_refuses_to_look_at_is_an_error_that_names_it_and_the_pack(tmp_path):
    name = f"{'x' * 300}.py"
    with pytest.raises(PackLoadError, match=rf"^pack '{name}': its files can't be found: .*: File name too long$"):
        files_of(PackEntry(module=name, base_path=tmp_path))
