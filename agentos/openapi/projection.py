"""What is there already, as a tool: the host's callables, an object's methods, or an operation of an OpenAPI document.

Who may use it is read from where that is declared. What it does is said by whoever projects it, and never guessed.
"""

import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import BuiltinFunctionType, FunctionType, MethodType, WrapperDescriptorType
from typing import Any, Literal, TypeVar, get_args, overload

import attrs

from agentos.errors import ToolDefinitionError
from agentos.model.field_checks import did_you_mean, fault_of_owner
from agentos.openapi.document import OpenAPIOperation
from agentos.openapi.requests import Request
from agentos.openapi.responses import sender_of
from agentos.schema.validation import Checker, compile_schema
from agentos.tools.tool import (
    EFFECTS,
    PUBLIC,
    Access,
    Tool,
    _access,
    _faults_of_access,
    check_keywords,
    looks_like_tool,
    tool,
)

__all__ = ["ProjectedTool", "project", "requires"]

D = TypeVar("D")
OutputCheck = Literal["warn", "error", "off"]
"""What is made of an answer that does not fit the schema of its document."""
OUTPUT_CHECKS: tuple[OutputCheck, ...] = get_args(OutputCheck)

_DECLARED = "__required_access__"
_HOLDERS = 100
_DESCRIPTION_LIMIT = 4_000
_ROOM = 300
"""How many frames of the stack a call may use before its arguments are checked."""


@attrs.frozen(kw_only=True, eq=False)
class ProjectedTool(Tool):
    """A tool of something that was there before: whose it is, and where it came from."""

    owner: str
    """`builtin`, a pack's name, or `mcp/<server>`."""
    origin: str
    """`module:qualname` of a callable, or `GET /users/{id}` of an operation."""

    def __attrs_post_init__(self) -> None:
        Tool.__attrs_post_init__(self)
        fault = fault_of_owner(self.owner)
        if fault is None and self.owner == "mcp/":
            fault = "expected the name of a server after mcp/"
        if fault is not None:
            raise ToolDefinitionError(f"tool {self.name!r}", "owner", fault)


# -- who may use it ----------------------------------------------------------------------------------------------


def requires(*rules: Any) -> Callable[[D], D]:
    """Declare which access rules a function, a method or all methods of a class need; `requires(PUBLIC)` for none.

    They are kept as `__required_access__`, for `project` and for the host's own layers. Declared twice, both count.
    """
    given = _normal(PUBLIC if rules == (PUBLIC,) else rules, "@requires")

    def declare(subject: D) -> D:
        holder = subject.__func__ if isinstance(subject, classmethod | staticmethod) else subject
        shown = f"@requires on {getattr(subject, '__qualname__', type(subject).__name__)}"
        access = _joined([*_declared_on(holder, shown), given])
        try:
            setattr(holder, _DECLARED, access)
        except (AttributeError, TypeError):
            raise ToolDefinitionError(
                shown, "", "nothing can be declared on it; say required_access= where it is projected"
            ) from None
        return subject

    return declare


def _normal(value: Any, shown: str) -> Access:
    """Return rules in one form and order; refuse what are no rules."""
    access = _access(sorted(value, key=str) if isinstance(value, AbstractSet) else value)
    for _, fault in _faults_of_access(access):
        raise ToolDefinitionError(shown, "required_access", fault)
    return access


def _joined(declared: list[Access]) -> Access | None:
    """Return all rules that any of *declared* names; PUBLIC adds none, and takes none away."""
    rules = [rule for access in declared if isinstance(access, tuple) for rule in access]
    if rules:
        return tuple(dict.fromkeys(rules))
    return PUBLIC if declared else None


def _declared(subject: Any, shown: str) -> Access | None:
    """Return what is declared on a callable, on what it wraps, and on the class that it is a method of."""
    return _joined([access for holder in _holders(subject, shown) for access in _declared_on(holder, shown)])


def _declared_on(holder: Any, shown: str) -> list[Access]:
    if isinstance(holder, type):
        found = [vars(base)[_DECLARED] for base in holder.__mro__ if _DECLARED in vars(base)]
    else:
        found = [holder.__required_access__] if hasattr(holder, _DECLARED) else []
    return [_normal(value, shown) for value in found]


def _holders(subject: Any, shown: str) -> list[Any]:
    """Return everything that may carry the declaration of a callable, from the outside in."""
    found: list[Any] = []
    waiting = [subject]
    while waiting:
        holder = waiting.pop(0)
        if not any(holder is known for known in found):
            found.append(holder)
            waiting += _inside(holder)
        if len(found) > _HOLDERS:
            raise ToolDefinitionError(
                shown, "", f"it wraps more than {_HOLDERS} others: what they declare is not known"
            )
    return found


def _inside(holder: Any) -> Iterator[Any]:
    if isinstance(holder, functools.partial):
        yield holder.func
    if hasattr(holder, "__wrapped__"):
        yield holder.__wrapped__
    if isinstance(holder, MethodType):
        yield holder.__func__
        yield holder.__self__ if isinstance(holder.__self__, type) else type(holder.__self__)
    elif not isinstance(holder, _PLAIN):
        yield type(holder)
        yield type(holder).__call__


_PLAIN = (FunctionType, BuiltinFunctionType, WrapperDescriptorType, functools.partial, type)
"""What has no class of its author's that could say more about it."""


def _agreed(shown: str, declared: Access | None, given: Any) -> Access:
    """Return the rules that count: those declared, and those given in addition."""
    if given is None:
        if declared is None:
            raise ToolDefinitionError(
                shown,
                "required_access",
                "say who may use it: where it is written, with @requires(...) or the scopes of an operation's "
                "`security`; or here, with required_access= (rule ids, or PUBLIC)",
            )
        return declared
    wanted = _normal(given, shown)
    if not isinstance(declared, tuple):
        return wanted
    if not isinstance(wanted, tuple):
        lost = ", ".join(map(repr, declared))
        raise ToolDefinitionError(
            shown, "required_access", f"PUBLIC would drop {lost}, declared where it is written; rules can only be added"
        )
    return tuple(dict.fromkeys([*declared, *wanted]))


# -- what it is as a tool ----------------------------------------------------------------------------------------


@overload
def project(subject: Callable[..., Any] | OpenAPIOperation, *, owner: str, **fields: Any) -> ProjectedTool: ...


@overload
def project(subject: object, *, owner: str, **fields: Any) -> list[ProjectedTool]: ...


def project(
    subject: Any,
    *,
    owner: str,
    without: Collection[str] = (),
    effect: Any = None,
    required_access: Any = None,
    name: str | None = None,
    description: str | None = None,
    send: Callable[[Request, Any], Any] | None = None,
    check_output: OutputCheck = "error",
    **fields: Any,
) -> ProjectedTool | list[ProjectedTool]:
    """Make a tool of a callable, or of an operation of an OpenAPI document, as it is.

    Of an object that can't be called itself, every public method becomes a tool, but for those named by *without*;
    *effect* is then one for all, or a mapping by their names.

    Its schema comes from its type hints or from the document. *required_access* may add rules to those that are
    declared, and drops none. *send* sends the requests of an operation: `send(request, context)`, sync or async,
    returns an object or mapping with status, headers and body. *check_output* says what an answer is that does not fit
    the document: a failure, or with "warn" a success with a warning in its `meta`; "off" does not look. Other keywords
    are those of `Tool`.
    """
    if _has_methods(subject):
        given = {"name": name, "description": description, "send": send, **fields}
        return _of_object(subject, frozenset(without), effect, {"owner": owner, **given}, required_access)
    shown = _origin_of(subject)
    if without:
        raise ToolDefinitionError(shown, "without", "it is for an object with several methods; take it away")
    if effect is None:
        known = f"{', '.join(EFFECTS[:-1])} or {EFFECTS[-1]}"
        raise ToolDefinitionError(shown, "effect", f"say what it does: {known}; it is never guessed")
    check_keywords(fields, shown)
    is_operation = isinstance(subject, OpenAPIOperation)
    declared = subject.access if is_operation else _declared(subject, shown)
    declared = None if declared is None else _normal(declared, shown)
    fields |= {"effect": effect, "required_access": _agreed(shown, declared, required_access)}
    fields |= {"owner": owner, "origin": shown, "name": name, "description": description}
    return _of_operation(subject, send, check_output, fields) if is_operation else _of_callable(subject, send, fields)


def _origin_of(subject: Any) -> str:
    """Return where *subject* comes from; refuse what can't be projected."""
    if isinstance(subject, OpenAPIOperation):
        return str(subject)
    if looks_like_tool(subject) and not isinstance(subject, type):
        raise ToolDefinitionError(
            "project", "subject", f"{getattr(subject, 'name', '')!r} is a tool already; give it to a pack as it is"
        )
    if isinstance(subject, type) or not callable(subject):
        found = subject.__name__ if isinstance(subject, type) else f"a {type(subject).__name__}"
        raise ToolDefinitionError(
            "project",
            "subject",
            f"expected a function, a method, an object with public methods or an OpenAPIOperation, got {found}",
        )
    named = _named(subject)
    return f"{named.__module__}:{named.__qualname__}"


def _named(subject: Any) -> Any:
    """Return what gives a callable its name: the function in it, or the class of an object."""
    while isinstance(subject, functools.partial):
        subject = subject.func
    return subject if hasattr(subject, "__qualname__") else type(subject)


# -- objects -----------------------------------------------------------------------------------------------------

_METHODS = (FunctionType, classmethod, staticmethod, functools.partialmethod)
_OF_ONE_TOOL = ("name", "description", "send")


def _has_methods(subject: Any) -> bool:
    """Tell an object whose methods are meant from what is one thing itself."""
    is_one = isinstance(subject, OpenAPIOperation | type) or callable(subject) or looks_like_tool(subject)
    is_one = is_one or type(subject).__module__ == "builtins"  # a text, a list: nobody means its methods
    return not is_one and bool(_methods_of(type(subject)))


def _methods_of(kind: type) -> list[str]:
    """Return the names of the public methods of a class, in order. No object is asked: its properties would run."""
    found = {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}
    return [name for name, value in found.items() if isinstance(value, _METHODS)]


def _of_object(
    subject: Any, without: frozenset[str], effect: Any, fields: dict[str, Any], access: Any
) -> list[ProjectedTool]:
    """Make a tool of each public method, or say of every one what is wrong."""
    kind = type(subject)
    shown, names = f"{kind.__module__}:{kind.__qualname__}", _methods_of(kind)
    effects = effect if isinstance(effect, Mapping) else dict.fromkeys(names, effect)
    _check_named(shown, names, {"effect": effects.keys(), "without": without})
    for field in _OF_ONE_TOOL:
        if fields.pop(field) is not None:
            raise ToolDefinitionError(shown, field, "it is for one tool; project one method to say it")
    made, faults = list[ProjectedTool](), list[str]()
    for name in names:
        if name not in without:
            method, said = getattr(subject, name), _access_of(kind, name, access, shown)
            try:
                made.append(project(method, effect=effects.get(name), required_access=said, **{**fields, "name": name}))
            except ToolDefinitionError as error:
                faults.append(str(error))
    if faults:
        raise ToolDefinitionError(shown, "", "; ".join(["not all of its methods can be projected", *faults]))
    return made


def _check_named(shown: str, names: list[str], given: Mapping[str, Collection[str]]) -> None:
    for field, said in given.items():
        for name in said:
            if name not in names:
                hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
                raise ToolDefinitionError(shown, field, f"it has no public method {name!r}{hint}")


def _access_of(kind: type, name: str, given: Any, shown: str) -> Any:
    """Return the rules to project a method with. A static method does not know its class, which may declare some."""
    method = inspect.getattr_static(kind, name)
    if not isinstance(method, staticmethod):
        return given
    said = _joined([*_declared_on(kind, shown), *([] if given is None else [_normal(given, shown)])])
    return said if isinstance(said, tuple) or not isinstance(_declared(method.__func__, shown), tuple) else given


# -- callables ---------------------------------------------------------------------------------------------------


def _of_callable(subject: Any, send: Any, fields: dict[str, Any]) -> ProjectedTool:
    owner, origin = fields.pop("owner"), fields.pop("origin")
    if send is not None:
        raise ToolDefinitionError(origin, "send", "only an operation of an OpenAPI document is sent; take it away")
    if fields["name"] is None:
        fields["name"] = _name_of(subject, origin)
    made = tool(**fields)(_with_bound_hidden(subject, origin))
    if made.execute is None:
        raise ToolDefinitionError(origin, "", "it is a method without its object; take it from an instance")
    values = {field.name: getattr(made, field.name) for field in attrs.fields(Tool)}
    if not made.description and _named(subject) is type(subject):
        values["description"] = inspect.cleandoc(type(subject).__doc__ or "")
    return ProjectedTool(**values, owner=owner, origin=origin)


def _name_of(subject: Any, origin: str) -> str:
    named = _named(subject)
    if named.__name__ == "<lambda>":
        raise ToolDefinitionError(origin, "name", "a lambda has no name of its own; say name=")
    if isinstance(named, type):
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", named.__name__).lower()
    return str(named.__name__)


def _with_bound_hidden(subject: Any, origin: str) -> Any:
    """Return a callable without the keywords that a partial in it has bound: they are the host's, not a caller's."""
    partials = [each for holder in _holders(subject, origin) if (each := _partial_in(holder)) is not None]
    bound = {name for each in partials for name in each.keywords}
    if not bound:
        return subject
    signature = inspect.signature(subject)
    made = functools.partial(subject)
    made.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[each for name, each in signature.parameters.items() if name not in bound]
    )
    return made


def _partial_in(holder: Any) -> Any:
    if isinstance(holder, functools.partial):
        return holder
    return getattr(holder, "__partialmethod__", None) or getattr(holder, "_partialmethod", None)


# -- operations --------------------------------------------------------------------------------------------------


def _of_operation(
    operation: OpenAPIOperation, send: Any, check_output: OutputCheck, fields: dict[str, Any]
) -> ProjectedTool:
    shown = fields["origin"]
    if not callable(send):
        raise ToolDefinitionError(
            shown, "send", "say send=, a function (request, context) that sends it and returns status, headers and body"
        )
    fields["name"] = fields["name"] or operation.id.replace(":", "_")
    if fields["description"] is None:
        fields["description"] = _description(operation)
    if check_output not in OUTPUT_CHECKS:
        raise ToolDefinitionError(shown, "check_output", f"expected one of {', '.join(OUTPUT_CHECKS)}")
    said = None if check_output == "off" else fields.pop("output_schema", operation.output_schema)
    validator = _check_schemas(operation.input_schema, said, shown)
    # A client that is told a schema may refuse an answer that does not fit it.
    fields["output_schema"] = said if check_output == "error" else None
    execute = sender_of(operation.request, send, validator if check_output == "warn" else None)
    return ProjectedTool(input_schema=operation.input_schema, execute=execute, **fields)


def _description(operation: OpenAPIOperation) -> str:
    words = [operation.summary, operation.description, "Deprecated." if operation.deprecated else ""]
    text = "\n\n".join(dict.fromkeys(filter(None, words))) or str(operation)
    return text if len(text) <= _DESCRIPTION_LIMIT else f"{text[: _DESCRIPTION_LIMIT - 1]}…"


def _check_schemas(input_schema: Any, output_schema: Any, shown: str) -> Any:
    """Refuse now what could not be checked at a call; return the validator of what comes back, if it has a schema."""
    try:
        _with_room(lambda: Checker(input_schema, f"the input schema of {shown}"), _ROOM)
        if output_schema is not None:
            return compile_schema(output_schema, f"the output schema of {shown}", formats=False)
    except RecursionError:
        raise ToolDefinitionError(shown, "", "its schemas are nested too deep to be checked") from None
    return None


def _with_room(make: Callable[[], Any], frames: int) -> Any:
    """Call *make* as if deep in other calls: what works here works wherever it is needed."""
    return make() if frames == 0 else _with_room(make, frames - 1)
