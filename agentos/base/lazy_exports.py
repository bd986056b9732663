"""Public names of a package, imported when they are first asked for: a program pays for what it uses.

The stub beside the package's `__init__.py` is the one list of them, a line for each name:

    from agentos.host import AgentOS as AgentOS

Type checkers read it as it is; at run time only its words are looked at.
"""

from collections.abc import Callable

TYPE_CHECKING = False  # typing's own costs an import
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    Namespace = dict[str, Any]


def homes_of(module: "ModuleType") -> dict[str, str]:
    """Return the module that each public name of a package is imported from."""
    return _homes(vars(module))


def _homes(namespace: "Namespace") -> dict[str, str]:
    spec = namespace["__spec__"]
    stub: str = spec.loader.get_data(f"{spec.submodule_search_locations[0]}/__init__.pyi").decode()
    return {name: home for _, home, _, name, *_ in (line.split() for line in stub.splitlines())}


def lazy_exports(
    namespace: "Namespace", before: Callable[[], object] = lambda: None
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of the package whose globals are given.

    *before* is called before a name is imported. Submodules that stand in the stub are imported in the same way, and
    are not part of `__all__`.
    """
    package, homes = namespace["__name__"], _homes(namespace)
    public = sorted(name for name, home in homes.items() if home != package)

    def get(name: str) -> object:
        from importlib import import_module

        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        before()
        home = homes[name]
        value = import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)
        namespace[name] = value
        return value

    def names() -> list[str]:
        return sorted({*public, *(name for name in namespace if name.startswith("__"))})

    return public, get, names
