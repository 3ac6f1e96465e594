"""Text to the numbers of its words and parts of words, as BERT's published tokenizers have them: WordPiece.

Characters are read as by the library that publishers use, which knows Unicode as of 2015: a vector does not
change with the Unicode of the Python that runs this (but for small letters of capitals that came since, which
no published vocabulary has).
"""

import re
import unicodedata
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

READINGS_KEPT = 20_000  # of characters
LATER = re.compile(
    "["
    "\u05c8-\u05c9\u061d\u07fd\u0890-\u08e2\u09fd-\u09fe\u0a76\u0afa-\u0aff\u0b53-\u0b55\u0c04-\u0c3c\u0c77"
    "\u0c84\u0d00\u0d3b-\u0d3c\u0d81\u0eba\u0ece\u180f-\u1886\u1abf-\u1af0\u1b4e-\u1b4f\u1b7d-\u1b7f"
    "\u1df6-\u1dfb\u2e43-\u2e63\ua82c\ua8c5\ua8ff\ua9bd\U00010d24-\U00010f89\U00011070-\U00011074"
    "\U000110c2-\U000110cd\U000111cf\U0001123e-\U00011241\U0001133b\U000113bb-\U0001145e"
    "\U00011660-\U0001166c\U000116b9\U0001182f-\U00011fff\U00012ff1-\U0001612f\U00016d6d-\U00016f4f"
    "\U00016fe2-\U00016fe4\U0001cf00-\U0001d128\U0001d25b-\U0001d25c\U0001e000-\U0001e6f5"
    "\U0001e944-\U0001e95f"
    "]"
)
"""What came after 2015, or became a mark, a sign or punctuation after: it is read as a letter."""
MARKS = "\u1734\U0001171e"  # in 2015
PUNCTUATION = re.compile("[!-/:-@\\[-`{-~\u166d\U000111c9]")  # that newer versions call something else
CHINESE = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf"
    "\U0002f800-\U0002fa1f]"
)
"""Each of these is a word by itself."""


class Normalizer(msgspec.Struct, frozen=True, tag_field="type", tag="BertNormalizer"):
    """How a text is brought to words, of what publishers may choose."""

    clean_text: Literal[True]
    handle_chinese_chars: Literal[True]
    strip_accents: bool | None
    lowercase: bool

    def reading(self, char: str) -> str:
        """Return what a character is read as, with spaces around what is a word by itself."""
        category = _category(char)
        if char in "\t\n\r" or category[0] == "Z":
            return " "
        if category in {"Cc", "Cf", "Co"} or char == "\ufffd":
            return ""
        read = char
        if self.strip_accents or (self.strip_accents is None and self.lowercase):
            read = "".join(each for each in unicodedata.normalize("NFD", char) if _category(each) != "Mn")
        read = read.lower() if self.lowercase else read
        if CHINESE.match(char):
            return f" {read} "
        return "".join(f" {each} " if _category(each)[0] == "P" else each for each in read)


def _category(char: str) -> str:
    """Return the category that a character had in Unicode in 2015; all signs of ASCII are punctuation."""
    if LATER.match(char):
        return "Lo"
    if char in MARKS:
        return "Mn"
    return "Po" if PUNCTUATION.match(char) else unicodedata.category(char)


class Readings(dict[int, str]):
    """What characters are read as, for `str.translate`."""

    def __init__(self, normalizer: Normalizer) -> None:
        super().__init__()
        self._normalizer = normalizer

    def __missing__(self, code: int) -> str:
        reading = self._normalizer.reading(chr(code))
        if len(self) < READINGS_KEPT:
            self[code] = reading
        return reading


class Sign(msgspec.Struct, frozen=True):
    """A token that is found in a text as it is."""

    id: int
    content: str
    single_word: Literal[False]
    lstrip: Literal[False]
    rstrip: Literal[False]
    normalized: Literal[False]


class PreTokenizer(msgspec.Struct, frozen=True, tag_field="type", tag="BertPreTokenizer"):
    """Words end at spaces; punctuation is a word."""


class Around(msgspec.Struct, frozen=True, tag_field="type", tag="BertProcessing"):
    """The tokens around a text."""

    sep: tuple[str, int]
    cls: tuple[str, int]

    def ends(self) -> tuple[int, int]:
        """Return the first and the last token."""
        return self.cls[1], self.sep[1]


class Named(msgspec.Struct, frozen=True):
    """A token, or the text."""

    id: str


Token = Annotated[dict[Literal["SpecialToken"], Named], Meta(min_length=1)]
Text = Annotated[dict[Literal["Sequence"], Named], Meta(min_length=1)]


class Numbers(msgspec.Struct, frozen=True):
    """What a token of a template stands for."""

    ids: tuple[int]


class Template(msgspec.Struct, frozen=True, tag_field="type", tag="TemplateProcessing"):
    """The tokens around a text, as a pattern."""

    single: tuple[Token, Text, Token]
    special_tokens: dict[str, Numbers]

    def ends(self) -> tuple[int, int]:
        """Return the first and the last token."""
        first, _text, last = self.single
        return (
            self.special_tokens[first["SpecialToken"].id].ids[0],
            self.special_tokens[last["SpecialToken"].id].ids[0],
        )


class Vocabulary(msgspec.Struct, frozen=True, tag_field="type", tag="WordPiece"):
    """The words and parts of words that have a number; a part that does not begin a word has a prefix."""

    unk_token: str
    continuing_subword_prefix: str
    max_input_chars_per_word: int
    vocab: dict[str, int]


class Definition(msgspec.Struct, frozen=True):
    """A published tokenizer.json, of the kind that this module follows; no other can be decoded."""

    added_tokens: tuple[Sign, ...]
    normalizer: Normalizer
    pre_tokenizer: PreTokenizer
    post_processor: Around | Template
    model: Vocabulary


class WordPiece:
    """A tokenizer, for texts of up to some number of tokens."""

    def __init__(self, path: Path, tokens_max: int) -> None:
        """Follow what was published in *path*. Raises `msgspec.ValidationError` where it is another kind."""
        definition = msgspec.json.decode(path.read_bytes(), type=Definition)
        self._tokens_max = tokens_max
        self._words = definition.model
        self._unknown = self._words.vocab[self._words.unk_token]
        self._longest = max(map(len, self._words.vocab))
        self._added_tokens = {sign.content: sign.id for sign in definition.added_tokens}
        longest_first = sorted(self._added_tokens, key=len, reverse=True)
        self._sign = re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")
        self._first, self._last = definition.post_processor.ends()
        self._readings = Readings(definition.normalizer)

    def encode(self, text: str) -> list[int]:
        """Return the numbers of a text, cut at what is allowed, with those of its ends."""
        numbers = [self._first]
        for part in self._sign.split(text):
            if part in self._added_tokens:
                numbers.append(self._added_tokens[part])
                continue
            for word in part.translate(self._readings).split():
                numbers += self._parts(word)
                if len(numbers) >= self._tokens_max:
                    break
        return [*numbers[: self._tokens_max - 1], self._last]

    def _parts(self, word: str) -> list[int]:
        """Return the longest beginning of a word that has a number, then that of what is left, to its end."""
        if len(word) > self._words.max_input_chars_per_word:
            return [self._unknown]
        vocab, prefix = self._words.vocab, self._words.continuing_subword_prefix
        numbers: list[int] = []
        rest, begun = word, 0
        while len(rest) > begun:
            end = min(len(rest), self._longest)
            while end > begun and rest[:end] not in vocab:
                end -= 1
            if end == begun:
                return [self._unknown]
            numbers.append(vocab[rest[:end]])
            rest, begun = prefix + rest[end:], len(prefix)
        return numbers
