"""What agents are given: a small table of tools over the methods, with short answers, since every word of
them is paid for by the token.

A method that is a tool, or an action of one, says so beside itself (`omegad.requests.verb`); here are
the arguments of tools with several actions, the words of answers, and what asks several methods.
"""
