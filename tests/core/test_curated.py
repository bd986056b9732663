"""Curated manifests: what is chosen, what is reported, and that nothing is imported to find out."""

import sys
import textwrap

import pytest

from agentos import AgentOS, ManifestError, create_curated_manifest
from agentos.loading import curated
from agentos.loading.curated_packs import CHANNELS, CURATED, CuratedPack

PACK = """
import sys
sys.modules[__name__ + "_was_imported"] = sys.modules[__name__]
from agentos import Descriptor, ExtensionPack, SecretRequirement

def create_extension_pack(context):
    return ExtensionPack(name={name!r}, version="1.0", descriptors=[
        Descriptor("thing", {name!r}, object(), required_secrets=[SecretRequirement(id) for id in {secrets!r}])])
"""
TABLE = (
    CuratedPack("alpha", "letters", "the first"),
    CuratedPack("beta", "letters", "the second", secrets=("giphy.apiKey",), optional_secrets=("brave.apiKey",)),
    CuratedPack("gamma", "others", "the third", permissions=("tools:register",)),
    CuratedPack("delta", CHANNELS, "a channel"),
)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a function that installs a distribution as an installer would, in a folder of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(curated, "CURATED", TABLE)
    monkeypatch.delenv("GIPHY_API_KEY", raising=False)
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    before = set(sys.modules)

    def install(name, *, version="1.0", requires=(), code=None, announced=True, module=True, secrets=()):
        pack = next((pack for pack in TABLE if pack.name == name), None)
        distribution = pack.distribution if pack else name
        info = tmp_path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        if pack and announced:
            (info / "entry_points.txt").write_text(f"[agentos.packs]\n{name} = {pack.module}\n")
        if pack and module:
            text = PACK.format(name=name, secrets=list(secrets)) if code is None else code
            (tmp_path / f"{pack.module}.py").write_text(textwrap.dedent(text))

    yield install
    for name in set(sys.modules) - before:
        if name.startswith("agentos_pack_"):
            del sys.modules[name]


def names_in(made):
    return [entry.package for entry in made.manifest.packs]


class TestChoice:
    @pytest.fixture(autouse=True)
    def _all(self, site):
        for pack in TABLE:
            site(pack.name)

    def test_all_are_chosen_but_channels(self):
        assert names_in(create_curated_manifest()) == ["alpha", "beta", "gamma"]

    def test_by_name(self):
        assert names_in(create_curated_manifest(packs=["gamma"])) == ["gamma"]

    def test_by_category(self):
        assert names_in(create_curated_manifest(categories=["letters"])) == ["alpha", "beta"]

    def test_name_and_category_add_up_in_the_order_of_the_catalog(self):
        assert names_in(create_curated_manifest(packs=["gamma"], categories=["letters"])) == ["alpha", "beta", "gamma"]

    def test_none_is_a_choice(self):
        assert names_in(create_curated_manifest(packs="none")) == []

    @pytest.mark.parametrize("excluded", [["alpha", "gamma"], ["alpha", "others"]], ids=["names", "name-and-category"])
    def test_what_is_excluded_is_left_out(self, excluded):
        assert names_in(create_curated_manifest(exclude=excluded)) == ["beta"]

    @pytest.mark.parametrize("channels", ["all", ["delta"]], ids=["all", "named"])
    def test_a_channel_is_there_when_it_is_asked_for(self, channels):
        assert names_in(create_curated_manifest(packs="none", channels=channels)) == ["delta"]

    def test_a_channel_that_nobody_named_says_how_to_name_it(self):
        report = create_curated_manifest().report

        assert (
            report["delta"].status,
            report["delta"].reason,
        ) == ("filtered", "channels are off unless they are named: channels=['delta']")

    def test_every_pack_has_an_outcome(self):
        report = create_curated_manifest(packs=["alpha"]).report

        assert {outcome.name: outcome.status for outcome in report.outcomes} == {
            "alpha": "selected",
            "beta": "filtered",
            "gamma": "filtered",
            "delta": "filtered",
        }

    def test_nothing_is_imported(self):
        create_curated_manifest(channels="all")

        assert [name for name in sys.modules if name.endswith("_was_imported")] == []


class TestWrongNames:
    @pytest.mark.parametrize(
        ("asked", "message"),
        [
            ({"packs": ["alpa"]}, "packs[0]: unknown name 'alpa'; did you mean 'alpha'?"),
            ({"categories": ["leters"]}, "categories[0]: unknown name 'leters'; did you mean 'letters'?"),
            ({"channels": ["detla"]}, "channels[0]: unknown name 'detla'; did you mean 'delta'?"),
            ({"exclude": ["bta"]}, "exclude[0]: unknown name 'bta'; did you mean 'beta'?"),
            ({"options": {"gama": {}}}, "options.gama: unknown pack; did you mean 'gamma'?"),
            ({"priorities": {"gama": 1}}, "priorities.gama: unknown pack; did you mean 'gamma'?"),
            ({"packs": ["delta"]}, "packs[0]: 'delta' is a channel; choose it by channels=[...]"),
            ({"categories": ["channels"]}, "categories[0]: 'channels' are chosen by name, by channels=[...]"),
            ({"packs": "alpha"}, "packs: expected a list of names, got the string 'alpha'"),
            ({"packs": ["zzz"]}, "packs[0]: unknown name 'zzz'; known: alpha, beta, gamma"),
            ({"packs": [["alpha"]]}, "packs[0]: unknown name ['alpha']; did you mean 'alpha'?"),
            ({"packs": 3}, "packs: expected a list of names, got int"),
            ({"exclude": None}, "exclude: expected a list of names, got NoneType"),
            ({"options": {1: {}}}, "options.1: unknown pack"),
            ({"options": {"alpha": None}}, "options.alpha: expected a mapping, got NoneType"),
            ({"options": {"alpha": {"secrets": "x"}}}, "options.alpha.secrets: expected a mapping, got str"),
            ({"secrets": str}, "secrets: expected a mapping, got type"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "says",
    )
    def test_are_refused_with_the_way_out(self, site, asked, message):
        with pytest.raises(ManifestError) as caught:
            create_curated_manifest(**asked)

        assert message in str(caught.value)

    def test_all_are_told_at_once(self, site):
        with pytest.raises(ManifestError) as caught:
            create_curated_manifest(
                packs=["alpa"],
                categories="letters",
                exclude=["bta"],
                options={"gama": {}, "beta": {"secrets": 3}},
                priorities=[],
                secrets="x",
            )

        assert [problem.path for problem in caught.value.problems] == [
            "packs[0]",
            "categories",
            "exclude[0]",
            "options.gama",
            "priorities",
            "options.beta.secrets",
            "secrets",
        ]


class TestWhatIsMissing:
    def test_a_pack_that_is_not_installed_says_what_to_install(self, site):
        outcome = create_curated_manifest(packs=["alpha"]).report["alpha"]

        assert (outcome.status, outcome.install) == ("not_installed", "pip install agentos-pack-alpha")

    def test_a_dependency_that_is_missing_is_named(self, site):
        site("alpha", requires=["no-such-thing>=2", 'other; python_version < "3"', 'more; extra == "all"'])

        made = create_curated_manifest(packs=["alpha"])

        assert names_in(made) == []
        assert (
            made.report["alpha"].status,
            made.report["alpha"].reason,
            made.report["alpha"].install,
        ) == ("dependency_missing", "needs no-such-thing>=2", "pip install 'no-such-thing>=2'")

    def test_a_dependency_that_is_too_old_is_named_with_its_version(self, site):
        site("alpha", requires=["helper>=2"])
        site("helper", version="1.4")

        assert create_curated_manifest(packs=["alpha"]).report["alpha"].reason == "needs helper>=2 (installed: 1.4)"

    def test_what_a_dependency_needs_has_to_be_there_too(self, site):
        site("alpha", requires=["helper"])
        site("helper", requires=["deeper"])

        assert create_curated_manifest(packs=["alpha"]).report["alpha"].reason == "needs deeper"

    def test_the_extras_that_are_asked_for_count(self, site):
        site("alpha", requires=["helper[fast]"])
        site("helper", requires=['speed; extra == "fast"', 'slow; extra == "slow"'])

        assert create_curated_manifest(packs=["alpha"]).report["alpha"].reason == "needs speed"

    def test_requirements_in_a_circle_come_to_an_end(self, site):
        site("alpha", requires=["one"])
        site("one", requires=["two"])
        site("two", requires=["one"])

        assert create_curated_manifest(packs=["alpha"]).report["alpha"].status == "selected"

    def test_one_command_installs_everything(self, site):
        site("alpha", requires=["missing"])

        assert (
            create_curated_manifest(packs=["alpha", "beta"]).report.install == "pip install missing agentos-pack-beta"
        )

    @pytest.mark.parametrize(
        ("installed", "reason"),
        [
            ({"announced": False}, "announces no pack 'alpha'"),
            ({"module": False}, "agentos_pack_alpha can't be found although agentos-pack-alpha 1.0 is installed"),
        ],
        ids=["no-entry-point", "no-module"],
    )
    def test_a_broken_installation_is_an_import_error(self, site, installed, reason):
        site("alpha", **installed)

        outcome = create_curated_manifest(packs=["alpha"]).report["alpha"]

        assert outcome.status == "import_error"
        assert reason in outcome.reason


class TestImports:
    @pytest.mark.parametrize(
        ("code", "reason"),
        [
            ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
            ("raise SystemExit(0)", "SystemExit: 0"),
            ("import os; os._exit(0)", "importing agentos_pack_alpha ended the process with code 0"),
            ("import os; os._exit(7)", "importing agentos_pack_alpha ended the process with code 7"),
            ("def (", "SyntaxError"),
        ],
        ids=["missing", "exit", "quiet-end", "end", "syntax"],
    )
    def test_are_tried_elsewhere_on_request(self, site, monkeypatch, tmp_path, code, reason):
        site("alpha", code=code)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

        made = create_curated_manifest(packs=["alpha"], check_imports=True)

        assert names_in(made) == []
        assert made.report["alpha"].status == "import_error"
        assert reason in made.report["alpha"].reason

    def test_of_a_library_that_is_there_and_broken_are_told_of(self, site, monkeypatch, tmp_path):
        site("alpha", requires=["broken-library"])
        site("broken-library")
        (tmp_path / "broken_library.py").write_text("raise ImportError('libfoo.so.1: cannot open shared object file')")
        (tmp_path / "broken_library-1.0.dist-info" / "top_level.txt").write_text("broken_library\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

        outcome = create_curated_manifest(packs=["alpha"], check_imports=True).report["alpha"]

        assert outcome.status == "import_error"
        assert outcome.reason == "ImportError: libfoo.so.1: cannot open shared object file"

    def test_reach_the_modules_that_a_pack_imports_late(self, site, monkeypatch, tmp_path):
        site("alpha", module=False)
        package = tmp_path / "agentos_pack_alpha"
        (package / "inner").mkdir(parents=True)
        for file in ("__init__.py", "inner/__init__.py"):
            (package / file).touch()
        (package / "__main__.py").write_text("raise SystemExit")
        (package / "inner" / "late.py").write_text("import no_such_module")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

        outcome = create_curated_manifest(packs=["alpha"], check_imports=True).report["alpha"]

        assert outcome.reason == "ModuleNotFoundError: No module named 'no_such_module'"

    def test_that_work_leave_the_pack_in(self, site, monkeypatch, tmp_path):
        site("alpha", code="print('words at import')")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

        assert names_in(create_curated_manifest(packs=["alpha"], check_imports=True)) == ["alpha"]

    def test_that_hang_are_ended(self, site, monkeypatch, tmp_path):
        site("alpha", code="import threading; threading.Event().wait()")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(curated, "IMPORT_DEADLINE", 1.0)

        reason = create_curated_manifest(packs=["alpha"], check_imports=True).report["alpha"].reason

        assert reason == "importing agentos_pack_alpha had not ended after 1 seconds"


class TestSecrets:
    @pytest.fixture(autouse=True)
    def _installed(self, site):
        site("alpha")
        site("beta", secrets=["giphy.apiKey"])

    def test_one_that_is_missing_is_told_with_its_variable_and_page(self):
        made = create_curated_manifest(packs=["beta"])

        assert names_in(made) == ["beta"]
        assert str(made.report["beta"]) == (
            "beta (letters) secret_missing: gated until its secrets are there: giphy.apiKey: missing; "
            "set GIPHY_API_KEY (see https://developers.giphy.com/)"
        )

    def test_an_optional_one_that_is_missing_is_told_and_does_not_matter(self):
        report = create_curated_manifest(packs=["beta"], secrets={"giphy.apiKey": "a-value"}).report

        assert (
            report["beta"].status,
            [str(secret).split(" (see")[0] for secret in report["beta"].secrets],
        ) == ("selected", ["giphy.apiKey: from the host", "brave.apiKey: missing; set BRAVE_API_KEY"])

    @pytest.mark.parametrize("place", ["environment", "dotenv"])
    def test_the_other_sources_count(self, monkeypatch, tmp_path, place):
        if place == "environment":
            monkeypatch.setenv("GIPHY_API_KEY", "a-value")
        (tmp_path / "secrets.env").write_text("GIPHY_API_KEY=a-value\n" if place == "dotenv" else "")

        report = create_curated_manifest(packs=["beta"], dotenv=tmp_path / "secrets.env").report

        assert report["beta"].status == "selected"

    def test_a_placeholder_is_missing(self):
        report = create_curated_manifest(packs=["beta"], secrets={"giphy.apiKey": "changeme"}).report

        assert report["beta"].status == "secret_missing"

    def test_each_pack_sees_its_own(self):
        made = create_curated_manifest(
            packs=["alpha", "beta"], secrets={"giphy.apiKey": "a-value", "github.token": "another"}
        )

        assert [dict(entry.options.get("secrets", {})) for entry in made.manifest.packs] == [
            {},
            {"giphy.apiKey": "a-value"},
        ]

    def test_one_that_options_name_is_the_pack_s_own_too(self, monkeypatch):
        named = CuratedPack("alpha", "letters", "names secrets", secrets_in_options=("hosts", "*", "secret"))
        monkeypatch.setattr(curated, "CURATED", (named,))
        options = {"hosts": {"api.github.com": {"secret": "github.token"}, "wrong": 3}}

        made = create_curated_manifest(
            options={"alpha": options}, secrets={"github.token": "a-value", "giphy.apiKey": "another"}
        )

        assert dict(made.manifest.packs[0].options["secrets"]) == {"github.token": "a-value"}
        assert [str(secret) for secret in made.report["alpha"].secrets] == ["github.token: from the host"]

    @pytest.mark.parametrize(("files", "status"), [({"sales": "sales.csv"}, "selected"), ({}, "secret_missing")])
    def test_one_that_an_option_takes_the_place_of_is_not_needed(self, monkeypatch, files, status):
        unless = CuratedPack("alpha", "letters", "reads", secrets=("db.url",), secrets_unless="files")
        monkeypatch.setattr(curated, "CURATED", (unless,))

        made = create_curated_manifest(options={"alpha": {"files": files}})

        assert (made.report["alpha"].status, len(made.report["alpha"].secrets)) == (status, status != "selected")

    def test_a_pack_s_own_wins(self):
        own = {"beta": {"secrets": {"giphy.apiKey": "its-own"}, "region": "eu"}}

        made = create_curated_manifest(packs=["beta"], secrets={"giphy.apiKey": "a-value"}, options=own)

        assert dict(made.manifest.packs[0].options) == {"secrets": {"giphy.apiKey": "its-own"}, "region": "eu"}

    def test_no_value_is_in_the_report(self):
        made = create_curated_manifest(secrets={"giphy.apiKey": "a-very-secret-value"})

        assert "a-very-secret-value" not in f"{made!r}{made.report}"


class TestManifest:
    async def test_it_loads(self, site):
        site("alpha")
        site("beta", secrets=["giphy.apiKey"])

        made = create_curated_manifest(secrets={"giphy.apiKey": "a-value"}, priorities={"alpha": 7})

        async with AgentOS(extension_manifest=made.manifest) as host:
            assert [(entry.id, entry.priority) for entry in host.extensions.registry("thing").list_active()] == [
                ("alpha", 7),
                ("beta", 0),
            ]

    def test_a_permission_is_given_as_the_catalog_says(self, site):
        site("gamma")

        assert create_curated_manifest(packs=["gamma"]).manifest.packs[0].permissions == ("tools:register",)

    def test_overrides_are_taken_over(self, site):
        site("alpha")

        made = create_curated_manifest(overrides={"thing": {"alpha": {"enabled": False}}})

        assert made.manifest.overrides.of("thing")["alpha"].enabled is False


class TestReport:
    def test_an_unknown_name_has_a_suggestion(self, site):
        report = create_curated_manifest().report

        with pytest.raises(KeyError, match="did you mean 'alpha'"):
            report["alpa"]

    def test_outcomes_by_status(self, site):
        site("alpha")

        report = create_curated_manifest(packs=["alpha"]).report

        assert [outcome.name for outcome in report.of("selected")] == ["alpha"]


def test_names_are_unique():
    assert len(CURATED) == len({pack.name for pack in CURATED})
