"""What a rule is: a name, the words without which it need not be tried, a pattern, and what tells a secret from its look-alikes."""

import re
from collections.abc import Callable, Iterator

import msgspec

Span = tuple[int, int]
Judge = Callable[[str, re.Match[str]], Span | None]
"""Takes a text and a match in it; returns where the secret is, None where there is none."""


class Rule(msgspec.Struct, frozen=True):
    """One kind of secret. Its pattern is tried only where one of the needles is in the text; if `is_anchored`, only at the needles.

    Without a judge, the secret is what the pattern's group `secret` matched, or all of the match where there is no such group.
    """

    name: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    judge: Judge | None = None
    is_folded: bool = False
    """Needles and pattern are compared with the text in lower case; a judge is given the text as it is."""
    is_anchored: bool = False

    def spans(self, text: str, folded: str) -> list[Span]:
        """Return where *text*, which is *folded* in lower case, has such secrets."""
        place = folded if self.is_folded else text
        found: list[Span] = []
        end = 0
        for match in self._at_needles(place) if self.is_anchored else self.pattern.finditer(place):
            # What begins within a secret is a part of it, whatever it looks like.
            if match.start() >= end and (span := self._span(text, match)):
                found.append(span)
                end = span[1]
        return found

    def _span(self, text: str, match: re.Match[str]) -> Span | None:
        if self.judge is not None:
            return self.judge(text, match)
        return match.span("secret" if "secret" in self.pattern.groupindex else 0)

    def _at_needles(self, place: str) -> Iterator[re.Match[str]]:
        # To find a substring takes a tenth of the time of a pattern that begins with it.
        starts: list[int] = []
        for needle in self.needles:
            at = place.find(needle)
            while at >= 0:
                starts.append(at)
                at = place.find(needle, at + len(needle))
        end = 0
        for at in sorted(starts):
            if at >= end and (match := self.pattern.match(place, at)):
                yield match
                end = match.end()


def stated(name: str, needles: str, pattern: str, judge: Judge | None = None) -> Rule:
    """Return a rule for what its surroundings give away: the pattern begins with a needle. Both are in lower case, bars part needles."""
    return Rule(name, tuple(needles.split("|")), re.compile(pattern), judge, is_folded=True, is_anchored=True)


def issued(name: str, needles: str, pattern: str) -> Rule:
    """Return a rule for an issuer's shape, in the letters' own case."""
    # A line break written as \n, as in JSON, glues its letter to what follows. A shape runs on to the end of its word, so that of
    # many glued together none is left for another pass.
    return Rule(name, tuple(needles.split("|")), re.compile(rf"(?:\b|(?<=\\[nrt]))(?:{pattern})"))
