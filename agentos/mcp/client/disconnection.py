"""Why a connection is over, for two kinds of readers."""

import attrs


@attrs.frozen
class DisconnectReason:
    """A reason in our own words, which a model may read, and with those of the server, for the log and for people."""

    brief: str
    whole: str

    @classmethod
    def plain(cls, words: str) -> "DisconnectReason":
        """Return a reason that is all ours."""
        return cls(words, words)
