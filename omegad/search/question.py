"""What a question tells about its answer beside its words: whom it names, what it names exactly, which time
it means. Pure.

What is beside its words is told in English, by rule; a question in another language has none of that and
loses nothing by it.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from omegad.embedding.passages import SENTENCE_END, letters
from omegad.index.terms import STOP_WORDS, asked, bare_version, stemmed, stemmed_in, without_line
from omegad.text.calendars import UNSPACED, in_english, in_month, languages_of
from omegad.text.languages import ENGLISH, Language, language, language_of
from omegad.text.periods import Period, period

IDENTIFIERS_MAX = 16
CHATTER = 3  # sentences, of which more are not all about what is asked
ACRONYM_LETTERS_MAX = 4  # a longer word in capitals is a code, like SIGTERM; a shorter one a word, like DNS
CODE_DIGITS = 3  # a shorter number counts something
YEAR_DIGITS = 4

_NAME = re.compile(r"\b[A-Z]\w+")
_PART, _WORD = re.compile(r"\S+"), re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0dff])+")
_PLAIN = re.compile(  # what has signs or digits within it, and names nothing
    r"\d+(?:st|nd|rd|th)|\d{4}-\d{2}(?:-\d{2})?(?:T[\d:.Z+-]+)?|\d{1,2}:\d{2}(?::\d{2})?"
    r"|\d{1,2}/\d{1,2}(?:/\d{2,4})?"
    r"|\d+(?:[.,]\d+)?(?:%|[ap]m|x|s|ms|h|min)|\.*(?:e\.g|i\.e|a\.m|p\.m|etc)\.?"
    r"|[a-z][a-z'-]*/[a-z][a-z'-]*|\.+\w?",
    re.IGNORECASE | re.ASCII,
)
_ENGLISH = re.compile(
    r"\b(?:the|are|what|which|who|how|why|when|where|does|did|of|to|and|for|with|our|it|this|that|has|have"
    r"|by|from|about|can|should|my|your|i)\b",
    re.IGNORECASE | re.ASCII,
)
_EDGE = ".,;:!?\"'`()[]{}<>*"
_BEGINS = _EDGE.replace(".", "")  # what a name may begin with is no edge there
_PAST = re.compile(
    r"\b(?:original(?:ly)?|initial(?:ly)?|at first|previous(?:ly)?|former(?:ly)?|earlier|used to|back"
    r" (?:in|then|when)|older?|history"
    r"|as of|at the time|ever|happened|why|reasons?|rationale)\b|^\W*when (?:did|was|were)\b"
    # What must be done before something else is no matter of the past; what was so before it is.
    r"|\bbefore\W*$|\b(?:did|was|were|had|used)\b.*\bbefore\b",
    re.IGNORECASE | re.ASCII,
)
_NOW = re.compile(r"\b(?:today|tonight|this evening)\b", re.IGNORECASE)
_OF_NOW = re.compile(  # what is asked for as it is now, or is to be
    r"\W*(?:[^\W_]+\W+){0,3}?(?:is|are|am|do|does|can|could|should|shall|will|would|may|might|must)\b"
    r"(?!.*\b(?:from|since|of|until|did|was|were|has|have|had|been)\b)",
    re.IGNORECASE | re.DOTALL,
)
_ADVICE = re.compile(  # that is wanted: what somebody "did recommend" is told
    r"(?:^|[.!?;]\s)(?![^.!?;]*\b(?:did|does|has|had|gave|given|received)\b)[^.!?;]*"
    r"\b(?:suggest(?:ions?)?|recommend(?:ations?)?|advise|(?:should|how (?:do|can)) (?:I|we)|(?:I|we) should"
    r"|help (?:me|us)|how would you|what(?: are| would be|['\u2019]s| is) (?:some|the best|a good|good))\b",
    re.IGNORECASE,
)

_ASKING = [
    line.split()
    for line in """
    en happen happens happened happening going went done new news work worked working decide decided decisions
    en make made learn learned learnt fix fixed change changed changes discuss discussed talk talked agree
    en agreed ship shipped write wrote written finish finished complete completed achieve achieved note noted
    en notes memories progress update updates summary recap anything everything things stuff whats
    en stored save saved add added remember remembered recorded kept logged captured
    de passiert passierte geschah geschehen los lief gemacht getan neues war woran gearbeitet entschieden
    de beschlossen entscheidungen gelernt geändert erledigt besprochen
    de habe hab hast arbeitete machte entschied lernte
    fr qu ce passé passe arrivé a t avons avez ai nous quoi fait faite été nouveau travaillé décidé décisions
    fr appris changé en
    es pasó pasado ocurrió sucedió hicimos hice hizo hemos hecho nuevo trabajamos estuvimos trabajando
    es decidimos decidido decidió decisiones aprendimos aprendido cambió cambiado
    es trabajé estuve decidí aprendí cambié
    pt aconteceu passou ocorreu fizemos fiz fez feito foi novo no nós trabalhamos trabalhado
    pt decidimos decidido
    pt trabalhei decidi decidiu aprendi aprendemos mudou
    it successo accaduto avvenuto abbiamo ho fatto stato nuovo lavorato deciso decisioni
    nl gebeurd gebeurde gedaan deden nieuws gewerkt waaraan besloten beslist hebben heb we
    sv hänt hände gjorde gjort nytt arbetade jobbade beslutade beslutat beslutades bestämde bestämt
    da der skete sket gjorde gjort lavede lavet nyt arbejdede arbejdet besluttede besluttet
    no skjedde skjedd gjorde gjort nytt jobbet arbeidet bestemte bestemt besluttet
    fi tapahtui tapahtunut teimme tehtiin uutta
    pl zdarzyło wydarzyło stało działo robiliśmy zrobiliśmy zrobiono pracowaliśmy nowego zdecydowaliśmy
    pl nad czym robiłem robiłam zrobiłem zrobiłam pracowałem pracowałam zdecydowałem zdecydowałam zdecydowano
    cs stalo dělo dělali udělali pracovali nového jsem jsme čem dělal dělala udělal udělala pracoval pracovala
    cs rozhodli rozhodl rozhodla rozhodlo rozhodnuto
    ro întâmplat petrecut făcut lucrat nou
    hu történt csináltunk tettünk dolgoztunk
    tr oldu neler yaptık yapıldı üzerinde üzerine çalıştık ayı ayında ayda te ta neye karar verdik
    tr verildi kararlar kararları aldık alındı
    tr yaptım yaptın çalıştım verdim aldım
    id terjadi lakukan dilakukan kerjakan dikerjakan kami kita
    vi chuyện xảy ra vào làm ta
    ru случилось произошло было делали сделали сделано над чем работали нового решили решено
    ru делал делала сделал сделала работал работала решил решила
    ar حدث حصل جرى تم فعلنا فعلناه عملنا قررنا قررناه
    ur ہوا ہم نے کیا گیا کام
    hi में क्या हुआ हुई हमने किया गया काम
    bn এ কী হয়েছিল ঘটেছিল করা করেছি করেছিলাম আমরা নিয়ে কাজ
    el τον την έγινε συνέβη κάναμε δουλέψαμε νέο
    he קרה היה עשינו נעשה עבדנו
    zh 发生 做 忙 在 事情 工作 哪些 怎么 了 我们 什么 决定
    ja 何 を は に か が の 私たち 私 僕 作業 あり あった 起き 起こり 行われ し やり 取り組み ました した 決め
    ko 무슨 일이 있었나요 있었어 있었지 했나요 했어 했지 했습니까 에 결정 무엇을 우리가 우리는 결정을
    ko 결정했나요 결정했어 결정했지 결정했습니까 결정됐나요
    ko 내가 제가 나는 저는 뭐 한 일은
    th เกิด ขึ้น ทำ อะไร เรา ใน เดือน
    de gibt alles gespeichert notiert gemerkt hinzugefügt festgehalten aufgeschrieben vermerkt zeig zeige mir
    fr tout neuf enregistré enregistrée enregistrés sauvegardé noté notés ajouté ajoutés retenu stocké
    es guardé guardamos guardó guardado guardaste anoté anotamos anotado apunté apuntamos apuntado añadí
    es añadimos añadido añadió agregué agregamos agregado registramos registrado muéstrame
    pt tudo guardei guardamos guardado salvei salvamos anotei anotamos anotado adicionei adicionamos
    pt adicionado registrei registramos registrado armazenei armazenamos armazenado
    it tutto salvato salvati memorizzato annotato annotati registrato aggiunto aggiunti segnato mostrami
    nl alles opgeslagen bewaard genoteerd toegevoegd onthouden opgeschreven
    sv allt sparade sparat sparats sparades antecknade antecknat noterade noterat lade lagt tillagt
    da alt gemte gemt noterede noteret tilføjede tilføjet
    no alt lagret lagra noterte notert
    fi kaikki tallensin tallensimme tallennettiin tallennettu kirjasin kirjattiin lisäsin lisäsimme lisättiin
    pl wszystko zapisałem zapisałam zapisaliśmy zapisano zostało zapisane dodałem dodałam dodaliśmy
    pl dodano zanotowałem zanotowałam zanotowaliśmy zanotowano pokaż
    cs vše všechno uložil uložila uložili uloženo zapsal zapsala zapsali zapsáno přidal přidala přidali
    ro totul am ai salvat stocat notat adăugat memorat
    hu mindent mentettem mentettünk elmentettem elmentettünk feljegyeztem feljegyeztünk hozzáadtam hozzáadtunk
    tr kaydettim kaydettik kaydettin kaydedildi sakladım sakladık ekledim ekledik eklendi şey şeyi hepsi
    tr hepsini göster
    id baru disimpan simpan dicatat catat ditambahkan tambahkan semuanya tampilkan
    vi lưu ghi nhớ thêm mới
    ru всё все сохранил сохранила сохранили сохранено записал записала записали записано запомнил запомнила
    ru запомнили добавил добавила добавили добавлено покажи мне
    ar حفظت حفظنا حفظته حفظناه سجلت سجلنا أضفت أضفنا خزنت خزنا كل شيء جديد الجديد
    ur محفوظ شامل سب کچھ نیا
    hi सहेजा सहेजी नोट जोड़ा याद रखा सब कुछ नया मैंने
    bn হয়েছে সংরক্ষণ যোগ সব কিছু সবকিছু নতুন আমি
    el αποθήκευσα αποθηκεύσαμε αποθηκεύτηκε σημείωσα σημειώσαμε πρόσθεσα προσθέσαμε προστέθηκε όλα
    he שמרתי שמרנו נשמר רשמתי רשמנו הוספתי הוספנו הכל הכול חדש
    zh 保存 存 记录 记忆 记 添加 所有 全部 一切 新 东西 内容
    ja 保存 記録 メモ 追加 覚え すべて 全て 全部 もの
    ko 저장 기록 메모 추가 모두 전부 새로운 된 것
    th บันทึก เก็บ เพิ่ม ทั้งหมด ใหม่ ไว้ ฉัน
    """.strip().splitlines()  # noqa: RUF001
]
_WHATEVER = {
    code: frozenset(word for other, *words in _ASKING if other == code for word in words)
    for code, *_ in _ASKING
}
"""What asks in a language, with nothing but a time beside, for whatever is of it."""
_ALSO_NAMES = re.compile(  # what asks there alone: "at the store" is a name
    r"^\W*(?:please )?(?:show|list|give)\b|(?:(?<=\bi )|(?<=\bwe )|(?<=\byou ))(?:store|record|log)\b",
    re.IGNORECASE | re.ASCII,
)
SHORT = 12  # words, of which a question has no more that asks for whatever is of a time
NAMING_MAX = 4  # words that name it

ASKS = ("?", "\uff1f", "\u061f")


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a question says of its answer.

    `words` are its telling words, as stems in their order, and `stems` the same in its `language`; `letters`
    is how long it is, in letters of an alphabet; `names` its capitalised words, in lower case; `identifiers`
    its file names, paths, versions, codes and compound names, as written, a version without its v; `proper`
    these and, in English, the names beside the first word, in lower case. `is_past` says that it asks how
    things were, or why they are so; `period` is the time it names, `asks_whatever` that it asks for nothing
    but what is of it, `asks_advice` that it asks in English to be advised, and `asks_nothing` that its words
    say nothing of what it asks.
    """

    language: Language
    letters: int
    words: tuple[str, ...]
    stems: frozenset[str]
    names: frozenset[str]
    proper: frozenset[str]
    identifiers: tuple[str, ...]
    is_past: bool
    period: Period | None
    asks_whatever: bool
    asks_advice: bool
    asks_nothing: bool

    @property
    def plain_names(self) -> frozenset[str]:
        """Those of `proper` that are plain words, and so may be spelled otherwise."""
        exact = {name.lower() for name in self.identifiers}
        return frozenset(name for name in self.proper if name.isalpha() and name not in exact)


def understood(text: str, now_us: int, *, is_met: bool = False) -> Question:
    """Read a question, asked at *now_us*; *is_met* says that other languages than English have been met, as
    for the model that it is compared by.
    """
    (named, beside), language = _time(text, now_us), language_of(text, is_met=is_met)
    telling = asked(text, language)
    exact = tuple(name for name in identifiers(text) if named is None or not named.is_named_by(name))
    words = tuple(stemmed(telling))
    first = next(_PART.finditer(text), None)
    later = (
        (match.group() for match in _NAME.finditer(text, first.end() if first else 0))
        if _ENGLISH.search(text)
        else ()
    )
    return Question(
        language=language,
        letters=letters(text),
        words=words,
        stems=frozenset(words if language.is_english else stemmed_in(language, telling)),
        names=frozenset(match.group().lower() for match in _NAME.finditer(text)),
        proper=frozenset(
            name.lower()
            for name in (*exact, *later)
            if name in exact or not (name.isupper() and len(name) <= ACRONYM_LETTERS_MAX)
        ),
        identifiers=tuple(bare_version(name) or name for name in exact),
        is_past=_PAST.search(text) is not None or (named is not None and named.end_us <= now_us),
        period=named,
        asks_whatever=named is not None and not beside,
        asks_advice=_ADVICE.search(text) is not None,
        asks_nothing=named is None and _asks_nothing(text, language),
    )


def _asks_nothing(text: str, said: Language) -> bool:
    """Say whether a question has words, all of them small; what is in capitals may be a name ("IT")."""
    words, small = _LETTERS.findall(text), STOP_WORDS if said.is_english else STOP_WORDS | said.small
    return bool(words) and all(
        word.lower() in small and (len(word) == 1 or not word.isupper()) for word in words
    )


def compared(text: str) -> str:
    """Return what of a question is compared by meaning: not how it names a time that is told from now.

    "Last week" in a memory is another week than in the question.
    """
    named, _ = _time(text, 0)
    if named is None or not named.told_from_now:
        return text
    question = " ".join(text.split())
    for name in named.told_from_now:
        question = question.replace(name, "", 1)
    return " ".join(question.split()) if _WORD.search(question) else text


def tells_of(span: Period, text: str, said_us: int) -> bool:
    """Say whether a text, said at some moment, tells of a time: whether that which it names first and most
    exactly begins or ends then. What is "since 1988" is so then as ever.
    """
    found, _ = _time_in(language_of(text), text, said_us)
    return found is not None and (
        span.start_us <= found.start_us < span.end_us or span.start_us < found.end_us <= span.end_us
    )


def _time(text: str, now_us: int) -> tuple[Period | None, set[str]]:
    """Return the time that a question names, in its language, and the words that say what it asks beside;
    where much is said beside it, that of the last sentence that asks.
    """
    sentences = SENTENCE_END.split(text)
    said = language_of(text, is_met=True)
    if len(sentences) > CHATTER:
        text = next((one for one in reversed(sentences) if one.endswith(ASKS)), text)
    if said.code not in UNSPACED and len(text.split()) == 1 and not text.endswith(ASKS):
        said = language(ENGLISH)  # a word that is looked up: "mars" is no month then
    found, beside = _time_in(said, text, now_us)
    if found is None or beside:  # few words are easily taken for another language's
        for other in _likely(text):
            named, more = _time_in(other, text, now_us)
            if named and not more:
                return named, more
    return found, beside


def _likely(text: str) -> Iterator[Language]:
    """Yield the languages, which write with spaces, in which a question may ask for whatever is of a time."""
    words = {*_LETTERS.findall(text.lower())}
    if len(words) > SHORT:
        return
    if len(words) == 1 and text.rstrip().endswith(ASKS):  # nothing but a time ("mars ?")
        yield from map(language, languages_of(*words))
    for code, asks in _WHATEVER.items():
        if code in UNSPACED or words.isdisjoint(asks):
            continue
        one = language(code)
        if len(words - asks - one.small) <= NAMING_MAX:
            yield one


def _time_in(said: Language, text: str, now_us: int) -> tuple[Period | None, set[str]]:
    """Return the time that a question names in a language, and the words that say what it asks beside."""
    told = None if said.is_english else in_english(text, said.code)
    asked_for = told.text if told else text
    found = period(asked_for, now_us)
    is_now = _NOW.search(asked_for) is not None and (told is not None or _OF_NOW.match(text) is not None)
    if found and is_now and _beside(asked_for, found, said):
        # "Today" beside what is asked for as it is means now; "heute" mostly.
        asked_for = " ".join(_NOW.sub(" ", asked_for).split())
        told, found = told and msgspec.structs.replace(told, text=asked_for), period(asked_for, now_us)
    if found is None:
        # Who says a month and asks for nothing beside asks for what is of it ("was war März?").
        alone = in_month(text, said.code)
        named, more = _time_in(said, alone, now_us) if alone else (None, set())
        return (None, set()) if more else (named, more)
    beside = _beside(asked_for, found, said)
    if told:
        found = msgspec.structs.replace(
            found,
            words=found.words | told.words,
            undated=found.undated | told.undated,
            told_from_now=told.undated_names if found.told_from_now else (),
        )
    if not beside:
        whatever = _WHATEVER.get(said.code, frozenset()).intersection(_WORD.findall(text.lower()))
        found = msgspec.structs.replace(found, undated=found.undated | whatever)
    return found, beside


def _beside(text: str, named: Period, said: Language) -> set[str]:
    """Return the words of a question, with its time in English, that ask for more than what is of it."""
    small, asks = STOP_WORDS | named.words, _WHATEVER.get(said.code, frozenset())
    if said.is_english:
        text = _ALSO_NAMES.sub(" ", text)
    text = _WORD.sub(lambda word: " " if word[0].lower() in small else word[0].lower(), text)
    if said.code in UNSPACED:
        for word in sorted(asks, key=len, reverse=True):
            text = text.replace(word, " ")
        text = said.without_small_words(text)
    words = {word for word in _LETTERS.findall(text) if len(word) > 1 or not word.isascii()}
    return words - asks - said.small


def identifiers(text: str) -> tuple[str, ...]:
    """Return the parts of *text* that name a thing exactly: they hold a digit, an inner capital, or a sign
    within the word.
    """
    # Without what nearly all of a text is, since texts are read for each question.
    likely = (part for part in text.split() if not (part.isalpha() and part[1:].islower()))
    stripped = (part.lstrip(_BEGINS).rstrip(_EDGE).removesuffix("'s") for part in likely)
    found = dict.fromkeys(without_line(part) for part in stripped if part and _is_identifier(part))
    return tuple(found)[:IDENTIFIERS_MAX]


def like(names: Iterable[str], text: str) -> frozenset[str]:
    """Return what *text* names exactly, in lower case, of the kinds of some identifiers: paths and names of
    files, or other names. Numbers, versions and addresses are of neither kind.
    """
    kinds = {*map(_kind, names)} - {None}
    return (
        frozenset(name.lower() for name in identifiers(text) if _kind(name) in kinds)
        if kinds
        else frozenset()
    )


def _kind(name: str) -> str | None:
    if "://" in name or bare_version(name) or not any(sign.isalpha() for sign in name):
        return None
    return "file" if "/" in name or "." in name[1:-1] else "name"


def _is_identifier(part: str) -> bool:
    if part.isalpha() and (len(part) == 1 or part[1:].islower()):
        return False
    if not part.isascii() or not any(sign.isalnum() for sign in part) or _PLAIN.fullmatch(part):
        return False
    inner = part[1:-1]
    if any(sign in "_./\\:@#" for sign in inner) or part.startswith("-") or part[0] in "./_$@":
        return True
    if part.isdigit():
        return len(part) >= CODE_DIGITS and not (len(part) == YEAR_DIGITS and part[:2] in {"19", "20"})
    if any(sign.isdigit() for sign in part):
        return True
    return any(sign.isupper() for sign in part[1:]) and (
        any(sign.islower() for sign in part) or len(part) > ACRONYM_LETTERS_MAX
    )
