"""A daemon that is killed again and again at mixed work, and the proof that nothing acknowledged was lost:
`python -m tests.torture --kills 1000`.
"""
