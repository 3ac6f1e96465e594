"""Makes `omegad/text/calendars.json`, how languages name months and times that are told from today, out of
Unicode's CLDR (Unicode License V3): `npm pack cldr-dates-full@48.2.0` gets it, and
`python -m tests.retrieval.calendars cldr-dates-full-48.2.0.tgz` takes it over.

`#` stands for a number, `@` for a year, `|` between names.
"""

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

from omegad.text import calendars, languages

TARGET = Path(calendars.__file__).with_name("calendars.json")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
CHINESE = ("一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
WEEKDAYS = {
    "mon": "monday",
    "tue": "tuesday",
    "wed": "wednesday",
    "thu": "thursday",
    "fri": "friday",
    "sat": "saturday",
    "sun": "sunday",
}
DAYS = {"-2": "the day before yesterday", "-1": "yesterday", "0": "today"}
SHIFTS = {"-1": "last", "0": "this"}
ALSO = {  # what is said as often, and is not in CLDR
    "bn": {"last week": "গত সপ্তাহে", "last month": "গত মাসে"},
    "fr": {"today": "aujourd'hui"},
    "pl": {"today": "dziś"},
    "de": {"last week": "vergangene woche|vergangenen woche", "last month": "vergangenen monat"},
    "hi": {"last week": "पिछले हफ्ते|पिछले हफ़्ते", "last month": "पिछले महीने"},
    "ja": {month: f"{said}月" for month, said in zip(MONTHS, CHINESE, strict=True)},
    "tr": {"last week": "geçtiğimiz hafta", "last month": "geçtiğimiz ay"},
    "ur": {"last week": "پچھلے ہفتے", "last month": "پچھلے مہینے|گزشتہ مہینے"},
    "zh": {"last week": "上星期|上个星期", "last month": "上月"}
    | {
        month: f"{said}月份|{place}月份"
        for place, (month, said) in enumerate(zip(MONTHS, CHINESE, strict=True), 1)
    },
}


def told(archive: tarfile.TarFile, code: str, name: str) -> Any:
    """Return what a file of CLDR says of the dates of a language."""
    found = archive.extractfile(f"package/main/{code}/{name}.json")
    assert found is not None
    return json.load(found)["main"][code]["dates"]


def named(said: str) -> str:
    """Return a name as it is kept."""
    return " ".join(said.lower().split()).replace("{0}", "#")


def months(archive: tarfile.TarFile, code: str) -> dict[str, list[str]]:
    """Return what each month is called, and how it is written with a number."""
    said = told(archive, code, "ca-gregorian")["calendars"]["gregorian"]["months"]
    forms = [
        said[context][width] for width in ("wide", "abbreviated") for context in ("format", "stand-alone")
    ]
    return {
        month: [form[str(place)] for form in forms[:2]]
        + [form[str(place)] for form in forms[2:] if any(map(str.isdigit, form[str(place)]))]
        for place, month in enumerate(MONTHS, 1)
    }


def of_language(archive: tarfile.TarFile, code: str) -> dict[str, str]:
    """Return what each time is called, by its name in English."""
    fields = told(archive, code, "dateFields")["fields"]
    found = months(archive, code)
    for number, english in DAYS.items():
        found[english] = [fields["day"].get(f"relative-type-{number}", "")]
    for unit in ("day", "week", "month", "year"):
        for number, which in SHIFTS.items() if unit != "day" else ():
            found[f"{which} {unit}"] = [fields[unit][f"relative-type-{number}"]]
        past = fields[unit]["relativeTime-type-past"].values()
        found[f"# {unit}s ago"] = [said for said in past if "{0}" in said]
    for short, weekday in WEEKDAYS.items():
        found[f"last {weekday}"] = [fields[short]["relative-type--1"]]
    year = fields["year"]["displayName"]
    found["year"] = [f"@{year}"] if code in calendars.UNSPACED else [f"@ {year}", f"{year} @"]
    # "今年" and the like say mostly how old somebody is, and nearly all memories are of this year.
    found.pop("this year")
    kept = {english: "|".join(dict.fromkeys(map(named, said))) for english, said in found.items()}
    also = ALSO.get(code, {})
    return {
        english: "|".join(filter(None, (said, also.get(english)))) for english, said in kept.items() if said
    }


def main() -> int:
    """Write them; return 0, or 2 where no archive is named."""
    if len(sys.argv) != 2:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    with tarfile.open(sys.argv[1]) as archive:
        known = {code: of_language(archive, code) for code in languages.codes() if code != languages.ENGLISH}
    TARGET.write_text(json.dumps(known, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
