"""A pack that fails in the way its options say."""

import os

import attrs

from agentos import Descriptor, ExtensionPack, SecretRequirement, read_options, tool


@attrs.frozen
class Options:
    fault: str = ""
    size: int | None = None
    max_items: int = 5


def create_extension_pack(context):
    fault = context.options.get("fault", "")
    if fault == "raise":
        raise LookupError("nothing there")
    if fault == "import":
        import there_is_no_such_module  # noqa: F401
    if fault == "tool":
        tool(len)
    if fault == "return":
        return {"not": "a pack"}
    limit = read_options(Options, context.options).max_items
    key = SecretRequirement("faulty_key", env="FAULTY_KEY")
    found = f"{'set' if 'FAULTY_KEY' in os.environ else 'unset'}, asked: {context.secret('faulty_key')}"
    return ExtensionPack(
        "faulty",
        "1",
        [Descriptor("note", "limit", limit), Descriptor("note", "env", found, required_secrets=[key])],
        options=Options,
    )
