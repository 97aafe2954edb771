"""LAPACK's own routines, where SciPy has no function; what they report is read here."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.linalg import lapack

from propopt._typing import Array
from propopt.errors import SolverFailure


def positive_inverse(matrix: Array) -> Array:
    """The inverse of a symmetric positive definite matrix, which is overwritten.

    Raises
    ------
    SolverFailure
        If the matrix is not positive definite, to rounding.
    """
    indefinite = "a matrix to invert is not positive definite in double precision"
    factor, info = lapack.dpotrf(matrix, lower=1, overwrite_a=1, clean=1)
    _require_done("dpotrf", info, indefinite)
    lower, info = lapack.dpotri(factor, lower=1, overwrite_c=1)
    _require_done("dpotri", info, indefinite)
    inverse: Array = lower + lower.T
    inverse.flat[:: len(matrix) + 1] *= 0.5
    return inverse


def tridiagonalised(matrix: Array) -> tuple[Array, Array, Array, Array]:
    """K = Q T Qᵀ of a symmetric matrix, which is overwritten.

    Returns
    -------
    array (n − 1, n − 1), array (n,), array (n − 1,), array (n − 1,)
        The reflectors of Q below its first row and column, reflector i in column i
        below a diagonal of ones; the diagonal of T; what is beside it; the factors of
        the reflectors.
    """
    work, info = lapack.dsytrd_lwork(len(matrix), lower=1)
    _require_done("dsytrd_lwork", info)
    reduced, diagonal, beside, factors, info = lapack.dsytrd(
        # K is symmetric: its transpose is K in LAPACK's order, without a copy
        matrix.T,
        lower=1,
        lwork=int(work),
        overwrite_a=1,
    )
    _require_done("dsytrd", info)
    return np.asfortranarray(reduced[1:, :-1]), diagonal, beside, factors


def reflected(
    reflectors: Array, factors: Array, columns: Array, transpose: Literal["N", "T"]
) -> Array:
    """Q or Qᵀ times columns (n − 1, m), with Q of :func:`tridiagonalised`."""
    own = np.array(columns, order="F")
    # dormqr writes to the reflectors, and puts back what was there: memory that is
    # mapped for reading alone, as joblib does, has to be copied
    writable = np.require(reflectors, requirements=["F", "W"])
    arguments = ("L", transpose, writable, factors, own)
    _, work, info = lapack.dormqr(*arguments, -1)
    _require_done("dormqr", info)
    product, _, info = lapack.dormqr(*arguments, int(work[0]), overwrite_c=1)
    _require_done("dormqr", info)
    return np.asarray(product)


def _require_done(routine: str, info: int, failure: str = "it did not finish") -> None:
    """Raise :class:`SolverFailure` unless a routine reports that it is done."""
    if info != 0:
        reason = failure if info > 0 else f"argument {-info} cannot be used"
        raise SolverFailure(f"LAPACK's {routine}: {reason} (info = {info})")
