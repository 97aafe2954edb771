"""``shap.Explainer``: trees, other exact structures, and sampled values."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, final

from propopt.base.checks import read_option
from propopt.base.errors import InvalidInput
from propopt.base.resources import DrawPlan
from propopt.base.suggestions import suggests_arguments
from propopt.explaining.contributions import ContributionRule
from propopt.functions.function import Function
from propopt.functions.outputs import call_of, read_output
from propopt.laws.background import Background, Reference
from propopt.shap.explanation import as_explanation
from propopt.shap.models import NoTrees, ShapTable, functions_of, stacked, targets_of
from propopt.shap.trees import (
    FeaturePerturbation,
    ModelOutputName,
    TreeExplainer,
    background_of,
    refuse_link,
)
from propopt.structures.fitted_model import FittedModel


AlgorithmName: TypeAlias = Literal[
    "auto", "tree", "linear", "additive", "exact", "permutation"
]

N_ORDERS = 100
"""Orders of the columns for each row, if values are sampled."""


@suggests_arguments
class Explainer:
    """Shapley values of any model with the interface of ``shap.Explainer``.

    For trees this makes a :class:`TreeExplainer`. Other models that are sums of
    products, such as linear, kernel and additive ones, are computed exactly, and so are
    models of few columns. For the rest orders of the columns are sampled, and
    ``error_std`` has standard errors. :func:`propopt.explain` has the same
    contributions.

    Parameters
    ----------
    model : estimator or callable
        A fitted model, or a function from a table to numbers (n,) or (n, K).
    masker : array or DataFrame (B, D), optional
        The background rows, also ``shap.maskers.Independent``. Trees need none.
    link : optional
        Only the default, ``shap.links.identity``.
    algorithm : {"auto", "tree", "linear", "additive", "exact", "permutation"}
        All give the same values, by the fastest exact method that there is; only
        ``"tree"`` refuses other models. Partitions have another game.
    output_names, feature_names : sequence of str, optional
        Names for explanations.
    linearize_link : bool
        Without effect.
    seed : int, optional
        The seed of sampled orders.
    model_output, feature_perturbation
        Of trees, as for :class:`TreeExplainer`.

    Returns
    -------
    TreeExplainer or Explainer

    Raises
    ------
    InvalidInput
        If a model without trees has no ``masker``, or an argument does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from propopt.shap import Explainer
    >>> X = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 8.0]])
    >>> model = LinearRegression().fit(X, [0.0, 2.0, 7.0])
    >>> Explainer(model, X)(X).values.round(9)
    array([[-2., -1.],
           [ 0., -1.],
           [ 2.,  2.]])
    """

    model: Any
    masker: Any
    output_names: list[str] | None
    feature_names: list[str] | None
    _outputs: _Outputs

    def __new__(
        cls,
        model: Any,
        masker: Any = None,
        link: Any = None,
        algorithm: AlgorithmName = "auto",
        output_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        linearize_link: bool = True,
        seed: int | None = None,
        model_output: ModelOutputName = "raw",
        feature_perturbation: FeaturePerturbation = "auto",
    ) -> Any:
        """Make a :class:`TreeExplainer`, or this one for models without trees."""
        read_option(algorithm, AlgorithmName, "algorithm")
        refuse_link(link)
        del linearize_link
        try:
            return TreeExplainer(
                model, masker, model_output, feature_perturbation, feature_names
            )
        except NoTrees:
            if algorithm == "tree":
                raise
        fitted = FittedModel.of(model)
        rows, weights = background_of(masker)
        if rows is None:
            raise InvalidInput(
                f"masker: {fitted.name} needs background rows; only trees have values "
                "without them"
            )
        self = super().__new__(cls)
        self.model = model
        self.masker = masker
        self.output_names = None if output_names is None else list(output_names)
        self.feature_names = None if feature_names is None else list(feature_names)
        self._outputs = _Outputs(fitted, ShapTable.of(rows, "masker"), weights, seed)
        return self

    def shap_values(self, X: Any, **settings: Any) -> Any:
        """The values of rows, as the call computes them.

        Parameters
        ----------
        X : table (N, D)
            The rows.
        **settings
            Arguments of the call.

        Returns
        -------
        array (N, D) or (N, D, K)
        """
        return self(X, **settings).values

    def __call__(
        self, X: Any, max_evals: int | Literal["auto"] = "auto", silent: bool = False
    ) -> Any:
        """Explain rows as a ``shap.Explanation``, or :class:`Explanation` without it.

        Parameters
        ----------
        X : table (N, D)
            An array or a DataFrame, with the columns of the background.
        max_evals : int or "auto"
            Where orders are sampled, the evaluations for each row: 2 D + 1 for an
            order. By default 100 orders.
        silent : bool
            Show no progress.

        Returns
        -------
        shap.Explanation
            With ``error_std`` if orders were sampled.

        Raises
        ------
        InvalidInput
            If the rows do not fit.
        """
        start = time.perf_counter()
        table = ShapTable.of(X)
        fields = self._outputs.explained(table, max_evals, False if silent else None)
        frame = table.frame if table.frame is not None else self._outputs.table.frame
        names = self.feature_names
        return as_explanation(
            **fields,
            data=table.array,
            feature_names=[*frame] if names is None and frame is not None else names,
            output_names=self.output_names or self._outputs.names,
            compute_time=time.perf_counter() - start,
        )


@final
@dataclass(frozen=True, eq=False)
class _Outputs:
    """The outputs of a model against a background, each with the rule of its values."""

    fitted: FittedModel
    table: ShapTable  # the background
    weights: Any
    seed: int | None

    @cached_property
    def targets(self) -> list[Any]:
        """The class, or the position, of each output; the second of two classes."""
        fitted = self.fitted
        classes = fitted.classes
        if classes is not None and len(classes) == 2:
            classes = classes[1:]
        call, _ = call_of(fitted, read_output(fitted, "auto"))
        return targets_of(fitted, classes, lambda: call(self.table.rows[:1]))

    @property
    def names(self) -> list[str] | None:
        """The names of the classes, if there are several outputs."""
        is_named = len(self.targets) > 1 and self.fitted.classes is not None
        return list(map(str, self.targets)) if is_named else None

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Each output as a function of the table."""
        return functions_of(self.fitted, self.targets, "auto", self.table.rows)

    def explained(
        self, table: ShapTable, max_evals: Any, progress: bool | None
    ) -> dict[str, Any]:
        """Values, bases and standard errors of rows, of all outputs."""
        each = []
        for of_background in self.functions:
            function = of_background.with_categories_of(table.rows)
            points, labels = function.read(table.rows)
            rows, names = function.read(self.table.rows, "masker")
            reference = Reference.of_points(rows, names.of_columns(), function.schema)
            count = N_ORDERS
            if max_evals != "auto":
                count = max(int(max_evals) // (2 * points.shape[1] + 1), 1)
            background = Background.of_points(rows, self.weights)
            rule = ContributionRule(
                function=function,
                reference=reference,
                table=background.ordered(function.schema),
                draws=DrawPlan(n_samples=count),
                rng=self.seed,
                progress=progress,
            )
            each.append(rule.of(points, labels))
        values = [targets.estimate.values for targets in each]
        bases = [targets.base for targets in each]
        fields: dict[str, Any] = {"values": values, "base_values": bases}
        if not all(targets.estimate.exact for targets in each):
            errors = [targets.estimate.standard_errors for targets in each]
            fields["error_std"] = errors
        return {
            name: stacked(parts) if name == "base_values" else table.one(parts)
            for name, parts in fields.items()
        }
