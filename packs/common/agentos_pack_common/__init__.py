"""What packs stand on. It is no pack itself: it offers no tools.

web        WebClient, WebPolicy, ...  guarded HTTP, as agentos.web has it; WebOptions for a pack's options
paths      Root                       a folder that paths can't leave
processes  run_process, run_python    programs by argv, with limits on time, memory and output, by agentos
bounds     clip, clip_rows            results that say when they were cut
findings   Finding, hidden            what a detector found in a text, and the text without it
texts      decode, plain, quoted      foreign text made harmless
message_parts  split_text, send_parts  texts cut to the limits of a service, and their parts sent in order
sqlite     Database                   a database file: opened with care, migrated, never on the event loop
loopback   serving                    a web server for the tests of packs; nothing that runs in a host uses it
_hidden, _names, _walks, _reading, _saving  what paths is made of

Everything foreign is taken for hostile, and everything has a limit. Nothing here imports an HTTP library before a
request is sent.
"""

from agentos import OptionsError, read_options
from agentos_pack_common.bounds import Clipped, ClippedRows, clip, clip_rows
from agentos_pack_common.message_parts import PartlySentError, send_parts, split_text
from agentos_pack_common.paths import DEFAULT_HIDDEN, BoundedReader, Item, PathError, Root
from agentos_pack_common.processes import (
    SAFE_PATH,
    Limits,
    ProcessError,
    ProcessResult,
    find_program,
    run_process,
    run_python,
)
from agentos_pack_common.texts import decode, plain, quoted
from agentos_pack_common.web import (
    Headers,
    PolicyError,
    Target,
    WebClient,
    WebError,
    WebOptions,
    WebPolicy,
    WebResponse,
    is_base_url,
    parse_url,
    service_policy,
)

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_HIDDEN",
    "SAFE_PATH",
    "BoundedReader",
    "Clipped",
    "ClippedRows",
    "Headers",
    "Item",
    "Limits",
    "OptionsError",
    "PartlySentError",
    "PathError",
    "PolicyError",
    "ProcessError",
    "ProcessResult",
    "Root",
    "Target",
    "WebClient",
    "WebError",
    "WebOptions",
    "WebPolicy",
    "WebResponse",
    "clip",
    "clip_rows",
    "decode",
    "find_program",
    "is_base_url",
    "parse_url",
    "plain",
    "quoted",
    "read_options",
    "run_process",
    "run_python",
    "send_parts",
    "service_policy",
    "split_text",
]
