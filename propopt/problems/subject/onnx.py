"""Models in ONNX files, with the methods of scikit-learn estimators."""

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
    """A session of onnxruntime with one of its outputs, as a regressor."""

    file: str
    session: Any  # on one thread, so that sums have a fixed order
    output: str  # its values are numbers, or a mapping from labels for each row
    feature_names_in_: tuple[str, ...]  # the columns of the table
    inputs: dict[str, Any]  # types of the inputs, by name
    is_piecewise_constant: bool  # whether it has trees

    @property
    def n_features_in_(self) -> int:
        """The number of columns of the table."""
        return len(self.feature_names_in_)

    @property
    def is_single_precision(self) -> bool:
        """Whether inputs are rounded to single precision."""
        return np.float32 in self.inputs.values()

    def rounded(self, values: Any) -> Array:
        """Outputs in the precision of the inputs, for steps of differences."""
        return np.asarray(
            values, dtype=np.float32 if self.is_single_precision else None
        )

    def run(self, X: Any) -> Any:
        """The output for a table, or for its columns by name."""
        table = np.asarray(X)
        names = list(self.inputs)
        if len(names) > 1:
            columns = [self.feature_names_in_.index(name) for name in names]
            parts = [table[:, [column]] for column in columns]
        else:
            parts = [table]
        pairs = zip(names, parts, strict=True)
        inputs = {name: x.astype(self.inputs[name]) for name, x in pairs}
        try:
            return self.session.run([self.output], inputs)[0]
        except _errors() as error:
            raise InvalidInput(f"{self.file} cannot be run: {error}") from error

    def predict(self, X: Any) -> Array:
        """Values (n,) or (n, K), in the precision of the file."""
        return self.rounded(self.run(X))


class OnnxClassifier(OnnxEstimator):
    """An ONNX model with probabilities as outputs."""

    @cached_property
    def classes_(self) -> NDArray[Any]:
        """Labels of the output for a row, or positions if the file has no labels."""
        output = self.run(np.zeros((1, self.n_features_in_)))
        if isinstance(output, list):
            return np.array(sorted(output[0]))
        return np.arange(max(2, np.asarray(output).size))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K), in the precision of the file."""
        output = self.run(X)
        if isinstance(output, list):  # a mapping for each row
            rows = [[row[label] for label in self.classes_] for row in output]
            return np.array(rows, dtype=np.float32)
        p = self.rounded(output).reshape(len(output), -1)
        return np.hstack([1 - p, p]) if p.shape[1] == 1 else p


def read_onnx(path: Path, tensor: str | None, columns: Sequence[str]) -> OnnxEstimator:
    """Read a model for a table with these columns, for :func:`propopt.wrap`."""
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    runtime = extras.require("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised here instead
    try:
        session = runtime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except _errors() as error:
        raise InvalidInput(f"{path} is not an ONNX model: {error}") from error
    name = path.name
    output = _output(session, tensor, path.name)
    # with an output of labels, the other output has probabilities
    label_types = {one.type for one in session.get_outputs()} & _LABELS
    # the name of a node type appears as text in the file
    is_piecewise_constant = b"TreeEnsemble" in path.read_bytes()
    inputs = _inputs(session.get_inputs(), columns, name)
    fields = (name, session, output.name, tuple(columns), inputs, is_piecewise_constant)
    if not (label_types or output.type.startswith(_MAPS)):
        return OnnxEstimator(*fields)
    model = OnnxClassifier(*fields)
    _ = model.classes_  # a file that cannot be run is refused here
    return model


def _errors() -> tuple[type[Exception], ...]:
    """Exceptions of onnxruntime, which have no common base."""
    state = extras.require("onnxruntime.capi.onnxruntime_pybind11_state")
    kinds = [kind for kind in vars(state).values() if isinstance(kind, type)]
    return tuple(kind for kind in kinds if issubclass(kind, Exception))


def _output(session: Any, tensor: str | None, file: str) -> Any:
    """The output of that name, or the only output of numbers."""
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
    """Types of the inputs by name: one matrix, or one input for each column."""
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
