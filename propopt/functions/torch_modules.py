"""Torch modules as functions: values, and gradients by automatic differentiation.

A module gives scores z = s(x), shape (n, K). The function is g(z) with one of the links
of fitted models, so that ∇f = (∂z/∂x)ᵀ ∇g(z): one backward pass from the scores, with
the link's gradient in double precision, whatever the module's precision is.

Torch is imported only here, and only for a module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from propopt.base.arrays import Array, Attributions, Points, Values
from propopt.base.checks import read_option
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.base.text import Reason, first_line
from propopt.functions.function import EXACT, WrappedModel
from propopt.functions.images import ImageShape, check_width, read_sizes
from propopt.functions.jumps import TRIAL_ROWS
from propopt.functions.outputs import (
    Output,
    Target,
    ValuesWithPrecision,
    quantity_of,
    read_column,
    read_index,
)
from propopt.structures.fitted_model import FittedModel
from propopt.structures.scores import Link
from propopt.tables.frames import Labels


if TYPE_CHECKING:
    import torch

Module: TypeAlias = "torch.nn.Module"
Tensor: TypeAlias = "torch.Tensor"


AUTOGRAD_CALLS: Final = Budget(2**22, 2**14)
"""The input of one call; layers often store 100 times as much for gradients."""


@dataclass(frozen=True, eq=False, repr=False)
class TorchModel(WrappedModel):
    """One output of a torch module, with its gradient by autograd.

    The module is used with its current parameters at each call, on its device and in
    its precision, in evaluation mode and in batches of at most 4 MiB of input and
    16,384 rows. Its mode, its parameters and their ``.grad`` are restored. Rows must
    not influence one another, which is usual in evaluation mode.
    """

    # from (n, D), or n inputs of input_shape, to (n,), (n, 1) or (n, K)
    module: Module
    # "value", or "probability", "log_odds", "margin" of class scores
    output: str
    index: int | None  # the column or the class to explain
    # the shape of one input of the module; None is (D,)
    input_shape: tuple[int, ...] | None

    @property
    def products(self) -> Reason:
        """Why the module is no sum of products: its layers mix columns."""
        return Reason(
            "layers of a torch module are no sum of products of single columns"
        )

    @property
    def gradient_method(self) -> str:
        """``"exact"`` in double precision, else autograd with its precision."""
        precision = str(_like(self.module).dtype).removeprefix("torch.")
        return EXACT if precision == "float64" else f"autograd, {precision}"

    def _value(self, points: Points, _: Labels, /) -> Values:
        self._check_width(points)
        values = np.empty(len(points))
        for rows in self._batches(points):
            call = partial(self._forward, points[rows])
            values[rows] = self.calls.counted(call, points[rows])
        self._try_out(points)
        return values

    def _forward(self, given: Points | list[str]) -> Values:
        """Values of points, or of texts, from one call without gradients."""
        import torch

        with _evaluating(self.module), torch.no_grad():
            if isinstance(given, list):
                scores = _numbers(_matrix(self.module(given), len(given)))
            else:
                scores = _numbers(self._scores(self._tensor(given)))
        return self._link(scores).value(scores)

    def __call__(self, texts: list[str], _: Labels) -> Values:
        """Values from one call of a module that takes lists of texts."""
        return self._forward(texts)

    def values_with_precision(
        self, texts: list[str], labels: Labels
    ) -> ValuesWithPrecision:
        """Values of texts, with the precision of the module."""
        return self(texts, labels), self.epsilon

    @property
    def epsilon(self) -> float:
        """The relative rounding of the module's precision."""
        import torch

        return torch.finfo(_like(self.module).dtype).eps

    def _try_out(self, points: Points) -> None:
        """Evaluate a few rows twice, once for each function."""
        if self.calls.trials:
            return
        few = points[: min(TRIAL_ROWS, self.batch_rows)]
        self.trial.call_twice(
            lambda: (self._forward(few), self.epsilon), len(few), self.calls, self
        )

    def _gradient(self, points: Points, _: Labels, /) -> Attributions:
        import torch

        self._check_width(points)
        self._try_out(points)
        gradients = np.empty(points.shape)
        with (
            _evaluating(self.module),
            torch.inference_mode(mode=False),
            torch.enable_grad(),
        ):
            for rows in self._batches(points):
                self.calls.add(len(points[rows]))
                tensor = self._tensor(points[rows]).requires_grad_()
                # a copy, since in-place layers may overwrite it
                gradients[rows] = self._slopes(tensor, self._scores(tensor.clone()))
        return gradients

    def _batches(self, points: Points) -> list[slice]:
        most = min(AUTOGRAD_CALLS.n_rows, self.batch_rows)
        budget = replace(AUTOGRAD_CALLS, n_rows=most)
        return budget.blocks(len(points), points.shape[1] * points.itemsize)

    def _tensor(self, points: Points) -> Tensor:
        """A copy of some points, on the module's device and in its precision."""
        import torch

        like = _like(self.module)
        return torch.tensor(points, dtype=like.dtype, device=like.device)

    def _scores(self, tensor: Tensor) -> Tensor:
        """Scores (n, K) of the module at points (n, D)."""
        import torch

        if self.input_shape is not None:
            tensor = tensor.reshape(-1, *self.input_shape)
        try:
            answer = self.module(tensor)
        except RuntimeError as error:
            if self.trial.answered or isinstance(error, torch.OutOfMemoryError):
                raise
            raise InvalidInput(self._misfit(tuple(tensor.shape), error)) from error
        self.trial.answered = True
        return _matrix(answer, len(tensor))

    def _misfit(self, shape: tuple[int, ...], error: RuntimeError) -> str:
        """The error message for a module that fails at its first call."""
        import torch

        layers = (m for m in self.module.modules() if isinstance(m, torch.nn.Linear))
        first = next(layers, None)
        width = "" if first is None else f"; its first layer takes {first.in_features}"
        message = first_line(error)
        return (
            f"X: {self.quantity.model}: for inputs of shape {shape} the module "
            f"fails: {message}{width}; give the columns that it was trained on, or "
            "wrap(model, input_shape=...) for inputs of another shape"
        )

    def _slopes(self, tensor: Tensor, scores: Tensor) -> Array:
        """Gradients (∂z/∂x)ᵀ ∇g(z) of points, shape (n, D)."""
        import torch

        numbers = _numbers(scores)
        cotangents = torch.tensor(self._link(numbers).cotangents(numbers)).to(scores)
        slopes = None
        if scores.requires_grad:
            (slopes,) = torch.autograd.grad(
                scores, tensor, cotangents, allow_unused=True
            )
        if slopes is None:
            raise InvalidInput(
                f"{self!r}: autograd finds no path from the output to the input "
                "(it was rounded, detached or computed without gradients); pass `step` "
                "to differentiate numerically"
            )
        return _numbers(slopes)

    def _link(self, scores: Array) -> Link:
        from propopt.structures.networks import ScoreLink, class_link

        n_scores = scores.shape[1]
        if self.output == "value":
            return ScoreLink("identity", read_column(self.index, n_scores))
        if n_scores == 1:  # for two classes, by default the second
            index = 1 if self.index is None else self.index
            if index > 1:
                raise InvalidInput(
                    "target: the module has one score, which stands for two classes; "
                    f"expected 0 or 1, got {index}"
                )
            return class_link(self.output, index, 1)
        return class_link(self.output, read_column(self.index, n_scores), n_scores)

    def _check_width(self, points: Points) -> None:
        if self.input_shape is not None:
            check_width(points, self.input_shape)


def torch_model(
    module: Any,
    target: Target,
    output: str,
    input_shape: Sequence[int] | ImageShape | None,
) -> TorchModel:
    """The function that a torch module computes; see :func:`propopt.wrap`."""
    read_option(output, Output, "output")
    quantity = "value" if output == "auto" else output
    fitted = FittedModel.of(module)
    index = read_index(fitted, "value", target)
    explained = quantity_of(fitted, quantity, index)
    sizes = None if input_shape is None else read_sizes(input_shape)
    return TorchModel(explained, module, quantity, index, sizes)


@contextmanager
def _evaluating(module: Module) -> Iterator[None]:
    """A context in evaluation mode, which restores the mode of each submodule."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _like(module: Module) -> Tensor:
    """A tensor with the device and the precision of a module: its first one."""
    import torch

    for tensor in chain(module.parameters(), module.buffers()):
        if torch.is_floating_point(tensor):
            return tensor
    return torch.empty(0)


def _matrix(answer: object, n_rows: int) -> Tensor:
    """The module's result as scores (n, K)."""
    import torch

    if not isinstance(answer, torch.Tensor) or answer.is_complex():
        kind = type(answer).__name__
        if isinstance(answer, torch.Tensor):
            kind = f"tensor of {answer.dtype}"
        raise InvalidInput(f"the module returned a {kind}; expected one real tensor")
    if answer.ndim not in (1, 2) or len(answer) != n_rows:
        raise InvalidInput(
            f"the module returned shape {tuple(answer.shape)} for {n_rows} rows; "
            f"expected ({n_rows},) or ({n_rows}, outputs)"
        )
    return answer.reshape(n_rows, -1)


def _numbers(tensor: Tensor) -> Array:
    return tensor.detach().cpu().double().numpy()
