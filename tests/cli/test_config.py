"""One manifest and its layers: each value with where it came from, and no secret among them."""

import json

import pytest

from agentos.cli.hidden_secrets import HIDDEN, shown_store
from agentos.cli.layered_config import ConfigError, load_config
from agentos.cli.manifest_files import find_manifest, manifests_in


def origins_in(config):
    return {one.path: one.origin for one in config.settings}


def written(folder, text, name="agentos.toml"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def values(config):
    return {one.path: (one.value, one.origin) for one in config.settings}


def test_the_manifest_is_found_upward(folder):
    path = written(folder, "")
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)

    assert find_manifest(inner) == path


def test_the_nearest_manifest_counts(folder):
    written(folder, "")
    near = written(folder / "a", "", "agentos.json")

    assert find_manifest(folder / "a") == near


def test_toml_comes_before_yaml_before_json(folder):
    for ending in ("json", "yml", "yaml", "toml"):
        written(folder, "", f"agentos.{ending}")

    assert [path.suffix for path in manifests_in(folder)] == [".toml", ".yaml", ".yml", ".json"]


def test_a_folder_of_that_name_is_no_manifest(folder):
    (folder / "agentos.toml").mkdir()

    assert find_manifest(folder) is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: path.symlink_to("nowhere.toml"), "is a link that leads nowhere"),
    ],
)
def test_what_has_a_manifests_name_and_is_none_is_told(folder, command, monkeypatch, make, said):
    make(folder / "agentos.toml")
    here = command("packs", "list")
    monkeypatch.setenv("AGENTOS_MANIFEST", "agentos.toml")
    named = command("packs", "list")

    assert (here.code, f"agentos.toml {said}" in here.err) == (3, True)
    assert (named.code, f"agentos.toml {said}, and no manifest" in named.err) == (3, True)


def test_defaults_say_that_they_are(folder):
    config = load_config(written(folder, ""), {})

    assert values(config)["mode"] == ("approve", "default")
    assert "mode" not in config.manifest.settings.given


def test_the_manifest_counts_over_defaults(folder):
    config = load_config(written(folder, 'mode = "auto"\nbudget = { calls = 5 }\n'), {})

    assert values(config)["mode"] == ("auto", "agentos.toml")
    assert values(config)["budget.calls"] == (5, "agentos.toml")


def test_the_environment_counts_over_the_manifest(folder):
    environ = {
        "AGENTOS_MODE": "unattended",
        "AGENTOS_DENY": "a, pack:b ,",
        "AGENTOS_PROPOSAL_TTL": "12.5",
        "AGENTOS_PINS": "strict",
        "AGENTOS_STORE": "default",
        "AGENTOS_LOCK": "x.lock",
        "AGENTOS_DOTENV": "x.env",
    }
    config = load_config(written(folder, 'mode = "auto"\nstore = "s.db"\n'), environ)
    settings = config.manifest.settings

    assert (settings.mode, settings.deny, settings.proposal_ttl, settings.pins) == (
        "unattended",
        ("a", "pack:b"),
        12.5,
        "strict",
    )
    assert config.manifest.store == "default"
    assert settings.lock == str(folder / "x.lock")
    assert settings.dotenv == str(folder / "x.env")
    assert values(config)["mode"] == ("unattended", "AGENTOS_MODE")


def test_blank_variables_say_nothing(folder):
    assert load_config(written(folder, 'mode = "auto"\n'), {"AGENTOS_MODE": " "}).manifest.settings.mode == "auto"


def test_the_command_line_counts_over_everything(folder):
    config = load_config(written(folder, 'mode = "auto"\n'), {"AGENTOS_MODE": "approve"}, {"mode": "unattended"})

    assert config.manifest.settings.mode == "unattended"
    assert origins_in(config)["mode"] == "the command line"


def test_local_overrides_count_over_those_of_the_manifest(folder):
    path = written(folder, "[overrides.tools]\nx = { enabled = false, priority = 1 }\n")
    written(folder, "tools:\n  x: {enabled: true}\n", "overrides.local.yaml")
    config = load_config(path, {})

    assert origins_in(config)["overrides.tools.x.enabled"] == "overrides.local.yaml"
    assert origins_in(config)["overrides.tools.x.priority"] == "agentos.toml"
    assert config.overrides.of("tool")["x"].enabled is True


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "overrides:\n  tools:\n    x: {enabled: false}\n",
            "overrides: only overrides belong here; leave out the leading `overrides`",
        ),
        ("mode: auto\n", "mode: only overrides belong here; it goes into the manifest"),
        ("packs:\n  x: {enabled: false}\n", "packs: only overrides belong here; it goes into the manifest"),
    ],
)
def test_only_overrides_belong_into_local_overrides(folder, text, problem):
    path = written(folder, "", "agentos.toml")
    written(folder, text, "overrides.local.yaml")
    with pytest.raises(ConfigError) as error:
        load_config(path, {})

    assert error.value.problems == (f"overrides.local.yaml: {problem}",)


def test_what_else_is_wrong_with_local_overrides_is_told_too(folder):
    path = written(folder, "", "agentos.toml")
    written(folder, "mode: auto\ntools:\n  greet: {priority: high}\n", "overrides.local.yaml")
    with pytest.raises(ConfigError) as error:
        load_config(path, {})

    first, second = error.value.problems
    assert ("mode: only overrides" in first, "tools.greet.priority: " in second) == (True, True)


def test_what_a_budget_does_not_say_is_as_by_default(folder):
    config = load_config(written(folder, "[budget]\ncalls = 5\n"), {})

    assert values(config)["budget.calls"] == (5, "agentos.toml")
    assert values(config)["budget.window"] == (60.0, "default")


def test_without_a_budget_nothing_of_one_is_shown(folder):
    config = load_config(written(folder, "budget: null\n", "agentos.yaml"), {})

    shown = {name: one for name, one in values(config).items() if "budget" in name}
    assert shown == {"budget": (None, "agentos.yaml")}


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_local_overrides_that_say_nothing_override_nothing(folder, text):
    path = written(folder, "")
    written(folder, text, "overrides.local.yaml")

    assert load_config(path, {}).overrides.of("tool") == {}


def test_two_files_of_local_overrides_are_refused(folder):
    path = written(folder, "")
    written(folder, "", "overrides.local.yaml")
    written(folder, "{}", "overrides.local.json")

    with pytest.raises(ConfigError, match="keep one"):
        load_config(path, {})


def test_a_dotenv_beside_the_manifest_counts_where_nothing_else_is_said(folder):
    written(folder, "A=1", ".env")
    path = written(folder, "")

    assert load_config(path, {}).manifest.settings.dotenv == str(folder / ".env")
    assert load_config(written(folder, 'dotenv = "b.env"\n'), {}).manifest.settings.dotenv == str(folder / "b.env")


def test_every_problem_of_every_layer_is_told_at_once(folder):
    path = written(folder, 'mod = "x"\n[mcpServers.x]\nurl = "ftp://x"\n')
    written(folder, "[tols]\nx = 1\n", "overrides.local.toml")
    with pytest.raises(ConfigError) as failure:
        load_config(path, {"AGENTOS_MODE": "sometimes", "AGENTOS_PROPOSAL_TTL": "soon"})

    told = "\n".join(failure.value.problems)
    for word in (
        "agentos.toml: mod",
        "overrides.local.toml: ",
        "AGENTOS_MODE: expected one of",
        "AGENTOS_PROPOSAL_TTL",
    ):
        assert word in told


def test_a_server_that_cant_be_used_is_a_problem(folder):
    with pytest.raises(ConfigError, match="only http and https"):
        load_config(written(folder, '[mcpServers.x]\nurl = "ftp://x"\n'), {})


def test_a_file_that_is_no_toml_is_a_problem(folder):
    with pytest.raises(ConfigError, match="can't be parsed"):
        load_config(written(folder, "= 1"), {})


SECRETS = """
store = "postgresql://user:hunter2@db/agentos"

[[packs]]
module = "a.py"
[packs.options]
word = "plain"
address = "https://ada:hunter2@example.com/"
note = "use sk-hunter2hunter2"
header = "Bearer hunter2.hunter2"
api_key = "hunter2"
tokens = ["hunter2", "hunter2"]
nested = { password = "hunter2", fine = 1 }
pwd = "hunter2"
pin = "hunter2"
accessKey = "hunter2"
hosts = ["postgres://u:hunter2@h/db", "sk-hunter2hunter2", ["redis://:hunter2@h"]]
[packs.options.secrets]
"giphy.apiKey" = "hunter2"

[overrides.tools.x.options]
token = "hunter2"

[mcpServers.files]
command = "serve"
args = [
  "--port", "1", "--token", "hunter2", "--api-key=hunter2", "--key=hunter2key", "--key", "hunter2",
  "postgres://u:hunter2@h/db", "-H", "Authorization: Bearer hunter2==", "X-Api-Key:hunter2", "https://h/?key=hunter2",
]
env = { HOME = "hunter2", KEY = "${secret:brave.apiKey}" }

[mcpServers.web]
url = "https://example.com/mcp?key=hunter2"
headers = { X = "hunter2" }
"""


def test_no_secret_is_among_the_settings(folder):
    config = load_config(written(folder, SECRETS), {})

    assert "hunter2" not in repr(config)
    assert "hunter2" not in json.dumps([[one.path, one.value] for one in config.settings], default=str)


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize("line", ["config show", "packs show a.py", "packs show files", "packs show web"])
def test_no_command_shows_a_secret_of_the_manifest(folder, command, line, form):
    written(folder, SECRETS.replace("postgresql://user:hunter2@db/agentos", "s.db"))
    told = command(*line.split(), *form)

    assert (told.code, HIDDEN in told.out, "hunter2" in told.out) == (0, True, False)


@pytest.mark.parametrize("name", ["pinned", "spin", "monkey", "keyboard", "author", "key_size"])
def test_names_that_only_resemble_those_of_secrets_hide_nothing(folder, name):
    config = load_config(written(folder, f'[[packs]]\nmodule = "a.py"\noptions = {{ {name} = "x" }}\n'), {})

    assert values(config)[f"packs[0].options.{name}"][0] == "x"


def test_what_is_no_secret_is_shown(folder):
    found = {path: value for path, (value, _) in values(load_config(written(folder, SECRETS), {})).items()}

    assert found["packs[0].options.word"] == "plain"
    assert found["packs[0].options.api_key"] == HIDDEN
    assert found["packs[0].options.address"] == f"https://{HIDDEN}@example.com/"
    assert found["packs[0].options.nested.fine"] == 1
    assert found["packs[0].options.hosts"] == [f"postgres://{HIDDEN}@h/db", HIDDEN, [f"redis://{HIDDEN}@h"]]
    assert found["mcpServers.files.args"] == [
        *("--port", "1", "--token", HIDDEN, f"--api-key={HIDDEN}", f"--key={HIDDEN}", "--key", HIDDEN),
        *(
            f"postgres://{HIDDEN}@h/db",
            "-H",
            f"Authorization: {HIDDEN}",
            f"X-Api-Key:{HIDDEN}",
            f"https://h/?key={HIDDEN}",
        ),
    ]
    assert found["mcpServers.files.env.KEY"] == "${secret:brave.apiKey}"
    assert found["mcpServers.web.url"] == "https://example.com/mcp"
    assert "@" not in found["store"]


def test_a_store_that_cant_be_read_is_hidden():
    assert shown_store("mysql://user:hunter2@db") == HIDDEN
    assert shown_store(None) is None


def test_servers_are_loaded_after_packs(folder):
    path = written(folder, '[mcpServers.files]\ncommand = "serve"\n\n[[packs]]\nmodule = "a.py"\n')

    assert [entry.key for entry in load_config(path, {}).entries] == ["a.py", "mcp/files"]


def test_paths_are_relative_to_the_manifest(folder):
    path = written(folder / "deep", 'store = "s.db"\n', "agentos.toml")
    config = load_config(path, {})

    assert config.folder == folder / "deep"
    assert config.manifest.store == str(folder / "deep" / "s.db")


def test_a_json_schema_reference_is_no_setting(folder):
    assert "$schema" not in origins_in(load_config(written(folder, '"$schema" = "x"\n'), {}))


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_number_is_finite(folder, value):
    path = folder / "agentos.toml"
    path.write_text(f"proposalTtl = {value}\n")
    with pytest.raises(ConfigError) as failure:
        load_config(path, {"AGENTOS_PROPOSAL_TTL": value})

    assert [f"expected a number, got {value}" in one for one in failure.value.problems] == [True, True]
