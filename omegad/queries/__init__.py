"""What may be asked: a Struct for each query and, beside it, how it is read from the views.

Boundary: reads through a connection it is given; writes nothing, and waits for nothing but what `prepare` and `finish` ask of the services.
"""
