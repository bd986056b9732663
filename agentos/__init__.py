"""agentos: the extension layer for programs that have an agent in them.

From the bottom to the top; a room imports what is beneath it.

errors.py    the one tree of errors
base/        atomic files, canonical JSON, locks between processes, code of others, names imported when asked for
web/         HTTP to foreign hosts, every hop checked
schema/      JSON Schema from signatures, validation, errors explained
model/       frozen values: what packs, manifests and operators say
processes/   child processes: started, supervised, ended
rules/       rules over the arguments of a call
store/       what must last, in SQL: SQLite embedded, PostgreSQL shared
stacks/      who is active on a stack, and why; registries
secrets/     catalog, sources in order, the scope of each pack, the mask on everything that leaves
loading/     a factory, a module or a package becomes a pack
extensions/  ExtensionManager, the only writer of stacks; events; shared services
tools/       what a tool is, how it is listed and searched, and lint
access/      who may do what: gate, proposals, grants, budgets, pins, audit
openapi/     tools from an OpenAPI document
payloads/    functions of packs, asked in order, with a context and a time limit
guards/      guardrails: asked about texts, calls and results
calls/       the way of a call, from its name to its result; approvals
kinds/       what is special about each kind
workers/     packs in processes of their own
interop/     other SDKs: schemas out, calls in
turn/        a turn with a model
workflows/   workflows that survive their process
mcp/         MCP both ways
host.py      AgentOS: the facade
testing/     the kit for pack authors
cli/         the command `agentos`
"""

from os.path import exists as _exists

from agentos._version import __version__ as __version__
from agentos.base.lazy_exports import lazy_exports

# Our own kinds declare themselves before anybody uses one. __init__.pyi lists every public name.
__all__, __getattr__, __dir__ = lazy_exports(globals(), before=lambda: __import__("agentos.kinds"))

# Ours is a folder: this file came with the distribution `agentos`, which is another project's.
if _exists(f"{__path__[0]}/cli.py"):  # noqa: PTH110 - pathlib costs more to import than all of this
    from agentos.base.other_distribution import warn_of_other as _warn_of_other

    _warn_of_other(__path__[0])
