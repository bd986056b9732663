"""What `make run` shows: the command `agentos` on an example manifest, from the stacks to a pack that crashes."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SHOWN = [
    ("Every stack: who is active, and why", ["stacks"]),
    ("A pack with a slip in its name is kept away", ["packs", "disable", "calculater", "--in-manifest"]),
    ("Why is there no giphy_search?", ["why", "tool:giphy_search"]),
    ("A call runs", ["tools", "call", "greet", "name=Ada"]),
    ("A curated pack looks into its folder", ["tools", "call", "grep_files", "pattern=def greet"]),
    ("Arguments are checked", ["tools", "call", "convert_units", "value=12", "from=km/h", "too=m/s"]),
    ("What the host denies does not run", ["--principal", "ada", "tools", "call", "clear_notes"]),
    ("What a principal may not call is not there", ["--principal", "guest", "tools", "call", "add_note", "text=Hello"]),
    ("What changes something waits for a person", ["--principal", "ada", "tools", "call", "add_note", "text=Buy milk"]),
]


def run(folder: Path, *words: str, shown: bool = True) -> str:
    """Run `agentos` with *words*, as one would type it, and return what it prints."""
    if shown:
        print(f"\n$ agentos {' '.join(words)}", flush=True)
    env = {**os.environ, "AGENTOS_STORE": str(folder / "agentos.db"), "AGENTOS_MANIFEST": str(folder / "agentos.toml")}
    command = [sys.executable, "-m", "agentos.cli", *words]
    # What is shown goes through one pipe: errors stand where they happened, whatever ours is.
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT if shown else None}
    done = subprocess.run(command, env=env, **streams, text=True, check=False)  # type: ignore[call-overload]  # noqa: S603 - our own words
    if shown:
        print(done.stdout, end="", flush=True)
    return str(done.stdout)


def manifest_in(folder: Path) -> None:
    """Copy the example manifest to where its store and notes may be written, with paths that still hold."""
    text = (HERE / "manifest.toml").read_text("utf-8")
    for name in ("hello", "polite", "notes"):
        text = text.replace(f'"{name}.py"', json.dumps(str(HERE / f"{name}.py")))
    for name in ("notes.txt", "memory.db", "tasks.db"):
        text = text.replace(f'"{name}"', json.dumps(str(folder / name)))
    text = text.replace('root = "."', f"root = {json.dumps(str(HERE))}")
    (folder / "agentos.toml").write_text(text, "utf-8")


def main() -> None:
    """Show the tour."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifest_in(folder)
        for number, (title, words) in enumerate(SHOWN, start=1):
            print(f"\n--- {number}. {title} ".ljust(100, "-"), flush=True)
            run(folder, *words)
        print(f"\n--- {len(SHOWN) + 1}. A person approves, and it runs once ".ljust(100, "-"), flush=True)
        waiting = json.loads(run(folder, "--json", "approvals", "list", shown=False))
        run(folder, "--principal", "ada", "approvals", "approve", waiting["proposals"][0]["id"], "--yes")
        run(folder, "tools", "call", "read_notes")
        run(folder, "audit", "verify")
    print(f"\n--- {len(SHOWN) + 2}. A pack crashes its process, and the host goes on ".ljust(100, "-"), flush=True)
    print("\n$ python examples/survive.py", flush=True)
    subprocess.run([sys.executable, str(HERE / "survive.py")], check=True)  # noqa: S603 - our own words
    print(
        "\nTry next, with `. .venv/bin/activate` and in the folder examples:\n"
        "  agentos --manifest manifest.toml doctor        what is wrong here, with the cure\n"
        "  GIPHY_API_KEY=... agentos --manifest manifest.toml tools list\n"
        "  mkdir /tmp/mine && cd /tmp/mine && agentos init && agentos tools list"
        "\n\nOr look at all of it in a browser, at http://127.0.0.1:8765 by the link that this prints:\n"
        "  .venv/bin/agentos --manifest examples/manifest.toml studio"
    )


if __name__ == "__main__":
    main()
