"""The verbs about how memories relate: similar, traverse."""

from argparse import Namespace

from omegad.cli.memories import cells
from omegad.cli.parameters import asked
from omegad.cli.place import Place
from omegad.cli.printing import warn, warn_if_stale, write_json, write_table


def similar(arguments: Namespace, place: Place) -> int:
    """Find what is most like a memory."""
    answer = asked(arguments, place)
    if arguments.json:
        write_json(answer)
    elif answer["results"]:
        rows = [(f"{result['similarity']:.3f}", *cells(result)) for result in answer["results"]]
        write_table(("SIMILARITY", "ID", "TYPE", "STORED", "PROJECT", "CONTENT"), rows)
    else:
        print("nothing similar")
    if answer["degraded"]:
        warn(f"DEGRADED: compared by {answer['degraded']} alone, because the memory has no vectors")
    warn_if_stale(answer)
    return 0


def traverse(arguments: Namespace, place: Place) -> int:
    """Show what the edges of a memory lead to."""
    answer = asked(arguments, place)
    if arguments.json:
        write_json(answer)
    else:
        nodes = [(node["hop"], node["memory_id"], node["event_type"], node["status"], node["content"]) for node in answer["nodes"]]
        write_table(("HOP", "ID", "TYPE", "STATUS", "CONTENT"), nodes)
        edges = [(edge["hop"], edge["source_id"], edge["edge_type"], f"{edge['weight']:.2f}", edge["target_id"]) for edge in answer["edges"]]
        if edges:
            print()
            write_table(("HOP", "FROM", "EDGE", "WEIGHT", "TO"), edges)
    if answer["truncated"]:
        warn("there is more than the limits let through; --min-weight and --edge-type narrow it")
    warn_if_stale(answer)
    return 0
