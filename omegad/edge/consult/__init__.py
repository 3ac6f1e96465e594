"""Another model asked for a second opinion, by a process of one question, never the daemon."""
