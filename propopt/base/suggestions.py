"""Names from other libraries, and suggestions for what to write instead."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature, unwrap
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    TypeAlias,
    TypeVar,
    cast,
)

import lazy_loader

from propopt.base.checks import did_you_mean
from propopt.base.errors import NoSuchName, UnknownArgument


NameKind: TypeAlias = Literal["explanation", "explainer", "estimator", "name", "key"]
"""Attributes of results, explainers and estimators, names in modules, and keys of
problem files."""

_BACKGROUND: Final = ("data=, the table of background rows",)
_OUTPUT: Final = ("output=, such as output='probability'",)
_SAMPLING: Final = "sampling=po.Sampling(...), which has it"
_NEAREST: Final = "graph=po.graphs.Nearest(...), which has it"
_SEED: Final = (
    "rng=, a seed",
    "random_state=, a seed",
    "sampling=po.Sampling(rng=0), a seed",
)
_DRAWS: Final = (
    "n_samples=",
    "n_patches=",
    "max_evaluations=, the most rows that the model is given; models that are "
    "computed exactly need no samples",
    "sampling=po.Sampling(max_evaluations=...), the most rows that the model is given; "
    "models that are computed exactly need no samples",
    "nothing, models that are computed exactly need no samples",
)
_CATEGORIES: Final = ("data=po.functions.TableSchema.of(X, categorical=[...])",)
_CLASS: Final = ("target=, one class at a time",)
_WEIGHT: Final = (
    "robustness=, or po.solve of losses with weights",
    "a number before a loss, as in po.GradientMatching(G) + 0.5 * po.Sparsity()",
)
_PRECISION: Final = ("tolerance=, the certified gap that is wanted", "precision=")
_QUIET: Final = ("progress=", "nothing, warnings report problems")
_TO_SHAP: Final = "shap.plots of best.to_shap()"
_ROWS: Final = "explain(X), with one row or more"
_FRAME: Final = "to_frame(), a table with a column for each feature"
_BASE: Final = "base_value, of po.explain(..., kind='contributions')"

Meaning = TypeVar("Meaning")


def _by_word(*groups: tuple[str, Meaning]) -> dict[str, Meaning]:
    """The suggestion for each word of several groups."""
    return {word: meaning for words, meaning in groups for word in words.split()}


ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = _by_word(
    ("background background_data masker training_data", _BACKGROUND),
    ("unit units model_output", _OUTPUT),
    ("link", ("output=, such as output='log_odds'",)),
    (
        "feature_names",
        (
            "columns=",
            "features=",
            "DataFrames, whose columns have the names",
        ),
    ),
    ("class_names", ("outcome=, a name for each class, and target=, a class",)),
    ("class_index labels top_labels", _CLASS),
    ("num_features", ("nothing, all columns are explained; see best.top()",)),
    ("categorical categorical_features", _CATEGORIES),
    ("n_neighbors n_reference same_pattern neighbors", (_NEAREST,)),
    ("precision max_evaluations batch_rows rng", (_SAMPLING,)),
    ("interactions", ("scores.noted_in(best), of the scores",)),
    (
        "kernel_width",
        ("law=po.lime.TabularLaw.from_data(X, kernel_width=...), of po.lime.limits",),
    ),
    ("n_bins", ("law=po.lime.TabularLaw.from_data(X, n_bins=...), of po.lime.limits",)),
    ("num_samples nsamples npermutations", _DRAWS),
    ("n_samples", _DRAWS[1:]),
    ("n_estimators", ("scheme=po.interactions.Minipatches(n_patches=...)",)),
    ("l1_reg", ("po.Sparsity, a loss of po.solve",)),
    ("weight weights alpha lambda_ lambd lam", _WEIGHT),
    ("solver", ("po.solve(objective, solver)",)),
    ("constraints", ("subject_to=, as in subject_to=[loss <= 1.0]",)),
    ("eps abstol reltol max_iter max_iters", _PRECISION),
    ("verbose silent", _QUIET),
    ("show", ("nothing, plots take ax=, and plt.show() shows them",)),
    ("check_additivity", ("nothing, contributions add up to the prediction",)),
    ("feature_perturbation", ("nothing, values are interventional, against data=",)),
    ("random_state seed", _SEED),
    ("long", ("nothing, to_frame().stack() has a line for each number",)),
    ("n num n_features", ("k=, a number",)),
)
"""Suggestions by argument; the first that the function accepts is used."""

WORDS: Final[Mapping[NameKind, Mapping[str, str]]] = {
    "explanation": _by_word(
        (
            "values shap_values W local_exp as_map",
            "attributions, or to_frame() with names",
        ),
        ("abs", "top(), mean absolute attributions by column"),
        ("base_values expected_value intercept", _BASE),
        ("feature_names columns", "labels.features, or the columns of to_frame()"),
        ("as_list to_pandas to_dataframe", _FRAME),
        ("head", "to_frame().head()"),
        (
            "loc iloc rows select take subset",
            "best[rows] of an explanation, to_frame().iloc[rows] of others",
        ),
        ("summary show report", "print(best), or to_html(path), a page"),
        ("to_numpy", "attributions, an array (N, D)"),
        ("to_dict", "to_frame().to_dict('index')"),
        ("importance feature_importances_ sort_values", "top(), columns by size"),
        ("as_pyplot_figure waterfall force_plot", "plot.waterfall(row)"),
        ("summary_plot beeswarm bar", "plot()"),
        ("show_in_notebook", "the explanation as the last line of a cell"),
        (
            "status",
            "gap, the certified share by which a better explanation could exist",
        ),
        ("value", "objective, a number, and attributions, the minimizer"),
        ("dual_value", "multipliers, of bounds by name"),
        ("solver_stats", "solver, seconds and gap"),
        ("predict", "prediction, of each row, or the model's own predict"),
        ("score", "losses, the value of each"),
        (
            "certain shares measured certified",
            "explainer.explain(rows), of some rows in memory, which has it",
        ),
    ),
    "explainer": _by_word(
        ("shap_values transform", "explain(X).attributions"),
        ("expected_value", "po.explain(...).base_value"),
        ("explain_instance explain_row explain_local", _ROWS),
        ("fit_transform", "fit(), and explain(X).attributions"),
        ("predict", "explain(X).prediction, or the model's own predict"),
        ("result_ results_", "explain(X), or reference_, of the reference rows"),
    ),
    "estimator": _by_word(
        ("results_ results result scores", "result_, which fit(X, y) computes"),
        ("summary show report to_frame", "result_.to_frame(), or print(iloco.result_)"),
        ("feature_importances_", "main_effects_.to_frame()"),
    ),
    "name": _by_word(
        ("waterfall force force_plot plot_row", "best.plot.waterfall(row)"),
        ("beeswarm summary_plot violin bar", "best.plot()"),
        ("scatter dependence dependence_plot", "best.plot.scatter(feature)"),
        ("decision_plot decision heatmap plot_heatmap", _TO_SHAP),
        (
            "metrics",
            "metrics of quantus, with po.explainers.quantus_explain_func("
            "explainer.explain)",
        ),
        ("text highlight", "best.plot.text(documents)"),
        ("image image_plot plot_image_maps", "best.plot.images(shape)"),
        ("partial_dependence", "sklearn.inspection.PartialDependenceDisplay"),
        ("Robustness", "po.PairwiseRobustness, or another loss of po.losses"),
        ("Faithfulness", "po.GradientMatching, or another loss of po.losses"),
        (
            "load",
            "po.results.Explanation.load(path), or load of another class of results; "
            "po.Explainer.load(path, model) of explainers",
        ),
        ("TreeExplainer", "po.shap.TreeExplainer, or po.explain"),
        ("KernelExplainer PermutationExplainer", "po.explain, or po.explainers.Shap"),
        ("LinearExplainer ExactExplainer", "po.explain, or po.explainers.ExactShap"),
        ("GradientExplainer DeepExplainer", "po.explain, or po.explainers.Gradient"),
        (
            "LimeTabularExplainer lime_tabular",
            "po.lime.limits, or po.lime.LimeExplainer",
        ),
        ("LimeTextExplainer lime_text", "po.lime.text_limits"),
        ("maskers", "data=, the table of background rows, of po.explain"),
        ("shap_values", "po.explain(model, X, data=...).attributions"),
        ("Minimize Maximize", "po.solve(objective), which minimizes"),
        ("Problem", "po.solve(objective), or cp.Problem of loss(W) in cvxpy"),
        (
            "Variable",
            "po.solve(objective), or loss(W) of W = cp.Variable(...) in cvxpy",
        ),
        ("Parameter", "loss * p of p = cp.Parameter(nonneg=True) in cvxpy"),
        ("norm1", "po.Sparsity, or po.losses.Custom(lambda W: cp.norm1(W))"),
        ("minimize", "po.solve(objective)"),
    ),
    "key": _by_word(
        (
            "robustness",
            "pairwise_robustness, kernel_robustness or max_difference_robustness",
        ),
        ("faithfulness", "gradient_matching or function_matching"),
        ("background", "data, the table of background rows"),
        ("unit units", "output"),
    ),
}
"""Suggestions by kind and name."""


def suggestion(kind: NameKind, word: object) -> str:
    """The end of a message with a suggestion for a name of another library, or ""."""
    meaning = WORDS[kind].get(str(word))
    return "" if meaning is None else f"; instead: {meaning}"


def suggested_argument(word: str, names: Sequence[str]) -> str:
    """A suggestion for an unknown argument: of another library, or a similar name."""
    for meaning in ARGUMENTS.get(word, ()):
        argument, sign, _ = meaning.partition("=")
        if not (sign and argument.isidentifier()) or argument in names:
            return f"; instead: {meaning}"
    return did_you_mean(word, names)


def missing_attribute(
    owner: object, name: str, kind: NameKind | None
) -> AttributeError:
    """The error for a missing attribute, with a suggestion if there is one."""
    called = type(owner).__name__
    if kind is not None and name in WORDS[kind]:
        return NoSuchName(f"{called} has no {name!r}{suggestion(kind, name)}")
    return AttributeError(f"{called!r} object has no attribute {name!r}")


def missing_module_name(
    module: str, name: str, names: Sequence[str], error: Exception | None = None
) -> AttributeError:
    """The error for a missing name of a module, with a suggestion."""
    if name.startswith("_"):  # Python looks for these itself
        return AttributeError(error or f"module {module!r} has no attribute {name!r}")
    meaning = suggestion("name", name) or did_you_mean(name, names)
    return NoSuchName(f"{module} has no {name!r}{meaning}")


def suggesting_getattr(
    module: str, names: Sequence[str], load: Callable[[str], object] | None = None
) -> Callable[[str], object]:
    """A module's ``__getattr__`` that loads names lazily and makes suggestions."""

    def loaded(name: str) -> object:
        if load is None:
            raise missing_module_name(module, name, names)
        try:
            return load(name)
        except AttributeError as error:
            raise missing_module_name(module, name, names, error) from None

    return loaded


def lazy_names(
    module: str, name: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, by its stub.

    Each name is imported when it is first used, and unknown ones get suggestions.
    """
    load, names_of, names = lazy_loader.attach_stub(name, file)
    return suggesting_getattr(module, names, load), names_of, names


class NextSteps:
    """An estimator of scikit-learn that, printed, says what to ask of it next."""

    _next_steps: ClassVar[str]

    def __str__(self) -> str:
        is_fitted = any(name.endswith("_") for name in vars(self))
        return f"{self!r}; next: {self._next_steps if is_fitted else 'fit(X, y)'}"

    if not TYPE_CHECKING:  # __getattr__ would hide missing names from type checkers

        def __getattr__(self, name: str) -> Any:
            if name in WORDS["estimator"]:
                raise missing_attribute(self, name, "estimator")
            return self.__getattribute__(name)  # its own error


Called = TypeVar("Called", bound=Callable[..., Any])


def suggests_arguments(called: Called) -> Called:
    """Make a function, or the constructor of a class, suggest arguments on errors."""
    if isinstance(called, type):
        kind: Any = called
        if "__new__" in vars(kind):
            kind.__new__ = staticmethod(_checked(kind.__new__, kind.__name__))
            return called
        kind.__init__ = _checked(unwrap(kind.__init__))
        return called
    return cast(Called, _checked(called, getattr(called, "__name__", "")))


def _checked(function: Any, name: str = "") -> Any:
    """The function with suggestions; without ``name`` it is an ``__init__``."""

    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except TypeError:
            reason = _misfit(function, args, named)
            if reason is None:
                raise
        raise UnknownArgument(f"{name or type(args[0]).__name__}: {reason}")

    return checked


def _misfit(function: Any, args: tuple[Any, ...], named: Any) -> str | None:
    """Why arguments do not match a signature; None if they match."""
    if function is object.__init__:
        function = _takes_nothing
    accepted = signature(function)
    try:
        accepted.bind(*args, **named)
    except TypeError as error:
        reason = str(error)
    else:
        return None
    bound = {"self", "cls"}.intersection(accepted.parameters)
    kinds = {
        key: one.kind for key, one in accepted.parameters.items() if key not in bound
    }
    names = [key for key, kind in kinds.items() if kind is not Parameter.VAR_KEYWORD]
    positional = [key for key in names if kinds[key] is not Parameter.KEYWORD_ONLY]
    given = args[1:] if bound else args
    for word in named:
        if word not in names and len(names) == len(kinds):
            reason = f"has no argument {word!r}{suggested_argument(word, names)}"
            break
    else:
        if len(given) > len(positional):
            extra = reprlib.repr(given[len(positional)])
            reason = f"got {extra} as argument {len(positional) + 1}, and has "
            reason += f"{len(positional) or 'none'} without a name"
            reason += getattr(type(args[0]), "_too_many", "")
    return f"{reason}; expected one of: {', '.join(names) or 'none'}"


def _takes_nothing(self: Any) -> None:
    """The signature of a class without ``__init__``."""
