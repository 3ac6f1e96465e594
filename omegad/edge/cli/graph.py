"""The verb that shows what the edges of a memory lead to."""

from argparse import Namespace

from omegad.edge.cli.connection import Answer
from omegad.edge.cli.parameters import answered
from omegad.edge.cli.printing import warn, write_table


@answered
def traverse(answer: Answer, _arguments: Namespace) -> None:
    """Show what the edges of a memory lead to."""
    nodes = [
        (node["hop"], node["memory_id"], node["event_type"], node["status"], node["content"])
        for node in answer["nodes"]
    ]
    write_table(("HOP", "ID", "TYPE", "STATUS", "CONTENT"), nodes)
    edges = [
        (edge["hop"], edge["source_id"], edge["edge_type"], f"{edge['weight']:.2f}", edge["target_id"])
        for edge in answer["edges"]
    ]
    if edges:
        print()
        write_table(("HOP", "FROM", "EDGE", "WEIGHT", "TO"), edges)
    if answer["truncated"]:
        warn("there is more than the limits let through; --min-weight and --edge-type narrow it")
