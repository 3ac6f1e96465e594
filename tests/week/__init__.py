"""A week of three agents' sessions on one home, the clock moved: what happens by itself, and what a person sees:
`python -m tests.week`.
"""
