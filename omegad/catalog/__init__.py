"""The lists of what there is, and what composes it: nouns know nothing of each other's lists."""
