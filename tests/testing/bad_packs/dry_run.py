"""Packs whose dry runs are not dry."""

from pathlib import Path

from testing.parts import Text, pack, reads

from agentos import PUBLIC, tool


def with_preview(preview, *more, **fields):
    @tool(effect="mutate", required_access=PUBLIC, dry_run=preview)
    async def send_text(text: Text) -> str:
        """Send a text to whoever is listening."""
        return "sent"

    return pack(send_text, *more, **fields)


def writes():
    def preview(arguments, context):
        Path("outbox.txt").write_text("draft")
        return "would send it"

    return with_preview(preview, on_deactivate=lambda: Path("outbox.txt").unlink(missing_ok=True))


def counts():
    drafts = []

    @reads
    async def list_drafts() -> int:
        """List how many texts wait to be sent."""
        return len(drafts)

    def preview(arguments, context):
        drafts.append(arguments["text"])
        return "would send it"

    return with_preview(preview, list_drafts)
