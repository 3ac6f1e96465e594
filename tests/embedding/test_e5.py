"""The model for all languages: its file, its tokenizer, and what its vectors say."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from omegad.embedding import unigram
from omegad.embedding.catalogue import DIRECTIONS, E5_SMALL, MEAN, folder_of, read_manifest
from omegad.embedding.e5_file import BLOCK_BYTES, E5File, Pieces, unpacked
from omegad.embedding.session import Session, Shared
from omegad.embedding.unigram import Unigram, read_as
from omegad.runtime.config import find_paths
from omegad.runtime.errors import Invalid

MODELS = Path(os.environ.get("OMEGAD_TEST_MODELS") or find_paths().models)
WORDS = {
    "▁": -3.0,
    "▁the": -2.0,
    "▁data": -4.0,
    "base": -4.5,
    "▁database": -9.5,
    "d": -6.0,
    "数据": -5.0,
    "库": -5.5,
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Unigram:
    path = tmp_path_factory.mktemp("pieces") / "pieces.bin"
    texts = ["<s>", "<pad>", "</s>", "<unk>", *WORDS, "<mask>"]
    scores = np.array([0, 0, 0, 0, *WORDS.values(), 0], np.float32)
    unigram.write(Pieces(texts, scores, 0, 2, 3), path)
    return Unigram(path, 8)


def numbers(*words: str) -> list[int]:
    return [0, *(3 if word == "?" else 4 + list(WORDS).index(word) for word in words), 2]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("the  database", ("▁the", "▁data", "base")),
        ("数据库", ("▁", "数据", "库")),
        ("the d", ("▁the", "▁", "d")),
        ("the ☃☃☃", ("▁the", "▁", "?")),
        ("the\u200bdatabase", ("▁the", "▁data", "base")),
        ("\uff54\uff48\uff45", ("▁the",)),
        ("", ("▁",)),
    ],
)
def test_a_text_is_cut_where_that_is_likeliest(
    tokenizer: Unigram, text: str, pieces: tuple[str, ...]
) -> None:
    assert tokenizer.encode(text) == numbers(*pieces)


def test_a_long_text_is_cut_and_what_looks_like_a_mark_is_none(tokenizer: Unigram) -> None:
    assert tokenizer.encode("the " * 50) == [0, *[5] * 6, 2]
    assert not {1, 12} & set(tokenizer.encode("<mask> <pad>"))


def test_a_text_is_read_in_one_form() -> None:
    assert read_as(" Ä  b\tc\x01") == "▁Ä▁b▁c"
    assert read_as("\uff5e") == "▁\uff5e"


def test_blocks_of_4_bits_hold_a_weight_in_each_half_of_a_byte() -> None:
    packed = np.frombuffer(struct.pack("<e", -0.5) + bytes(range(16)), np.uint8)
    assert len(packed) == BLOCK_BYTES
    low = [(number - 8) * -0.5 for number in range(16)]
    assert unpacked(packed).tolist() == [low + [4.0] * 16]


@pytest.mark.parametrize("content", [b"", b"E5S1", b"GGUF" + bytes(200), b"E5S1" + bytes(200)])
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "e5.bin").write_bytes(content)
    with pytest.raises(Invalid, match="is not a complete E5S1 file"):
        E5File(tmp_path / "e5.bin")


def test_what_languages_have_in_common_is_taken_from_vectors(tmp_path: Path) -> None:
    (tmp_path / MEAN).write_text("[0.5, 0.0, 0.0]")
    assert Shared(tmp_path).taken_from(np.array([1.5, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]
    (tmp_path / DIRECTIONS).write_text("[[0.0, 0.6, 0.8]]")
    assert Shared(tmp_path).taken_from(np.array([1.5, 0.6, 0.8])) == pytest.approx([1.0, 0.0, 0.0])
    assert Shared(tmp_path).taken_from(np.array([1.5, 0.8, -0.6])) == pytest.approx([1.0, 0.8, -0.6])


SAID = {
    "en": (
        "The connection to the database times out after thirty seconds.",
        "Bread is baked at 230 degrees.",
    ),
    "de": (
        "Die Verbindung zur Datenbank läuft nach dreißig Sekunden ab.",
        "Brot wird bei 230 Grad gebacken.",
    ),
    "fr": ("La connexion à la base de données expire après trente secondes.", "Le pain cuit à 230 degrés."),
    "zh": ("数据库连接在三十秒后超时。", "面包在230度下烘烤。"),
    "ar": ("ينتهي الاتصال بقاعدة البيانات بعد ثلاثين ثانية.", "يُخبز الخبز على 230 درجة."),
    "hi": ("डेटाबेस का कनेक्शन तीस सेकंड बाद समाप्त हो जाता है।", "रोटी 230 डिग्री पर पकती है।"),
}


@pytest.mark.model
def test_what_says_the_same_is_near_in_any_language_and_what_does_not_is_far() -> None:
    manifest = read_manifest(folder_of(MODELS, E5_SMALL.name))
    if manifest is None:
        pytest.skip(f"{E5_SMALL.name} is not installed in {MODELS}: run `omegad model install`")
    session = Session(folder_of(MODELS, E5_SMALL.name), manifest)
    vectors = {
        code: [np.frombuffer(session.embed(text), "<f4") for text in texts] for code, texts in SAID.items()
    }
    for code, (one, other) in vectors.items():
        for another in set(SAID) - {code}:
            same, unlike = float(one @ vectors[another][0]), float(one @ vectors[another][1])
            assert same > max(0.35, unlike + 0.2), (code, another)
        assert float(one @ other) < 0.35, code
    assert session.embed(SAID["de"][0]) == vectors["de"][0].tobytes(), "and again the same to the last bit"


@pytest.mark.model
def test_word_by_word_what_holds_something_of_what_is_asked_for_is_nearer_than_what_does_not() -> None:
    manifest = read_manifest(folder_of(MODELS, E5_SMALL.name))
    if manifest is None:
        pytest.skip(f"{E5_SMALL.name} is not installed in {MODELS}: run `omegad model install`")
    session = Session(folder_of(MODELS, E5_SMALL.name), manifest)
    note = "Passwords are hashed with argon2id, 64 MB of memory, 3 passes."
    for answered, other in (
        ("Wie werden Passwörter gespeichert?", "Wer gießt die Blumen im Büro?"),
        ("Как хранятся пароли?", "Кто поливает цветы в офисе?"),
        ("密码是怎么存储的", "办公室的花谁来浇"),
    ):
        near, far = session.nearness(answered, note), session.nearness(other, note)
        assert near > far + 0.1, answered
        fresh = Session(folder_of(MODELS, E5_SMALL.name), manifest)
        fresh.embed(answered)
        assert fresh.nearness(answered, note) == near, "whatever was embedded before"
    assert 0.99 < session.nearness(note, note) < 1.01
    assert session.nearness("", note) < 0.9
