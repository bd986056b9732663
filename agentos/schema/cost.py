"""What checking a value against a schema costs at the most, known before any value comes.

The validator is native code that nothing can interrupt, so its work is bounded beforehand: it looks at each part of a
value at most `SchemaCost.steps` times. Of a reference that leads back into itself it remembers the verdict for each
part of a value, and so do we; everything else is counted once for each way that leads to it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from agentos.schema.parts import Pointer
from agentos.schema.references import pointed
from agentos.schema.regex_cost import regex_cost
from agentos.schema.work import Work

ANYWHERE = "*"
"""Stands for a member or an item whose name is not known."""
IN_LISTS = "[]"
"""Stands for an item."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_KEYWORDS = {
    **dict.fromkeys(("not", "if", "then", "else", "allOf", "anyOf", "oneOf"), ""),
    **dict.fromkeys(("dependentSchemas", "dependencies"), ""),
    **dict.fromkeys(("properties", "patternProperties"), ANYWHERE),
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties", "propertyNames"), ANYWHERE),
    **dict.fromkeys(("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"), IN_LISTS),
}
"""For which part of a value the subschemas of a keyword are: the same, a member or an item."""
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_MAPS = frozenset({"dependentSchemas", "dependencies", "properties", "patternProperties"})
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "const")
_KEY_PATTERNS = ("patternProperties", "propertyNames")

_VISIT = 40
"""The steps that it takes to look at one subschema here."""
_FRACTION = 60
"""A comparison with a fraction is exact, and takes as long as this many of others."""
_AGAIN = 3
"""How often the validator looks at what stands beside `unevaluated...`."""


class Steps(NamedTuple):
    """What one part of a value may take."""

    nodes: int = 0
    """For the part itself."""
    characters: int = 0
    """For each character, if it is text that a pattern or a format is for."""
    texts: int = 0
    """For each such text as a whole."""

    def plus(self, other: "Steps") -> "Steps":
        """Return the steps of one after the other."""
        return Steps(self[0] + other[0], self[1] + other[1], self[2] + other[2])

    def or_(self, other: "Steps") -> "Steps":
        """Return the steps of one or the other, whichever are more."""
        return Steps(max(self[0], other[0]), max(self[1], other[1]), max(self[2], other[2]))

    def times(self, count: int) -> "Steps":
        """Return the steps of *count* times the same."""
        return Steps(self[0] * count, self[1] * count, self[2] * count)


_LOOK = Steps(1)
_ELSEWHERE = Steps(2_000, 1)
"""What a schema takes that is not in the document: the validator knows those of JSON Schema itself."""


class SchemaCost(NamedTuple):
    """What a whole schema costs."""

    steps: Steps
    subschemas: Mapping[Pointer, dict[str, Any]]
    """Each subschema that a check may come to, by where it stands."""
    words: frozenset[str]
    """The keywords in them."""
    is_recursive: bool
    text_names: frozenset[str]
    """The names of members whose text has a pattern or a format; ANYWHERE if it may be any."""
    growth: int
    """By how much each level of a value multiplies the steps."""


class _Edge(NamedTuple):
    """From a subschema to another; *name* is empty if that is for the same part of a value."""

    name: str
    target: Any
    pointer: Pointer
    is_reference: bool = False


def cost_of(schema: Any, work: Work) -> SchemaCost:
    """Return what checking against *schema* costs; raise TooMuchWorkError if that alone takes too much work."""
    if not isinstance(schema, dict):
        return SchemaCost(_LOOK, {}, frozenset(), False, frozenset(), 1)
    return _Counting(schema, work).cost()


class _Counting:
    def __init__(self, root: Any, work: Work) -> None:
        self._root = root
        self._work = work
        self._document = _Document(root, work)
        self._steps: dict[int, Steps] = {}
        self._edges: dict[int, list[_Edge]] = {}
        self._subschemas: dict[Pointer, dict[str, Any]] = {}
        self._returns: list[tuple[str, int]] = []
        self._text_names: set[str] = set()

    def cost(self) -> SchemaCost:
        self._walk()
        words = frozenset().union(*self._subschemas.values())
        is_blind = not words.isdisjoint(_REFERENCES[1:]) and not words.isdisjoint(_UNEVALUATED)
        return SchemaCost(
            self._steps[id(self._root)].plus(self._of_returns()),
            self._subschemas,
            words,
            bool(self._returns),
            frozenset(self._text_names),
            1 + len(self._returns) if is_blind else 1,
        )

    def _walk(self) -> None:
        """Count each subschema after those that it leads to; a way back to one that is not counted yet is cut."""
        open_: set[int] = set()
        waiting = [(self._root, "", iter(self._enter(self._root, (), "")))]
        open_.add(id(self._root))
        while waiting:
            schema, name, edges = waiting[-1]
            edge = next(edges, None)
            if edge is None:
                waiting.pop()
                open_.discard(id(schema))
                self._steps[id(schema)] = self._of(schema)
                continue
            inner = ANYWHERE if edge.is_reference else edge.name or name
            if id(edge.target) in open_:
                self._returns.append((name, id(edge.target)))
            elif id(edge.target) not in self._edges:
                open_.add(id(edge.target))
                waiting.append((edge.target, inner, iter(self._enter(edge.target, edge.pointer, inner))))

    def _enter(self, schema: dict[str, Any], pointer: Pointer, name: str) -> list[_Edge]:
        found = self._leaving(schema, pointer)
        self._work.spend(_VISIT * (1 + len(schema) + len(found)))
        self._subschemas[pointer] = schema
        self._edges[id(schema)] = found
        if "pattern" in schema or "format" in schema:
            self._text_names.add(name)
        if not schema.keys().isdisjoint(_KEY_PATTERNS):
            self._text_names.add(ANYWHERE)
        return found

    def _leaving(self, schema: dict[str, Any], at: Pointer) -> list[_Edge]:
        found: list[_Edge] = []
        for word, value in schema.items():
            name = _KEYWORDS.get(word)
            if name is None:
                if word in _REFERENCES:
                    found += self._document.edges(value)
            elif word not in _MAPS and type(value) is dict:
                found.append(_Edge(name, value, (*at, word)))
            elif type(value) in (dict, list):
                for key, inner in value.items() if type(value) is dict else enumerate(value):
                    if type(inner) is dict:
                        found.append(_Edge(str(key) if word == "properties" else name, inner, (*at, word, key)))
        return found

    def _of(self, schema: dict[str, Any]) -> Steps:
        """Return the steps of *schema* for a part of a value, with all that this leads to."""
        total = Steps(_weight(schema))
        if "pattern" in schema or "format" in schema or "patternProperties" in schema:
            total = total.plus(self._of_text(schema))
        by_name: dict[str, Steps] = {}
        for edge in self._edges[id(schema)]:
            steps = self._steps.get(id(edge.target), _LOOK)
            if edge.name:
                by_name[edge.name] = by_name[edge.name].plus(steps) if edge.name in by_name else steps
            else:
                total = total.plus(steps)
        for word in _REFERENCES:
            if word in schema and not self._document.edges(schema[word]):
                total = total.plus(_ELSEWHERE)
        if by_name:
            total = total.plus(_most(by_name))
        return total if schema.keys().isdisjoint(_UNEVALUATED) else total.times(_AGAIN)

    def _of_text(self, schema: dict[str, Any]) -> Steps:
        keys = schema.get("patternProperties")
        patterns = [schema.get("pattern"), *(keys if isinstance(keys, dict) else ())]
        costs = [regex_cost(one, self._work) for one in patterns if isinstance(one, str)]
        characters = sum(cost.characters for cost in costs) + ("format" in schema)
        return Steps(0, characters, sum(cost.texts for cost in costs))

    def _of_returns(self) -> Steps:
        """Return the steps of all that a part of a value may be checked against by a reference back."""
        by_name: dict[str, Steps] = {}
        for name, target in self._returns:
            by_name[name or ANYWHERE] = by_name.get(name or ANYWHERE, Steps()).plus(self._steps[target])
        return _most(by_name)


class _Document:
    """Where the subschemas of a document stand, and what its references may mean."""

    def __init__(self, root: Any, work: Work) -> None:
        self.pointers: dict[int, Pointer] = {}
        self._work = work
        self._resources = [root]
        self._anchors: dict[str, list[Any]] = {}
        self._edges: dict[str, list[_Edge]] = {}
        self._read(root)

    def _read(self, root: Any) -> None:
        waiting: list[tuple[Any, Pointer]] = [(root, ())]
        while waiting:
            node, at = waiting.pop()
            self._work.spend(_VISIT // 4)
            if isinstance(node, dict):
                self.pointers[id(node)] = at
                for word in ("$anchor", "$dynamicAnchor"):
                    if isinstance(node.get(word), str):
                        self._anchors.setdefault(node[word], []).append(node)
                if at and isinstance(node.get("$id", node.get("id")), str):
                    self._resources.append(node)
            entries = node.items() if isinstance(node, dict) else enumerate(node)
            waiting += [(inner, (*at, key)) for key, inner in entries if type(inner) in (dict, list)]

    def edges(self, reference: Any) -> list[_Edge]:
        """Return where a reference may lead to: of a document in several parts, to the place in any of them."""
        if not isinstance(reference, str):
            return []
        if reference not in self._edges:
            found = self._found(reference.partition("#")[2])
            self._edges[reference] = [_Edge("", one, self.pointers[id(one)], is_reference=True) for one in found]
        return self._edges[reference]

    def _found(self, fragment: str) -> list[Any]:
        self._work.spend(_VISIT * len(self._resources))
        if fragment and not fragment.startswith(("/", "%")):
            return self._anchors.get(fragment, [])
        found = [pointed(resource, f"#{fragment}") for resource in self._resources]
        return [one for one in found if isinstance(one, dict)]


def _most(by_name: Mapping[str, Steps]) -> Steps:
    """Return the steps of the costliest name: a part of a value has one name, or is in a list."""
    everywhere = by_name.get(ANYWHERE, Steps())
    most = Steps()
    for name, steps in by_name.items():
        if name != ANYWHERE:
            most = most.or_(steps)
    return everywhere.plus(most)


def _weight(schema: dict[str, Any]) -> int:
    """Return the steps of the keywords of one subschema."""
    needed = schema.get("dependentRequired")
    total = 1 + len(schema) + (len(needed) if isinstance(needed, dict) else 0)
    for word in _NUMBERS:
        if type(schema.get(word)) is float:
            total += _FRACTION
    options = schema.get("enum")
    if isinstance(options, list) and any(isinstance(one, float | dict | list) for one in options):
        total += sum(2 * _FRACTION if isinstance(one, float) else 4 for one in options)
    return total
