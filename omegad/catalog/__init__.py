"""What there is, as it is found in the rooms, and what composes it: nouns know nothing of each other."""
