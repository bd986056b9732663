"""Whether a disk is full: many errors of files and databases come from that, and few say so."""

import errno
import os
from pathlib import Path

FREE_SOME = "Free some space on that disk"
_ROOM = 128 * 1024
"""How many bytes a database needs at least beside its file, to be read at all."""


def is_full(error: BaseException) -> bool:
    """Tell whether a full disk, or a quota that is used up, is what *error* comes from."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def has_no_room(folder: Path) -> bool:
    """Tell whether the disk that *folder* is on is full: hardly a byte is free, or no file can be added.

    One that is mounted to be read only is not: it never had room.
    """
    try:
        disk = os.statvfs(folder)
    except (OSError, AttributeError):  # it is not there, or the platform can't tell
        return False
    has_none = disk.f_bavail * disk.f_frsize < _ROOM or (disk.f_files > 0 and disk.f_favail == 0)
    return has_none and not disk.f_flag & os.ST_RDONLY


def reason(error: OSError) -> str:
    """Say why a file can't be used: that the disk is full, if so, in these words."""
    said = error.strerror or type(error).__name__
    return f"the disk is full ({said})" if is_full(error) else said


def way_out(error: BaseException, otherwise: str) -> str:
    """Return what to do about *error*: make room if the disk is full, else what *otherwise* says."""
    return FREE_SOME if is_full(error) else otherwise
