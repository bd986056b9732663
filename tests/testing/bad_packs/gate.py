"""Packs that do not leave it to the host whether their secrets are there."""

import os

from testing.parts import count_letters, pack

from agentos import Descriptor

NEEDS = ["openai.apiKey"]


def refuses_to_load_without(context):
    if context.secret("openai.apiKey") is None:
        raise ValueError("set OPENAI_API_KEY")
    return pack(Descriptor("tool", "count_letters", count_letters, required_secrets=NEEDS))


def brings_its_own():
    return pack(
        Descriptor("tool", "count_letters", count_letters, required_secrets=NEEDS),
        on_activate=lambda: os.environ.update(OPENAI_API_KEY="hard-coded-in-the-pack"),
        on_deactivate=lambda: os.environ.pop("OPENAI_API_KEY"),
    )


def reads_it_only_when_it_is_made(context):
    known = context.secret("openai.apiKey")

    def connect():
        if known is None:
            raise ValueError("there was no key when the pack was made")

    return pack(Descriptor("tool", "count_letters", count_letters, required_secrets=NEEDS, on_activate=connect))
