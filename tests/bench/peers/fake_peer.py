"""A peer that keeps lines in a file where it is started: `python fake_peer.py [refuse|regret|mute|die]`
speaks MCP as peers do.
"""

import json
import sys
from pathlib import Path

KEPT = Path("kept")
HOW = sys.argv[1:2]


def answer(method: str, params: dict[str, object], kept: list[str]) -> dict[str, object]:
    """Return what an answer says; a search finds what has the most of the question's words."""
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": {}}
    given = params["arguments"]
    assert isinstance(given, dict)
    if params["name"] == "keep":
        if HOW == ["refuse"] and kept:
            return {"isError": True, "content": [{"type": "text", "text": "there is one like it"}]}
        if HOW == ["regret"] and kept:
            return {"content": [{"type": "text", "text": "Error: no more than one"}]}
        kept.append(str(given["content"]))
        KEPT.write_text("\n".join(kept), encoding="utf-8")
        return {"content": [{"type": "text", "text": "kept"}]}
    asked = set(str(given["query"]).lower().strip("?").split())
    best = sorted(kept, key=lambda one: -len(asked & set(one.lower().replace(".", " ").split())))
    said = "\n".join(f"{place}. {one}\n   id: {place}" for place, one in enumerate(best[:10], 1))
    return {"content": [{"type": "text", "text": f"Found {len(kept)}:\n{said}"}]}


def main() -> None:
    """Answer line by line."""
    kept = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        if asked["method"] == "tools/call" and HOW in (["mute"], ["die"]):
            if HOW == ["mute"]:
                continue
            sys.exit("the disk is gone")
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
        result = answer(asked["method"], asked["params"], kept)
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
