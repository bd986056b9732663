"""Foreign text within a message."""


def quoted(text: str, limit: int = 100) -> str:
    """Return *text* for a message: in quotes, on one line, short, with nothing hidden in it."""
    quote = repr(text) if text.isprintable() else ascii(text)
    return quote if len(quote) <= limit else f"{quote[:limit]}...'"
