"""What tests choose by: the same in every run, unless `TEST_SEED` names other choices, as in CI's second
part.
"""

import os

SEED = os.environ.get("TEST_SEED", "1")
