"""Explanations in the form that captum and Quantus ask for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from propopt.base.arrays import Array, Attributions
from propopt.base.checks import read_array
from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.suggestions import suggests_arguments
from propopt.results.explanation import Explanation


ExplainRows: TypeAlias = Callable[[Any], Explanation]
"""From points (m, D) to their explanation, such as ``explainer.explain``."""


@suggests_arguments
def captum_attribution(
    forward: Any, explain: ExplainRows | Mapping[int, ExplainRows]
) -> Any:
    """An explanation as an ``Attribution`` of captum, for its metrics and tools.

    Needs ``pip install "propopt[peers]"``.

    Parameters
    ----------
    forward : callable or torch module
        What captum calls the forward function.
    explain : callable, or mapping from targets
        From points (m, D), an array, to an :class:`propopt.results.Explanation`, best
        ``explainer.explain`` of a fitted :class:`propopt.Explainer`, which answers
        alike whatever batches captum makes. One callable explains one output; for
        several, one for each, by the ``target`` that captum has for it.

    Returns
    -------
    captum.attr.Attribution
        ``attribute(inputs, target=None)`` gives a tensor of the shape and type of
        ``inputs``, (m, ...), whose rows are points with D numbers.

    Raises
    ------
    MissingExtra
        If ``captum`` or ``torch`` is not installed.

    Examples
    --------
    >>> import torch, propopt as po  # doctest: +SKIP
    >>> explainer = po.Explainer(po.wrap(net), data=X).fit()  # doctest: +SKIP
    >>> method = captum_attribution(net, explainer.explain)  # doctest: +SKIP
    >>> method.attribute(torch.zeros(3, 4)).shape  # doctest: +SKIP
    torch.Size([3, 4])
    """
    package: Any = require("captum.attr")
    torch = require("torch")

    class Optimized(package.Attribution):  # type: ignore[misc]  # captum has no types
        """Attributions by ``explain``, one row after the other."""

        def attribute(self, inputs: Any, target: Any = None) -> Any:
            """Attributions of the shape of ``inputs`` (m, ...)."""
            if isinstance(inputs, tuple):
                if len(inputs) != 1:
                    raise InvalidInput(
                        f"inputs: expected one tensor, got {len(inputs)}: points are "
                        "rows of one table"
                    )
                return (self.attribute(inputs[0], target),)
            points = inputs.detach().cpu().numpy()
            rows = None if target is None else np.asarray(target)
            W = torch.from_numpy(_attributions(explain, points, rows))
            return W.to(dtype=inputs.dtype, device=inputs.device)

    return Optimized(forward)


@suggests_arguments
def quantus_explain_func(
    explain: ExplainRows | Mapping[int, ExplainRows],
) -> Callable[..., Array]:
    """An explanation as the ``explain_func`` of metrics of Quantus.

    Parameters
    ----------
    explain : callable, or mapping from targets
        As for :func:`captum_attribution`. One callable explains one output, whatever
        ``y_batch`` says; of a mapping each row takes that of its target.

    Returns
    -------
    callable
        From ``model``, ``inputs`` (m, ...), ``targets`` (m,) and ``device`` to
        attributions of the shape of ``inputs``; model and device are not used, for
        ``explain`` knows them.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> explainer = po.Explainer(np.ravel, data=np.linspace(0, 1, 9)[:, None]).fit()
    >>> explain_func = quantus_explain_func(explainer.explain)
    >>> explain_func(None, np.zeros((2, 1)), targets=np.zeros(2)).shape
    (2, 1)
    """

    def explain_func(
        model: Any, inputs: Any, targets: Any, device: Any = None
    ) -> Array:
        del model, device  # which metrics pass on, and explain has its own
        rows = np.asarray(targets) if isinstance(explain, Mapping) else None
        return _attributions(explain, np.asarray(inputs), rows)

    return explain_func


def _attributions(
    explain: ExplainRows | Mapping[int, ExplainRows],
    inputs: NDArray[Any],
    targets: NDArray[Any] | None,
) -> Attributions:
    """Of the shape of the inputs, each row for its target."""
    points = read_array(inputs.reshape(len(inputs), -1), "inputs", ndim=2)
    W = np.empty(points.shape)
    if not isinstance(explain, Mapping):
        if targets is not None:
            raise InvalidInput(
                "target: the explainer was made for one output and explains only that; "
                "for several outputs give a mapping {target: explainer}"
            )
        by_target = {0: explain}
        each = np.zeros(len(points))
    elif targets is None:
        raise InvalidInput(f"target: expected one of {sorted(explain)}, got none")
    else:
        by_target = {**explain}
        each = np.broadcast_to(targets.reshape(-1), len(points))
    wanted = np.unique(each).tolist()
    for target in wanted:
        if target not in by_target:
            raise InvalidInput(
                f"target: expected one of {sorted(by_target)}, got {target}"
            )
    for target in wanted:
        rows = each == target
        result = by_target[target](points[rows]).attributions
        if result.shape != W[rows].shape:
            raise InvalidInput(
                f"explain: expected attributions of shape {W[rows].shape}, one number "
                f"for each of the inputs, got {result.shape}"
            )
        W[rows] = result
    return W.reshape(inputs.shape)
