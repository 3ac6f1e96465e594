"""What happened by itself, as people see it: today, status, and taking it back."""

from tests.edge.cli.conftest import Command


def test_today_is_one_line_where_nothing_happened_and_says_what_waits_otherwise(omegad: Command) -> None:
    (line,) = omegad("today").stdout.splitlines()
    assert line.startswith("nothing happened since ")
    assert line.endswith(" UTC, and nothing waits for you")
    omegad.store("Billing runs on \x1b[31mport 8080", event_type="decision", entity_id="svc:billing")
    _, *lines = omegad("today").stdout.splitlines()
    assert lines == [
        "learned: 1",
        '  "Billing runs on [31mport 8080" (decision)',
        "waits for you:",
        "  1 gap, first: of svc:billing only 1 thing is known",
        "    omegad lint --tasks",
    ]
    answer = omegad.json("today", "--days", "7")
    assert answer["degraded"] == omegad.json("status")["degraded"]
    assert [one["kind"] for one in answer["happened"]] == ["learned"]


def test_a_consolidation_is_shown_by_the_status_and_taken_back(omegad: Command) -> None:
    assert "not yet; once a day" in omegad("status").stdout
    captured = omegad.store("pagination starts at one", source="auto_capture", ttl_seconds=1)
    assert captured
    refused = omegad("upkeep", "undo", status=1)
    assert "there is no upkeep to undo" in refused.stderr
    assert "omegad today" in refused.stderr


def test_an_upkeep_that_is_switched_off_is_said_to_be(omegad: Command) -> None:
    omegad.home.mkdir(mode=0o700)
    (omegad.home / "config.toml").write_text("upkeep = false\n", encoding="utf-8")
    assert "off, by the setting `upkeep`" in omegad("status").stdout
