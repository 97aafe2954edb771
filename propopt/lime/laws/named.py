"""Sampling laws of LIME by their names in files and settings."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Literal, TypeAlias, get_args

from propopt.base.errors import InvalidInput
from propopt.base.extras import load_plugin, plugins
from propopt.lime.laws.binned_columns import BinWeights
from propopt.lime.laws.gaussian_law import GaussianLaw
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.tables.schema import TableSchema


LimeLawName: TypeAlias = Literal["tabular", "gaussian"]
"""Bins with weights by bits, or normal numbers with weights by distance."""


def law_names() -> tuple[str, ...]:
    """The names of all laws, including those of other packages (``propopt.laws``)."""
    names: tuple[str, ...] = get_args(LimeLawName)
    return (*names, *(name for name in plugins("propopt.laws") if name not in names))


def law_named(
    name: str,
    table: Any,  # shape (m, D)
    schema: TableSchema | None = None,
    *,
    n_bins: int = 4,
    weights: BinWeights = "frequency",
    kernel_width: float | None = None,
) -> LimeLaw:
    """The law with this name, made from a table."""
    factory = checked_law(name, n_bins, weights, kernel_width)
    settings = {"n_bins": n_bins, "weights": weights, "kernel_width": kernel_width}
    accepted = signature(factory).parameters
    law = factory(table, schema, **{k: v for k, v in settings.items() if k in accepted})
    if not isinstance(law, LimeLaw):
        raise InvalidInput(
            f"law: expected that {name!r} returns a LimeLaw, got a {type(law).__name__}"
        )
    return law


def checked_law(
    name: object, n_bins: int, weights: str, kernel_width: float | None
) -> Callable[..., Any]:
    """The factory of a law; refuses unknown names, and settings without effect."""
    factory: Callable[..., Any]
    if name not in law_names():
        names = ", ".join(map(repr, law_names()))
        raise InvalidInput(f"law: expected {names} or a law of po.lime, got {name!r}")
    if name == "tabular":
        factory = TabularLaw.from_data
    elif name == "gaussian":
        factory = GaussianLaw.from_data
    else:
        factory = load_plugin(plugins("propopt.laws")[str(name)])
    accepted = signature(factory).parameters
    for setting, value, default in (
        ("n_bins", n_bins, 4),
        ("weights", weights, "frequency"),
        ("kernel_width", kernel_width, None),
    ):
        if value != default and setting not in accepted:
            raise InvalidInput(
                f"{setting}: leave it out, as law={name!r} has no such setting"
            )
    return factory
