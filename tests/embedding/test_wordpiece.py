"""Tokens are those of the library that publishers of models use, whichever Unicode this Python has."""

import json
import random
import string
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from omegad.embedding import wordpiece
from omegad.embedding.bert_graph import build
from omegad.embedding.catalogue import TOKENIZER
from omegad.embedding.session import Session
from omegad.embedding.wordpiece import WordPiece
from omegad.runtime.errors import ModelFailed
from tests.embedding.test_bert_graph import manifest
from tests.seeds import SEED

TOKENS_MAX = 64
SIGNS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ALPHABET = (
    string.ascii_letters + string.digits + string.punctuation + "éßñøłαβγςσжшאשعلकमกあアー日本語한국ᄀ가“”€°·"
)
VOCABULARY = [
    *SIGNS,
    *ALPHABET,
    *("##" + char for char in ALPHABET),
    *("the", "disk", "un", "##believ", "##able", "##able##", "full", "straße", "##ing", "naive", "ΑΣ"),
]
EVERY = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
UNUSED = 0x32000  # above, but for tags and what is private, there is nothing yet


def published(path: Path, *, lowercase: bool, strip_accents: bool | None, template: bool) -> Path:
    """Write a tokenizer.json as the library does."""
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(VOCABULARY))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens([AddedToken(sign, special=True, normalized=False) for sign in SIGNS])
    if template:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    else:
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(path))
    return path


@pytest.fixture(
    params=[(True, None, True), (False, None, False), (False, True, True), (True, False, True)],
    ids=["uncased", "cased", "cased without accents", "uncased with accents"],
)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[WordPiece, Tokenizer]:
    lowercase, strip_accents, template = request.param
    path = published(
        tmp_path / TOKENIZER, lowercase=lowercase, strip_accents=strip_accents, template=template
    )
    library = Tokenizer.from_file(str(path))
    library.enable_truncation(TOKENS_MAX)
    return WordPiece(path, TOKENS_MAX), library


def check(both: tuple[WordPiece, Tokenizer], texts: Iterable[str]) -> None:
    own, library = both
    for text in texts:
        assert own.encode(text) == library.encode(text).ids, repr(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "The disk was full.",
        "unbelievable unbelievableing",
        "x" * 100 + " " + "x" * 101,
        "é" * 101,
        "e\u0301" * 60,
        "ΑΣ Σ ΣΑΣ",
        "İI ẞß straße",
        "日本語 and 한국",
        "[MASK]the[CLS] [cls] [MASK",
        "a\x00b\x1cc\x85d\u2028e\ufffdf\u200dg",
        "##able able##",
        "the " * 100,
        "[SEP] " * 100,
    ],
    ids=lambda text: repr(text[:16]),
)
def test_a_text_has_the_tokens_of_the_library(both: tuple[WordPiece, Tokenizer], text: str) -> None:
    check(both, [text])


def test_random_texts_have_the_tokens_of_the_library(both: tuple[WordPiece, Tokenizer]) -> None:
    choose = random.Random(SEED)  # noqa: S311
    pieces = [*VOCABULARY, " ", " ", " ", "\n", "\u0301", "\u200d", "İ", "ﬁ", "🎉"]

    def text() -> str:
        strange = "".join(map(chr, choose.choices(EVERY, k=choose.randrange(3))))
        parts = [*choose.choices(pieces, k=choose.randrange(40)), strange]
        choose.shuffle(parts)
        return "".join(parts)

    check(both, (text() for _ in range(2_000)))


def places(codes: list[int]) -> list[str]:
    """Return texts in which each character stands in a word, and between a letter and its accent."""
    return [
        " ".join(f"a{char}b e{char}\u0301" for char in map(chr, codes[start : start + 8]))
        for start in range(0, len(codes), 8)
    ]


def test_a_character_is_read_as_the_library_does(both: tuple[WordPiece, Tokenizer]) -> None:
    check(both, places([*EVERY[:0x600], *EVERY[0x1E00:0x2100], *EVERY[0x600::97]]))


@pytest.mark.long
def test_every_character_is_read_as_the_library_does(both: tuple[WordPiece, Tokenizer]) -> None:
    check(
        both, places([*range(0xD800), *range(0xE000, UNUSED), *range(0xE0000, 0xE0200), *EVERY[UNUSED::997]])
    )


def test_no_more_characters_are_remembered_than_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wordpiece, "READINGS_KEPT", 3)
    path = published(tmp_path / TOKENIZER, lowercase=True, strip_accents=None, template=True)
    own = WordPiece(path, TOKENS_MAX)
    assert own.encode("THE disk") == own.encode("the DISK") == WordPiece(path, TOKENS_MAX).encode("the disk")
    assert len(own._readings) == 3


def other_kind(folder: Path) -> None:
    definition = json.loads((folder / TOKENIZER).read_text(encoding="utf-8"))
    definition["normalizer"] = {"type": "Lowercase"}
    (folder / TOKENIZER).write_text(json.dumps(definition), encoding="utf-8")


def test_a_tokenizer_of_another_kind_is_the_librarys(tmp_path: Path, tiny_model: Any) -> None:
    tiny_model(tmp_path)
    build(tmp_path)
    expected = Session(tmp_path, manifest("mean")).embed("the disk was full, a cat " * 5)
    other_kind(tmp_path)
    assert Session(tmp_path, manifest("mean")).embed("the disk was full, a cat " * 5) == expected


def test_without_the_library_a_tokenizer_of_another_kind_says_what_it_takes(
    tmp_path: Path, tiny_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model(tmp_path)
    other_kind(tmp_path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ModelFailed, match=r"omegad\[tokenizers\]"):
        Session(tmp_path, manifest("mean"))
