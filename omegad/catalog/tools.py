"""The table of tools that agents are given."""

from omegad.agents.tools.table import table
from omegad.catalog.methods import SERVED

TOOLS = table(SERVED.values())
"""Every tool by its name."""
