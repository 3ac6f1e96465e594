"""What the past was, and what has changed since, on the command line."""

from tests.edge.cli.conftest import Command


def test_verbs_answer_as_of_a_moment_and_diff_shows_what_changed(served: Command) -> None:
    memory_id = served.store("alpha runs on blue")
    asked = served.json("query", "alpha runs")
    position = served.json("get", memory_id)["position"]
    served("memory", "edit", memory_id, "alpha runs on green")
    served("memory", "rate", memory_id, "helpful")
    for as_of in (str(position), asked["query_id"]):
        shown = served("get", memory_id, "--as-of", as_of)
        assert shown.stdout.endswith("alpha runs on blue\n")
        assert "as_of" not in shown.stdout
        assert "as of position" in shown.stderr
        assert served.json("get", memory_id, "--as-of", as_of)["as_of"]["changed"] == {}
    assert "beyond the end" in served("list", "--as-of", "999999", status=2).stderr
    lines = served("diff", "--from", str(position)).stdout.splitlines()
    assert "1 memory.edited" in lines[0]
    row = next(line for line in lines if memory_id in line)
    assert "edited, rated" in row
    assert "alpha runs on green" in row
    assert served.json("diff", "--from", "0", "--to", "0")["changes"] == []
    assert "--to: position 999999 is" in served("diff", "--from", "1", "--to", "999999", status=2).stderr
    for no_time in ("2026-01-31T14:07", "14:07"):
        refused = served("diff", "--from", no_time, status=2).stderr
        assert f"--from is not a time: '{no_time}'" in refused
    assert "before" in served("diff", "--from", "2", "--to", "1", status=2).stderr
