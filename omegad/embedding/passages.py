"""Which texts of a memory are embedded: its content, in passages that the model can take in whole. Pure.

What is known about a memory (its day, project, tags) is left to full text: in front of a passage it draws all
vectors together.
"""

PASSAGE_CHARACTERS = 1_200
PASSAGES_MAX = 64  # of one memory; the words of the rest are still found by full text


def passages(content: str) -> tuple[str, ...]:
    """Return the texts to embed for a memory, in their order."""
    return tuple(_cut(content)[:PASSAGES_MAX])


def _cut(content: str) -> list[str]:
    """Cut at the last paragraph, line, sentence or word end that still fits, in this order of preference."""
    parts: list[str] = []
    while len(content) > PASSAGE_CHARACTERS:
        end = _end_of_part(content[:PASSAGE_CHARACTERS])
        parts.append(content[:end])
        content = content[end:]
    return [*parts, content]


def _end_of_part(window: str) -> int:
    for mark in ("\n\n", "\n", ". ", " "):
        found = window.rfind(mark, PASSAGE_CHARACTERS // 2)
        if found > 0:
            return found + len(mark)
    return len(window)
