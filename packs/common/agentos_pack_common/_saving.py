"""Writing a file so that it is there whole or not at all."""

import contextlib
import errno
import os
import secrets
import stat

from agentos_pack_common._names import PathError, check_new, telling
from agentos_pack_common._reading import check_regular
from agentos_pack_common._walks import READABLE_FOLDER, Walk

PREFIX = ".agentos-part-"
"""How a file begins that is not there yet."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES)


def save(walk: Walk, data: bytes, *, overwrite: bool, mode: int) -> None:
    """Write *data* where *walk* arrived: into a file beside it first, then by renaming that."""
    if walk.kind:
        check_regular(walk.kind, walk.label)
        if not overwrite:
            raise PathError("exists", walk.label, "exists already; choose another name, or say that it may be replaced")
    elif walk.must_be_folder:
        raise PathError("bad", walk.label, "ends like a folder; leave out the slash at its end")
    else:
        check_new(walk.name, walk.parts)
    with telling(walk.label):
        beside = _written(walk, data, mode if walk.info is None else stat.S_IMODE(walk.info.st_mode) & 0o777)
        try:
            (put if overwrite else put_new)(walk.fd, beside, walk.fd, walk.name)
        except BaseException:
            _drop(walk.fd, beside)
            raise
        sync_folder(walk.fd)


def _written(walk: Walk, data: bytes, mode: int) -> str:
    """Write *data* into a new file, down to the disk, and return its name."""
    name = f"{PREFIX}{secrets.token_hex(8)}"
    fd = os.open(name, _NEW, 0o600, dir_fd=walk.fd)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fchmod(fd, mode)
        os.fsync(fd)
    except BaseException:
        _drop(walk.fd, name)
        raise
    finally:
        os.close(fd)
    return name


def _drop(fd: int, name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=fd)


# -- giving a file its name --------------------------------------------------------------------------------------


def put(from_fd: int, old: str, to_fd: int, new: str) -> None:
    """Rename a file, over what is there."""
    os.replace(old, new, src_dir_fd=from_fd, dst_dir_fd=to_fd)


def put_new(from_fd: int, old: str, to_fd: int, new: str) -> None:
    """Rename a file; raise FileExistsError if the new name is taken, even by someone who was quicker."""
    try:
        os.link(old, new, src_dir_fd=from_fd, dst_dir_fd=to_fd, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    else:
        os.unlink(old, dir_fd=from_fd)
        return
    # Here files can't have two names: claim the new one with an empty file, and put the old one over it.
    os.close(os.open(new, _NEW, 0o600, dir_fd=to_fd))
    try:
        put(from_fd, old, to_fd, new)
    except BaseException:
        _drop(to_fd, new)
        raise


def sync_folder(fd: int) -> None:
    """Make sure that a new name outlives a crash, where the file system can."""
    with contextlib.suppress(OSError):
        real = os.open(".", READABLE_FOLDER, dir_fd=fd)
        try:
            os.fsync(real)
        finally:
            os.close(real)
