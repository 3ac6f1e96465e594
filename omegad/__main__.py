"""`python -m omegad`: the command line."""

from omegad.edge.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
