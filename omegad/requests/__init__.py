"""What a method is, and how a request becomes an answer: prepared, decided or read, and never done twice.

A command is a Struct with, beside it, what is prepared for it and the pure decision what it comes to. It
opens no file, and knows no socket, model or clock but through the services that preparing is given. A query
is read through a connection that it is given, and writes nothing.
"""
