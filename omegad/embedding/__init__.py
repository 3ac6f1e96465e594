"""Text to vectors: an ONNX model of 384 dimensions, installed once, loaded when needed, dropped when idle.

Boundary: imports only `omegad.runtime.errors` and `omegad.storage`; other packages use `embedder` and
`cache`, the command line also `install`. Invariant: nothing here reaches the network but `install`; vectors
of different embedder ids are never compared.
"""
