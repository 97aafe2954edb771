"""``shap.TreeExplainer`` on exact sums of trees: arguments, attributes and shapes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Points, Values
from propopt.base.checks import read_option
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import suggests_arguments
from propopt.base.text import Reason
from propopt.functions.means import CheckedStructure, allowed_errors
from propopt.results.interactions import with_halves
from propopt.shap.explanation import as_explanation
from propopt.shap.games import (
    AgainstBackground,
    AlongPaths,
    LogLoss,
    MarginLink,
    SquaredLoss,
    TreeGame,
)
from propopt.shap.models import ShapTable, TreeModel, stacked
from propopt.structures.boxes.boxes import Boxes
from propopt.structures.kinds import class_name_of, is_a
from propopt.structures.products.sums import Game
from propopt.tables.frames import Labels


FeaturePerturbation: TypeAlias = Literal[
    "auto", "interventional", "tree_path_dependent"
]
ModelOutputName: TypeAlias = Literal[
    "raw", "probability", "log_loss", "predict_proba", "predict"
]


@suggests_arguments
class TreeExplainer:
    """Shapley values of trees with the interface of ``shap.TreeExplainer``.

    Without ``data`` the values are path-dependent: a column outside of a set follows
    the shares of training rows in the trees. With ``data`` they are interventional:
    such a column has the values of all rows of ``data``. Both are exact.

    Parameters
    ----------
    model : estimator or booster
        A fitted model of trees: forests and boosting of scikit-learn, LightGBM,
        XGBoost and CatBoost, native boosters, pipelines, votes and sums of these. An
        isolation forest is explained by the mean length of its paths, as in ``shap``.
    data : array or DataFrame (B, D), optional
        The background rows, all of which count; also ``shap.maskers.Independent``, with
        the rows that it retained, and the weighted rows of ``shap.kmeans``.
    model_output : {"raw", "probability", "log_loss", "predict_proba", "predict"}
        ``"raw"`` are log-odds of boosted classifiers, probabilities of other
        classifiers, and predictions. ``"probability"`` of boosted classifiers and
        ``"log_loss"`` need ``data``, and rescale the raw values against each row of it,
        as ``shap`` does: they add up, and are no Shapley values of the probability.
        ``"log_loss"`` is −log p, or the squared error of regressors.
        ``"predict_proba"`` gives both of two classes.
    feature_perturbation : {"auto", "interventional", "tree_path_dependent"}
        By default as above. ``"tree_path_dependent"`` with ``data`` takes the shares of
        these rows.
    feature_names : sequence of str, optional
        Names of the columns of arrays, for explanations.
    approximate, link, linearize_link : optional
        Only the defaults; ``shap`` ignores these arguments.

    Attributes
    ----------
    expected_value : float, array (K,) or callable
        The value without any column. Without ``data`` it is an array also for one
        output, as there; of boosting libraries until values are computed. With
        ``"log_loss"`` it is a function of labels. It is None for models with text
        categories until a table is explained, unless there is ``data``.
    model : TreeModel
        With ``predict``, ``num_outputs``, ``tree_limit`` and ``original_model``.
    data : array (B, D) or None
        The background.

    Raises
    ------
    InvalidInput
        If the model is no sum of trees, with the reason, or an argument does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from propopt.shap import TreeExplainer
    >>> X = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 3.0, 3.0])
    >>> explainer = TreeExplainer(model, X)
    >>> explainer.expected_value, explainer.shap_values(X)[0]
    (np.float64(2.0), array([-2.,  0.]))
    """

    def __init__(
        self,
        model: Any,
        data: Any = None,
        model_output: ModelOutputName = "raw",
        feature_perturbation: FeaturePerturbation = "auto",
        feature_names: Sequence[str] | None = None,
        approximate: bool = False,
        link: Any = None,
        linearize_link: Any = None,
    ) -> None:
        read_option(feature_perturbation, FeaturePerturbation, "feature_perturbation")
        read_option(model_output, ModelOutputName, "model_output")
        refuse_link(link)
        if approximate:
            raise InvalidInput("approximate: give it to shap_values, or to the call")
        del linearize_link
        self.masker = data
        self.model_output = model_output
        self.feature_names: list[str] | None = (
            None if feature_names is None else list(feature_names)
        )
        self.model: TreeModel = TreeModel.of(model)
        self.data: Any = None
        self._background: Game | None = None
        self._ready: tuple[TreeModel, list[TreeGame]] | None = None
        rows, weights = background_of(data)
        self.feature_perturbation: str = _perturbation(feature_perturbation, rows)
        self.model.refuse_others()
        if rows is not None:
            table = ShapTable.of(rows, "data").for_model(self.model, "data")
            self.model = self.model.for_table(table)
            points, labels = self.model.read(table, "data")
            self.data = table.array
            self._background = Game(points, weights=weights)
            self._compare(points, labels)
        if self.feature_names is None and self.model.frame is not None:
            self.feature_names = list(self.model.frame.columns)
        self._link = self._checked_link()

    @staticmethod
    def supports_model_with_masker(model: Any, masker: Any) -> bool:
        """True for models that are read as trees, with such a background.

        Parameters
        ----------
        model : object
            Any model.
        masker : table, masker or None
            As ``data``.
        """
        try:
            TreeExplainer(model, masker)
        except InvalidInput:
            return False
        return True

    def _compare(self, points: Points, labels: Labels) -> None:
        """Refuse trees that differ from the model at rows of the background."""
        for function, boxes in zip(self.model.functions, self.model.boxes, strict=True):
            compared = CheckedStructure(function, boxes).at(points, labels)
            if isinstance(compared, Reason):
                raise InvalidInput(f"data: {compared.reason}")

    # ---- The output

    @property
    def _is_doubled(self) -> bool:
        """True if both of two classes are returned, with opposite signs."""
        return self.model_output == "predict_proba" and self._link is not None

    def _checked_link(self) -> MarginLink | None:
        """The function of the raw output that is explained; None for the raw output."""
        model = self.model
        name = self.model_output
        if name == "raw":
            return None
        if name == "log_loss":
            link = model.loss
        elif name in ("probability", "predict_proba"):
            if model.kind == "probability":
                return None
            link = model.probability
        elif model.is_prediction:
            return None
        else:
            link = Reason("its prediction is no sum of trees; give 'raw'")
        if isinstance(link, Reason):
            raise InvalidInput(f"model_output: {name!r} of {model.name}: {link.reason}")
        if self.feature_perturbation == "tree_path_dependent":
            raise InvalidInput(
                f"model_output: {name!r} of {model.name} is computed against the rows "
                "of data; give data, or model_output='raw'"
            )
        return link

    @cached_property
    def expected_value(self) -> Any:
        """The value without any column; with ``"log_loss"`` a function of labels."""
        if isinstance(self._link, LogLoss | SquaredLoss):
            return self._expected_loss
        if not self.model.is_readable:
            return None  # categories are known once a table is explained
        return self._base if self._background is not None else np.ravel(self._base)

    @property
    def _base(self) -> Any:
        """The value without any column, of one output or (K,)."""
        return stacked(self._bases(self._games(self.model), np.zeros(1)))[0]

    def _expected_loss(self, y: ArrayLike) -> Any:
        """The mean loss of the background, if its labels were y."""
        labels = np.asarray(y, np.float64)
        (loss,) = self._bases(self._games(self.model), labels.ravel())
        return loss.reshape(labels.shape)[()]

    def _bases(self, games: Sequence[TreeGame], y: Array) -> list[Values]:
        """The bases of each output for labels (N,)."""
        bases = [game.base_at(y) for game in games]
        return [1.0 - bases[0], bases[0]] if self._is_doubled else bases

    # ---- Games

    def _games(self, model: TreeModel, tree_limit: int | None = None) -> list[TreeGame]:
        """The game of each raw output, of the first trees if limited."""
        if model.is_limited(tree_limit):
            return list(map(self._game_of, model.limited(tree_limit)))
        if self._ready is None or self._ready[0] is not model:
            self._ready = model, list(map(self._game_of, model.boxes))
        return self._ready[1]

    def _game_of(self, boxes: Boxes) -> TreeGame:
        if self.feature_perturbation == "tree_path_dependent":
            return AlongPaths.of(boxes, self._background)
        assert self._background is not None, "see _perturbation"
        return AgainstBackground(boxes, self._background, self._link)

    def _read(self, X: Any, y: Any) -> _Rows:
        """Rows to explain, read as the model needs them."""
        table = ShapTable.of(X).for_model(self.model)
        model = self.model.for_table(table)
        if self._background is None:
            self.model = model  # the first table defines the categories
        points, labels = model.read(table)
        return _Rows(table, model, points, labels, self._labels_of(y, len(points)))

    def _labels_of(self, y: Any, count: int) -> Array:
        """The labels (N,) of rows; zeros where no loss is explained."""
        if not isinstance(self._link, LogLoss | SquaredLoss):
            return np.zeros(count)
        labels = np.asarray([] if y is None else y, np.float64).ravel()
        if len(labels) != count:
            raise InvalidInput(
                f"y: the loss of {count} rows needs {count} labels, got {len(labels)}"
            )
        if isinstance(self._link, LogLoss) and not np.isin(labels, (0.0, 1.0)).all():
            raise InvalidInput(
                "y: expected 0 or 1 for each row, the position of its class"
            )
        return labels

    # ---- Values

    def shap_values(
        self,
        X: Any,
        y: Any = None,
        tree_limit: int | None = None,
        approximate: bool = False,
        check_additivity: bool = True,
        from_call: bool = False,
    ) -> Array:
        """Shapley values of rows.

        Parameters
        ----------
        X : table (N, D)
            An array or a DataFrame, one row (D,), a ``DMatrix``, a ``Dataset`` that
            retains its rows, or a ``Pool`` of numbers.
        y : array (N,), optional
            With ``model_output="log_loss"`` the labels: 0 or 1, or numbers.
        tree_limit : int, optional
            The first trees of the model, in whole rounds if classes have trees of their
            own; −1 means all.
        approximate : bool
            Changes of node means on the path of the row instead (Saabas 2014).
        check_additivity : bool
            Compare the sum of each row with the prediction of the model itself. Fewer
            trees have no prediction to compare with.
        from_call : bool
            Without effect.

        Returns
        -------
        array (N, D), or (N, D, K) for K outputs
            Without the first axis for one row.

        Raises
        ------
        InvalidInput
            If a sum differs from the prediction, with the row and both numbers; or if
            the rows do not fit the model.
        """
        del from_call
        rows = self._read(X, y)
        values = self._values(rows, tree_limit, approximate, check_additivity)
        return rows.table.one(values)

    def shap_interaction_values(
        self, X: Any, y: Any = None, tree_limit: int | None = None
    ) -> Array:
        """Shapley interactions of rows, also against a background.

        Parameters
        ----------
        X : table (N, D)
            As for :meth:`shap_values`.
        y : None
            Without effect: losses have no interactions here.
        tree_limit : int, optional
            As for :meth:`shap_values`.

        Returns
        -------
        array (N, D, D), or (N, D, D, K) for K outputs
            Half of the interaction of two columns off the diagonal, and the remainder
            of the Shapley value on it: rows add up to Shapley values.

        Raises
        ------
        InvalidInput
            If the output is not the raw one.
        """
        rows = self._read(X, y)
        return rows.table.one(self._interactions(rows, tree_limit))

    def __call__(
        self,
        X: Any,
        y: Any = None,
        interactions: bool = False,
        check_additivity: bool = True,
        approximate: bool = False,
    ) -> Any:
        """Explain rows as a ``shap.Explanation``, which the plots of ``shap`` take.

        Parameters
        ----------
        X, y, check_additivity, approximate
            As for :meth:`shap_values`.
        interactions : bool
            Interactions, as :meth:`shap_interaction_values` gives them.

        Returns
        -------
        shap.Explanation
            An :class:`Explanation` with the same fields if the package is not
            installed.

        Raises
        ------
        InvalidInput
            For the same reasons as the two methods.
        """
        start = time.perf_counter()
        rows = self._read(X, y)
        if interactions and approximate:
            raise InvalidInput("approximate: node means have no interactions")
        if interactions:
            values = self._interactions(rows, None)
        else:
            values = self._values(rows, None, approximate, check_additivity)
        bases = self._bases(self._games(rows.model), rows.y)
        names = self.feature_names
        return as_explanation(
            values=rows.table.one(values),
            base_values=stacked(bases),
            data=rows.table.array,
            feature_names=names if rows.table.frame is None else [*rows.table.frame],
            compute_time=time.perf_counter() - start,
        )

    def _values(
        self,
        rows: _Rows,
        tree_limit: int | None,
        approximate: bool,
        check_additivity: bool,
    ) -> list[Array]:
        """Values of rows (N, D) of each output, compared with the model."""
        games = self._games(rows.model, tree_limit)
        if approximate:
            if self._link is not None:
                raise InvalidInput("approximate: node means are of the raw output")
            boxes = rows.model.limited(tree_limit)
            along = [AlongPaths.of(one, self._background) for one in boxes]
            games = list[TreeGame](along)
            each = [game.paths.saabas(rows.points) for game in along]
        else:
            each = [game.values(rows.points, rows.y) for game in games]
        if self._background is None and self.model.fitted.margin is not None:
            self.expected_value = self._base  # as shap has it of the library's values
        if check_additivity and not rows.model.is_limited(tree_limit):
            bases = np.stack([game.base_at(rows.y) for game in games])
            self._check_sums(rows, bases, np.stack(each))
        return [-each[0], each[0]] if self._is_doubled else each

    def _check_sums(self, rows: _Rows, bases: Array, values: Array) -> None:
        """Refuse bases (K, N) and values (K, N, D) that do not add up to the model."""
        sums = bases + values.sum(axis=2)
        sizes = np.abs(bases) + np.abs(values).sum(axis=2)
        model = rows.model
        outputs = zip(model.functions, model.boxes, sums, sizes, strict=True)
        for function, boxes, of_output, size in outputs:
            raw = function.value_at(rows.points, rows.labels)
            allowed = allowed_errors(boxes, raw, size)
            predicted = raw
            if self._link is not None:
                predicted = self._link.value(raw, rows.y)
                slope = np.abs(self._link.slope(raw, rows.y))
                allowed = allowed * np.maximum(1.0, slope)
            excess = np.abs(of_output - predicted) - allowed
            n = int(np.argmax(excess))
            if not excess[n] <= 0.0:
                raise InvalidInput(
                    f"{model.name}: the values of row {rows.labels.row(n)!r} add up "
                    f"to {of_output[n]:.6g}, and the model predicts "
                    f"{predicted[n]:.6g} ({function.quantity}); the trees are not "
                    "those that predict, as after refitting the model: make the "
                    "explainer again, or give check_additivity=False"
                )

    def _interactions(self, rows: _Rows, tree_limit: int | None) -> list[Array]:
        """Interactions of rows (N, D, D) of each output."""
        return [
            with_halves(game.pairs(rows.points), game.values(rows.points, rows.y))
            for game in self._games(rows.model, tree_limit)
        ]


@final
@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows to explain, with the model for their categories."""

    table: ShapTable
    model: TreeModel
    points: Points  # (N, D)
    labels: Labels
    y: Array  # (N,)


# ---- Arguments


def refuse_link(link: Any) -> None:
    """Refuse links, which ``shap`` accepts and mostly ignores."""
    if link is not None and getattr(link, "__name__", "") != "identity":
        raise InvalidInput(
            "link: values are in the units of the output, which has no other link; "
            "leave it out"
        )


def background_of(data: Any) -> tuple[Any, Values | None]:
    """The rows of a background and their weights, from tables and maskers."""
    if is_a(data, "shap.DenseData"):
        weights = np.asarray(data.weights, np.float64)
        rows = pd.DataFrame(data.data, columns=list(data.group_names))
        return rows, weights / weights.sum()
    if not is_a(data, "shap.Masker"):
        return data, None
    if not is_a(data, "shap.Independent") or data.clustering is not None:
        raise InvalidInput(
            f"data: {class_name_of(data)} groups or imputes columns; expected a table, "
            "or shap.maskers.Independent"
        )
    names = data.feature_names
    return data.data if names is None else pd.DataFrame(data.data, columns=names), None


def _perturbation(given: str, rows: Any) -> str:
    """The kind of values: interventional or path-dependent."""
    if given == "interventional" and rows is None:
        warnings.warn(
            "feature_perturbation='interventional' needs data, the background rows; "
            "without them values are path-dependent",
            FutureWarning,
            stacklevel=3,
        )
    if rows is None:
        return "tree_path_dependent"
    return "interventional" if given == "auto" else given
