"""What looks the same, or is the same but for how it is written, is found by keywords in either form; what
is shown stays as it was stored.
"""

# ruff: noqa: RUF001  letters that look like others are what it is about

from unicodedata import normalize

from tests.acceptance.conftest import Home

# Pairs of how something may be stored and asked for, each in either direction.
GUISES = (
    ("Ｋｕｂｅｒｎｅｔｅｓ", "kubernetes"),
    ("ＰａｙｍｅｎｔＧａｔｅｗａｙ", "PaymentGateway"),
    ("２０２７", "2027"),
    ("ﬁrewall", "firewall"),
    ("eﬃciency", "efficiency"),
    ("ﬂuentd", "fluentd"),
    ("ﬆaging", "staging"),
    ("post\u200bgres", "postgres"),
    ("graf\u200cana", "grafana"),
    ("prom\u200detheus", "prometheus"),
    ("\ufeffterraform", "terraform"),
    ("ans\u2060ible", "ansible"),
    ("Donau\u00addampf\u00adschiff", "Donaudampfschiff"),
    ("Haupt\u00adstraße", "hauptstrasse"),
    ("Straße", "strasse"),
    ("GROẞBUCHSTABE", "grossbuchstabe"),
    ("œuvre", "oeuvre"),
    ("encyclopædia", "encyclopaedia"),
    ("smørrebrød", "smorrebrod"),
    ("Łódź", "lodz"),
    ("cafétéria", "cafeteria"),
    ("cafe\u0301s", "cafés"),
    ("İzmir", "izmir"),
    ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
    ("Ελλάδα", "ελλαδα"),
    ("зелёный", "зеленый"),
    ("مُحَمَّد", "محمد"),
    ("كِتَابٌ", "كتاب"),
    ("العـــربية", "العربية"),
    ("أحمد", "احمد"),
    ("שָׁלוֹם", "שלום"),
    ("می\u200cخواهم", "میخواهم"),
    ("ﾃﾞｰﾀﾍﾞｰｽ", "データベース"),
    ("㍿", "株式会社"),
    ("𝐛𝐨𝐥𝐝𝐟𝐚𝐜𝐞", "boldface"),
    ("𝒮𝒸𝓇𝒾𝓅𝓉𝓈", "scripts"),
    ("ⓒⓘⓡⓒⓛⓔ", "circle"),
    ("x²y", "x2y"),
    ("№77", "no77"),
    ("ﬀmpeg", "ffmpeg"),
    ("ﷺ", "صلى الله عليه وسلم"),
    ("🚀", "🚀"),
    ("👩\u200d💻", "💻"),
    ("👍🏽", "👍"),
    ("⚠️", "⚠"),
    ("🇩🇪", "🇩🇪"),
    ("🔥🔥🔥", "🔥"),
    ("☕", "☕️"),
    ("Überweisung", "uberweisung"),
    ("naïveté", "naivete"),
    ("Ångström", "angstrom"),
    ("\u202eredrum\u202c", "redrum"),
    ("ｆｊｏｒｄ＿ａｍｂｅｒ．ｐｙ", "fjord_amber.py"),
    ("Ｃａｆé", "cafe"),
)


def test_what_is_the_same_in_another_guise_is_found_by_its_words(daemon: Home) -> None:
    missed = []
    with daemon.client() as client:
        ids = {}
        for number, pair in enumerate(GUISES):
            for way, (stored, asked) in enumerate((pair, pair[::-1])):
                project, content = f"p-{number}-{way}", f"{stored} stands here as number {number}"
                ids[project] = (
                    client.call("memory.store", content=content, project=project)["memory_id"],
                    content,
                    asked,
                )
                client.call(
                    "memory.store", content="Something else entirely was said of the weather", project=project
                )
        for project, (memory_id, content, asked) in ids.items():
            found = client.call("memory.query", text=asked, mode="keyword", project=project)["results"]
            if [one["memory_id"] for one in found if one["content"] == normalize("NFC", content)] != [
                memory_id
            ]:
                missed.append((content, asked))
    assert missed == []
