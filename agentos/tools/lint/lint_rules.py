"""The rules: each a generator of remarks about one tool, or about a pack's tools among each other."""

import difflib
import graphlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from agentos.errors import KindError
from agentos.model.descriptor import Descriptor
from agentos.model.extension_pack import ExtensionPack
from agentos.model.field_checks import did_you_mean
from agentos.model.kind import UNREAD, kind_of, reader_of
from agentos.schema.references import pointed, resolved
from agentos.secrets.catalog import SecretCatalog
from agentos.tools.lint.subject import Json, Remark, Spot, Subject, clip, each, said, visible
from agentos.tools.tool import EFFECTS
from agentos.tools.wire_names import wire_name

# -- words -------------------------------------------------------------------------------------------------------


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_FILLERS = _listed(
    "a an and are argument as at be by call field for from function in input into is it its method of on or parameter "
    "param string the this that to tool value with"
)
_VERBS = _listed(
    "accept add allow analyse analyze answer append apply archive ask assign attach back book build calculate call "
    "cancel change check choose classify clean clear click close collect combine compare complete compress compute "
    "connect convert copy count create cut debug decide decode decrypt delete deploy describe detect determine "
    "disable discover display do download draft draw drop edit enable encode encrypt end ensure estimate evaluate "
    "execute explain explore export extract fetch fill filter find fix follow forecast format forward generate get "
    "give go grant greet group guess handle have hide identify import index insert inspect install invite join keep "
    "label launch let link list listen load locate log look make manage map mark match measure merge modify monitor "
    "move name navigate need notify offer open order organise organize parse pay pick plan play post predict prepare "
    "print produce propose provide publish pull push put query queue rank rate read rebuild receive recommend record "
    "redo refresh register reject release reload remove rename render reorder repeat replace reply report request "
    "reserve reset resize resolve respond restart restore resume retrieve return revert review revoke roll rotate run "
    "save say scan schedule score scrape search see select send serve set share show shut sign simulate skip solve "
    "sort speak split start stop store stream submit subscribe suggest sum summarise summarize switch sync take talk "
    "tell test toggle track train transcribe transfer transform translate trigger trim try turn undo unlock update "
    "upload use validate verify view visit wait walk watch wipe work wrap write"
)
_VERB_ENDINGS = ("ate", "ify", "ise", "ize", "ing", "ed")


def _words(text: str) -> list[str]:
    """Return the words of a sentence or of a name, in lower case and without the s of plurals and verbs."""
    return [_stem(word.lower()) for word in _WORD.findall(text)]


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word  # noqa: PLR2004


def _adds_nothing(text: str, name: str) -> bool:
    return not set(_words(text)) - _FILLERS - set(_words(name))


def _has_verb(text: str) -> bool:
    words = _words(text)
    return any(word in _VERBS or f"{word}e" in _VERBS or word.endswith(_VERB_ENDINGS) for word in words)


def _weight(text: str) -> int:
    """Return how much a text can say: a Chinese, Japanese or Korean character says as much as three letters."""
    return sum(3 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


# -- rules about one tool ----------------------------------------------------------------------------------------

ToolRule = Callable[[Subject], Iterable[Remark]]
PackRule = Callable[[ExtensionPack, Sequence[Subject]], Iterable[Remark]]
TOOL_RULES: dict[str, ToolRule] = {}
PACK_RULES: dict[str, PackRule] = {}


def tool_rule(name: str) -> Callable[[ToolRule], ToolRule]:
    """Add a rule about one tool; a name that is taken is replaced."""

    def add(rule: ToolRule) -> ToolRule:
        TOOL_RULES[name] = rule
        return rule

    return add


def pack_rule(name: str) -> Callable[[PackRule], PackRule]:
    """Add a rule about a pack; a name that is taken is replaced."""

    def add(rule: PackRule) -> PackRule:
        PACK_RULES[name] = rule
        return rule

    return add


@tool_rule("effect")
def _effect_is_said(tool: Subject) -> Iterator[Remark]:
    cure = f"say effect= as one of {', '.join(EFFECTS)}; it is never guessed"
    if "effect" in tool.missing:
        yield "error", tool.place, "no effect is said", cure
    elif tool.effect not in EFFECTS:
        yield "error", tool.place, f"the effect {tool.effect or '(no text)'!r} is unknown", cure


@tool_rule("access")
def _access_is_said(tool: Subject) -> Iterator[Remark]:
    if "required_access" in tool.missing:
        yield "error", tool.place, "no access is said", "say required_access= as rule ids, or PUBLIC"


@tool_rule("definition")
def _can_be_registered(tool: Subject) -> Iterator[Remark]:
    said_elsewhere = tool.missing or tool.effect not in EFFECTS
    if "input_schema" in tool.missing:
        cure = 'say input_schema=, {"type": "object", "properties": {}, "additionalProperties": false} for no arguments'
        yield "error", tool.place, "no input schema is said", cure
    elif tool.fault and not said_elsewhere:
        yield "error", tool.place, f"it can't be registered: {tool.fault}", "mend its definition"


_LEAST = 15
_SHORT = 60
_MOST = 1024


@tool_rule("description")
def _describes_itself(tool: Subject) -> Iterator[Remark]:
    text = tool.description.strip()
    cure = "say in a sentence what it does, with what, and when to use it"
    if not text:
        yield "error", tool.place, "no description", cure
    elif _adds_nothing(text, tool.name):
        yield "warning", tool.place, f"the description only repeats the name: {clip(text)}", cure
    elif _weight(text) < _LEAST:
        yield "warning", tool.place, f"the description says too little: {clip(text)}", cure
    elif len(text) < _SHORT and text.isascii() and not _has_verb(text):
        yield "info", tool.place, f"the description does not say what the tool does: {clip(text)}", cure
    if len(text) > _MOST:
        message = f"the description has {len(text)} characters; OpenAI takes {_MOST}"
        yield "warning", tool.place, message, "move what is not about choosing this tool into system_prompt"


@tool_rule("parameter-description")
def _describes_parameters(tool: Subject) -> Iterator[Remark]:
    for spot in tool.spots:
        if not spot.is_parameter or "const" in spot.schema:
            continue
        variants = [one for word in ("anyOf", "oneOf", "allOf") for one in each(spot.schema.get(word))]
        text = spot.text or " ".join(said(one) for one in variants)
        cure = "say what the value means, in which unit or form, with an example"
        if not text.strip():
            yield "warning", tool.at(spot), "no description", cure
        elif _adds_nothing(text, spot.parameter):
            yield "warning", tool.at(spot), f"the description only repeats the name: {clip(text)}", cure


@tool_rule("hidden-characters")
def _hides_nothing(tool: Subject) -> Iterator[Remark]:
    texts = [("the description", tool.description), ("the system prompt", tool.system_prompt)]
    for what, text in [*texts, *_strings(tool.schema, "the input schema at $")]:
        if shown := list(dict.fromkeys(_hidden(text))):
            message = f"{what} has hidden characters: {', '.join(shown[:5])}"
            yield "error", tool.place, message, "take them out: people do not see them, models do"


def _strings(node: object, path: str) -> Iterator[tuple[str, str]]:
    """List every text of a schema, keys too, with its path."""
    if isinstance(node, str):
        yield path, node
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from _strings(inner, f"{path}[{index}]")
    elif isinstance(node, dict):
        for name, inner in node.items():
            yield path, name
            yield from _strings(inner, f"{path}.{visible(name)}")


_PLAIN = re.compile(r"[\x20-\x7e\n\t]*")


def hidden_characters(node: object) -> list[str]:
    """Name the characters in any text of *node*, keys too, that people do not see and models do."""
    texts = (text for _, text in _strings(node, "") if not _PLAIN.fullmatch(text))
    return list(dict.fromkeys(name for text in texts for name in _hidden(text)))


_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_IGNORABLE = re.compile(  # Default_Ignorable_Code_Point of Unicode 16, and the braille pattern without dots
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\u2800]"
)
_JOINERS = "\u200c\u200d"  # what some scripts and emoji are made with
_STYLES = "\ufe0e\ufe0f"  # as text, or as emoji
_KEYCAP = re.compile("[0-9#*]\ufe0f\u20e3")
_STYLED = "\u203c\u2049\u2139\u3030\u303d"  # emoji that Unicode does not count among symbols
_PICTURES = re.compile("[\U0001f000-\U0001faff]")


def _hidden(text: str) -> Iterator[str]:
    """Name the characters that can't be seen: control and bidi characters, zero-width and empty ones, tags."""
    for index, char in enumerate(text):
        if _is_unseen(char) and not _has_use(text, index):
            yield f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip()


def _is_unseen(char: str) -> bool:
    return char not in "\n\t" and (unicodedata.category(char) in _CATEGORIES or bool(_IGNORABLE.match(char)))


def _has_use(text: str, index: int) -> bool:
    """Tell whether the character there, which can't be seen, changes how those around it are written."""
    if text[index] in _STYLES:
        return _is_styled(text, index)
    if text[index] not in _JOINERS:
        return False
    before = index - 1
    if before > 0 and text[before] in _STYLES and _is_styled(text, before):
        before -= 1
    return before >= 0 and _is_joined(text[before]) and _is_joined(text[index + 1 : index + 2])


def _is_styled(text: str, index: int) -> bool:
    """Tell whether a style stands right after a symbol or an emoji, or inside a keycap."""
    base = text[index - 1] if index > 0 else ""
    if not base or base.isascii():
        return bool(base) and _KEYCAP.match(text, index - 1) is not None
    is_symbol = unicodedata.category(base) in ("So", "Sm") or base in _STYLED or bool(_PICTURES.match(base))
    return is_symbol and not _is_unseen(base)


def _is_joined(char: str) -> bool:
    """Tell whether a joiner may stand beside *char*: it is seen, and of a script or a set of emoji that has joiners."""
    return bool(char) and not (char.isascii() or char.isspace() or _is_unseen(char))


@tool_rule("open-object")
def _objects_are_closed(tool: Subject) -> Iterator[Remark]:
    for spot in tool.spots:
        is_top = spot.schema is tool.schema and not spot.is_choice
        if spot.is_part or spot.is_closed or not (spot.is_object or is_top):
            continue
        if spot.is_typed_map:
            cure = "fine if the keys are data; else name them in properties and set additionalProperties to false"
            yield "info", tool.at(spot), "the object takes any key", cure
        else:
            cure = "set additionalProperties to false, so that a misspelt key is refused and not lost"
            yield "warning", tool.at(spot), "the object is open: it takes any key with any value", cure


_CODE_WORDS = _listed(  # as `_words` has them: without a final s
    "action category class code direction event flag format kind level mode operation option phase priority reason "
    "role severity stage state statu type unit"
)
_CODE_RANGE = 20
_LARGEST_CODE = 1_000_000


@tool_rule("number-codes")
def _codes_are_explained(tool: Subject) -> Iterator[Remark]:
    for spot in tool.spots:
        codes = _codes(spot, tool.schema or {})
        if codes and not _explains(spot.text, codes):
            shown = ", ".join(str(code) for code in codes[:6]) + (", ..." if len(codes) > 6 else "")  # noqa: PLR2004
            cure = f'say what each stands for ("{codes[0]} = ..."), or take words as an enum of strings'
            yield "warning", tool.at(spot), f"the numbers {shown} are codes without a meaning", cure


def _codes(spot: Spot, root: Json) -> list[int]:
    """Return the numbers that stand for something else at *spot*, if its values look like that."""
    schema = resolved(spot.schema, root)
    variants = each(schema.get("oneOf")) or each(schema.get("anyOf"))
    named = [one for one in variants if "title" in one or "description" in one]
    values = schema.get("enum") or [one.get("const") for one in variants if one not in named]
    if spot.parameter and len(values) > 1 and all(_is_code(one) for one in values):
        return list(values)
    if schema.get("type") != "integer" or not _CODE_WORDS & set(_words(spot.parameter)):
        return []
    low, high = _bound(schema, "minimum", "exclusiveMinimum", 1), _bound(schema, "maximum", "exclusiveMaximum", -1)
    if low is None or high is None or not 0 < high - low < _CODE_RANGE:
        return []
    return list(range(low, high + 1))


def _is_code(value: object) -> bool:
    return type(value) is int and abs(value) < _LARGEST_CODE


def _bound(schema: Json, inclusive: str, exclusive: str, step: int) -> int | None:
    for word, move in ((inclusive, 0), (exclusive, step)):
        if _is_code(schema.get(word)):
            return int(schema[word]) + move
    return None


def _explains(text: str, codes: Sequence[int]) -> bool:
    """Tell whether a text gives every code a meaning; for a scale its two ends are enough."""
    is_scale = sorted(codes) == list(range(min(codes), max(codes) + 1))
    return all(_gives_meaning(text, code) for code in codes) or (
        is_scale and _gives_meaning(text, min(codes)) and _gives_meaning(text, max(codes))
    )


def _gives_meaning(text: str, code: int) -> bool:
    """Find `1 = low`, `1: low`, `1 (low)`, `1 means low`, `1 low`, `low = 1` and `low (1)`, but not `1 to 5`."""
    number = rf"(?<![\w.]){'(?<!-)' if code >= 0 else ''}{code}(?![\w.]*\d)['\"`]?"
    after = rf"{number} ?(?:[=:().>\u2013\u2014\u2192-]+|means|is|stands for|for|(?= )) ?{_NO_RANGE}['\"`]?[^\W\d]"
    before = rf"[^\W\d]['\"`]? ?[=:(] ?{number}"
    return re.search(f"{after}|{before}", " ".join(text.split())) is not None


_NO_RANGE = r"(?!(?:to|or|and|through|until)\b)"

_READS = ("list", "view", "get", "search", "find", "read")
_MUTATES = ("create", "edit", "update", "delete", "remove", "set", "write", "send")
_ACTS = ("run", "execute", "submit")
_DELETES = ("delete", "remove")


@tool_rule("name-and-effect")
def _name_fits_effect(tool: Subject) -> Iterator[Remark]:
    first = _first_word(tool.name)
    says = f"the name begins with {first!r}"
    if first in _READS and tool.effect in ("mutate", "destructive"):
        yield "error", tool.place, f"{says}, which reads, but the effect is {tool.effect}", _RENAME
    elif first in _DELETES and tool.effect == "read":
        yield "error", tool.place, f"{says}, but the effect is read: it would run unasked", _RENAME
    elif first in _MUTATES and tool.effect == "read":
        yield "warning", tool.place, f"{says}, which mutates, but the effect is read", _RENAME
    elif first in _ACTS and tool.effect == "read":
        yield "info", tool.place, f"{says}, which acts, but the effect is read", _RENAME
    elif first in _DELETES and tool.effect == "mutate":
        cure = "say destructive if what it takes away can't be had back"
        yield "info", tool.place, f"{says}, but the effect is mutate", cure


_RENAME = "say the effect it has, or rename it"


def _first_word(name: str) -> str:
    """Return the word that a name begins with, after whatever groups it: `mail.sendDraft` begins with send."""
    words = _WORD.findall(re.split(r"[./]", name)[-1])
    return words[0].lower() if words else ""


_PROVIDERS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "OpenAI": (re.compile(r"[A-Za-z0-9_-]{1,64}"), "1 to 64 of A-Z a-z 0-9 _ -"),
    "Anthropic": (re.compile(r"[A-Za-z0-9_-]{1,128}"), "1 to 128 of A-Z a-z 0-9 _ -"),
    "Gemini": (re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}"), "a letter or _, then up to 63 of A-Z a-z 0-9 _ . : -"),
    "Bedrock": (re.compile(r"[A-Za-z0-9_-]{1,64}"), "1 to 64 of A-Z a-z 0-9 _ -"),
    "MCP": (re.compile(r"[A-Za-z0-9._-]{1,128}"), "1 to 128 of A-Z a-z 0-9 . _ -"),
}


@tool_rule("wire-name")
def _name_fits_providers(tool: Subject) -> Iterator[Remark]:
    refusing = [f"{who} ({takes})" for who, (fits, takes) in _PROVIDERS.items() if not fits.fullmatch(tool.name)]
    if tool.name and refusing:
        wire = wire_name(tool.name)
        message = f"the name {clip(tool.name)} is refused by {', '.join(refusing)}; on the wire it becomes {wire!r}"
        yield "warning", tool.place, message, "begin with a letter, then letters, digits and _ only, at most 64"


@tool_rule("dry-run")
def _changes_can_be_previewed(tool: Subject) -> Iterator[Remark]:
    if tool.effect in ("mutate", "destructive") and not tool.has_dry_run:
        cure = "give it a dry_run(args, context) that says what would happen"
        yield "info", tool.place, "a person who is asked to approve a call sees only its arguments", cure


@tool_rule("display")
def _display_fits(tool: Subject) -> Iterator[Remark]:
    for fault in tool.display_faults:
        cure = "name an argument in {args.x}, and in fields and {output.x} what the output schema has"
        yield "warning", tool.place, f"its display names {fault}", cure


@tool_rule("timeout")
def _changes_end(tool: Subject) -> Iterator[Remark]:
    if tool.effect in ("mutate", "destructive") and tool.is_async is False and tool.timeout is None:
        cure = "give it a timeout= in seconds, or make it async"
        yield "info", tool.place, "it runs in a thread without a timeout of its own", cure


_NOT_OPENAI = _listed(
    "allOf not if then else dependentRequired dependentSchemas dependencies patternProperties propertyNames "
    "minProperties maxProperties unevaluatedProperties prefixItems unevaluatedItems contains minContains maxContains "
    "uniqueItems minLength maxLength $id $anchor $dynamicRef $dynamicAnchor"
)
_NOT_ANTHROPIC = _listed("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength")
_TYPING = _listed("type enum const anyOf oneOf allOf $ref not if properties")


@tool_rule("strict")
def _fits_strict_modes(tool: Subject) -> Iterator[Remark]:
    if tool.schema is None:
        return
    open_objects = [f"an open object{_at(one)}" for one in tool.spots if one.schema.get("additionalProperties")]
    openai = [*_not_plain_at_top(tool.schema), *open_objects, *_used(tool.spots, _NOT_OPENAI)]
    openai += [f"no type{_at(one)}" for one in tool.spots if one.is_parameter and not one.schema.keys() & _TYPING]
    anthropic = [*open_objects, *_used(tool.spots, _NOT_ANTHROPIC)]
    anthropic += ["recursion"] if _is_recursive(tool.schema) else []
    for provider, obstacles in (("OpenAI", openai), ("Anthropic", anthropic)):
        if obstacles:
            shown = ", ".join(obstacles[:4]) + (", ..." if len(obstacles) > 4 else "")  # noqa: PLR2004
            cure = "nothing, unless a host wants strict mode: arguments are validated here in any case"
            yield "info", tool.place, f"the strict mode of {provider} can't take its schema: {shown}", cure


def _at(spot: Spot) -> str:
    return f" at {spot.path}" if spot.path else ""


def _used(spots: Iterable[Spot], words: frozenset[str]) -> list[str]:
    return [f"{word}{_at(spot)}" for spot in spots for word in spot.schema if word in words]


def _not_plain_at_top(schema: Json) -> list[str]:
    is_plain = "properties" in schema and not schema.keys() & {"anyOf", "oneOf", "enum", "const", "$ref"}
    return [] if is_plain else ["a top that is no object with properties"]


def _is_recursive(root: Json) -> bool:
    graph: dict[str, set[str]] = {}
    waiting = _references(root)
    while waiting:
        reference = waiting.pop()
        if reference not in graph:
            graph[reference] = _references(pointed(root, reference))
            waiting |= graph[reference]
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError:
        return True
    return False


def _references(node: object) -> set[str]:
    found = {node["$ref"]} if isinstance(node, dict) and isinstance(node.get("$ref"), str) else set()
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        found |= _references(inner)
    return found


# -- rules about a pack ------------------------------------------------------------------------------------------


@pack_rule("duplicate-id")
def _ids_are_unique(pack: ExtensionPack, tools: Sequence[Subject]) -> Iterator[Remark]:  # noqa: ARG001 - a pack rule
    seen = set()
    for one in pack.descriptors:
        if one.key in seen:
            message = f"the {one.kind} {one.id!r} stands twice: the pack can't be loaded"
            yield "error", f"{pack.name}:{one.id}", message, "rename one of them"
        seen.add(one.key)


@pack_rule("alias")
def _aliases_are_free(pack: ExtensionPack, tools: Sequence[Subject]) -> Iterator[Remark]:  # noqa: ARG001 - a pack rule
    names = {tool.name for tool in tools if tool.is_tool}
    owners: dict[str, str] = {}
    for tool in tools:
        for alias in tool.aliases:
            if alias in names - {tool.name}:
                message = f"the alias {alias!r} is the name of another tool: it never leads here"
                yield "error", tool.place, message, "take the alias away"
            elif owners.setdefault(alias, tool.place) != tool.place:
                message = f"the alias {alias!r} is also an alias of {owners[alias]}"
                yield "warning", tool.place, message, "leave it to one of them"


_NEARLY = 0.85


@pack_rule("confusable")
def _descriptions_differ(pack: ExtensionPack, tools: Sequence[Subject]) -> Iterator[Remark]:  # noqa: ARG001 - a pack rule
    earlier: list[tuple[Subject, list[str], frozenset[str]]] = []
    for tool in tools:
        words = [word for word in _words(tool.description) if word not in _FILLERS]
        if not words:
            continue
        bag = frozenset(words)
        twin = next((one for one, said, kept in earlier if _is_near(words, bag, said, kept)), None)
        if twin is not None and twin.name != tool.name:
            message = f"the description is nearly that of {twin.place}: a model can't tell them apart"
            yield "warning", tool.place, message, "say in each when to use it rather than the other"
        earlier.append((tool, words, bag))


def _is_near(words: list[str], bag: frozenset[str], said: list[str], kept: frozenset[str]) -> bool:
    if len(bag & kept) < _NEARLY**2 * len(bag | kept):  # cheap, and enough for most pairs
        return False
    return difflib.SequenceMatcher(None, words, said, autojunk=False).ratio() >= _NEARLY


@pack_rule("kinds")
def _kinds_are_read(pack: ExtensionPack, tools: Sequence[Subject]) -> Iterator[Remark]:  # noqa: ARG001 - a pack rule
    for one in pack.descriptors:
        if reader_of(one.kind) is None:
            message = f"the kind {one.kind!r} is unknown here: {UNREAD}{_meant(one)}"
            yield "info", f"{pack.name}:{one.id}", message, "say in the pack's README which hosts read it"


def _meant(one: Descriptor[object]) -> str:
    """Return a hint at the kind that was probably meant: such a pack can't be loaded."""
    try:
        kind_of(one.kind).check(one)
    except KindError as error:
        return f"; {error.message}"
    return ""


@pack_rule("secrets")
def _secrets_are_known(pack: ExtensionPack, tools: Sequence[Subject]) -> Iterator[Remark]:  # noqa: ARG001 - a pack rule
    needed = [(one, need) for one in pack.descriptors for need in one.required_secrets]
    known = SecretCatalog.shipped().definitions if needed else {}
    named = {need.id for _, need in needed if need.env}
    owners = {variable: one.id for one in known.values() for variable in one.variables}
    for one, need in needed:
        if need.id not in known and need.id not in named:
            message = f"nothing says in which variable the {one.kind}'s secret {need.id!r} is found"
            fix = 'say SecretRequirement(id, env="GEO_API_KEY", url="https://..."), or use an id of the catalog'
            yield "warning", f"{pack.name}:{one.id}", message + did_you_mean(need.id, known), fix
        if (owner := owners.setdefault(need.env or need.id, need.id)) != need.id:
            message = f"the variable {need.env} of the secret {need.id!r} is that of {owner!r} as well"
            yield "warning", f"{pack.name}:{one.id}", message, f"use the id {owner!r}, or another variable"
