"""Words of other libraries, by kind, and what is meant by them here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, wraps
from inspect import Parameter, signature
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from propopt.base.checks import did_you_mean
from propopt.base.errors import NoSuchName, UnknownArgument


WordKind: TypeAlias = Literal["argument", "explanation", "explainer", "name", "key"]
"""Arguments of calls, attributes of results and of explainers, names of modules, and
keys of problem files."""

_BACKGROUND: Final = "data=, the table of background rows"
_DRAWS: Final = (
    "max_evaluations=, the most rows that the model is given; models that are read "
    "need no samples"
)
_CATEGORIES: Final = "data=po.functions.TableSchema.of(X, categorical=[...])"
_ROWS: Final = "explain(X), with one row or more"

WORDS: Final[Mapping[WordKind, Mapping[str, str]]] = {
    "argument": {
        "background": _BACKGROUND,
        "background_data": _BACKGROUND,
        "masker": _BACKGROUND,
        "training_data": _BACKGROUND,
        "unit": "output=, such as output='probability'",
        "units": "output=, such as output='probability'",
        "model_output": "output=, such as output='probability'",
        "link": "output=, such as output='log_odds'",
        "feature_names": "X and data as DataFrames, whose columns have the names",
        "class_names": "outcome=, the name of what is predicted, and target=, a class",
        "categorical": _CATEGORIES,
        "categorical_features": _CATEGORIES,
        "n_neighbors": "po.Explainer(model, data=X, n_neighbors=...)",
        "kernel_width": "law=po.lime.TabularLaw.from_data(X, kernel_width=...), "
        "of po.lime.limits",
        "n_bins": "law=po.lime.TabularLaw.from_data(X, n_bins=...), of po.lime.limits",
        "num_samples": _DRAWS,
        "nsamples": _DRAWS,
        "n_samples": _DRAWS,
        "l1_reg": "po.Sparsity, a loss of po.solve",
        "check_additivity": "nothing: contributions add up to the prediction",
        "feature_perturbation": "nothing: values are interventional, against data=",
        "random_state": "rng=, a seed",
        "seed": "rng=, a seed",
    },
    "explanation": {
        "values": "attributions, or to_frame() with names",
        "shap_values": "attributions, or to_frame() with names",
        "base_values": "base_value, of po.explain(..., kind='contributions')",
        "expected_value": "base_value, of po.explain(..., kind='contributions')",
        "feature_names": "labels.features, or the columns of to_frame()",
        "as_list": "to_frame(), a table with a column for each feature",
        "plot": "po.plots.plot_row(best, row), or po.plots.plot_heatmap(best)",
        "show_in_notebook": "the explanation as the last line of a cell",
    },
    "explainer": {
        "shap_values": "explain(X).attributions",
        "expected_value": "po.explain(...).base_value",
        "explain_instance": _ROWS,
        "explain_row": _ROWS,
    },
    "name": {
        "waterfall": "po.plots.plot_row, or shap.plots.waterfall of best.to_shap(X)",
        "force": "po.plots.plot_row, or shap.plots.force of best.to_shap(X)",
        "bar": "po.plots.plot_row, or shap.plots.bar of best.to_shap(X)",
        "beeswarm": "po.plots.plot_heatmap, or shap.plots.beeswarm of best.to_shap(X)",
        "summary_plot": "po.plots.plot_heatmap, or shap.plots of best.to_shap(X)",
        "Robustness": "po.PairwiseRobustness, or another loss of po.losses",
        "Faithfulness": "po.GradientMatching, or another loss of po.losses",
        "load": "po.results.Explanation.load, or load of another class of po.results",
        "TreeExplainer": "po.explain, or po.explainers.TreeShap",
        "KernelExplainer": "po.explain, or po.explainers.Shap",
        "LimeTabularExplainer": "po.lime.limits, or po.lime.LimeExplainer",
    },
    "key": {
        "robustness": "pairwise_robustness, kernel_robustness or "
        "max_difference_robustness",
        "faithfulness": "gradient_matching or function_matching",
        "background": "data, the table of background rows",
        "unit": "output",
        "units": "output",
    },
}
"""By kind: what is asked for, and what would do."""


def meant_by(kind: WordKind, word: object) -> str:
    """What a word of another library means here, behind a sentence; else nothing."""
    meaning = WORDS[kind].get(str(word))
    return "" if meaning is None else f"; what would do: {meaning}"


def no_such_name(owner: object, name: str, kind: WordKind | None) -> AttributeError:
    """The error of an attribute that is not there, which other packages may have."""
    called = type(owner).__name__
    if kind is not None and name in WORDS[kind]:
        return NoSuchName(f"{called} has no {name!r}{meant_by(kind, name)}")
    return AttributeError(f"{called!r} object has no attribute {name!r}")


def no_name_of_module(module: str, name: str, error: AttributeError) -> AttributeError:
    """The error of a name that a module has not, which other packages may have."""
    if name not in WORDS["name"]:
        return error
    return NoSuchName(f"{module} has no {name!r}{meant_by('name', name)}")


Called = TypeVar("Called", bound=Callable[..., Any])


def knows_other_words(called: Called) -> Called:
    """Have a function or class refuse unknown arguments in words of ours.

    Of a class this is its ``__init__``; it stays the same class.
    """
    if isinstance(called, type):
        own: Any = called
        own.__init__ = _checked(own.__init__, called.__name__)
        return called
    return cast(Called, _checked(called, getattr(called, "__name__", "")))


def _checked(function: Any, name: str) -> Any:
    @cache
    def known() -> tuple[str, ...] | None:
        own = signature(function).parameters
        if any(one.kind is Parameter.VAR_KEYWORD for one in own.values()):
            return None
        return tuple(one for one in own if one not in ("self", "cls"))

    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        names = known() if named else None
        for word in () if names is None else named:
            if names is not None and word not in names:
                meaning = meant_by("argument", word) or did_you_mean(word, names)
                raise UnknownArgument(
                    f"{name}: has no argument {word!r}{meaning}; known here: "
                    f"{', '.join(names)}"
                )
        return function(*args, **named)

    return checked
