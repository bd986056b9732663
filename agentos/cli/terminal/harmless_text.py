"""Foreign text, made harmless to a terminal."""


def clean(text: object) -> str:
    """Return *text* with everything written out that a terminal would obey or hide; lines and tabs stay."""
    text = str(text)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else _written_out(char) for char in text)


def one_line(text: object) -> str:
    """Return *text* cleaned, on one line."""
    return " ".join(clean(text).split())


def counted(number: int, noun: str) -> str:
    """Return how many there are of something, in words."""
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def _written_out(char: str) -> str:
    return " " if char.isspace() and char > "\x7f" else char.encode("unicode_escape").decode("ascii")
