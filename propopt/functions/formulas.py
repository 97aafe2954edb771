"""Functions by formulas: separable ones, those of the paper, those of columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final, final

import numpy as np

from propopt.base.arrays import Array, Attributions, Points, Positions, Values
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.text import Reason
from propopt.base.words_of_others import knows_other_words
from propopt.functions.differences import DEFAULT_STEP
from propopt.functions.function import EXACT, Function, describe_step
from propopt.structures.products.families import CurveRule, Curves, Factors, Powers
from propopt.structures.products.sums import SumOfProducts
from propopt.structures.readers.kernel_products import quadratic_sum
from propopt.tables.frames import Labels


class ExactFormula(Function):
    """A function of any number of columns, with its exact gradient."""

    @property
    def gradient_method(self) -> str:
        """Always ``"exact"``."""
        return EXACT

    @property
    def products(self) -> Reason:
        """None, until the number of columns is known: see :meth:`products_in`."""
        return Reason(
            f"{self!r} takes any number of columns; products_in(n) tells of n of them"
        )

    def _value(self, points: Points, _: Labels, /) -> Values:
        with np.errstate(over="ignore", invalid="ignore"):  # reported by row, as errors
            return np.asarray(self._at(points))

    def _gradient(self, points: Points, _: Labels, /) -> Attributions:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self._slope(points))

    @abstractmethod
    def _at(self, points: Points) -> Values:
        """Values."""

    @abstractmethod
    def _slope(self, x: Array) -> Array:
        """Its gradient; of a sum over features φ′(x), entry by entry."""


class Separable(ExactFormula):
    """A sum over features of one function of one variable, f(x) = Σ_d φ(x_d)."""

    def products_in(self, n_columns: int) -> SumOfProducts | Reason:
        """Σ_d φ(x_d) of D columns."""
        terms = self._factors(np.arange(n_columns))
        return SumOfProducts.additive(0.0, np.ones(n_columns), terms, n_columns)

    def _factors(self, columns: Positions) -> Factors:
        """φ of columns."""
        n = len(columns)
        return Curves(columns, (self._quiet_term,) * n, (np.zeros(0),) * n)

    def _quiet_term(self, x: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return self._term(x)

    def _at(self, points: Points) -> Values:
        return np.asarray(self._term(points).sum(axis=1))

    @abstractmethod
    def _term(self, x: Array) -> Array:
        """φ(x), entry by entry."""


# ---- The functions that the experiments of the paper explain


@knows_other_words
@dataclass(frozen=True)
class Power(Separable):
    """A power of every feature, f(x) = Σ_d x_d^K.

    Parameters
    ----------
    degree : int
        The exponent K, at least 1.

    Examples
    --------
    >>> from propopt.functions import Power
    >>> Power(degree=2).gradient([[3.0, -1.0]])
    array([[ 6., -2.]])
    """

    degree: int

    def __post_init__(self) -> None:
        read_count(self.degree, "degree")

    def _factors(self, columns: Positions) -> Powers:
        degrees = np.full(len(columns), self.degree, np.intp)
        return Powers(columns, degrees, np.zeros(len(columns)))

    def _term(self, x: Array) -> Array:
        powers: Array = x**self.degree
        return powers

    def _slope(self, x: Array) -> Array:
        slopes: Array = self.degree * x ** (self.degree - 1)
        return slopes


@dataclass(frozen=True)
class Interactions(ExactFormula):
    """Squares and all products, f(x) = Σ_d x_d² + (Σ_d x_d)²."""

    def products_in(self, n_columns: int) -> SumOfProducts:
        """Monomials of degree two."""
        forms = [np.ones((n_columns, n_columns)) + np.eye(n_columns)]
        means = np.zeros((1, n_columns))
        return quadratic_sum(means, forms, np.ones(1), 0.0)

    def _at(self, points: Points) -> Values:
        return np.asarray((points**2).sum(axis=1) + points.sum(axis=1) ** 2)

    def _slope(self, x: Array) -> Array:
        return np.asarray(2.0 * (x + x.sum(axis=1, keepdims=True)))


@knows_other_words
@dataclass(frozen=True)
class Sine(Separable):
    """A sine of every feature, f(x) = Σ_d sin x_d.

    Examples
    --------
    >>> from propopt.functions import Sine
    >>> Sine().gradient([[0.0, 0.0]])
    array([[1., 1.]])
    """

    def _term(self, x: Array) -> Array:
        return np.sin(x)

    def _slope(self, x: Array) -> Array:
        return np.cos(x)


@final
@dataclass(frozen=True)
class PaperFormula(Separable):
    """A sum over features of one of :data:`FORMULAS`, by its name."""

    name: str

    def __repr__(self) -> str:
        return f"PAPER_FUNCTIONS[{self.name!r}]()"

    def _term(self, x: Array) -> Array:
        return FORMULAS[self.name][0](x)

    def _slope(self, x: Array) -> Array:
        return FORMULAS[self.name][1](x)


FORMULAS: Final[Mapping[str, tuple[CurveRule, CurveRule]]] = {
    # oscillates faster and faster
    "sine_of_exponential": (
        lambda x: np.sin(np.exp(x)),
        lambda x: np.exp(x) * np.cos(np.exp(x)),
    ),
    # a line with growing oscillations
    "linear_plus_sine_of_exponential": (
        lambda x: x + np.sin(np.exp(x)),
        lambda x: 1.0 + np.exp(x) * np.cos(np.exp(x)),
    ),
    # a line, and a parabola, with ripples
    "linear_plus_sine": (
        lambda x: x + np.sin(3.0 * x),
        lambda x: 1.0 + 3.0 * np.cos(3.0 * x),
    ),
    "quadratic_plus_sine": (
        lambda x: x**2 / 10.0 + np.sin(3.0 * x),
        lambda x: x / 5.0 + 3.0 * np.cos(3.0 * x),
    ),
    "exponential": (np.exp, np.exp),
}
"""φ(x) and φ′(x), entry by entry."""

PAPER_FUNCTIONS: Final[Mapping[str, Callable[..., Function]]] = {
    "power": Power,
    "interactions": Interactions,
    "sine": Sine,
    **{name: partial(PaperFormula, name) for name in FORMULAS},
}
"""Each function of the paper by the name that problem files use; ``power`` alone takes
a parameter, ``degree``."""


# ---- Functions made of functions of one column each: their sum, or their product


@dataclass(frozen=True, eq=False, repr=False)
class OfColumns(Function):
    """A function that is made of D functions of one column each."""

    # (D,): f_j, from values (n,) of column j to numbers (n,)
    terms: Sequence[CurveRule | None]
    # (D,): f_j′; where they are left out they are central differences
    slopes: Sequence[CurveRule | None] | None = field(default=None, kw_only=True)
    # by positions of columns, where their functions have kinks or jumps
    knots: Mapping[int, Sequence[float]] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        _check_rules(self.terms, "terms")
        if self.slopes is not None:
            _check_rules(self.slopes, "slopes")
            if [rule is None for rule in self.slopes] != self._absent:
                raise InvalidInput(
                    "slopes: expected one for each term, and None where that is None"
                )
        unknown = sorted(set(self.knots) - set(self._used))
        if unknown:
            raise InvalidInput(f"knots: no term has the positions {unknown}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._used)} terms)"

    @property
    def gradient_method(self) -> str:
        """``"exact"`` where slopes were given, else the rule of the differences."""
        return EXACT if self.slopes is not None else describe_step(DEFAULT_STEP)

    @property
    def _absent(self) -> list[bool]:
        return [term is None for term in self.terms]

    @cached_property
    def _used(self) -> dict[int, CurveRule]:
        return {j: term for j, term in enumerate(self.terms) if term is not None}

    @cached_property
    def _curves(self) -> Curves:
        knots = [
            np.unique(np.asarray(self.knots.get(j, ()), float)) for j in self._used
        ]
        columns = np.array([*self._used], np.intp)
        return Curves(columns, tuple(self._used.values()), tuple(knots))

    def _of_terms(self, points: Points) -> Array:
        """f_j(x_j), a row for each term (U, N)."""
        if points.shape[1] != len(self.terms):
            raise InvalidInput(
                f"X: {self!r} has {len(self.terms)} columns, got {points.shape[1]}"
            )
        return self._at(list(self._used.values()), points)

    def _at(self, rules: Sequence[CurveRule], points: Points) -> Array:
        values = np.empty((len(rules), len(points)))
        for u, (rule, j) in enumerate(zip(rules, self._used, strict=True)):
            values[u] = rule(points[:, j])
        return values

    def _slopes_of_terms(self, points: Points) -> Array:
        """f_j′(x_j), likewise."""
        if self.slopes is not None:
            return self._at([rule for rule in self.slopes if rule is not None], points)
        rules = list(self._used.values())
        step = DEFAULT_STEP * np.maximum(1.0, np.abs(points))
        up, down = points + step, points - step
        apart = (up - down)[:, list(self._used)].T
        return np.asarray((self._at(rules, up) - self._at(rules, down)) / apart)

    def _by_columns(self, of_terms: Array) -> Attributions:
        """Rows for terms as columns of the table; zero of those without one."""
        table = np.zeros((of_terms.shape[1], len(self.terms)))
        table[:, list(self._used)] = of_terms.T
        return table

    @property
    @abstractmethod
    def products(self) -> SumOfProducts:
        """The sum of products that it is by construction."""


@final
@knows_other_words
@dataclass(frozen=True, eq=False, repr=False)
class Additive(OfColumns):
    """A sum of functions of one feature each: f(x) = base + Σ_j f_j(x_j).

    Exact explanations by LIME of such a function do not depend on the kernel width.

    Parameters
    ----------
    base : float
        The constant.

    Examples
    --------
    >>> import numpy as np
    >>> import propopt as po
    >>> function = po.functions.Additive([np.sin, None, np.abs], knots={2: [0.0]})
    >>> function.value([[0.0, 9.0, -2.0]])
    array([2.])
    >>> function.gradient([[0.0, 9.0, -2.0]]).round(6)
    array([[ 1.,  0., -1.]])
    >>> function.products
    SumOfProducts(2 products of 2 factors (Curves) in 3 columns)
    """

    base: float = field(default=0.0, kw_only=True)

    @cached_property
    def products(self) -> SumOfProducts:
        weights = np.ones(len(self._used))
        return SumOfProducts.additive(self.base, weights, self._curves, len(self.terms))

    def _value(self, points: Points, _: Labels, /) -> Values:
        return np.asarray(self.base + self._of_terms(points).sum(axis=0))

    def _gradient(self, points: Points, _: Labels, /) -> Attributions:
        return self._by_columns(self._slopes_of_terms(points))


@final
@knows_other_words
@dataclass(frozen=True, eq=False, repr=False)
class Multiplicative(OfColumns):
    """A product of functions of one feature each: f(x) = scale · Π_j f_j(x_j).

    Parameters
    ----------
    scale : float
        The constant.

    Examples
    --------
    >>> import numpy as np
    >>> import propopt as po
    >>> function = po.functions.Multiplicative([np.sin, np.cos], scale=2.0)
    >>> function.value([[np.pi / 2, 0.0]])
    array([2.])
    >>> function.products
    SumOfProducts(1 products of 2 factors (Curves) in 2 columns)
    """

    scale: float = field(default=1.0, kw_only=True)

    @cached_property
    def products(self) -> SumOfProducts:
        paths = np.arange(len(self._used))[None, :]
        scale, n_columns = np.array([self.scale]), len(self.terms)
        return SumOfProducts(0.0, scale, paths, (self._curves,), n_columns)

    def _value(self, points: Points, _: Labels, /) -> Values:
        return np.asarray(self.scale * self._of_terms(points).prod(axis=0))

    def _gradient(self, points: Points, _: Labels, /) -> Attributions:
        terms = self._of_terms(points)
        others = np.ones(terms.shape)
        for u in range(len(terms)):
            others[u] = np.delete(terms, u, axis=0).prod(axis=0)
        return self._by_columns(self.scale * self._slopes_of_terms(points) * others)


def _check_rules(rules: object, name: str) -> None:
    """Refuse what is no sequence of callables, before it is asked."""
    if not isinstance(rules, Sequence) or not rules:
        raise InvalidInput(f"{name}: expected a sequence of callables, got {rules!r}")
    wrong = [rule for rule in rules if rule is not None and not callable(rule)]
    if wrong:
        raise InvalidInput(f"{name}: expected callables or None, got {wrong[0]!r}")
    if all(rule is None for rule in rules):
        raise InvalidInput(f"{name}: expected one callable at least")
