"""Models in files of ONNX, with the methods that other models have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from propopt import extras
from propopt._typing import Array
from propopt.checks import did_you_mean
from propopt.errors import InvalidInput
from propopt.tables.names import listed


_FLOATS: Final = {"tensor(float)": np.float32, "tensor(double)": np.float64}
_MAPS: Final = "seq(map("


@dataclass(frozen=True, eq=False)
class OnnxFile:
    """A session of onnxruntime, and the output of it that is read.

    Parameters
    ----------
    path : Path
        The file.
    session : onnxruntime.InferenceSession
        On one thread: tables are small, and sums always in one order.
    output : onnxruntime.NodeArg
        Numbers, or a mapping of labels to numbers for each row.
    is_flat : bool
        Whether it is made of trees.
    """

    path: Path
    session: Any
    output: Any
    is_flat: bool

    @classmethod
    def read(cls, path: Path, tensor: str | None = None) -> OnnxFile:
        """The model in a file.

        Raises
        ------
        InvalidInput
            If there is no such file or output, or the output is not clear.
        MissingExtra
            If onnxruntime is not installed.
        """
        if not path.is_file():
            raise InvalidInput(f"there is no file {path}")
        session = _session(path)
        # a type of node stands in the file as it is written
        is_flat = b"TreeEnsemble" in path.read_bytes()
        return cls(path, session, _output(session, tensor, path.name), is_flat)

    @property
    def classifies(self) -> bool:
        """Whether labels stand beside the output: it holds probabilities."""
        kinds = {output.type for output in self.session.get_outputs()}
        labels = kinds & {"tensor(int64)", "tensor(string)"}
        return self.output.type.startswith(_MAPS) or bool(labels)

    def model(self, columns: Sequence[str]) -> OnnxValues | OnnxClassifier:
        """What :func:`propopt.wrap` takes, for a table with these columns.

        Raises
        ------
        InvalidInput
            If the model takes another table.
        """
        feed = _feed(self, columns)
        if not self.classifies:
            return OnnxValues(self, feed)
        row = pd.DataFrame(np.zeros((1, len(columns))), columns=list(columns))
        return OnnxClassifier(self, feed, _labels(self.run(feed(row))))

    def run(self, inputs: dict[str, Any]) -> Any:
        """The output for some inputs."""
        try:
            return self.session.run([self.output.name], inputs)[0]
        except _errors() as error:
            raise InvalidInput(f"{self.path.name} cannot be run: {error}") from error


@dataclass(frozen=True, eq=False)
class _OnnxModel:
    """What is common to models of a file: what they are of, and their columns."""

    file: OnnxFile
    feed: Feed

    @property
    def is_flat(self) -> bool:
        """Whether it is made of trees."""
        return self.file.is_flat

    @property
    def feature_names_in_(self) -> Sequence[str]:
        """The columns of the table."""
        return self.feed.columns

    @property
    def n_features_in_(self) -> int:
        """How many there are."""
        return len(self.feed.columns)


@dataclass(frozen=True, eq=False)
class OnnxValues(_OnnxModel):
    """A model whose output are values.

    Parameters
    ----------
    file : OnnxFile
        Where it is from.
    feed : callable
        Makes the inputs of the session from a table.
    """

    def predict(self, X: Any) -> Array:
        """Values (n,) or (n, K), in the precision of the file."""
        return self.feed.rounded(self.file.run(self.feed(X)))


@dataclass(frozen=True, eq=False)
class OnnxClassifier(_OnnxModel):
    """A model whose output are probabilities.

    Parameters
    ----------
    file : OnnxFile
        Where it is from.
    feed : callable
        Makes the inputs of the session from a table.
    classes_ : array (K,)
        Labels, or positions where the file names none.
    """

    classes_: NDArray[Any]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K), in the precision of the file."""
        answer = self.file.run(self.feed(X))
        if isinstance(answer, list):  # a mapping for each row
            rows = [[row[label] for label in self.classes_] for row in answer]
            return np.array(rows, dtype=np.float32)
        p = self.feed.rounded(answer).reshape(len(answer), -1)
        return np.hstack([1 - p, p]) if p.shape[1] == 1 else p


@dataclass(frozen=True, eq=False)
class Feed:
    """From a table to the inputs of a session.

    Parameters
    ----------
    columns : tuple of str
        The columns of the table.
    inputs : dict
        The type of each input, by its name.
    """

    columns: tuple[str, ...]
    inputs: dict[str, Any]

    @property
    def is_single(self) -> bool:
        """Whether what is asked is rounded to single precision."""
        return np.float32 in self.inputs.values()

    def rounded(self, answer: Any) -> Array:
        """An answer in the precision of what was asked, which differences depend on."""
        return np.asarray(answer, dtype=np.float32 if self.is_single else None)

    def __call__(self, X: Any) -> dict[str, Any]:
        """The inputs: the whole table, or each column by its name."""
        if len(self.inputs) == 1:
            ((name, dtype),) = self.inputs.items()
            return {name: np.asarray(X, dtype=dtype)}
        table = pd.DataFrame(np.asarray(X), columns=list(self.columns))
        return {
            name: table[[name]].to_numpy(dtype=dtype)
            for name, dtype in self.inputs.items()
        }


def _session(path: Path) -> Any:
    runtime = extras.require("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are ours to tell
    try:
        return runtime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except _errors() as error:
        raise InvalidInput(f"{path} is no model of ONNX: {error}") from error


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


def _feed(file: OnnxFile, columns: Sequence[str]) -> Feed:
    """How a table with these columns is given to the session."""
    inputs, name = file.session.get_inputs(), file.path.name
    for one in inputs:
        _check_input(one, name)
    if len(inputs) == 1:
        _check_width(inputs[0], len(columns), name)
    elif {one.name for one in inputs} != set(columns):
        raise InvalidInput(
            f"{name} takes the columns {listed([one.name for one in inputs])}; got "
            f"{listed(list(columns))}"
        )
    return Feed(tuple(columns), {one.name: _FLOATS[one.type] for one in inputs})


def _check_input(one: Any, file: str) -> None:
    """An input is a matrix of floating-point numbers with any number of rows."""
    if one.type not in _FLOATS:
        raise InvalidInput(
            f"{file} takes {one.type} as {one.name!r}; expected float or double"
        )
    if len(one.shape) != 2:
        raise InvalidInput(
            f"{file} takes {one.name!r} of shape {one.shape}; expected (rows, columns)"
        )
    if isinstance(one.shape[0], int):
        raise InvalidInput(
            f"{file} takes {one.shape[0]} rows at a time; export it with a first axis "
            "of any length"
        )


def _check_width(one: Any, n_columns: int, file: str) -> None:
    width = one.shape[1]
    if isinstance(width, int) and width != n_columns:
        raise InvalidInput(f"{file} takes {width} columns, got {n_columns}")


def _labels(answer: Any) -> NDArray[Any]:
    """Those of one row that was answered, or positions."""
    if isinstance(answer, list):
        return np.array(sorted(answer[0]))
    return np.arange(max(2, np.asarray(answer).size))
