"""Models in files of ONNX, with the methods that other models have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from propopt.base import extras
from propopt.base.arrays import Array
from propopt.base.checks import did_you_mean
from propopt.base.errors import InvalidInput
from propopt.tables.frames import listed


_FLOATS: Final = {"tensor(float)": np.float32, "tensor(double)": np.float64}
_MAPS: Final = "seq(map("
_LABELS: Final = {"tensor(int64)", "tensor(string)"}


@dataclass(frozen=True, eq=False)
class OnnxEstimator:
    """A session of onnxruntime, and the output of it that is read."""

    file: str
    session: Any  # on one thread: tables are small, and sums always in one order
    output: str  # of numbers, or a mapping of labels to numbers for each row
    feature_names_in_: tuple[str, ...]  # the columns of the table
    inputs: dict[str, Any]  # of the session: the type of each, by its name
    is_flat: bool  # whether it is made of trees

    @property
    def n_features_in_(self) -> int:
        """How many columns there are."""
        return len(self.feature_names_in_)

    @property
    def is_single(self) -> bool:
        """Whether what is asked is rounded to single precision."""
        return np.float32 in self.inputs.values()

    def rounded(self, answer: Any) -> Array:
        """An answer in the precision of what was asked, which differences depend on."""
        return np.asarray(answer, dtype=np.float32 if self.is_single else None)

    def answer(self, X: Any) -> Any:
        """The output for the whole table, or for each column by its name."""
        table = np.asarray(X)
        names = list(self.inputs)
        if len(names) > 1:
            columns = [self.feature_names_in_.index(name) for name in names]
            parts = [table[:, [column]] for column in columns]
        else:
            parts = [table]
        own = zip(names, parts, strict=True)
        asked = {name: x.astype(self.inputs[name]) for name, x in own}
        try:
            return self.session.run([self.output], asked)[0]
        except _errors() as error:
            raise InvalidInput(f"{self.file} cannot be run: {error}") from error

    def predict(self, X: Any) -> Array:
        """Values (n,) or (n, K), in the precision of the file."""
        return self.rounded(self.answer(X))


class OnnxClassifier(OnnxEstimator):
    """A model whose output are probabilities."""

    @cached_property
    def classes_(self) -> NDArray[Any]:
        """Those of one row that is answered, or positions where the file names none."""
        answer = self.answer(np.zeros((1, self.n_features_in_)))
        if isinstance(answer, list):
            return np.array(sorted(answer[0]))
        return np.arange(max(2, np.asarray(answer).size))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K), in the precision of the file."""
        answer = self.answer(X)
        if isinstance(answer, list):  # a mapping for each row
            rows = [[row[label] for label in self.classes_] for row in answer]
            return np.array(rows, dtype=np.float32)
        p = self.rounded(answer).reshape(len(answer), -1)
        return np.hstack([1 - p, p]) if p.shape[1] == 1 else p


def read_onnx(path: Path, tensor: str | None, columns: Sequence[str]) -> OnnxEstimator:
    """What :func:`propopt.wrap` takes of a file, for a table with these columns."""
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    runtime = extras.require("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are ours to tell
    try:
        session = runtime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except _errors() as error:
        raise InvalidInput(f"{path} is no model of ONNX: {error}") from error
    name, output = path.name, _output(session, tensor, path.name)
    # where labels stand beside the output it holds probabilities
    beside = {one.type for one in session.get_outputs()} & _LABELS
    # a type of node stands in the file as it is written
    is_flat = b"TreeEnsemble" in path.read_bytes()
    inputs = _inputs(session.get_inputs(), columns, name)
    own = (name, session, output.name, tuple(columns), inputs, is_flat)
    if not (beside or output.type.startswith(_MAPS)):
        return OnnxEstimator(*own)
    model = OnnxClassifier(*own)
    _ = model.classes_  # a file that cannot be run is refused here
    return model


def _errors() -> tuple[type[Exception], ...]:
    """What onnxruntime raises, which has no common name."""
    state = extras.require("onnxruntime.capi.onnxruntime_pybind11_state")
    kinds = [kind for kind in vars(state).values() if isinstance(kind, type)]
    return tuple(kind for kind in kinds if issubclass(kind, Exception))


def _output(session: Any, tensor: str | None, file: str) -> Any:
    """The output of that name, or the only one that holds numbers."""
    outputs = {output.name: output for output in session.get_outputs()}
    numbers = [
        name
        for name, output in outputs.items()
        if output.type in _FLOATS or output.type.startswith(_MAPS)
    ]
    if tensor is None and len(numbers) == 1:
        return outputs[numbers[0]]
    if tensor in numbers:
        return outputs[tensor]
    if not numbers:
        raise InvalidInput(f"{file} has no output of floating-point numbers")
    if tensor is None:
        raise InvalidInput(
            f"{file} has {len(numbers)} outputs of numbers; name one of them in "
            f"`tensor`: {listed(numbers)}"
        )
    raise InvalidInput(
        f"tensor: {file} has no output {tensor!r} of numbers"
        f"{did_you_mean(tensor, numbers)}; it has {listed(numbers)}"
    )


def _inputs(inputs: Any, columns: Sequence[str], file: str) -> dict[str, Any]:
    """What a session takes of a table: a matrix with any number of rows, or several."""
    for one in inputs:
        if one.type not in _FLOATS:
            raise InvalidInput(
                f"{file} takes {one.type} as {one.name!r}; expected float or double"
            )
        if len(one.shape) != 2:
            raise InvalidInput(
                f"{file} takes {one.name!r} of shape {one.shape}; expected (rows, "
                "columns)"
            )
        if isinstance(one.shape[0], int):
            raise InvalidInput(
                f"{file} takes {one.shape[0]} rows at a time; export it with a first "
                "axis of any length"
            )
    width = inputs[0].shape[1]
    if len(inputs) > 1 and {one.name for one in inputs} != set(columns):
        raise InvalidInput(
            f"{file} takes the columns {listed([one.name for one in inputs])}; got "
            f"{listed(list(columns))}"
        )
    if len(inputs) == 1 and isinstance(width, int) and width != len(columns):
        raise InvalidInput(f"{file} takes {width} columns, got {len(columns)}")
    return {one.name: _FLOATS[one.type] for one in inputs}
