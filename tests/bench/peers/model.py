"""The model that omegad has installed, for programs that expect an encoder as it is usually exported."""

import os
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from unittest.mock import patch

from omegad.embedding import bert_graph, onnx_file
from omegad.embedding.catalogue import CONFIG, GRAPH, TOKENIZER, WEIGHTS
from omegad.embedding.onnx_file import FLOAT, INT64, Attribute

OUTER, INNER = b"input_ids", b"text_ids_"  # as long as each other: one takes the other's place in a message


def write(installed: Path, folder: Path) -> None:
    """Write model.onnx into *folder*, over the same weights (linked where that can be), and the tokenizer.

    The graph is omegad's, operation by operation, in 8 bits. What is around it takes `input_ids` and
    `attention_mask` int64[1, tokens], leaves out what is padding, and gives `last_hidden_state`
    float32[1, tokens, hidden size], zeros where padding was. It takes one text at a time: the runtime raises
    for more.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in (WEIGHTS, TOKENIZER):
        _link(installed / name, folder / name)
    config = bert_graph.read_config(installed / CONFIG)
    surrounded = partial(_surrounded, onnx_file.model, config.hidden_size)
    with patch.object(onnx_file, "model", surrounded):
        bert_graph.write(config, folder / WEIGHTS, folder / GRAPH)


def _link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _surrounded(
    model: Callable[..., bytes],
    hidden_size: int,
    nodes: Iterable[bytes],
    constants: Iterable[bytes],
    _given: bytes,
    _result: bytes,
) -> bytes:
    """Write a model, with the usual way in and out around its graph."""

    def node(op: str, *inputs: str, to: str, **attributes: Attribute) -> bytes:
        return onnx_file.node(op, inputs, (to,), "", attributes)

    def integers(name: str, *values: int) -> bytes:
        content = b"".join(value.to_bytes(8, "little") for value in values)
        return onnx_file.tensor(name, INT64, (len(values),), content)

    before = [
        node("Squeeze", "input_ids", "place_0", to="all_ids"),
        node("ReduceSum", "attention_mask", "places_0_1", to="counted", keepdims=0),
        node("Reshape", "counted", "shape_1", to="count"),
        node("Slice", "all_ids", "place_0", "count", to=INNER.decode()),
    ]
    after = [
        node("Shape", "all_ids", to="whole"),
        node("Sub", "whole", "count", to="missing"),
        node("Concat", "place_0", "place_0", "missing", "place_0", to="pads", axis=0),
        node("Pad", "hidden", "pads", to="padded"),
        node("Unsqueeze", "padded", "place_0", to="last_hidden_state"),
    ]
    added = [integers("place_0", 0), integers("places_0_1", 0, 1), integers("shape_1", 1)]
    ids, mask = (
        onnx_file.value(name, INT64, ("batch", "tokens")) for name in ("input_ids", "attention_mask")
    )
    hidden = onnx_file.value("last_hidden_state", FLOAT, ("batch", "tokens", hidden_size))
    within = [one.replace(OUTER, INNER) for one in nodes]
    written = model([*before, *within, *after], [*constants, *added], ids, hidden)
    # A message that comes twice is read as one: this is the graph's (7) second input (11).
    return written + onnx_file.message((7, onnx_file.message((11, mask))))
