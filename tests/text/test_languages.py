"""What language a text is in, and what its questions are about."""

import pytest

from omegad.index.terms import asked, telling
from omegad.text.languages import language_of


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("de", "Auf welchem Port läuft die Datenbank?"),
        ("fr", "Pourquoi la connexion expire-t-elle après une minute ?"),
        ("es", "¿Por qué se agota la conexión después de un minuto?"),
        ("pt", "Qual é a porta que o servidor não usa mais?"),
        ("it", "Perché la connessione scade dopo un minuto e come si evita?"),
        ("nl", "Waarom moet het bestand niet worden opgeslagen?"),
        ("tr", "Sunucu neden bir dakika sonra cevap vermez?"),
        ("id", "Mengapa koneksi itu tidak dapat dibuka dari server?"),
        ("vi", "Tại sao kết nối không được mở?"),
        ("zh", "修复了 payment_gateway.py 中的超时"),
        ("ja", "なぜログインがタイムアウトするのですか。"),
        ("ko", "데이터베이스는 어느 포트를 사용합니까?"),
        ("ru", "Почему соединение закрывается через минуту?"),
        ("ar", "لماذا ينقطع الاتصال بعد دقيقة؟"),
        ("ur", "ڈیٹا بیس کس پورٹ پر چلتا ہے؟"),
        ("hi", "डेटाबेस किस पोर्ट पर चलता है?"),
        ("bn", "ডাটাবেস কোন পোর্টে চলে?"),
    ],
)
def test_a_language_is_told_by_its_script_and_its_small_words(code: str, text: str) -> None:
    assert language_of(text).code == code


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("de", "Was kostet der Server?"),
        ("it", "chi gestisce le fatture?"),
        ("it", "porta del database"),
        ("tr", "sertifika ne zaman bitiyor"),
        ("cs", "na jakém portu běží databáze"),
        ("hu", "mikor jár le a tanúsítvány"),
        ("no", "hvilken port kjører databasen på?"),
        ("vi", "ai trả tiền máy chủ"),
        ("pl", "jak zrobić rollback"),
        ("pt", "onde ficam os backups?"),
        ("fi", "milloin varmenne vanhenee"),
        ("tr", "İstanbul sunucusu hangi sürümde?"),
    ],
)
def test_a_short_question_is_told_by_its_letters(code: str, text: str) -> None:
    assert language_of(text).code == code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "!?",
        "how do we deploy?",
        "ConnectionResetError in core/fjord_amber.py",
        "The button says 保存, and nothing else.",
        "Müller and Gómez own the café module",
        "café menu in München",
        "pip install la-capitaine && export LANG=de_DE",
        "Add a man page for the el-capitan build",
        "docker run -v /etc/letsencrypt:/etc/letsencrypt nginx",
    ],
)
def test_what_is_english_or_tells_nothing_is_taken_for_english(text: str) -> None:
    assert language_of(text).is_english


@pytest.mark.parametrize(
    "text",
    [
        "Zeige systemweite Informationen",
        "Verteiltes Versionskontrollsystem",
        "Mostrare informazioni dettagliate",
        "Edytuje plik tekstowy",
    ],
)
def test_what_has_no_small_words_is_told_by_its_letters_where_other_languages_have_been_met(
    text: str,
) -> None:
    assert not language_of(text, is_met=True).is_english
    assert language_of(f"{text}: what is that?", is_met=True).is_english


@pytest.mark.parametrize(
    "text",
    [
        "deploy script",
        "Docker registry credentials",
        "flaky integration tests",
        "PaymentGateway timeout",
        "CI",
    ],
)
def test_a_few_words_in_english_stay_english_where_other_languages_have_been_met(text: str) -> None:
    assert language_of(text, is_met=True).is_english


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Auf welchem Port läuft die Datenbank?", {"Port", "läuft", "Datenbank"}),
        ("¿Qué puerto usa la base?", {"puerto", "usa", "base"}),
        ("Почему закрывается соединение?", {"закрывается", "соединение"}),
    ],
)
def test_the_small_words_of_a_question_are_no_terms(question: str, words: set[str]) -> None:
    assert set(asked(question, language_of(question)).replace("?", " ").replace("¿", " ").split()) == words


def test_a_question_word_without_spaces_is_no_term_and_what_is_asked_about_is() -> None:
    terms = telling("我们什么时候部署。")
    assert '"部署"' in terms
    assert not any("什么" in term for term in terms)


def test_a_word_of_a_question_is_looked_for_by_its_stem_too_unless_it_is_english() -> None:
    assert telling("Wann werden die Datenbanken gesichert?") == (
        '("Datenbanken" OR "datenbank")',
        '"gesichert"',
    )
    assert telling("when are the databases saved") == ('"databases"', '"saved"')


def test_a_question_of_small_words_alone_keeps_them() -> None:
    assert asked("Wer ist das?", language_of("Wer ist das?")) == "Wer ist das?"
