"""What a coding agent's host runs at each hook, as `PYTHON -I -S hook_client.py EVENT`: `hook_delivery`.

The exit status is 0, always, but for `pre-push`, which git runs, and which is for the push guard to say.

Python compiles a file that it is told to run each time, which is a fifth of what a hook costs, so there is
next to nothing in this one.
"""

import posix
import sys

if __name__ == "__main__":
    STATUS = 0
    try:
        sys.path.append(__file__.rpartition("/omegad/")[0])
        from omegad.edge.hook.delivery import main

        STATUS = main(sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:])
    except BaseException:
        pass  # a host takes any other end for a verdict, or shows it to the person
    posix._exit(STATUS)
