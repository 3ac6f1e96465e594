"""About how many tokens it takes to show an agent memories, by how much of each is told in which way.

What is put before an agent is cut to these lengths, and what was shown is counted by them.
"""

from omegad.session.habits import HABIT_BY

BYTES_OF_A_TOKEN = 4
"""Of English text a token has four bytes or more: what is counted so is seldom too little."""
UNASKED_CHARACTERS = 240  # of a memory that is shown unasked
BRIEFING_CHARACTERS = 180  # of one of a briefing
STATES = ("handoff", "checkpoint")
"""Where work was left, which a briefing tells at greater length."""
STATE_CHARACTERS, REVIEW_CHARACTERS, HABIT_CHARACTERS = 900, 80, 140
FILE_CHARACTERS, NEXT_CHARACTERS = 204, 100  # of the first that is shown of a file, and of those after it
ID_BYTES = 24  # beside each
FRAME_BYTES = 148  # around what is shown unasked at a time: what it is, and that it is no instruction
TITLE_BYTES = 72  # before what is shown of a file, or is to be looked at again

TOKENS = f"""
(length(CAST(iif(r.how = 'query', m.content, substr(m.content, 1,
    CASE r.how WHEN 'briefing'
        THEN iif(m.event_type IN {STATES}, {STATE_CHARACTERS}, {BRIEFING_CHARACTERS})
      WHEN 'review' THEN iif(m.source IS '{HABIT_BY}', {HABIT_CHARACTERS}, {REVIEW_CHARACTERS})
      WHEN 'edit' THEN iif(r.rank = 1, {FILE_CHARACTERS}, {NEXT_CHARACTERS})
      WHEN 'file' THEN iif(r.rank = 1, {FILE_CHARACTERS}, {NEXT_CHARACTERS})
      ELSE {UNASKED_CHARACTERS} END)) AS BLOB))
  + CASE WHEN r.rank > 1 OR r.how IN ('query', 'warning') THEN 0
      WHEN r.how IN ('edit', 'file', 'review') THEN {TITLE_BYTES} ELSE {FRAME_BYTES} END
  + {ID_BYTES + BYTES_OF_A_TOKEN - 1}) / {BYTES_OF_A_TOKEN}
"""
"""About how many tokens it takes to show `memories AS m` in the way of `retrievals AS r`, in SQL."""
