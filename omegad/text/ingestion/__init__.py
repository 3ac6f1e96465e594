"""What a text goes through on its way in, by rules that one can read and extend: is it noise, and which tags
does it have.

Boundary: pure functions over rules read once from TOML files; imports only `omegad.runtime.errors`.
Invariant: the same text under the same rules gives the same answer, in time linear in its length.
"""
