"""That a log was begun, noted beside the key: emptying the tables does not reach it there."""

import contextlib
import json
from pathlib import Path

import attrs

from agentos.base.atomic_files import make_file
from agentos.errors import StoreError
from agentos.store.locations import StorePlace
from agentos.store.sealing_key import MARK, key_file

_LIMIT = 4_096
"""How many bytes a mark has at most."""


@attrs.frozen(kw_only=True)
class Mark:
    """Which log was begun: the hash of its first record, when that was noted, and by which key."""

    first: str
    at: str
    key_id: str
    seal: str = ""

    @property
    def text(self) -> str:
        """Return what is sealed."""
        return f"log begun\n{self.first}\n{self.at}"


def mark_file(place: StorePlace) -> Path | None:
    """Return where the mark of a store is: beside its key, or where its key would be; None for one in memory."""
    return key_file(place).with_suffix(MARK) if place.is_durable else None


def read_mark(file: Path) -> Mark | None:
    """Return what *file* says; None if there is none. Raise StoreError if it can't be read."""
    try:
        with file.open("rb") as stream:
            data = json.loads(stream.read(_LIMIT))
        return Mark(**{key: str(data[key]) for key in ("first", "at", "key_id", "seal")})
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(f"{file}, which says that a log was begun, can't be read: {error.strerror}") from None
    except (ValueError, TypeError, LookupError):
        raise StoreError(f"{file} does not hold the mark of a log that was begun; restore it from a backup") from None


def make_mark(file: Path, mark: Mark) -> None:
    """Write *mark*, unless there is one; raise OSError if that can't be done."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        make_file(file, f"{json.dumps(attrs.asdict(mark))}\n".encode("ascii"), private=True)
