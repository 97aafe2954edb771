"""An explainer as a method: a callable from any points to their attributions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from propopt._typing import Attributions
from propopt.checks import read_seed
from propopt.errors import InvalidInput
from propopt.explainers import Explainer
from propopt.functions import Function


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplainerMethod:
    """An explainer of one function, as a callable ``method(points) -> attributions``.

    This is what the robustness metrics ask, because they need attributions at points
    that nobody has explained yet. An explainer that samples draws anew for every point,
    from one stream which each metric reads from its beginning: the metric then measures
    the Monte-Carlo error of the explainer too, as a user would meet it.

    Parameters
    ----------
    explainer : Explainer
        A method whose explanation of a point does not depend on the other points.
    function : Function
        f.
    rng : int or None
        The seed of the explainer; None is seed 0.

    Raises
    ------
    InvalidInput
        If the explainer would take its background from the points themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.explainers import Gradient
    >>> from propopt.functions import Power
    >>> method = ExplainerMethod(explainer=Gradient(), function=Power(2))
    >>> method(np.array([[1.0, 3.0]]))
    array([[2., 6.]])
    """

    explainer: Explainer
    function: Function
    rng: int | None = None

    def __post_init__(self) -> None:
        read_seed(self.rng)
        settings = self.explainer.parameters
        if "background" in settings and settings["background"] is None:
            raise InvalidInput(
                f"explainer: {self.explainer.method} without a background takes it "
                "from the points at hand, so that perturbed points would change it; "
                "give one, such as background=X"
            )

    def __call__(self, X: Any) -> Attributions:
        """Attributions (N, D) at the rows of X; the same each time."""
        return self.begin()(X)

    def begin(self) -> Callable[[Any], Attributions]:
        """The method with one stream of draws, which successive calls read on."""
        rng = np.random.default_rng(read_seed(self.rng))

        def explain(X: Any) -> Attributions:
            found = self.explainer.explain(self.function, X, rng=rng, progress=False)
            return found.attributions

        return explain
