"""The inductive explainer, a scikit-learn estimator."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from propopt.base.arrays import Array, Attributions, Points
from propopt.base.checks import read_count, read_option, read_rng
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import NextSteps, suggests_arguments
from propopt.functions import Function
from propopt.functions.function import read_function
from propopt.inductive.bases import read_features
from propopt.inductive.inputs import (
    read_inducing,
    read_inputs,
    read_kernel,
)
from propopt.inductive.means import MeanName, read_mean
from propopt.inductive.model import (
    CriterionName,
    Prior,
    WeightPair,
    read_weights,
    tuned,
)
from propopt.proofs.optimum import Parameter
from propopt.results.explanation import Explanation
from propopt.tables.frames import Labels, is_frame
from propopt.tables.imported import aligned, read_attributions
from propopt.tables.schema import ColumnScale


# ---- Sources of randomness


RandomSource: TypeAlias = int | np.random.Generator | np.random.RandomState | None
"""Types of ``random_state``."""


def read_random_state(random_state: object) -> np.random.Generator:
    """The generator of a seed, None (seed 0), a ``RandomState`` or a ``Generator``."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return read_rng(random_state, "random_state")


# ---- Targets at the inputs: gradients, given or computed, or other values


def read_targets(
    y: object,
    gradients: object,
    function: object,
    X: Any,
    labels: Labels,
    shape: tuple[int, int],
) -> tuple[Attributions, Labels]:
    """Targets (N, T) from ``y``, ``gradients`` or ``function``, and their names."""
    n_given = sum(source is not None for source in (y, gradients, function))
    if n_given == 0:  # begins like the message of scikit-learn
        raise InvalidInput(
            "fit: requires y to be passed, but the target y is None; give y, or either "
            "gradients or function="
        )
    if n_given > 1:
        raise InvalidInput("fit: expected exactly one of y, gradients and function")
    if y is None:
        source = gradients if function is None else read_function(function)
        values = read_gradients(source, X, labels, shape)
    else:
        labels = _labels_of(y, labels, shape)
        values = aligned(y, labels, "gradients", "X")
    if len(values) != shape[0]:
        _refuse_shape(values, shape)
    return values, labels


def read_gradients(
    source: object, X: Any, labels: Labels, shape: tuple[int, ...]
) -> Attributions:
    """Gradients at X, given or from a function, with columns in the order of X."""
    if isinstance(source, Function):
        source = source.gradient(X if is_frame(X, "X") else np.asarray(X))
    G = aligned(source, labels, "gradients", "X")
    if G.shape != shape:
        _refuse_shape(G, shape)
    return G


def _labels_of(y: object, labels: Labels, shape: tuple[int, int]) -> Labels:
    """Names of rows and targets: those of X, unless y has other targets.

    Targets are others if their number differs and they share no name with columns of X.
    """
    imported = read_attributions(y, "gradients")
    values = imported.values
    target_labels = imported.labels
    names = (
        None
        if target_labels.columns == tuple(range(values.shape[1]))
        else target_labels.features
    )
    shared = set(names or ()) & set(labels.features or ())
    if values.shape[1] == shape[1] or shared:
        return labels
    return replace(labels, features=names, columns=None)


def _refuse_shape(G: Attributions, shape: tuple[int, ...]) -> None:
    raise InvalidInput(f"gradients: expected shape {shape} as X, got {G.shape}")


# ---- The estimator


# scikit-learn's classes have no types
@final
@suggests_arguments
class GaussianProcessExplainer(
    NextSteps,
    MultiOutputMixin,  # type: ignore[misc]  # scikit-learn has no types
    RegressorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Explain new inputs from gradients at observed inputs by a Gaussian process.

    The explanation E(x) is the posterior mean given gradients at N inputs (Tadesse et
    al. 2024, Eq. 5-9). It equals the row of x if x is appended to these inputs without
    a gradient, and Σ_n ‖w_n − ∇f(x_n)‖² + w_r KernelRobustness + w_s Smoothness is
    minimized over all N + 1 rows (Proposition 1). So weights have the same meaning as
    in :func:`propopt.solve`.

    In the eigenbasis of the features, with ς_j the eigenvalues of smoothness, p_j = 1 +
    w_s ς_j, λ = 2 w_r, κ = k(X, x)/λ and A_j = K/λ + I/p_j: the kriging mean m_j =
    κᵀA_j⁻¹ ĝ_j/p_j and variance v_j = k(x, x)/λ − κᵀA_j⁻¹κ (both modified if a
    constant is integrated out) give E_j = m_j/(1 + w_s ς_j v_j), of variance v_j/(1 +
    w_s ς_j v_j).

    Parameters
    ----------
    robustness : float
        w_r > 0, weight of :class:`propopt.losses.KernelRobustness`.
    smoothness : float
        w_s ≥ 0, weight of :class:`propopt.Smoothness`; above zero it needs
        ``features``.
    features : Graph, ImageShape, FeatureBasis, array (D, D) or None
        Similar features: a graph, with the loss Smoothness(graph); a kernel matrix K_s,
        with the loss 2 tr(W K_s⁻¹ Wᵀ); or the shape of images, with
        Smoothness(shape.pixel_graph()) and without forming a matrix.
    kernel : {"gaussian", "matern"} or scikit-learn kernel
        k; Matérn with ν = 5/2.
    lengthscale : float, optional
        Length scale of a kernel given by name; by default the median distance of
        distinct points.
    mean : {"per_feature", "none", "common"}
        The constant c that robustness subtracts from w_n: one for each feature (as
        ``KernelRobustness(K)``), none (as ``KernelRobustness(K, mean="none")``), or the
        same number for all features (μ of the paper).
    jitter : float
        Added to the diagonal of K, also for new points. Zero is possible, as K may be
        singular.
    inducing : InducingRule, array (M, D) or None
        Inducing inputs for many observations; None uses all observations.
    scale : "std", None, mapping or array (D,)
        Scales that columns are divided by in distances; None does not scale. If
        ``function`` has a schema, categories are one-hot over √2, see
        :meth:`propopt.functions.TableSchema.coordinates`.
    optimize : {"marginal_likelihood"} or None
        Fit the kernel's hyper-parameters and the positive weights to the gradients,
        from the given and two other starting points; needs ``inducing=None``.
    random_state : int, numpy.random.Generator, RandomState or None
        Seed for inducing inputs; None is seed 0.

    Attributes
    ----------
    robustness_, smoothness_ : float
        The weights in use.
    kernel_ : scikit-learn kernel
        The kernel in use.
    inducing_inputs_ : array (M, C)
        Z, in scaled coordinates.
    n_features_in_ : int
        D.
    feature_names_in_ : array (D,)
        Names of the columns, if X has names.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.linspace(-1.0, 1.0, 9)[:, None]
    >>> explainer = po.inductive.GaussianProcessExplainer(robustness=1e-4)
    >>> explainer = explainer.fit(X, gradients=2 * X)
    >>> explanation = explainer.explain([[0.3], [5.0]], return_std=True)
    >>> explanation.attributions[0].round(2)
    array([0.6])
    >>> bool(explanation.details["standard_deviation"][1] > 10)  # far from all of X
    True

    As an estimator of scikit-learn, with gradients as targets:

    >>> from sklearn.model_selection import GridSearchCV
    >>> grid = {"robustness": [1e-4, 1e4]}
    >>> search = GridSearchCV(po.inductive.GaussianProcessExplainer(), grid, cv=3)
    >>> search.fit(X, 2 * X).best_params_
    {'robustness': 0.0001}
    """

    _next_steps = "print(explainer.explain(X))"

    robustness_: float
    smoothness_: float
    kernel_: Any
    inducing_inputs_: Points

    def __init__(
        self,
        robustness: float = 1.0,
        smoothness: float = 0.0,
        *,
        features: object = None,
        kernel: object = "gaussian",
        lengthscale: float | None = None,
        mean: MeanName = "per_feature",
        jitter: float = 0.0,
        inducing: object = None,
        scale: ColumnScale = None,
        optimize: CriterionName | None = None,
        random_state: RandomSource = None,
    ) -> None:
        self.robustness = robustness
        self.smoothness = smoothness
        self.features = features
        self.kernel = kernel
        self.lengthscale = lengthscale
        self.mean = mean
        self.jitter = jitter
        self.inducing = inducing
        self.scale = scale
        self.optimize = optimize
        self.random_state = random_state

    def fit(
        self,
        X: object,
        y: object = None,
        *,
        gradients: object = None,
        function: object = None,
    ) -> Self:
        """Condition the Gaussian process on gradients, or other targets, at X.

        Named rows and columns are sorted in the order of X.

        Parameters
        ----------
        X : array or DataFrame (N, D)
            The inputs.
        y : array, DataFrame or Explanation (N, T), optional
            Targets in rows: ∇f(x_n), or attributions of T ≠ D other features, such as
            groups of columns; ``features`` then refers to these.
        gradients : array, DataFrame or Explanation (N, D), optional
            ∇f(x_n), in rows, instead of y; they must have the shape of X.
        function : Function, optional
            f, instead of its gradients.

        Returns
        -------
        GaussianProcessExplainer
            The fitted explainer.

        Raises
        ------
        InvalidInput
            If an argument or a parameter is invalid.
        """
        self._has_schema = isinstance(function, Function) and (
            function.schema is not None
        )
        self._validate(X, reset=True, skip_check_array=self._has_schema)
        inputs, points, labels = read_inputs(X, function, self.scale)
        shape = len(points), inputs.n_features
        values, targets = read_targets(y, gradients, function, X, labels, shape)
        rule = read_inducing(self.inducing)
        rng = read_random_state(self.random_state)
        prior = self._prior(points, values)
        if self.optimize is not None:
            read_option(self.optimize, CriterionName, "optimize")
            if rule is not None:
                raise InvalidInput(
                    "optimize: expected inducing=None; optimize without inducing "
                    "inputs on some of the points, then use the optimized parameters "
                    "for all"
                )
            prior = tuned(prior)
        self._inputs = inputs
        self._targets = targets
        self._process = process = prior.condition(rule, rng)
        process.with_weights(prior.weights)  # refuses a singular system
        self.robustness_, self.smoothness_ = prior.weights
        self.kernel_ = prior.kernel.function
        self.inducing_inputs_ = process.state.inducing
        self._settings: dict[str, Parameter] = {
            "mean": self.mean,
            "kernel": str(self.kernel_),
            "jitter": float(self.jitter),
            "n_inducing": len(self.inducing_inputs_),
        }
        return self

    def explain(
        self,
        X_new: object,
        return_std: bool = False,
        gradients: object = None,
    ) -> Explanation:
        """Explain each new input by the fitted process, without the other new ones.

        Parameters
        ----------
        X_new : array or DataFrame (m, D)
            New inputs. Explanations do not depend on the other new inputs.
        return_std : bool
            Also compute ``details["standard_deviation"]`` (m, D) of the posterior.
        gradients : array (m, D), Function or None
            Gradients at the new inputs, as additional observations of unit variance,
            each for the same input only.

        Returns
        -------
        Explanation
            With ``method="gaussian_process"``.

        Raises
        ------
        InvalidInput
            If an argument is invalid.
        sklearn.exceptions.NotFittedError
            Before :meth:`fit`.
        """
        check_is_fitted(self)
        return self.explain_path(X_new, [self._weights], return_std, gradients)[0]

    def explain_path(
        self,
        X_new: object,
        weights: Iterable[WeightPair],
        return_std: bool = False,
        gradients: object = None,
    ) -> list[Explanation]:
        """Explain new inputs for many weights, from one eigendecomposition.

        Each costs O(M·m·D) for m new inputs, like one product of matrices. Inducing
        inputs are those of :meth:`fit`.

        Parameters
        ----------
        X_new, return_std, gradients
            As for :meth:`explain`.
        weights : iterable of pairs
            (robustness, smoothness).

        Returns
        -------
        list of Explanation
            One for each pair, in order.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> X = np.linspace(-1.0, 1.0, 9)[:, None]
        >>> explainer = po.inductive.GaussianProcessExplainer().fit(X, 2 * X)
        >>> path = explainer.explain_path([[0.5]], [(1e-4, 0.0), (1e4, 0.0)])
        >>> [round(float(each.attributions[0, 0]), 2) + 0.0 for each in path]
        [1.0, 0.0]
        """
        check_is_fitted(self)
        start = time.perf_counter()
        points, rotated, labels = self._read(X_new, gradients)
        pairs = [read_weights(pair, self._process.basis) for pair in weights]
        results = self._process.explanations(points, rotated, pairs, return_std)
        seconds = (time.perf_counter() - start) / max(1, len(pairs))
        return [
            self._explanation(W, pair, labels, seconds, details)
            for pair, (W, details) in zip(pairs, results, strict=True)
        ]

    def predict(self, X: object) -> Array:
        """Attributions (m, D) of rows X (m, D) as an array, see :meth:`explain`."""
        check_is_fitted(self)
        self._validate(X, reset=False, skip_check_array=self._has_schema)
        return np.array(self.explain(X).attributions)

    def sample(
        self,
        X_new: object,
        n_samples: int = 1,
        random_state: RandomSource = None,
        gradients: object = None,
    ) -> Array:
        """Draw attributions from the posterior, shape (n_samples, m, D).

        Features of one input are correlated, by the posterior of that input. Different
        inputs are drawn independently, so that samples are not functions of x.

        Parameters
        ----------
        X_new, gradients
            As for :meth:`explain`.
        n_samples : int
            Number of samples.
        random_state : int, numpy.random.Generator, RandomState or None
            Seed of the draws; None is seed 0.

        Returns
        -------
        array (n_samples, m, D)
            Attributions, in the units of the targets of :meth:`fit`.

        Raises
        ------
        InvalidInput
            If an argument is invalid.
        sklearn.exceptions.NotFittedError
            Before :meth:`fit`.
        """
        count = read_count(n_samples, "n_samples")
        rng = read_random_state(random_state)
        check_is_fitted(self)
        points, rotated, _ = self._read(X_new, gradients)
        return self._process.draws(points, rotated, self._weights, count, rng)

    def _prior(self, points: Points, gradients: Attributions) -> Prior:
        basis = read_features(self.features, gradients.shape[1])
        return Prior(
            points=points,
            rotated=basis.rotate(gradients),
            basis=basis,
            mean=read_mean(self.mean, basis),
            kernel=read_kernel(self.kernel, self.lengthscale, points, self.jitter),
            weights=read_weights((self.robustness, self.smoothness), basis),
        )

    @property
    def _weights(self) -> WeightPair:
        return self.robustness_, self.smoothness_

    def _read(
        self, X_new: object, gradients: object
    ) -> tuple[Points, Array | None, Labels]:
        """Coordinates of new inputs, their rotated gradients, and names of targets."""
        points, labels = self._inputs.read(X_new, "X_new")
        basis = self._process.basis
        rotated = None
        if basis.n_features != self._inputs.n_features:
            labels = replace(self._targets, points=labels.points)
        if gradients is not None:
            shape = len(points), basis.n_features
            rotated = basis.rotate(read_gradients(gradients, X_new, labels, shape))
        return points, rotated, labels

    def _explanation(
        self,
        W: Attributions,
        weights: WeightPair,
        labels: Labels,
        seconds: float,
        details: Mapping[str, Array],
    ) -> Explanation:
        robustness, smoothness = weights
        return Explanation(
            attributions=W,
            method="gaussian_process",
            labels=labels,
            parameters={
                "robustness": robustness,
                "smoothness": smoothness,
                **self._settings,
            },
            seconds=seconds,
            details=details,
        )

    def _validate(self, X: object, **how: bool) -> None:
        """Set or compare ``n_features_in_`` and names of columns by scikit-learn."""
        if sp.issparse(X):
            return  # refused later
        # scikit-learn refuses names of which only some are text
        is_text = {isinstance(name, str) for name in getattr(X, "columns", ())}
        table: Any = np.asarray(X) if len(is_text) == 2 else X
        try:
            # NaN is refused later
            validate_data(self, table, ensure_all_finite="allow-nan", **how)
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            if isinstance(error, TypeError) and isinstance(table, np.ndarray):
                raise  # as scikit-learn's estimator checks require
            raise InvalidInput(f"X: {error}") from None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False  # targets are tables (N, T)
        return tags
