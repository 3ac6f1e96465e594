"""omegad beside other memory services for agents, each installed as its users install it and asked as they ask
it: `python -m tests.bench peers --help`.
"""
