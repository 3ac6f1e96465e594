"""Sessions of agents: what they did with tools, what they are told, and what is kept of them."""
