"""`python -m omegad`: the command line."""

from omegad.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
