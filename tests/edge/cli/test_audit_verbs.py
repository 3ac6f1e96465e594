from tests.edge.cli.conftest import Command


def test_junk_is_listed_then_dropped_and_sql_shows_what_became_of_it(served: Command) -> None:
    junk, asked_for = (
        served.store("the linter prints a banner", source="auto_capture", project="junk"),
        served.store("tabs, not spaces"),
    )
    where = ("--project", "junk", "--days", "0")
    assert junk in served("memory", "junk", *where).stdout
    assert "deleted 1 at position" in served("memory", "junk", *where, "--drop").stdout
    assert served("memory", "junk", *where, "--drop").stdout == "0 in all\n"
    assert (
        asked_for in served("memory", "prune", "--memory-id", asked_for, "--memory-id", junk).stdout
    )  # as kept
    shown = served("sql", f"SELECT status, source FROM memories WHERE node_id = '{junk}'").stdout
    assert shown.splitlines()[1].split() == ["deleted", "auto_capture"]
    refused = served("sql", "DROP TABLE memories", status=2)
    assert "not authorized\n" in refused.stderr
    assert "audit_log" in refused.stderr
    assert served("skill", "improve", "gone", "retry", status=1).stdout.startswith("✗ ")
