"""Finds secrets in text: by the shapes that their issuers publish, by what stands before them, and by looking random.

A rule is a name and a pattern, and where the pattern alone cannot say, a judge of the value. A replacement is never found again, so
that text that was searched once is left alone the next time. What engineers search for later (commits, digests, ids, paths, names)
has to survive: where the two cannot be told apart, the text stays.
"""

from omegad.log.secrets.redaction import redact, redact_name

__all__ = ["redact", "redact_name"]
