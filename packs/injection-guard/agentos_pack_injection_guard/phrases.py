"""Sentences that speak to a model instead of telling it something."""

import functools

import re2

_OLD = "(?:all |any |every |the |your |my |of |these |those |previous |prior |above |earlier |preceding |foregoing |initial |original |system |current |existing ){1,6}"
PHRASES: tuple[tuple[str, str], ...] = (
    ("forget-instructions", rf"\b(?:ignore|disregard|forget|override|bypass|do not follow|don't follow|stop following) {_OLD}(?:instruction|prompt|rule|guideline|direction|order|command|task)s?\b"),
    ("forget-instructions", r"\b(?:ignore|disregard|forget) (?:everything|anything|all) (?:that |which |you )?(?:was |were |been |is |are )?(?:above|before|told|said|written|previously)"),
    ("new-instructions", r"\b(?:new|updated|revised|real|actual|additional|hidden) (?:system )?instructions?(?: are| is| for you)?\s*:"),
    ("new-instructions", r"\b(?:your|the) (?:new|real|actual|true|only) (?:task|goal|objective|purpose|instructions?) (?:is|are) (?:now |to )"),
    ("before-the-task", r"\bbefore (?:you )?(?:can )?(?:solv|do|complet|continu|finish|answer|proceed|start)\w* (?:with )?(?:the|your|this|that|my|any)(?: \w+){0,3} (?:task|request|question|job|instructions?)[^.\n]{0,80}\b(?:you (?:must|need|have|should)|please|first|make sure|do the following)"),
    ("model-addressed", r"\b(?:this is an? |an )?(?:important|urgent|critical) (?:message|notice|instruction|note|request)s? (?:from|by|for) (?:me|the user|your (?:user|developer|creator|owner|admin\w*)|the (?:developer|system|admin\w*|assistant|ai|model|agent)|openai|anthropic|google)\b"),
    ("model-addressed", r"\b(?:attention|note|message|instructions?|hey|dear|hello|listen),?:? (?:to |for )?(?:the |any |all )?(?:ai|llm|language|chat ?bot|virtual)[ -]?(?:assistants?|agents?|models?|bots?)\b"),
    ("model-addressed", r"\bif you are (?:an? )?(?:ai|llm|language model|assistant|chat ?bot|agent)\b[^.\n]{0,80}\b(?:must|should|then|please|ignore|send|do)\b"),
    ("role-change", r"\b(?:you are|you're|act as|pretend (?:to be|you are)|behave as|from now on you(?: are|'re| will)) (?:now |going to be |an? )*(?:dan\b|jailbroken|unrestricted|unfiltered|evil|root|in (?:developer|debug|god|admin) mode|no longer (?:bound|restricted|an?))"),
    ("secrecy", r"\b(?:do not|don't|never|without) (?:tell|inform|mention|alert|notify|warn|reveal|let|disclos\w+|telling|informing|mentioning)(?: it| this| that| anything)?(?: to)? (?:the )?(?:users?|humans?|owner|anyone|anybody|operator)\b"),
    ("prompt-asked", r"\b(?:reveal|repeat|print|show|output|display|leak|send)(?: me| us)? (?:the |your |all |every )*(?:(?:system|initial|hidden|original|full) (?:prompt|instructions?|message)|instructions? (?:above|you were given))"),
    ("tags-of-a-prompt", r"<\|?(?:im_start|im_end|system|endoftext|start_header_id|eot_id|assistant)\|?>|\[/?(?:INST|SYSTEM|SYS)\]|<</?SYS>>|</?(?:system|instructions?|information|important|admin|developer|user_query|tool_result|function_results?)>"),
    ("tags-of-a-prompt", r"(?:^|\n)\s*(?:#{1,4} |\*\*|={3,} ?)?(?:system|assistant|developer)(?: message| prompt| note| override)?(?:\*\*)?\s*:\s*(?:you |ignore|please|send|call|from now|the user|new )"),
    ("call-asked", r"\b(?:call|invoke|execute|run|use)(?: the)? (?:function|tool|api) [`'\"]?\w+[`'\"]? (?:with|to|and|immediately|now)\b[^.\n]{0,80}\b(?:immediately|now|first|silently|must|then delete|without)"),
    ("exfiltration", r"\b(?:send|forward|post|upload|e-?mail|exfiltrate|transmit)(?: me| us)? (?:all |the |any |every |your |their |user'?s? )*(?:passwords?|credentials?|api keys?|secrets?|tokens?|private keys?|conversation|chat history|security codes?|2fa codes?|verification codes?)[^.\n]{0,60}\bto\b"),
)  # fmt: skip
"""What each kind of sentence looks like, in English; every letter may be small or capital."""


def suspicious(text: str) -> list[str]:
    """Return the kinds of suspicious sentences in *text*; they stand for no certainty, in either direction."""
    flat = " ".join(text.split(" ")) if "  " not in text else " ".join(text.split())
    names, patterns = _patterns()
    return sorted({names[place] for place in patterns.Match(flat.encode("utf-8", "replace")) or ()})


@functools.cache
def _patterns() -> tuple[list[str], re2.Set]:
    options = re2.Options()
    options.case_sensitive = False
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    patterns = re2.Set.SearchSet(options)
    for _, pattern in PHRASES:
        patterns.Add(pattern)
    patterns.Compile()
    return [name for name, _ in PHRASES], patterns
