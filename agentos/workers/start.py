"""The first lines of a worker, run by the path of this file: `python -S start.py SPEC ...`, whatever else is installed.

Nothing foreign is imported before the process is limited and confined: not even site-packages is read, which may hold
code that runs by itself. agentos is the host's, by its files, so that both sides speak the same way.
"""

import sys


def load_agentos(folder: str) -> None:
    """Import agentos from *folder*, wherever else there may be one."""
    from importlib.util import module_from_spec, spec_from_file_location

    place = spec_from_file_location("agentos", f"{folder}/__init__.py", submodule_search_locations=[folder])
    if place is None or place.loader is None:
        raise ImportError(f"there is no agentos in {folder}")
    sys.modules["agentos"] = module = module_from_spec(place)
    place.loader.exec_module(module)


def set_paths(paths: list[str], *, is_host: bool) -> None:
    """Let imports find what the host finds, as it does in the host's interpreter, else behind all that is here."""
    import site

    site.main()
    sys.path[:] = paths if is_host else [*sys.path, *(path for path in paths if path not in sys.path)]


def prepare() -> None:
    """Prepare this process by what its first argument says, and take that away."""
    import json

    spec = json.loads(sys.argv.pop(1))
    load_agentos(spec["agentos"])
    from agentos.workers.process_limits import prepare_process

    prepare_process(spec)
    set_paths(spec["paths"], is_host=spec["is_host"])


def main() -> None:
    """Prepare this process; then be the worker that the other arguments speak of."""
    prepare()
    from agentos.workers.child import main as serve

    serve()


if __name__ == "__main__":
    main()
