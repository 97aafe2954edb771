"""A model of your own: a file of ONNX."""

from __future__ import annotations

from itertools import compress
from typing import Any, ClassVar, Final, Literal

import numpy as np
from pydantic import Field

from propopt.errors import InvalidInput
from propopt.functions.answers import SINGLE
from propopt.functions.differences import step_for
from propopt.problems.parts import part
from propopt.problems.subject.models.base import ClassesSection, Making
from propopt.problems.subject.models.onnx_session import OnnxFile
from propopt.tables.names import listed, read_table


class OnnxModel(ClassesSection):
    """A fitted model in a file, computed by onnxruntime on one thread.

    It takes a matrix of numbers with the columns of the table, in their order, or one
    column for each of its inputs, by name. Where it returns labels beside its numbers,
    these are probabilities of classes, which are labels where the file names them
    (``zipmap``) and positions otherwise; else they are values, and ``target_class`` the
    position of one.
    """

    words: ClassVar[str] = "an ONNX model"
    needs_target: ClassVar[bool] = False

    kind: Literal["onnx_file"] = "onnx_file"
    onnx: str = Field(description="path of the file, from that of the problem file")
    tensor: str | None = Field(
        None, description="the output of the file to explain, where there are several"
    )

    def make(self, making: Making) -> Any:
        if making.categorical:
            raise InvalidInput("takes numbers, and there are data.categorical")
        with part("onnx"):
            file = OnnxFile.read(making.folder / self.onnx, self.tensor)
            return file.model(making.columns)

    def check_table(self, model: Any, table: Any) -> None:
        if not model.feed.is_single:
            return
        points = read_table(table, "X")[0]
        sizes = np.maximum(1.0, np.abs(points).max(axis=0))
        steps = step_for(SINGLE, self.onnx) * sizes
        small = points.std(axis=0) < _STEPS * steps
        if small.any():
            names = listed([*compress(model.feed.columns, small)])
            raise InvalidInput(
                f"{self.onnx} computes in single precision, and differences take "
                f"steps of {steps.min():.1g} and more: too large where columns vary as "
                f"little as {names}; export it in double precision, or for "
                "standardized columns"
            )


_STEPS: Final = 10
"""Of differences, that a standard deviation is at least."""
