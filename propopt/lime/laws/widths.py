"""Kernel widths: those of the literature, and those of several columns in one."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from propopt._typing import Array
from propopt.checks import as_floats, read_count, read_positive
from propopt.errors import InvalidInput


WidthConvention: TypeAlias = Literal["package", "paper"]
KernelWidth: TypeAlias = float | WidthConvention | Array | None


def default_kernel_width(
    n_columns: int, convention: WidthConvention = "package"
) -> float:
    """The kernel width that LIME has where none is given.

    Parameters
    ----------
    n_columns : int
        D.
    convention : {"package", "paper"}
        0.75 √D, which the ``lime`` package has; or √(0.75 D), as Garreau and von
        Luxburg (2020) read it.

    Raises
    ------
    InvalidInput
        If D is no count, or the convention is none of them.

    Examples
    --------
    >>> default_kernel_width(16), round(default_kernel_width(16, "paper"), 4)
    (3.0, 3.4641)
    """
    count = read_count(n_columns, "n_columns")
    if convention == "package":
        return 0.75 * math.sqrt(count)
    if convention == "paper":
        return math.sqrt(0.75 * count)
    raise InvalidInput(
        f"kernel_width: expected a number > 0, 'package' or 'paper', got {convention!r}"
    )


def read_kernel_width(given: object, n_columns: int) -> tuple[float, Array]:
    """ν, and the factors (D,) by which widths of columns differ from it.

    Widths ν_j of columns become ν with 1/ν² = mean 1/ν_j², and ν_j / ν: a sample of
    which all bits differ has the weight that it has under the common width ν.
    """
    if given is None:
        return default_kernel_width(n_columns), np.ones(n_columns)
    if isinstance(given, str):
        width = default_kernel_width(n_columns, given)  # type: ignore[arg-type]
        return width, np.ones(n_columns)
    if np.ndim(given) == 0:  # type: ignore[arg-type]  # of any object
        return read_positive(given, "kernel_width"), np.ones(n_columns)
    widths = as_floats(given, "kernel_width")
    if widths.shape != (n_columns,):
        raise InvalidInput(
            f"kernel_width: expected a number, or one for each of {n_columns} columns, "
            f"got the shape {widths.shape}"
        )
    if not (widths > 0.0).all() or np.isinf(widths).all():
        raise InvalidInput(
            "kernel_width: expected widths > 0, not all of them infinite, got "
            f"{widths.tolist()}"
        )
    width = float(np.mean(widths**-2.0) ** -0.5)
    return width, widths / width
