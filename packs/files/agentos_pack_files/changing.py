"""write_file, edit_file, move_file, delete_file: each is planned first, and a preview is a plan not carried out."""

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import attrs
from agentos_pack_common import PathError, Root

from agentos import Schema, ToolContext
from agentos_pack_files._diff import Diff, diff_changes, diff_texts
from agentos_pack_files._edits import changes_of, find_spans, miscounted, replaced
from agentos_pack_files._text import LINE_END, BinaryError, Text, decode_text, usual_end, with_ends
from agentos_pack_files.options import FilesOptions
from agentos_pack_files.reading import Encoding, PathArgument, Sha256, count_invisible, load_text

CONTENT_CHARS = 2_000_000

ExpectedArgument = Annotated[
    Sha256 | None,
    "The sha256 that the file has now, as read_file told it; if it has changed since, nothing is done",
]
ContentArgument = Annotated[str, "The whole text to write, or what to append", Schema(maxLength=CONTENT_CHARS)]


@attrs.frozen
class Changed:
    """What was written, or would be."""

    path: str
    action: Literal["created", "overwritten", "appended", "edited", "unchanged"]
    applied: Annotated[bool, "false in a preview"]
    replaced: Annotated[int, "How often old_text was replaced"]
    size: Annotated[int, "Bytes of the file afterwards"]
    sha256: Annotated[str, "Of the file afterwards"]
    encoding: str
    diff: Annotated[str, "A unified diff; empty if nothing changes or if the file was no text"]
    diff_truncated: bool
    lines_added: int
    lines_removed: int
    invisible: Annotated[int, "How many control, bidirectional or zero-width characters the new text has"]


@attrs.frozen
class Moved:
    """What was moved, or would be."""

    source: str
    destination: str
    kind: Literal["file", "folder", "link", "other"]
    replaced: Annotated[bool, "A file was at the destination and is gone"]
    applied: Annotated[bool, "false in a preview"]


@attrs.frozen
class Deleted:
    """What was deleted, or would be."""

    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: Annotated[int, "Bytes; of a file only"]
    modified: Annotated[str, "ISO 8601, UTC"]
    sha256: Annotated[str | None, "null if it is no file, or too large"]
    applied: Annotated[bool, "false in a preview"]


@attrs.frozen
class _Write:
    """What is to be written, and what is told of it."""

    data: bytes = attrs.field(repr=False)
    overwrite: bool
    told: Changed


class ChangingTools:
    """The tools that change something. One call at a time reads and then writes, so that no change is lost."""

    def __init__(self, root: Root, options: FilesOptions) -> None:
        self._root = root
        self._most = options.max_file_bytes
        self._turn = threading.Lock()

    # -- write_file ----------------------------------------------------------------------------------------------

    def write_file(
        self,
        path: PathArgument,
        content: ContentArgument,
        if_exists: Annotated[
            Literal["fail", "overwrite", "append"],
            "What to do if the file exists: fail, replace the whole file, or append in its encoding and line ends",
        ] = "fail",
        expected_sha256: ExpectedArgument = None,
        *,
        context: ToolContext | None = None,
    ) -> Changed:
        """Write a text file; folders on the way are made. The result has a unified diff.

        It is written as UTF-8, with the line ends that the content has, whole or not at all. An existing file is
        kept unless if_exists says otherwise. To change a part of a file use edit_file. Files that usually hold
        secrets can't be written.
        """
        with self._own_turn(context):
            plan = self._plan_write(path, content, if_exists, expected_sha256)
            self._root.write_bytes(path, plan.data, overwrite=plan.overwrite, parents=True)
        return attrs.evolve(plan.told, applied=True)

    def preview_write(self, arguments: Mapping[str, Any], _: object) -> Changed:
        """Say what write_file would do."""
        given = {"if_exists": "fail", "expected_sha256": None, **arguments}
        return self._plan_write(given["path"], given["content"], given["if_exists"], given["expected_sha256"]).told

    def _plan_write(self, path: str, content: str, if_exists: str, expected: str | None) -> _Write:
        old = self._current(path)
        _check_expected(path, expected, old)
        if old is None:
            self._root.check_new(path)
            data = self._encoded(Text("", "utf-8"), content, "content")
            return _Write(
                data,
                overwrite=False,
                told=self._result(path, content, "created", data, diff_texts(path, None, content)),
            )
        if if_exists == "fail":
            raise PathError("exists", path, "exists already; say if_exists overwrite or append, or use edit_file")
        before, source = old, _source(old)
        if if_exists == "append":
            return self._appended(path, before, source, content)
        data = self._encoded(Text("", "utf-8"), content, "content")
        diff = Diff("", 0, 0, truncated=False) if source is None else diff_texts(path, source.text, content)
        action: Literal["unchanged", "overwritten"] = "unchanged" if data == before else "overwritten"
        return _Write(data, overwrite=True, told=self._result(path, content, action, data, diff))

    def _appended(self, path: str, before: bytes, source: Text | None, content: str) -> _Write:
        if source is None:
            raise ValueError(f"path: {path!r} is a binary file; nothing can be appended to it")
        added = with_ends(content, usual_end(source.text)) if LINE_END.search(source.text) else content
        _check_guess(path, source, added, "content")
        data = before + self._encoded(attrs.evolve(source, bom=b""), added, "content")
        self._check_size(data, "content")
        diff = diff_texts(path, source.text, source.text + added)
        return _Write(data, overwrite=True, told=self._result(path, content, "appended", data, diff, source.encoding))

    # -- edit_file -----------------------------------------------------------------------------------------------

    def edit_file(
        self,
        path: PathArgument,
        old_text: Annotated[
            str,
            "The text to replace, exactly as it stands in the file, with its blanks; long enough to be there only once",
            Schema(minLength=1, maxLength=200_000),
        ],
        new_text: Annotated[str, "What to put in its place; empty to delete it", Schema(maxLength=200_000)],
        count: Annotated[
            int, "How often old_text must be in the file; all of them are replaced", Schema(minimum=1, maximum=10_000)
        ] = 1,
        encoding: Annotated[Encoding, "How the bytes are to be read and written; auto as in read_file"] = "auto",
        expected_sha256: ExpectedArgument = None,
        *,
        context: ToolContext | None = None,
    ) -> Changed:
        """Replace an exact text in a text file by another; the result has a unified diff.

        If old_text is not there exactly `count` times, nothing is changed and the error says where it is. Line ends
        do not matter for finding, and those of the file are kept, as are its encoding and every byte around. Read
        the file first; to write a whole file use write_file.
        """
        with self._own_turn(context):
            plan = self._plan_edit(path, old_text, new_text, count, encoding, expected_sha256)
            self._root.write_bytes(path, plan.data, overwrite=True)
        return attrs.evolve(plan.told, applied=True)

    def preview_edit(self, arguments: Mapping[str, Any], _: object) -> Changed:
        """Say what edit_file would do."""
        given = {"count": 1, "encoding": "auto", "expected_sha256": None, **arguments}
        names = ("path", "old_text", "new_text", "count", "encoding", "expected_sha256")
        return self._plan_edit(*(given[name] for name in names)).told

    def _plan_edit(self, path: str, old: str, new: str, count: int, encoding: Encoding, expected: str | None) -> _Write:
        loaded = load_text(self._root, path, self._most, encoding)
        _check_hash(path, expected, loaded.sha256)
        text = loaded.source.text
        spans = find_spans(text, old)
        if len(spans) != count:
            raise ValueError(miscounted(path, text, spans, count, old))
        new = with_ends(new, usual_end(text)) if LINE_END.search(text) else new
        _check_guess(path, loaded.source, new, "new_text")
        edited = replaced(text, spans, new)
        data = self._encoded(loaded.source, edited, "new_text")
        diff = diff_changes(loaded.path, text, changes_of(text, spans, new))
        action: Literal["unchanged", "edited"] = "unchanged" if edited == text else "edited"
        told = self._result(path, new, action, data, diff, loaded.source.encoding)
        return _Write(data, overwrite=True, told=attrs.evolve(told, replaced=len(spans)))

    # -- move_file, delete_file ----------------------------------------------------------------------------------

    def move_file(
        self,
        source: PathArgument,
        destination: Annotated[
            str,
            "The whole new path, not only the folder; folders on the way are made",
            Schema(minLength=1, maxLength=4096),
        ],
        overwrite: Annotated[bool, "Replace a file that is at the destination"] = False,
        *,
        context: ToolContext | None = None,
    ) -> Moved:
        """Move or rename a file, a folder with all that is in it, or a link itself.

        A folder is never replaced, and nothing is replaced unless overwrite is true.
        """
        with self._own_turn(context):
            told = self._plan_move(source, destination, overwrite=overwrite)
            folder = told.destination.rpartition("/")[0]
            if folder:
                self._root.make_folder(folder, parents=True, exist_ok=True)
            self._root.rename(source, told.destination, overwrite=overwrite)
        return attrs.evolve(told, applied=True)

    def preview_move(self, arguments: Mapping[str, Any], _: object) -> Moved:
        """Say what move_file would do."""
        overwrite = arguments.get("overwrite", False)
        return self._plan_move(arguments["source"], arguments["destination"], overwrite=overwrite)

    def _plan_move(self, source: str, destination: str, *, overwrite: bool) -> Moved:
        item = self._root.stat(source, follow=False)
        target = self._root.relative(destination)
        if target == item.path:
            raise ValueError(f"destination: {destination!r} is where it is already")
        if target.startswith(f"{item.path}/"):
            raise ValueError(f"destination: {destination!r} is inside of what is to be moved")
        there = self._root.find(target)
        if there is not None and there.kind == "folder":
            raise PathError("exists", destination, "is a folder; give the whole new path, with the name at its end")
        if there is not None and not overwrite:
            raise PathError("exists", destination, "exists already; choose another name, or say overwrite")
        self._root.check_rename(source, target, overwrite=overwrite)
        return Moved(item.path, target, item.kind, there is not None, applied=False)

    def delete_file(
        self, path: PathArgument, expected_sha256: ExpectedArgument = None, *, context: ToolContext | None = None
    ) -> Deleted:
        """Delete one file, one link (not what it leads to) or one empty folder, for good.

        There is no way to have it back and no way to delete a folder that has something in it.
        """
        with self._own_turn(context):
            told = self._plan_delete(path, expected_sha256)
            remove = self._root.remove_folder if told.kind == "folder" else self._root.remove_file
            remove(path)
        return attrs.evolve(told, applied=True)

    def preview_delete(self, arguments: Mapping[str, Any], _: object) -> Deleted:
        """Say what delete_file would do."""
        return self._plan_delete(arguments["path"], arguments.get("expected_sha256"))

    def _plan_delete(self, path: str, expected: str | None) -> Deleted:
        item = self._root.stat(path, follow=False)
        if item.path == ".":
            raise PathError("bad", path, "is the root folder itself")
        if item.kind == "other":
            raise PathError("not_a_file", path, "is not a regular file")
        if item.kind == "folder" and next(self._root.scan(path), None) is not None:
            raise PathError("exists", path, "is not empty; delete what is in it first")
        if item.kind == "folder" and not self._root.is_empty(path):
            raise PathError("exists", path, "is not empty: what is in it is hidden, and can't be deleted here")
        digest = None
        if item.kind == "file" and item.size <= self._most:
            digest = hashlib.sha256(self._root.read_bytes(path, max_bytes=self._most)).hexdigest()
        _check_hash(path, expected, digest)
        return Deleted(
            item.path, item.kind, item.size, item.modified.isoformat(timespec="seconds"), digest, applied=False
        )

    # -- what they share -----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _own_turn(self, context: ToolContext | None) -> Iterator[None]:
        """Wait for the others; then change nothing if nobody waits for us any more."""
        with self._turn:
            if context is not None and context.cancelled:
                raise ValueError("the call was ended before its turn came; nothing was changed")
            yield

    def _current(self, path: str) -> bytes | None:
        """Return the bytes of a file; None if it is not there."""
        try:
            return self._root.read_bytes(path, max_bytes=self._most)
        except PathError as error:
            if error.kind != "missing":
                raise
        return None

    def _encoded(self, source: Text, text: str, argument: str) -> bytes:
        try:
            data = source.encoded(text)
        except UnicodeEncodeError as error:
            char = f"U+{ord(error.object[error.start]):04X}"
            raise ValueError(f"{argument}: {char} can't be written in {source.encoding}; leave it out") from None
        self._check_size(data, argument)
        return data

    def _check_size(self, data: bytes, argument: str) -> None:
        if len(data) > self._most:
            raise ValueError(f"{argument}: the file would have {len(data):,} bytes; at most {self._most:,} are allowed")

    def _result(self, path: str, text: str, action: Any, data: bytes, diff: Diff, encoding: str = "utf-8") -> Changed:
        return Changed(
            path=self._root.relative(self._root.resolve(path)),
            action=action,
            applied=False,
            replaced=0,
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            encoding=encoding,
            diff=diff.text,
            diff_truncated=diff.truncated,
            lines_added=diff.added,
            lines_removed=diff.removed,
            invisible=count_invisible(text),
        )


def _source(data: bytes) -> Text | None:
    try:
        return decode_text(data)
    except (BinaryError, UnicodeDecodeError):
        return None


def _check_expected(path: str, expected: str | None, data: bytes | None) -> None:
    if expected is not None and data is None:
        raise PathError("missing", path, "does not exist, but expected_sha256 was given; list the folder")
    _check_hash(path, expected, None if data is None else hashlib.sha256(data).hexdigest())


def _check_hash(path: str, expected: str | None, found: str | None) -> None:
    if expected is not None and expected != found:
        raise ValueError(f"expected_sha256: {path!r} is not as expected any more; read it again and decide anew")


def _check_guess(path: str, source: Text, text: str, argument: str) -> None:
    """Refuse to write what may come out as something else: the encoding is a guess."""
    if source.is_guess and not text.isascii():
        raise ValueError(
            f"{argument}: {path!r} is not UTF-8 and its encoding is not known; name the encoding, or use ASCII only"
        )
