"""Where a manifest and the files beside it are. Nothing is read."""

from pathlib import Path

ENDINGS = (".toml", ".yaml", ".yml", ".json")


def find_manifest(start: Path | None = None) -> Path | None:
    """Return the nearest manifest: in *start*, else in the folders above it."""
    start = (start or Path.cwd()).absolute()
    for folder in (start, *start.parents):
        if found := manifests_in(folder):
            return found[0]
    return None


def manifests_in(folder: Path) -> list[Path]:
    """Return the manifests in one folder; the first of them counts."""
    return [path for ending in ENDINGS if (path := folder / f"agentos{ending}").is_file()]


def unusable_in(folder: Path) -> list[Path]:
    """Return what has the name of a manifest in one folder, and is not a file."""
    places = [folder / f"agentos{ending}" for ending in ENDINGS]
    return [path for path in places if fault_of_place(path) is not None]


def fault_of_place(path: Path) -> str | None:
    """Say what else than a file is there; None for a file, and where nothing is."""
    if path.is_dir():
        return "is a folder"
    return "is a link that leads nowhere" if path.is_symlink() and not path.exists() else None


def locals_in(folder: Path) -> list[Path]:
    """Return the files of local overrides in one folder; there should be one at most."""
    return [path for ending in ENDINGS if (path := folder / f"overrides.local{ending}").is_file()]


def files_read_for(manifest: Path) -> list[Path]:
    """Return every file that says something if *manifest* counts, also those that are not there yet."""
    return [manifest, *(manifest.with_name(f"overrides.local{ending}") for ending in ENDINGS)]
