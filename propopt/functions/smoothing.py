"""Smoothed functions: the choice of a law, and exact or sampled means under it."""

from __future__ import annotations

from typing import Any, Final, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from propopt.base.arrays import Array
from propopt.base.checks import read_array, read_count, read_option, read_seed
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.functions.function import Function, read_function
from propopt.functions.gaussian_means import SmoothedFunction
from propopt.functions.means import CheckedStructure, ExactMean, SampledMean
from propopt.laws.background import Reference
from propopt.laws.data_law import DataLaw
from propopt.laws.draws import N_BLOCKS, fewest_draws
from propopt.structures.products.sums import SumOfProducts


LawName = Literal["gaussian", "data"]

N_DRAWS: Final = 500
"""The default number of draws, or of pairs of draws."""


@overload
def smoothed(
    function: Function,
    scale: ArrayLike,
    n_samples: int | None = None,
    rng: int | np.random.Generator | None = 0,
    *,
    law: Literal["gaussian"] = "gaussian",
    data: Any = None,
) -> SmoothedFunction: ...


@overload
def smoothed(
    function: Function,
    scale: None = None,
    n_samples: int | None = None,
    rng: int | np.random.Generator | None = 0,
    *,
    law: Literal["data"],
    data: Any,
) -> ExactMean | SampledMean: ...


@suggests_arguments
def smoothed(
    function: Function,
    scale: ArrayLike | None = None,
    n_samples: int | None = None,
    rng: int | np.random.Generator | None = 0,
    *,
    law: LawName = "gaussian",
    data: Any = None,
) -> Function:
    """Smooth a function, so that trees have slopes: its mean E f(V) at V near x.

    Its gradient explains trees and forests, which themselves have gradient 0 almost
    everywhere. In both distributions V has independent columns.

    ========== =======================================================================
    gaussian   V = x + δ ∘ ε, ε ~ N(0, I), and the gradient by x (SmoothGrad), which
               depends on where a library puts its splits between observed values
    data       V_j on the values of column j in ``data`` around x_j: weights
               exp(−(v − x_j)²/2h²) with h half a standard deviation, more if a single
               value would get nearly all weight. The gradient is Cov(V_j,
               f(V))/Var(V_j): the difference f(v_2) − f(v_1) per unit for two values, 0
               in unused or constant columns. For a category, and for a missing number,
               it is the effect against the others, in units of the output
    ========== =======================================================================

    Means and gradients are exact for models with an exact structure
    (``function.products``): for trees, gaussian kernel machines, polynomials and linear
    models by both laws, for splines by the data law. The structure is first compared
    with the model at up to 1000 rows. Other models are sampled in 10 blocks, so that
    every estimate has standard errors.

    Parameters
    ----------
    function : Function
        The function f; see :func:`wrap` for models and callables.
    scale : float or array (D,), optional
        The standard deviation δ > 0 of the noise, in the units of the features;
        required by the gaussian law. An entry of an array may be 0: that column gets no
        noise, and its slope is 0. Entries for categorical columns are not used.
    n_samples : int, optional
        The number of draws for sampled means: of pairs x ± δε for the gaussian law, at
        least two for each feature, by default 500; of rows for the data law, a multiple
        of 10 and at least two and a quarter for each feature, by default 500 or the
        fewest that are allowed.
    rng : int, Generator or None
        The random seed, or a generator that provides it; None is seed 0.
    law : {"gaussian", "data"}
        The law of the columns around each row.
    data : DataFrame, array or Reference, optional
        The reference table, preferably the training table; required by the data law. Of
        more than 10,000 rows, 10,000 are drawn.

    Returns
    -------
    Function
        With ``value``, ``gradient`` and ``estimate``; by the gaussian law a
        :class:`SmoothedFunction`, with ``changes`` too; by the data law an
        :class:`ExactMean`, or a :class:`SampledMean`.

    Raises
    ------
    InvalidInput
        If an argument cannot be used.

    Examples
    --------
    The gradient of a smoothed step 1[x > 0] is the normal density over δ, here at 0.

    >>> import numpy as np, propopt as po
    >>> step = po.functions.smoothed(po.wrap(lambda X: (X[:, 0] > 0) * 1.0), scale=0.5)
    >>> slope = step.estimate([[0.0]])
    >>> error = slope.values - 1 / np.sqrt(2 * np.pi) / 0.5
    >>> bool(np.abs(error) < 4 * slope.standard_errors)
    True
    """
    function = read_function(function)
    if function.takes_texts:
        raise InvalidInput(
            f"function: {function!r} takes texts, which have words or lack them; its "
            "gradient is the effect of each word, which needs no smoothing"
        )
    n_draws = None if n_samples is None else read_count(n_samples, "n_samples")
    if n_draws == 1:
        raise InvalidInput("n_samples: expected at least 2, for error estimates")
    seed = read_seed(rng)
    if read_option(law, LawName, "law") == "data":
        if scale is not None:
            raise InvalidInput(
                "scale: law='data' chooses bandwidths from the data; leave scale out"
            )
        return _by_data(function, data, n_draws, seed)
    smooth = SmoothedFunction(function, _read_widths(scale), n_draws or N_DRAWS, seed)
    if data is not None:
        smooth.checked.at(*function.read(data, "data"))
    return smooth


def _read_widths(scale: ArrayLike | None) -> Array:
    if scale is None:
        raise InvalidInput(
            "scale: required with law='gaussian', such as half the standard deviation "
            "of each column; law='data', data=X_train needs no scale"
        )
    widths = read_array(scale, "scale", ndim=min(np.ndim(scale), 1))
    if not (widths >= 0.0).all() or not widths.any():
        raise InvalidInput(
            "scale: expected numbers > 0, or 0 for columns without noise, got "
            f"{widths.tolist()}"
        )
    return widths


def _by_data(
    function: Function, data: Any, n_samples: int | None, seed: int
) -> ExactMean | SampledMean:
    if data is None:
        raise InvalidInput(
            "data: the data law requires the reference table, preferably the training "
            "table: smoothed(function, law='data', data=X_train)"
        )
    reference = data
    if not isinstance(data, Reference):
        points, labels = function.read(data, "data")
        reference = Reference.of_points(points, labels, function.schema)
    reference.refuse_equal_rows()
    law = DataLaw(reference)
    checked = CheckedStructure.of(function, reference.points.shape[1])
    structure = checked.at(reference.points, reference.labels)
    if isinstance(structure, SumOfProducts):
        return ExactMean(function, law, structure, checked)
    control = function.margin_boxes
    if n_samples is None:
        n_samples = max(N_DRAWS, fewest_draws(law, control is not None))
    elif n_samples % N_BLOCKS:
        raise InvalidInput(
            f"n_samples: expected a multiple of {N_BLOCKS}, as standard errors compare "
            f"that many batches, got {n_samples}"
        )
    return SampledMean(function, law, n_samples, seed, control)
