"""All sections of models, imported ones and ONNX files too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from importlib import import_module
from itertools import compress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field

from propopt.base import extras
from propopt.base.arrays import Array
from propopt.base.checks import did_you_mean
from propopt.base.errors import InvalidInput
from propopt.functions.differences import step_for
from propopt.functions.jumps import SINGLE
from propopt.problems.sections import Label, OneOf, part, refused, wrong
from propopt.problems.subject.model_sections import (
    BoostingModel,
    Code,
    ForestModel,
    LinearModel,
    LogisticModel,
    ModelSection,
    NetworkModel,
)
from propopt.structures.readers.lightgbm import LightGBMBooster
from propopt.tables.frames import listed, read_table


# ---- A model of your own: an object of a Python module


def _module_and_object(path: str) -> str:
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", path):
        example = "such as package.module:model"
        raise refused(wrong(f"expected module:object, {example}, got {path[:60]!r}"))
    return path


class ImportedModel(ModelSection):
    """A fitted estimator, a callable, or an estimator to be fitted on the table.

    An estimator of scikit-learn's kind that is not fitted (``check_is_fitted``) is
    cloned, seeded where it has a ``random_state`` of None, and fitted to the table as
    it is; anything else is taken as :func:`propopt.wrap` takes it. Modules are found as
    ``import`` finds them: installed, or on ``PYTHONPATH``; the folder of the problem
    file is not searched.
    """

    words: ClassVar[str] = "an imported model"
    needs_target: ClassVar[bool] = False
    takes_texts: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = True  # itself it says whether

    target_class: Label | None = Field(None, description="label to explain")
    kind: Literal["imported"] = "imported"
    path: Annotated[str, AfterValidator(_module_and_object)] = Field(
        alias="import",
        description="module:object; needs --allow-code, since an import runs code",
    )

    def make(self, **others: Any) -> Any:
        name, _, attributes = self.path.partition(":")
        with part("import"):
            if others["code"] is Code.REFUSED:
                raise InvalidInput(
                    f"importing {self.path} runs Python code; add --allow-code to the "
                    "command (code=Code.ALLOWED in Python) if you trust it"
                )
            try:
                return reduce(getattr, attributes.split("."), import_module(name))
            except ImportError as error:
                raise InvalidInput(
                    f"{name} could not be imported: {error}; install it, or add its "
                    "folder to PYTHONPATH"
                ) from error
            except AttributeError as error:
                raise InvalidInput(f"{self.path}: {error}") from None


# ---- Models in files of ONNX, with the methods that other models have


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


# ---- A model of your own: a file of ONNX


class OnnxModel(ModelSection):
    """A fitted model in a file, computed by onnxruntime on one thread.

    It takes a matrix of numbers with the columns of the table, in their order, or one
    column for each of its inputs, by name. Where it returns labels beside its numbers,
    these are probabilities of classes, which are labels where the file names them
    (``zipmap``) and positions otherwise; else they are values, and ``target_class`` the
    position of one.
    """

    words: ClassVar[str] = "an ONNX model"
    needs_target: ClassVar[bool] = False

    target_class: Label | None = Field(None, description="label to explain")
    kind: Literal["onnx_file"] = "onnx_file"
    onnx: str = Field(description="path of the file, from that of the problem file")
    tensor: str | None = Field(
        None, description="the output of the file to explain, where there are several"
    )

    def make(self, **others: Any) -> Any:
        if others["categorical"]:
            raise InvalidInput("takes numbers, and there are data.categorical")
        with part("onnx"):
            path = others["folder"] / self.onnx
            return read_onnx(path, self.tensor, others["columns"])

    def check_table(self, model: Any, table: Any) -> None:
        if not model.is_single:
            return
        points = read_table(table, "X")[0]
        sizes = np.maximum(1.0, np.abs(points).max(axis=0))
        steps = step_for(SINGLE, self.onnx) * sizes
        small = points.std(axis=0) < _STEPS * steps
        if small.any():
            names = listed([*compress(model.feature_names_in_, small)])
            raise InvalidInput(
                f"{self.onnx} computes in single precision, and differences take "
                f"steps of {steps.min():.1g} and more: too large where columns vary as "
                f"little as {names}; export it in double precision, or for "
                "standardized columns"
            )


_STEPS: Final = 10
"""Of differences, that a standard deviation is at least."""


# ---- A model of your own: a file of LightGBM


class BoosterModel(ModelSection):
    """A fitted LightGBM model, in the text file that its ``save_model`` writes.

    It takes a table with the columns that it was fitted on, in their order. The margin
    of two classes is their log-odds. The file is data: reading it runs no code.
    """

    words: ClassVar[str] = "a LightGBM model"
    needs_target: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = True

    output: Literal["value", "margin"] = "margin"
    target_class: int | None = Field(
        None, ge=0, description="position of a class, where there are more than two"
    )
    kind: Literal["lightgbm_file"] = "lightgbm_file"
    booster: str = Field(description="path of the file, from that of the problem file")

    def make(self, **others: Any) -> Any:
        with part("booster"):
            return read_booster(others["folder"] / self.booster, others["columns"])


def read_booster(path: Path, columns: Sequence[str]) -> LightGBMBooster:
    """A booster of a text file, for a table with these columns."""
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    package = extras.require("lightgbm")
    try:
        text = path.read_text(encoding="utf-8")
        if not text.startswith("tree\n"):
            raise ValueError("it begins with another line than 'tree'")
        booster = package.Booster(model_str=text)
    except (ValueError, package.basic.LightGBMError) as error:
        raise InvalidInput(f"{path} is no model of LightGBM: {error}") from None
    names = booster.feature_name()
    kept = [column.replace(" ", "_") for column in columns]  # as it keeps them
    unnamed = [f"Column_{j}" for j in range(len(names))]
    if len(names) != len(kept) or (names not in (kept, list(columns), unnamed)):
        raise InvalidInput(
            f"{path.name} was fitted on the columns {listed(names)}; got "
            f"{listed(list(columns))}"
        )
    return LightGBMBooster(booster)


# ---- The section ``model``: which models a file may name; each is one class


MODEL_KINDS: Final[tuple[type[ModelSection], ...]] = (
    LinearModel,
    LogisticModel,
    NetworkModel,
    ForestModel,
    BoostingModel,
    ImportedModel,
    OnnxModel,
    BoosterModel,
)
"""Every model that a file may name."""

_KEYS = {
    get_args(model.model_fields["kind"].annotation)[0]: {
        field.alias or name for name, field in model.model_fields.items()
    }
    for model in MODEL_KINDS
}
_BY_KEY = {"import": "imported", "onnx": "onnx_file", "booster": "lightgbm_file"}


def _with_kind(value: Any) -> Any:
    """``import``, ``onnx``, ``booster`` say the kind; keys of others are refused."""
    if not isinstance(value, dict):
        return value
    if "kind" not in value:
        kinds = [{"kind": kind} for key, kind in _BY_KEY.items() if key in value]
        value = {**next(iter(kinds), {}), **value}
    kind = value.get("kind")
    own = _KEYS.get(kind) if isinstance(kind, str) else None
    others = set() if own is None else set().union(*_KEYS.values()) - own
    for name in sorted(others & set(value)):
        raise refused(wrong(f"{name} has no effect with {kind}"))
    return value


AnyModel: TypeAlias = Annotated[
    ModelSection, OneOf("kind", MODEL_KINDS), BeforeValidator(_with_kind)
]
