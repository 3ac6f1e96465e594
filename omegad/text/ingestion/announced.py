"""What a person announces as worth remembering: "remember: …", "lesson learned: …", "from now on …",
"I prefer …", "we decided …". Rules, since whoever says so outright is to be taken at their word. Pure.

An announcement opens a sentence, or a clause of one. Time is linear in the sentence.
"""

import re

ANNOUNCED_CHARACTERS_MAX = 1_000

_QUOTED = re.compile(r"[\"“][^\"“”]{2,300}[\"”]|`[^`]{1,300}`|(?<!\w)'[^']{12,300}'(?!\w)")
_OPENS = r"""(?:^[^\w(]{0,8}|[.!?;:]\s+|\s[-\u2013\u2014]+\s+|,\s+(?:and|but|so)\s+)
    (?:(?:please|pls|also|and|so|but|then|ok(?:ay)?|yes|no|well|right|great|thanks?(?:\ you)?|perfect|hey|hi
      |btw|by\ the\ way|just|one\ (?:more\ )?thing|i(?:\ |')(?:want|need|d\ like)\ you\ to
          |you\ (?:should|must)
      |always|do)[,:.!]?\s+){0,3}"""
"""Where an announcement may begin, and what people say before it."""

_KINDS: tuple[tuple[str, str], ...] = (
    (
        "lesson_learned",
        r"""(?:(?:the|a|my|our|another|key|big|main|hard)\ ){0,2}
            (?:lessons?(?:\s(?:learn(?:ed|t)|here))?|take-?aways?|gotchas?|pitfall|til
              |today\ i\ learn(?:ed|t))
            (?:\s(?:is|was)(?:\sthat)?\b|\s?[:,\u2013\u2014]|\s-)
          |(?:i|we)(?:'ve|\ have)?\ (?:(?:just|finally)\ )?
            (?:learn(?:ed|t)\ (?:that|the\ hard\ way)|found\ out\ the\ hard\ way)\b""",
    ),
    (
        "user_preference",
        r"""(?:from\ (?:now|here|this\ point|today)\ on(?:wards?)?(?!,?\ (?:\w+\ )?(?:can|could|may
          |might)\b)
              |going\ forward|moving\ forward|henceforth
              |in\ (?:the\ )?future
                (?!,?\ (?:perhaps|maybe|(?:we|i)(?:'ll|'d\ like\ to|\ (?:will|may|might|could|can|want)))\b)
              |as\ a\ (?:general\ )?rule)\b[,:]?
          |(?:(?:the|our|my|a|new|house|team|general|hard|golden|project|one|important|ground|first)\ ){0,3}
            (?:rules?(?:\ of\ thumb)?|conventions?|guidelines?|policy)
            (?:\s(?:for|in|of|on)\ [\w\ ]{2,40})?
            (?:\s(?:is|are)(?:\ (?:that|to|always|never)\b|:)|\s?[:\u2013\u2014]|\s-)
          |i(?:\ (?:always|generally|really|strongly|much|usually|personally|also|still|do|would|'d))*
            \ prefer\b(?!\ if\b)
          |(?:i'd|i\ would)\ (?:\w+\ )?(?:prefer(?!\ if\b)|rather\ (?:you\ |we\ )?(?:always|never))\b
          |my\ (?:strong\ |personal\ |general\ )?preferences?
            (?:\s(?:is|are)\b|\s?:|\sfor\ [\w\ ]{2,40}\s(?:is|are)\b)
          |(?:always|never)\ (?!mind\b|been\b|seen\b|had\b|got\b|gets\b|was\b|said\b|tried\b|used\ to\b
            |again\b
            |happen|fall\b|end\ up\b|crash|hang|freeze|die\b
            |work(?:s|ed)\b|shows?\b|appears?\b|the\b|a\b|an\b|in\b|on\b|\w+(?:ed|ing
              |[^\Wsu]s)\b|(?:written|shown|given|taken|done|made|known|kept|built|sent|found)\b)[a-z]{2,}
            (?=\s\w)""",
    ),
    (
        "decision",
        r"""(?:(?:the|our|my|a|final|key|design|architecture|team)\ ){0,3}decision(?:\ (?:made|taken|log))?
            (?:\s(?:is|was)\b|\s?[:\u2013\u2014]|\s-)|decided:
          |(?:we|i|the\ team)(?:'ve|\ have)?
            \ (?:(?:just|now|also|finally|already|all|both|today|yesterday|recently)\ )?
            (?:(?:decided|agreed|settled\ on|opted\ (?:for|to))\b
              |(?:chose|picked|went\ with)\b(?=.{2,120}\b(?:over|instead|because|since|rather|for|so)\b))
          |it\ (?:was|is|has\ been)\ (?:decided|agreed)\ (?:that|to)\b""",
    ),
    (
        "memory",
        r"""(?:remember|keep\ in\ mind|bear\ in\ mind|don't\ forget|do\ not\ forget|never\ forget)
            (?:\ (?:this|the\ following|for\ (?:later|next\ time|the\ future|future\ \w+)))?
            (?:\ that\b|\s?[:,\u2013\u2014]|\s-)
          |(?:make\ a\ )?(?:note|reminder|memo)\ to\ (?:self|myself|yourself)\b\s?[:,\u2013\u2014-]?
          |(?:for|just\ for)\ (?:the\ record|(?:your\ |future\ )?reference|(?:your|the)\ (?:info
            |information)
            |next\ time|later)\b\s?[:,\u2013\u2014-]?
          |(?:important|fyi)
            (?:\ (?:note|fact|detail|to\ (?:know|note|remember)))?
            (?:\s?[:,\u2013\u2014]|\s-|\ that\b)
          |it(?:'s|\ is)\ important\ (?:to\ (?:know|note|remember)\ )?that\b
          |remember\ (?=(?:to|not\ to|we|i|our|my|the|all|every|it's|that's)\b)""",
    ),
)
_ANNOUNCED = tuple(
    (event_type, re.compile(rf"{_OPENS}(?P<announced>{words})", re.VERBOSE | re.IGNORECASE))
    for event_type, words in _KINDS
)
_WORD = re.compile(r"[^\W\d_]{2,}")

_PASSING = re.compile(
    r"""\b(?:for\ now|this\ time|right\ now|today|tomorrow|yet
        |(?:for|on)\ this\ (?!project|repo|code|app|team|machine|computer)|(?:in|for|of|with
          |on)\ (?:this|the\ (?:current|above|below))
        \ (?:pr|task|commit|change|session|prompt|message|conversation|answer|reply|question|exercise
          |turn|step
          |function)
        |the\ (?:first|second|third|other|latter|former|previous|last)\ (?:one|option|version|design
          |approach|idea
          |layout|variant|solution|suggestion|proposal|choice|way)
        |(?:each|all|any|both|some|most|none)\ of\ (?:those|these|them)
        |this\ (?:function|method|file|line|error|bug|test|page|button|level|kind|sort|amount|way)
        |(?:option|approach|variant|version|solution|choice|design)\ (?:[a-e]|\d|one|two|three)
        |(?:this|that|your)\ (?:one|option|version|design|approach|idea|layout|variant|solution
          |suggestion))\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""What makes of anything a word for the task at hand."""
_FROM_NOW_ON = re.compile(
    r"\b(?:from now on|from here on|henceforth)\b(?!,? (?:\w+ )?(?:can|could|may|might)\b)", re.IGNORECASE
)
"""What makes of anything a rule, wherever it stands."""
_THAT = re.compile(
    r"\W*(?:it|that|this|these|those)\b(?!\ (?:project|repo|code|app|team|machine)\w*\b)", re.IGNORECASE
)
"""What a rule is about that only the message before it says."""
_FOR = re.compile(r"\s*for\s(?:your|my|the)\b", re.IGNORECASE)
"""What says only for what something is to be remembered."""
_QUESTION = re.compile(
    r"\W*(?:if|do|does|did|should|shall|can|could|would|will|is|are|what|how|why)\b", re.IGNORECASE
)
_POINTS = re.compile(
    r"(?:it|this|that|these|those|them|so|what|how|when|who|where|why|which)\b[^:]{0,12}$", re.IGNORECASE
)
_LASTING = re.compile(
    r"""\b(?:always|never|ever|every\ ?time|each\ time|whenever|every|each|any\ time|from\ now\ on
          |in\ future
        |in\ the\ future|in\ general|generally|going\ forward
        |(?:before|after|when|while)\ (?:you\ |we\ )?(?:\w+ing|commit|push|merge|deploy|release
          |chang\w+|writ\w+)\b
          (?!\ (?:this|that|it|the)\b))\b""",
    re.VERBOSE | re.IGNORECASE,
)
_ASKS = re.compile(
    r"""\W*(?:that\ )?(?:please\ |you\ (?:have\ to|need\ to|must|should|can|may)\ |to\ |not\ to[ ]
          |do\ not\ |don't\ |just\ )*
        (?:to|not\ to|do|don't|just|please|you|add|ask|avoid|build|change|check|clean|commit|complete
          |continue|create
          |delete|deploy|ensure|explain|find|finish|fix|follow|format|give|go|ignore|implement|include
            |keep|let|look
          |make|modify|move|only|output|print|provide|push|put|read|refactor|remove|rename|reply
            |respond|return|review
          |run|save|search|send|set|show|start|stop|take|test|think|try|update|use|verify|wait|work
            |write)\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""How a request begins, which is for the task at hand unless it says that it lasts."""
_STATES = re.compile(
    r"""(?:\S+\ ){0,5}?\S*(?<=[\ '])(?:is|are|s|re|m|has|have|uses?|runs?|lives?|needs?|must|should|can
          |can't|cannot
        |only|always|never|don't|doesn't|will|won't|requires?|expects?|prefer|like|hate|want|work
          |deploy)\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""What a clause that says how things are has in its first words."""
_BEFORE = re.compile(
    r"\b(?:yesterday|earlier|last\ (?:time|week|night)|(?:is|are|came)\ back|again|we\ (?:did|had|were))\b",
    re.IGNORECASE,
)


_ERRAND = re.compile(
    rf"{_OPENS}(?:remember|don't\ forget|do\ not\ forget|never\ mind)\ ?(?:not\ )?(?:to\b|,)",
    re.VERBOSE | re.IGNORECASE,
)


def is_errand(sentence: str) -> bool:
    """Say whether a sentence asks to remember to do something for the task at hand."""
    return bool(_ERRAND.search(sentence)) and not _LASTING.search(sentence.replace("ever mind", ""))


def announced(sentence: str) -> tuple[str, str] | None:
    """Return the type that a sentence announces, and the sentence from there on; None where it announces
    nothing that lasts beyond the task at hand.
    """
    spoken = _QUOTED.sub(lambda found: '"' + "_" * (len(found[0]) - 2) + '"', sentence)
    if _PASSING.search(spoken) or sentence.count('"') % 2:  # of a quotation that was cut
        return None
    found = [
        (
            match.start("announced"),
            place,
            event_type,
            spoken[match.start("announced") : match.end()],
            spoken[match.end() :],
        )
        for place, (event_type, pattern) in enumerate(_ANNOUNCED)
        if (match := pattern.search(spoken))
    ]
    if not found and _FROM_NOW_ON.search(spoken) and not _QUESTION.match(spoken):
        return "user_preference", sentence
    for start, _, event_type, opening, rest in sorted(found):
        if _is_meant(event_type, opening, rest):
            is_own = start and re.search(r"[.!?]\s+\W*$", sentence[:start])
            return event_type, sentence[start:] if is_own else sentence
    return None


def _is_meant(event_type: str, opening: str, rest: str) -> bool:
    """Say whether something is announced after the words that open it, and for longer than a task."""
    needed = 1 if "prefer" in opening.lower() or event_type == "user_preference" else 2
    if len(_WORD.findall(rest)) < needed or _POINTS.match(rest.strip(" :,-\u2013\u2014").strip()):
        return False
    if _FOR.match(rest) if event_type == "memory" else event_type != "lesson_learned" and _THAT.match(rest):
        return False
    if event_type != "memory" or (
        re.match(r"(?i)(?:make |note |reminder |memo )", opening) and "to" in opening
    ):
        return True
    is_lasting = bool(_LASTING.search(rest))
    if re.match(r"(?i)remember\s?:", opening):
        return is_lasting or not re.match(r"(?i)\W*(?:do not|don't|just|only|to|not to|please|you)\b", rest)
    if opening.lower().strip() == "remember" and not re.match(r"(?:not )?to\b", rest, re.IGNORECASE):
        return bool(_STATES.match(rest)) and not _BEFORE.search(rest)
    return is_lasting or not _ASKS.match(rest)
