"""Published benchmarks of memory systems, each by its own definition: `python -m tests.bench recall --data DIR`.

DIR holds checkouts of the benchmarks' repositories; the project holds none of their data. omegad is asked
through its socket, by a daemon with its models and a home of its own for every conversation, and BM25, cosine
and their plain blend are asked the same questions of the same texts in the same run.
"""
