"""What agents are given: a small table of tools over the methods, with short answers, since every word of them is paid for by the token.

`tool` is the contract; a module that declares tools has one word in `calling`, which lists and calls them.
"""
