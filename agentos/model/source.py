"""Who brought a descriptor."""

import attrs


@attrs.frozen
class Source:
    """Who brought it: a pack, its version, its key in the manifest, and where it came from.

    `origin` is "factory", a file, or a distribution with its version.
    """

    pack: str
    version: str | None = None
    identifier: str | None = None
    origin: str = "factory"

    def __str__(self) -> str:
        version = f" {self.version}" if self.version else ""
        return f"{self.pack}{version}"


HOST = Source(pack="builtin", origin="host")
"""The source of what a host pushes by hand."""
