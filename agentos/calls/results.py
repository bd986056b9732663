"""Whatever a tool returned, into one result: JSON, bounded, masked, never empty."""

import base64
import enum
import json
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any
from uuid import UUID

import attrs

from agentos.calls.media_files import MediaFiles, UnreadableMediaError, why_unreadable
from agentos.model.bounded_data import data_size, data_within
from agentos.model.media import MEDIA_COUNT, Media, printable_name, reference_in_words
from agentos.model.settings import ResultLimits
from agentos.model.tool_call import ToolError, ToolResult
from agentos.schema.build import show_duration
from agentos.secrets.masking import Masker

CONTENT_LIMIT = ResultLimits().content
"""How many characters of content a model is given."""
OUTPUT_LIMIT = ResultLimits().output
"""How many characters of JSON are kept as output."""
STATE_LIMIT = ResultLimits().state
"""How many characters of JSON are kept as state, as what a tool says in `meta`, and as details of an error."""
_TYPE_LIMIT = 200
_DEPTH = 64
_OCTETS = "application/octet-stream"
_encode = json.JSONEncoder(ensure_ascii=False).encode
PLAIN = frozenset({str, int, bool, type(None)})
"""Types whose values are JSON as they are."""


class NotSerialisableError(ValueError):
    """Output that is not JSON and can't be made JSON."""


def to_json(value: Any, path: str = "$", depth: int = 0, media: list[Media] | None = None) -> Any:
    """Return *value* as plain JSON values; raise NotSerialisableError with the place that can't be.

    Media in it are put into *media*; in the JSON stands what each is.
    """
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise NotSerialisableError(f"{path} is {value}, which is not JSON")
        return value
    if depth > _DEPTH:
        raise NotSerialisableError(f"{path} is nested deeper than {_DEPTH} levels")
    if kind is dict or isinstance(value, Mapping):
        return {_key(key, path): to_json(item, f"{path}.{key}", depth + 1, media) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [to_json(item, f"{path}[{index}]", depth + 1, media) for index, item in enumerate(value)]
    return _referenced(value, media) if kind is Media else _converted(value, path, depth, media)


def _referenced(value: Media, media: list[Media] | None) -> dict[str, Any]:
    if media is not None:
        media.append(value)
    return value.reference()


def _key(key: Any, path: str) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, str):
        return str(key)
    if isinstance(key, int | float | bool) or key is None:
        return json.dumps(key)
    raise NotSerialisableError(f"{path} has a key of type {type(key).__name__}")


def _converted(value: Any, path: str, depth: int, media: list[Media] | None) -> Any:
    """Return JSON for the types that have an obvious form; pydantic models by their own method."""
    if isinstance(value, enum.Enum):
        return to_json(value.value, path, depth + 1, media)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | float):
        return to_json(float(value) if isinstance(value, float) else int(value), path, depth + 1, media)
    if attrs.has(type(value)):
        # As in the schema: what is not an argument of the class is not part of its JSON.
        fields = {_alias(field): getattr(value, field.name) for field in attrs.fields(type(value)) if field.init}
        return to_json(fields, path, depth + 1, media)
    if hasattr(value, "__dataclass_fields__"):
        members = [name for name, field in value.__dataclass_fields__.items() if field.init and hasattr(value, name)]
        return to_json({name: getattr(value, name) for name in members}, path, depth + 1, media)
    if callable(dump := getattr(value, "model_dump", None)):
        return to_json(dump(mode="json"), path, depth + 1, media)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return show_duration(value) if value >= timedelta() else value.total_seconds()
    if isinstance(value, UUID | PurePath | Decimal):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if hasattr(value, "_asdict"):
        return to_json(value._asdict(), path, depth + 1, media)
    if isinstance(value, AbstractSet):
        items = [to_json(item, path, depth + 1, media) for item in value]
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, Sequence):
        return [to_json(item, f"{path}[{index}]", depth + 1, media) for index, item in enumerate(value)]
    raise NotSerialisableError(f"{path} is a {type(value).__name__}, which has no JSON form")


def _alias(field: "attrs.Attribute[Any]") -> str:
    return field.alias or field.name


def as_text(output: Any) -> str:
    """Return what a model reads of *output*; never empty."""
    if type(output) is str:
        return output if output.strip() else "(empty text)"
    if type(output) is int:
        return str(output)
    if output is None:
        return "(no output)"
    return _encode(output)


def _lines(value: Any, output: Any) -> str:
    """Return what a model reads of media, alone or in a list: each item as a text of its own."""
    if isinstance(value, Media):
        return reference_in_words(output)
    if not isinstance(value, list | tuple) or not any(isinstance(one, Media) for one in value):
        return as_text(output)
    pairs = zip(value, output, strict=True)
    return "\n".join(reference_in_words(out) if isinstance(one, Media) else as_text(out) for one, out in pairs)


class Results:
    """Makes the one result of a call, within limits and without secrets."""

    def __init__(
        self, masker: Masker, limits: ResultLimits | None = None, media_files: MediaFiles | None = None
    ) -> None:
        self._masker = masker
        self._files = MediaFiles() if media_files is None else media_files
        self._limits = ResultLimits() if limits is None else limits
        self._content_limit = self._limits.content

    def success(self, value: Any, meta: Mapping[str, Any]) -> ToolResult:
        """Return the result of a tool that returned *value*: plain, or a ToolResult of its own."""
        if type(value) is ToolResult:
            return self._own(value, meta)
        media: list[Media] = []
        try:
            output = to_json(value, media=media)
        except (NotSerialisableError, RecursionError) as error:
            return self.failure(
                "ResultNotSerialisable",
                f"the tool did run, but what it returned is not JSON: {error}",
                meta,
            )
        if media:
            return self._own(ToolResult(True, output, _lines(value, output), media=media), meta)
        if self._masker.knows_any:
            output = self._masker.mask_data(output)
            content = self._masker.mask(as_text(output))
        else:
            content = as_text(output)
        if len(content) > self._content_limit:
            return self._clamped(ToolResult(success=True, output=output, content=content, meta=meta))
        return ToolResult(True, output, content, None, None, False, meta)

    def failure(
        self,
        type: str,
        message: str,
        meta: Mapping[str, Any],
        details: Mapping[str, Any] | None = None,
        state: Any = None,
    ) -> ToolResult:
        """Return a failure with a message that a model can act on."""
        message = self._masker.mask(message)
        safe = self._masker.mask_data(dict(details)) if details else {}
        error = self._error(type, message, safe)
        content = self._cut(f"{error.type}: {message}")
        return ToolResult(success=False, content=content, error=error, meta=meta, state=state)

    def _error(self, type: str, message: str, details: Mapping[str, Any]) -> ToolError:
        """Return an error within bounds: it is recorded and sent, as content is."""
        return ToolError(type[:_TYPE_LIMIT], self._cut(message), data_within(details, "details", self._limits.state))

    def _own(self, result: ToolResult, meta: Mapping[str, Any]) -> ToolResult:
        """Bring a tool's own ToolResult into shape: JSON, masked, bounded, with content."""
        given = [*result.media]
        try:
            output = self._masker.mask_data(to_json(result.output, media=given))
            state = self._masker.mask_data(to_json(result.state, media=given))
            media, notes = self._fitting_media(given)
        except (NotSerialisableError, RecursionError) as error:
            message = f"the tool did run, but its result is not JSON: {error}"
            return self.failure("ResultNotSerialisable", message, meta)
        if data_size(state) > self._limits.state:
            state, meta = None, {**meta, "state_dropped": data_size(state)}
        if notes:
            meta = {**meta, "media_dropped": len(notes)}
        if result.meta:
            said = self._masker.mask_data(_json_or_nothing(result.meta))
            meta = {**meta, **data_within(said, "meta", self._limits.state)}
        failure = self._own_error(result)
        content = result.content if isinstance(result.content, str) else str(result.content)
        if not content.strip():
            content = f"{failure.type}: {failure.message}" if failure else _named(output, media)
        if failure is not None and output is not None and not result.content:
            content = f"{content}\n{as_text(output)}"
        made = ToolResult(
            success=failure is None,
            output=output,
            content="\n".join([self._masker.mask(content), *notes]),
            state=state,
            error=failure,
            stop=bool(result.stop),
            meta=meta,
            media=media,
        )
        return self._clamped(made)

    def _own_error(self, result: ToolResult) -> ToolError | None:
        error = result.error
        if error is None:
            return None if result.success else ToolError("ToolRaised", "the tool reported a failure without saying why")
        details = self._masker.mask_data(_json_or_nothing(error.details))
        type, message = self._masker.mask(str(error.type)), self._masker.mask(str(error.message))
        return self._error(type, message, details)

    # -- media -------------------------------------------------------------------------------------------------

    def _fitting_media(self, given: Sequence[Any]) -> tuple[tuple[Media, ...], list[str]]:
        """Return the media that are kept, with their names and addresses masked, and a note on each that is not."""
        kept: list[Media] = []
        notes: list[str] = []
        room = self._limits.media
        for one in given:
            if type(one) is not Media:
                raise NotSerialisableError(f"media: expected Media, got a {type(one).__name__}")
            size = one.size or 0
            if len(kept) >= MEDIA_COUNT or size > room:
                limit = f"more than {MEDIA_COUNT}" if len(kept) >= MEDIA_COUNT else "too large (setting `limits.media`)"
                notes.append(f"{self._masker.mask(one.in_words())} [Left out: {limit}.]")
                continue
            room -= size
            kept.append(self._masked_media(one))
        return tuple(kept), notes

    def _masked_media(self, media: Media) -> Media:
        """Return *media* without secrets in what is said of it; its bytes are as they were."""
        mask = self._masker.mask
        name, url = (text and mask(text) for text in (media.name, media.url))
        mime = media.mime if mask(media.mime) == media.mime else _OCTETS
        if (name, url, mime) == (media.name, media.url, media.mime):
            return media
        return attrs.evolve(media, name=name and printable_name(name, mask), url=url, mime=mime)

    def _named_as_file(self, media: Media) -> Media:
        """Return a file with its own name, masked before it is cut, unless it was given another."""
        if media.name is not None or media.path is None:
            return media
        return attrs.evolve(media, name=printable_name(media.path.name, self._masker.mask))

    def with_files(self, result: ToolResult) -> ToolResult:
        """Return *result* with the bytes of those media that are files; blocks while they are read."""
        kept: list[Media] = []
        notes: list[str] = []
        room = self._limits.media - sum(one.size or 0 for one in result.media)
        for one in result.media:
            try:
                read = one if one.path is None else self._masked_media(self._files.read(self._named_as_file(one), room))
            except (OSError, UnreadableMediaError) as error:
                notes.append(self._masker.mask(f"{one.in_words()} [Left out: {why_unreadable(error)}.]"))
                continue
            room -= 0 if read is one else read.size or 0
            kept.append(read)
        return self._without(result, kept, notes)

    def without_files(self, result: ToolResult) -> ToolResult:
        """Return *result* without those media that are files nobody has read."""
        files = [one for one in result.media if one.path is not None]
        notes = [self._masker.mask(f"{one.in_words()} [Left out: its file was not read.]") for one in files]
        return self._without(result, [one for one in result.media if one.path is None], notes)

    def _without(self, result: ToolResult, kept: Sequence[Media], notes: Sequence[str]) -> ToolResult:
        if not notes:
            return attrs.evolve(result, media=kept)
        dropped = result.meta.get("media_dropped", 0) + len(notes)
        content = self._cut("\n".join([result.content, *notes]))
        return attrs.evolve(result, media=kept, content=content, meta={**result.meta, "media_dropped": dropped})

    # -- limits ------------------------------------------------------------------------------------------------

    def _clamped(self, result: ToolResult) -> ToolResult:
        """Cut content to what a model is given; the whole stays in output, up to its own limit."""
        output, meta, note = result.output, result.meta, ""
        is_long = len(result.content) > self._content_limit
        size = len(json.dumps(output, ensure_ascii=False)) if is_long or type(output) in (dict, list) else 0
        if size > self._limits.output:
            output, meta = None, {**meta, "output_dropped": size}
            note = f"\n[The output of {size} characters was too large to keep (setting `limits.output`).]"
        if is_long:
            meta = {**meta, "content_clamped": len(result.content)}
        return attrs.evolve(result, content=self._cut(result.content, note), output=output, meta=meta)

    def _cut(self, content: str, note: str = "") -> str:
        if len(content) + len(note) <= self._content_limit:
            return content + note
        shown = f"{self._content_limit} of {len(content)} characters are shown (setting `limits.content`)"
        note = f"\n[Cut: {shown}. Ask for less, or for the rest.]{note}"
        return content[: max(0, self._content_limit - len(note))] + note


def _named(output: Any, media: Sequence[Media]) -> str:
    """Return what a model reads of a result that says nothing itself: its output, and the names of its media."""
    said = [] if output is None and media else [as_text(output)]
    return "\n".join([*said, *(one.in_words() for one in media)])


def _json_or_nothing(value: Any) -> dict[str, Any]:
    try:
        made = to_json(value)
    except (NotSerialisableError, RecursionError):
        return {}
    return made if isinstance(made, dict) else {}
