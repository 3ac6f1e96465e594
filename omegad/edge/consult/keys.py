"""Keys of providers: of the system's keyring, or of a file that is its owner's alone.

What is wrong with a key is said without a word of it, and a name that may be one by mistake is redacted.
"""

import re
from pathlib import Path

from omegad.runtime import secret_places
from omegad.runtime.config import ConsultedModel
from omegad.runtime.errors import Unavailable
from omegad.text.redaction import redact

_KEY = re.compile(r"[!-~]{8,}")
"""What a header can carry, and an answer be searched for."""


def key_of(model: ConsultedModel, home: Path) -> str | None:
    """Return the key of a model, None where it needs none. Raises `Unavailable`."""
    if model.key_file:
        place = redact(model.key_file)[0]
        missing = f"write the key to it, and chmod 600 {place}"
        key = secret_places.in_file(model.key_file, home, place, missing)
    elif model.keyring:
        shown = redact(model.keyring)[0]
        place = f"the keyring's {shown}"
        missing = f"run `keyring set {shown.replace('/', ' ', 1)}`"
        key = secret_places.in_keyring(model.keyring, shown, missing)
    else:
        return None
    if not _KEY.fullmatch(key := key.strip()):
        raise Unavailable(
            f"{place} does not hold a key", hint="put the key alone there: one line of 8 characters or more"
        )
    return key
