"""What a question tells about its answer beside its words."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omegad.runtime.times import EPOCH, MICROSECOND
from omegad.search.question import IDENTIFIERS_MAX, Question, compared, identifiers, like, understood
from tests.builders import at_most

NOW = datetime(2026, 5, 20, 13, 30, tzinfo=UTC)
PRESENT = """
which database do we use?; what is the current default timeout?; are we still on Postgres?
what did we decide about retries?; what is new this week?
which tests are failing today?; how do we deploy?; the reasoning engine is slow
what must I run before a release?; which check comes before the merge?
how long does a session last?; who made the last release?; tell me
"""
PAST = """
have we had this before?; what did we run before the release was automatic?
what was the original port?; which port was it before the move?; what did the config previously say
which queue did we use to run at first?; Why?
when did we move to Postgres?; why do we use Postgres?; what is the reason for two queues?
what did we do in March 2024?
what happened to the export?; has the export ever failed?; what's the rationale for two queues
what was done yesterday?; as of v2, which port?
"""
TIMES = """
2021-03-01 2021-03-31: Was ist im März 2021 passiert?; ¿Qué pasó en marzo de 2021?; मार्च 2021 में क्या हुआ?
2021-03-01 2021-03-31: Heute die Frage: was war im März 2021 mit dem Router?; 今天我想问，2021年3月路由器怎么了?
2021-03-01 2021-03-31: Que s'est-il passé en mars 2021 ?; O que aconteceu em março de 2021?; 2021年3月发生了什么
2021-03-01 2021-03-31: Что случилось в марте 2021 года?; ماذا حدث في مارس 2021؟; 2021年3月に何がありましたか
2021-03-01 2021-03-31: Mart 2021'de ne oldu?; Chuyện gì đã xảy ra vào tháng 3 năm 2021?; 2021년 3월에 무슨 일이 있었나요?
2021-03-01 2021-03-31: Cosa è successo nel marzo 2021?; মার্চ 2021 এ কী হয়েছিল?; Apa yang terjadi pada Maret 2021?
2023-05-08 2023-05-08: Was haben wir am 8. Mai 2023 gemacht?; Что было 8 мая 2023?; 2023年5月8日发生了什么
2023-05-08 2023-05-08: ¿Qué pasó el 8 de mayo de 2023?; Was geschah am 08.05.2023?; ¿Qué pasó el 2023-05-08?
2026-05-10 2026-05-17: Was wurde in der letzten Woche beschlossen?; Что мы решили на прошлой неделе?; 上周我们决定了什么
2026-05-10 2026-05-17: ¿Qué decidimos la semana pasada?; पिछले सप्ताह हमने क्या तय किया?; ماذا قررنا الأسبوع الماضي؟
2026-05-10 2026-05-17: Geçen hafta ne oldu?; Ce am făcut săptămâna trecută?; Qu'avons-nous fait la semaine dernière ?
2026-05-19 2026-05-19: Was haben wir gestern besprochen?; Что мы сделали вчера?; 昨天做了什么
2026-05-20 2026-05-20: Was haben wir heute entschieden?; 今日何をしましたか？; Qu'avons-nous fait aujourd'hui ?
2026-05-16 2026-05-18: Was wurde vor 3 Tagen geändert?; ¿Qué cambió hace 3 días?
2019-01-01 2019-12-31: Was geschah im Jahr 2019?; Что случилось в 2019 году?; ¿Qué pasó en 2019?
2025-10-01 2025-10-31: Ekim ayında ne oldu?; Ekimde ne yaptık?; 十月发生了什么？; 十月份我们做了什么; 十月に何をしましたか
2026-04-01 2026-04-30: पिछले महीने क्या हुआ?; 上月做了什么？; پچھلے مہینے ہم نے کیا کیا؟; গত মাসে কী হয়েছিল?
2024-03-01 2024-03-31: 令和6年3月に何をしましたか; 民國113年3月發生了什麼; 2024년 3월에 무엇을 했나요?
2019-05-01 2019-05-01: 令和元年5月1日に何がありましたか
2024-01-01 2024-12-31: 令和6年に何をしましたか
2026-05-01 2026-05-31: Was war im Mai geplant?; ¿Qué planeamos en mayo?; Что мы решили в мае?
"""  # noqa: RUF001
WHATEVER = """
what did we do last week?; what happened in March 2021?; what is new this week?; yesterday
Was ist im März 2021 passiert?; ¿Qué hicimos la semana pasada?; Что случилось в марте 2021 года?
2021年3月发生了什么; 昨天我们做了什么?; ماذا حدث في مارس 2021؟; मार्च 2021 में क्या हुआ?; Geçen hafta ne oldu?
Cosa è successo nel marzo 2021?; Chuyện gì đã xảy ra vào tháng 3 năm 2021?; 2021年3月に何がありましたか
Nous avons fait quoi la semaine dernière ?; Sur quoi avons-nous travaillé hier ?; Qu'avons-nous fait hier ?
Que s'est-il passé en mars ?; Qu'a-t-on décidé en mars ?; Qu'est-ce qui s'est passé en mars ?
Was war gestern?; O que fizemos ontem?; Dün ne yaptık?; Cosa abbiamo fatto il mese scorso?; 先週何をしましたか？
what did we work on last week?; Над чем мы работали вчера?; ¿En qué trabajamos ayer?; ماذا تم أمس؟; last month
what did we decide last week?; which decisions were made in March 2021?; what have we learned since yesterday?
Was haben wir letzte Woche beschlossen?; Qu'avons-nous décidé la semaine dernière ?; 上周我们决定了什么？
¿Qué decidimos la semana pasada?; Что мы решили вчера?; 先週何を決めましたか？; 지난주에 결정했나요?
Was haben wir heute gemacht?; ¿Qué hicimos hoy?; Что мы сделали сегодня?; Bugün ne yaptık?; 今天我们做了什么？
what did we talk about last week?
what happened march; what about September; was war März; что было март
bugün neye karar verdik; 오늘 무엇을 결정했나요; Wat hebben we vandaag gedaan?; ماذا فعلنا اليوم؟; 3月は何があった
mars ?; gestern ?; März?; Apa yang kita kerjakan kemarin?; কী করা হয়েছিল গতকাল?; कल हमने किस पर काम किया?; گزشتہ ہفتے ہم نے کیا کیا؟
Was habe ich gestern gemacht?; Woran hast du letzte Woche gearbeitet?; ¿En qué trabajé ayer?; Em que trabalhei ontem?
Cosa è successo l'altro ieri?; Vad gjorde jag igår?; Vad har vi gjort idag?; Vad jobbade jag med i går?
Hvad lavede jeg i går?; Hvad skete der i går?; Hvad besluttede vi i sidste måned?; Hvad har jeg lavet i dag?
Hva gjorde jeg i går?; Hva bestemte vi forrige uke?; 어제 내가 뭐 했지?; 지난 주에 한 일은?; Dün ne yaptım?
Co jsem dělal včera?; Co jsme udělali minulý měsíc?; Na čem jsem pracoval včera?; Co se včera rozhodlo?
Что я делал вчера?; Над чем я работала вчера?; 昨日私は何をしましたか？; Co robiłem wczoraj?; Nad czym pracowałem wczoraj?
what did I store today?; what was stored today?; show me everything from today; what's new today?; whats new today
what did I save yesterday?; list everything of last week; what was added today?; what do you remember from today?
Was habe ich heute gespeichert?; Zeig mir alles von heute; Was gibt es heute Neues?; Qu'ai-je enregistré hier ?
Qu'avons-nous noté hier ?; ¿Qué guardé hoy?; ¿Qué guardamos ayer?; O que foi guardado ontem?; Cosa ho salvato oggi?
Wat heb ik vandaag opgeslagen?; Vad sparade jag idag?; Hvad gemte jeg i dag?; Hva lagret jeg i går?
Mitä tallensin tänään?; Co zapisałem dzisiaj?; Co jsem dnes uložil?; Ce am salvat azi?; Bugün ne kaydettim?
Apa yang saya simpan hari ini?; Tôi đã lưu gì hôm nay?; Что я сохранил сегодня?; Что было записано вчера?
ماذا حفظت اليوم؟; آج کیا محفوظ کیا گیا؟; मैंने आज क्या सहेजा?; Τι αποθήκευσα σήμερα; מה שמרתי היום?
今天我保存了什么？; 今天记录了什么?; 今日何を保存しましたか？; 오늘 무엇을 저장했나요?; วันนี้ฉันบันทึกอะไรไว้
"""  # noqa: RUF001
MORE = """
what happened in the war last week?; Was ist hier passiert?; what AI news is there this week?; Mart ekimde
what happened in March 2021 with the router?; what did April do; c'est quoi Mars ?
was war März mit Ivo; what did Anna decide yesterday?
what did we decide last week about the router?; which bugs did we fix last week?; 上周我们对路由器决定了什么?
Was ist im März 2021 mit dem Router passiert?; ¿Qué pasó ayer con el router?; 昨天路由器怎么了?; what is new?
what happened at the store yesterday?; what was in the log yesterday?; what was on the list yesterday?
what did we decide today about the router?; which tests failed today?; what's new today in the router?
who took the keys today?; what I wrote about billing today; what do I know about billing from today?
did the records change yesterday?; what about the visa last week?; 今天存储怎么了?; 昨日の会議のメモは？
"""  # noqa: RUF001
NO_TIMES = """
Was war gestört im Export?; Man kann das mal machen, oder?; Care este cea mai mare problemă?
mars; mars planet?; Mars ?; أي يوم هو اليوم الذي ننشر فيه؟; Was benutzen wir heute für Builds?; ¿Qué usamos hoy para los builds?; 今天路由器怎么了?
Wer war Martin Luther?; Worauf laufen die 2000 Rechner im Netz?; كم كان عمر جون؟; 第3版はどこですか
2024年13月45日发生了什么; 2024年13月45日に何がありましたか; 2024년 13월 45일에 무슨 일이 있었나요?
2024年2月31日に何がありましたか; 3月45日发生了什么; 明治30年3月に何をしましたか; 24年3月做了什么
what happened before 1 January 0001?; what happened on January 1, 0001?; Was geschah am 14. Juli 1789?
which tests are failing today?; is the canteen open today?; what is the speed limit in the yard today?
what do I need for the yard today?; can you suggest a film for tonight?
what happened in January 1066?; what happened on 31 February 2024?; what happened on March 45, 2024?
was war am 45. März 2024?; what happened on the 31st of February?
"""
NAMES = r"""
exporter.py src/jobs/exporter.py .env .gitignore /etc/hosts C:\temp\log.txt ~/.bashrc 3.12 1.5.20
https://example.org/a/b?c=d user@example.org --dry-run -v $HOME OMEGAD_HOME MAX_RETRIES E1101 ENOENT
SQLITE_BUSY TS2345 HTTPServerError parseConfig load_users std::vector #4711 utf8 a1b2c3d 8080
"""
NO_NAMES = """
; which database do we use, and why?; Caroline and I met in Paris; the well-known two-phase commit
12 of 7 in 2026 or in 1999; don't, can't
it's Anna's; ... -- / . _ !?; どのデータベース v; wait... what?
(parenthesised) [bracketed] {braced} <angled> *starred* `quoted`
a linter, e.g. or i.e. on a call
tabs and/or spaces; read-only/immutable; yes/no; the 3rd try; on 2026-03-04; at 10:30 or 11pm; 5/20/2026
50% of 3x; 200ms
does DNS or the API answer
"""


def entries(table: str) -> list[str]:
    return [text.strip() for text in table.strip().replace("\n", ";").split(";")]


def asked(text: str, now: datetime = NOW) -> Question:
    return understood(text, (now - EPOCH) // MICROSECOND)


@pytest.mark.parametrize(
    ("text", "is_past"),
    [*((text, False) for text in entries(PRESENT)), *((text, True) for text in entries(PAST))],
)
def test_a_question_is_about_the_past_or_a_reason_or_about_how_things_are(
    text: str, *, is_past: bool
) -> None:
    assert asked(text).is_past is is_past


@pytest.mark.parametrize("name", NAMES.split())
@pytest.mark.parametrize("around", ["{}", "what does {} do?", "is it `{}`, or what", "see ({}).", '"{}"'])
def test_what_names_a_thing_exactly_is_an_identifier_as_it_is_written(name: str, around: str) -> None:
    assert identifiers(around.format(name)) == (name,)


@pytest.mark.parametrize("text", entries(NO_NAMES))
def test_words_years_small_numbers_times_and_abbreviations_are_no_identifiers(text: str) -> None:
    assert identifiers(text) == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("app.py calls db.py, and app.py's loader calls app.py", ("app.py", "db.py")),
        (
            "exporter.py:213 and src/app.ts:12:5 but http://localhost:8080",
            ("exporter.py", "src/app.ts", "http://localhost:8080"),
        ),
        ("does DNS send SIGTERM to v1.2.3?", ("SIGTERM", "1.2.3")),
        ("what of app.py in March 2024 or on 2024-03-05", ("app.py",)),
    ],
)
def test_an_identifier_is_told_once_in_order_without_its_place_and_a_version_without_its_v(
    text: str, found: tuple[str, ...]
) -> None:
    assert asked(text).identifiers == found


@pytest.mark.parametrize(
    ("text", "names", "proper"),
    [
        ("did Caroline tell bob about New York?", {"caroline", "new", "york"}, {"caroline", "new", "york"}),
        ("What did Zephyr do?", {"what", "zephyr"}, {"zephyr"}),
        ("how often is the DR drill?", {"dr"}, set()),
        ("welche Nummern sind lückenlos im Kreis", {"nummern", "kreis"}, set()),
        ("what is in exporter.py?", set(), {"exporter.py"}),
        ("nobody at all, i think", set(), set()),
    ],
)
def test_names_are_told_by_their_capitals_and_proper_ones_in_english_alone(
    text: str, names: set[str], proper: set[str]
) -> None:
    assert (set(asked(text).names), set(asked(text).proper)) == (names, proper)


@pytest.mark.parametrize("row", TIMES.strip().splitlines())
def test_a_time_is_understood_in_the_languages_that_most_people_speak(row: str) -> None:
    days, _, questions = row.partition(": ")
    first, last = map(datetime.fromisoformat, days.split())
    for text in questions.split("; "):
        found = asked(text).period
        assert found, text
        assert EPOCH + found.start_us * MICROSECOND == first.replace(tzinfo=UTC), text
        assert EPOCH + found.end_us * MICROSECOND == last.replace(tzinfo=UTC) + timedelta(days=1), text


@pytest.mark.parametrize("text", entries(NO_TIMES))
def test_what_may_be_another_word_is_no_time(text: str) -> None:
    assert asked(text).period is None


def test_the_words_of_a_time_are_those_of_the_question() -> None:
    month, week = (
        asked("Was ist im März 2021 passiert?").period,
        asked("Was wurde letzte Woche gemacht?").period,
    )
    assert month
    assert week
    assert month.is_named_by("März 2021")
    assert month.undated.isdisjoint({"märz", "2021"})
    assert week.undated.issuperset({"letzte", "woche"})


@pytest.mark.parametrize(
    ("text", "is_alone"),
    [*((text, True) for text in entries(WHATEVER)), *((text, False) for text in entries(MORE))],
)
def test_who_asks_for_a_time_alone_is_told_from_who_asks_for_more(text: str, *, is_alone: bool) -> None:
    assert asked(text).asks_whatever is is_alone


@pytest.mark.parametrize(
    ("text", "is_nothing"),
    [
        *((text, True) for text in ("the", "What is it?", "und was ist das?", "what do we do now", "什么")),
        *(
            (text, False)
            for text in ("what does IT do", "what did we do yesterday?", "the db", "c", "", "???")
        ),
    ],
)
def test_a_question_of_small_words_alone_asks_nothing(text: str, *, is_nothing: bool) -> None:
    assert asked(text).asks_nothing is is_nothing


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("what was done  last week\nby Anna?", "what was done by Anna?"),
        ("Was haben wir letzte Woche gemacht?", "Was haben wir gemacht?"),
        ("上周我们做了什么?", "我们做了什么?"),
        ("what happened in March 2021?", "what happened in March 2021?"),
        ("last week", "last week"),
        ("is  it\nso?", "is  it\nso?"),
    ],
)
def test_how_a_question_names_a_time_from_today_is_not_compared(text: str, left: str) -> None:
    assert compared(text) == left


@example("\u017fix days ago")
@example("f\u0130ve day\u017f ago")
@example("999 years ago")
@example("٢٠٢٦-٠٣-٠٤")
@example("January 9999")
@given(
    st.text(max_size=200)
    | st.text(
        st.sampled_from("in on 0123456789-may March ago last week day\u017f\u0130\u212a.,/\\'"), max_size=60
    )
    | st.lists(
        st.sampled_from(
            [
                *("in", "March", "2026", "last", "week", "2", "days", "ago", "why", "x.py", "on", "8"),
                *(
                    "vor",
                    "Tagen",
                    "wir",
                    "letzte",
                    "Woche",
                    "März",
                    "年",
                    "3月",
                    "日",
                    "марта",
                    "года",
                    "что",
                ),
            ]
        ),
        max_size=12,
    ).map(" ".join)
)
def test_any_text_is_understood(text: str) -> None:
    for now in (NOW, EPOCH, datetime(9999, 1, 1, tzinfo=UTC)):
        found = asked(text, now)
        assert len(found.identifiers) <= IDENTIFIERS_MAX
        assert compared(text) or not text
        assert found.period is None or found.period.start_us < found.period.end_us
        assert found.is_past or found.period is None or found.period.end_us > (now - EPOCH) // MICROSECOND


@pytest.mark.parametrize(
    "unit", ["in ", "may ", "aA", "1", "last ", "2026-", "_", " ", "why ", "a.b ", "(", "a/", "1:", "e."]
)
def test_no_question_takes_long(unit: str) -> None:
    with at_most(3):
        asked(unit * (256 * 1024 // len(unit)))


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        ("the limit is 1000 since v2.3 (https://example.org/a/b)", set()),
        ("see Importer.py and PaymentGateway", {"importer.py"}),
        ("src/jobs/nightly.py in E_LIMIT", {"src/jobs/nightly.py"}),
    ],
)
def test_a_text_names_files_beside_that_which_is_asked_for(text: str, alike: set[str]) -> None:
    assert like(("exporter.py",), text) == alike


@pytest.mark.parametrize(
    ("text", "is_wanted"),
    [
        ("I'm planning a film night. Can you suggest something?", True),
        ("what are some good films for tonight?", True),
        ("which database should we use", True),
        ("which film did Bert recommend?", False),
        ("what does Nate suggest for butter?", False),
        ("what are some changes that Anna has faced?", False),
        ("which port does the api server listen on?", False),
    ],
)
def test_whether_advice_is_wanted(text: str, *, is_wanted: bool) -> None:
    assert asked(text).asks_advice is is_wanted
