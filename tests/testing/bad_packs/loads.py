"""Packs that can't be loaded, or are not in force when they are."""

from testing.parts import count_letters, pack

from agentos import Descriptor, ExtensionPack


def raises():
    raise RuntimeError("no licence found")


def returns_something_else():
    return {"name": "not a pack"}


def is_shut():
    return pack(Descriptor("tool", "count_letters", count_letters, gate=lambda: "out of order"))


def needs_another_version():
    return ExtensionPack("example", "1.0", [count_letters], requires_agentos=">=99")
