"""Text to vectors: an ONNX model of 384 dimensions, installed once, loaded when needed, dropped when idle.

Boundary: imports only `omegad.runtime.errors` and `omegad.storage`; other packages use `embedder` and
`cache`, the command line also `install`. Invariant: nothing here reaches the network but `install`; vectors
of different embedder ids are never compared.
"""

import os

# Builds of onnxruntime tell their makers of each process and model, and keep what is to be told in the user's
# cache, unless this is set when they are loaded.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
