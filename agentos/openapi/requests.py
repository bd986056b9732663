"""A request, made of arguments, each in its place."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

import attrs

from agentos.openapi.plan import Body, OperationParameter, RequestPlan, Segment
from agentos.openapi.uploads import Part, file_of, file_part, multipart, text_part
from agentos.openapi.values import Pairs, Path, as_cookie, as_header, as_json, as_one_text, as_pairs, as_text
from agentos.schema.build import BuildError, Json
from agentos.schema.explain import noun_of

_LITERAL = "%!$&'()*+,;=:@-._~"


@attrs.frozen(eq=False)
class Request:
    """What is to be sent. Where to, and with which credentials, is known to whoever sends it."""

    method: str
    url_path: str
    """Percent-encoded; it begins with a slash."""
    query: Pairs = attrs.field(factory=list, repr=False)
    """Names and values as they are, not encoded."""
    headers: Pairs = attrs.field(factory=list, repr=False)
    """Those that arguments fill."""
    cookies: Pairs = attrs.field(factory=list, repr=False)
    body: bytes | None = attrs.field(default=None, repr=False)
    content_type: str | None = None
    body_shown: str | None = attrs.field(default=None, repr=False)
    """The body as a person reads it: of a file that is no text, its size and hash."""

    @property
    def target(self) -> str:
        """Return path and query, encoded, to be put after the address of a server."""
        return f"{self.url_path}?{urlencode(self.query, quote_via=quote)}" if self.query else self.url_path

    @property
    def header_lines(self) -> Pairs:
        """Return all headers that the request says: what it accepts and is, its cookies, those that arguments fill."""
        lines = [("Accept", "application/json, text/plain;q=0.5, */*;q=0.1"), *self.headers]
        if self.cookies:
            lines.append(("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies)))
        if self.content_type is not None:
            lines.append(("Content-Type", self.content_type))
        return lines


def request_of(method: str, plan: RequestPlan, arguments: Mapping[str, Any]) -> Request:
    """Write *arguments* into a request; BuildError says which of them can't be written, and why."""
    known = plan.input_schema["properties"]
    if unknown := [name for name in arguments if name not in known]:
        raise BuildError(f"unknown argument; known: {', '.join(known) or 'none'}", (str(unknown[0]),))
    if missing := [name for name in plan.input_schema.get("required", ()) if name not in arguments]:
        raise BuildError("missing", (missing[0],))
    given = [one for one in plan.parameters if arguments.get(one.argument) is not None]
    body = _body(plan.body, arguments)
    return Request(
        method,
        "".join(f"/{_segment(each, arguments)}" for each in plan.segments),
        [pair for one in given if one.place == "query" for pair in _query(one, arguments, plan)],
        [(one.name, as_header(one, arguments[one.argument])) for one in given if one.place == "header"],
        [(one.name, as_cookie(one, arguments[one.argument])) for one in given if one.place == "cookie"],
        *body,
    )


def _segment(segment: Segment, arguments: Mapping[str, Any]) -> str:
    """Write one segment of the path. It stays one, and is never a step to another place."""
    parameters = [part for part in segment if isinstance(part, OperationParameter)]
    if not parameters:
        return "".join(quote(str(part), safe=_LITERAL) for part in segment)
    first, last = segment.index(parameters[0]), segment.index(parameters[-1])
    between = [part for part in segment[first:last] if isinstance(part, str)]
    encoded = plain = ""
    for part in segment:
        if isinstance(part, str):
            encoded, plain = encoded + quote(part, safe=_LITERAL), plain + unquote(part)
            continue
        value = arguments[part.argument]
        text = _path_text(part, value, between)
        encoded, plain = encoded + quote(text, safe=",=" if isinstance(value, list | dict) else ""), plain + text
    if plain in ("", ".", ".."):
        raise BuildError(f"expected text for a path, got {plain!r}, which leads elsewhere", (parameters[0].argument,))
    return encoded


def _path_text(parameter: OperationParameter, value: Any, between: list[str]) -> str:
    path = (parameter.argument,)
    text = as_json(value, path) if parameter.is_json else as_one_text(value, path, explode=parameter.explode)
    for separator in between:
        if separator in text:
            raise BuildError(f"expected no {separator!r} inside: it divides one value from the next", path)
    return text


def _query(parameter: OperationParameter, arguments: Mapping[str, Any], plan: RequestPlan) -> Pairs:
    value, path = arguments[parameter.argument], (parameter.argument,)
    if parameter.is_json:
        return [(parameter.name, as_json(value, path))]
    return as_pairs(parameter.name, value, parameter.style, path, explode=parameter.explode, taken=plan.taken)


class _Written(NamedTuple):
    """A body, what it is, and what a person is shown of it."""

    body: bytes | None = None
    content_type: str | None = None
    shown: str | None = None


def _body(body: Body | None, arguments: Mapping[str, Any]) -> _Written:
    if body is None:
        return _Written()
    if body.argument is None:
        value: Any = {name: arguments[argument] for argument, name in body.members.items() if argument in arguments}
        if not value and not body.is_required:
            return _Written()
    elif body.argument not in arguments:
        return _Written()
    else:
        value = arguments[body.argument]
    return _written(body, value, (body.argument,) if body.argument else ())


def _written(body: Body, value: Any, path: Path) -> _Written:
    if body.kind == "json":
        return _of_text(as_json(value, path), body.media)
    if body.kind == "text":
        return _of_text(as_text(value, path), f"{body.media}; charset=utf-8")
    if body.kind == "file":
        file = file_of(value, path, body.media)
        return _Written(file.content, file.media, file.shown)
    if not isinstance(value, dict):
        raise BuildError(f"expected an object, got {noun_of(value)}", path)
    if body.kind == "form":
        return _of_text(urlencode([pair for name in value for pair in _form_field(body, value, name)]), body.media)
    content, boundary, shown = multipart(part for name in value for part in _parts(body, value, name))
    return _Written(content, f"{body.media}; boundary={boundary}", shown)


def _of_text(text: str, content_type: str) -> _Written:
    return _Written(text.encode(), content_type, text)


def _form_field(body: Body, value: Json, name: str) -> Pairs:
    if name in body.styles:
        style, explode = body.styles[name]
        return as_pairs(name, value[name], style, (name,), explode=explode, taken=value.keys() - {name})
    return [(as_text(name, (name,)), text) for text, _ in _texts(value[name], name)]


def _texts(value: Any, name: str) -> Iterator[tuple[str, bool]]:
    """Yield what a field of a form holds, once for each item of a list; what is not plain is told as JSON."""
    if value is None:
        return
    for each in value if isinstance(value, list) else [value]:
        is_plain = not isinstance(each, list | dict)
        yield (as_text if is_plain else as_json)(each, (name,)), not is_plain


def _parts(body: Body, value: Json, name: str) -> Iterator[Part]:
    given = value[name]
    if name in body.files:
        for each in given if isinstance(given, list) else [] if given is None else [given]:
            yield file_part(name, file_of(each, (name,), body.files[name]))
    elif name in body.styles:
        yield from (text_part(key, text) for key, text in _form_field(body, value, name))
    else:
        yield from (
            text_part(name, text, "application/json" if is_json else None) for text, is_json in _texts(given, name)
        )
