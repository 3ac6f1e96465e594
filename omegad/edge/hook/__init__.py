"""What a coding agent's host runs at each hook."""
