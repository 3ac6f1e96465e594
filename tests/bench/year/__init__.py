"""A simulated year of a home's log, and what it takes: `python -m tests.bench year --help`."""
