"""How fast and how large omegad is, each figure beside a floor that was measured in the same run.

`python -m tests.bench` from the project's root. Nothing passes or fails here: a figure depends on the
machine, on what else it does, and on its disk, and only its ratio to the floor says something about omegad.
"""
