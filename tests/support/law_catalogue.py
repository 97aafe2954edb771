"""The laws under test, and what they are at a value: masses on values, by quadrature.

A new law is one line here, which makes it of a table (and the positions of its codes):
every test of ``tests/laws/test_contract.py`` then covers it with every family.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from column_oracle import contrast_at, law_at

from propopt.base.arrays import Array, Points
from propopt.laws.background import Reference
from propopt.laws.column_laws import CodedLaw, NoisyColumn
from propopt.laws.data_law import DataLaw, NoiseLaw
from propopt.lime import GaussianLaw, GlimeLaw, TabularLaw
from propopt.lime.laws.binned_columns import BinnedColumn
from propopt.lime.laws.lime_law import LimeLaw
from propopt.tables.columns import ObservedValues
from propopt.tables.frames import Labels


N_CODES = 4  # of which the last is in no row
_RNG = np.random.default_rng(4)
COLUMNS: Mapping[str, Array] = {
    "numbers": _RNG.normal(size=60),
    "repeated values": _RNG.integers(-2, 5, 60) / 2.0,
    "two values": np.repeat([-1.0, 2.0], [45, 15]),
    "one value": np.full(60, 3.0),
    "an outlier": np.append(_RNG.normal(size=59), 40.0),
    "far from zero": 300.0 + _RNG.integers(0, 7, 60),
    "missing in some": np.where(_RNG.random(60) < 0.3, np.nan, _RNG.normal(size=60)),
    "always missing": np.full(60, np.nan),
    "codes": _RNG.integers(0, N_CODES - 1, 60).astype(float),
}
Law: TypeAlias = DataLaw | NoiseLaw | LimeLaw
Codes: TypeAlias = tuple[int, ...]


def _reference(X, codes):
    n_codes = [N_CODES if j in codes else None for j in range(X.shape[1])]
    return Reference(X, tuple(n_codes), Labels(), len(X))


def _noise(X, codes):
    laws = DataLaw(_reference(X, codes)).columns
    shares = [law.shares if isinstance(law, CodedLaw) else None for law in laws]
    return NoiseLaw(
        np.full(len(laws), 0.4), tuple(shares), tuple(map(ObservedValues.of, X.T))
    )


def _given(X, codes):
    """Bins with a mean outside, with one value, and a missing one of weight 0."""
    if codes:
        shares = np.array([0.5, 0.0, 0.25, 0.25])
        column = BinnedColumn.of_codes(np.arange(float(N_CODES)), shares, "0123")
    else:
        column = BinnedColumn.of_numbers(
            np.array([-0.5, 0.25]),
            (np.array([-1.0, 0.125, 3.0]), np.array([1.0, 0.0, 0.7])),
            (np.array([-4.0, -0.5, 0.25]), np.array([-0.5, 0.25, 2.5])),
            np.array([False, True, False]),
            np.array([0.2, 0.5, 0.3, 0.0]),
        )
    return TabularLaw.of([column] * X.shape[1], 0.8)


def _tabular(X, codes):
    return TabularLaw.from_data(X, categorical=codes, kernel_width=0.8)


def _gaussian(X, codes):
    return GaussianLaw.from_data(X, categorical=codes, kernel_width=0.8)


LAWS: Mapping[str, Callable[[Points, Codes], Law]] = {
    "data": lambda X, codes: DataLaw(_reference(X, codes)),
    "noise": _noise,
    "tabular": _tabular,
    "given bins": _given,
    "gaussian": _gaussian,
    "glime": lambda X, codes: GlimeLaw(_gaussian(X, codes)),
    "glime of bins": lambda X, codes: GlimeLaw(_tabular(X, codes)),
}


@cache
def law_of(name, column):
    """A law of one column."""
    codes = (0,) if column == "codes" else ()
    return LAWS[name](COLUMNS[column][:, None], codes)


# ---- Masses on values: what means and contrasts are sums of
class Masses(NamedTuple):
    """Values (m,), the law on them, and two measures whose difference is contrasts."""

    values: Array
    law: Array
    contrast: tuple[Array, Array]


def masses_at(law, x, width):
    """Those of a law of one column around x."""
    own = law.columns[0]
    if isinstance(law, LimeLaw):
        return _of_lime(own, x, width)
    if isinstance(own, NoisyColumn):
        return _of_noise(own, x)
    at, contrast = law_at(own, x), contrast_at(own, x)
    values = np.append(at.values, contrast.values)
    zeros = np.zeros(len(contrast.values))
    signed = np.append(np.zeros(len(at.values)), contrast.masses)
    return Masses(values, np.append(at.masses, zeros), _parts(signed))


def _parts(signed):
    return np.maximum(signed, 0.0), np.maximum(-signed, 0.0)


def _of_noise(column, x):
    if np.isnan(x):
        (atoms,) = column.observed or (None,)
        shares = np.append(-atoms.shares, 1.0 if len(atoms.values) > 0 else 0.0)
        values = np.append(atoms.values, x)
        return Masses(values, np.isnan(values).astype(float), _parts(shares))
    v, log_masses = nodes_of(x, column.scale, -np.inf, np.inf, x)
    law = np.exp(log_masses)
    return Masses(v, law, _parts(law * (v - x) / column.scale**2))


def _of_lime(column, x, width):
    """The samples' own law, piece by piece, times the kernel: no tilt of its own."""
    at = np.array([x])
    samples = column.tilt(at, np.array([np.inf]))
    pieces = samples.pieces
    parts = []
    for b, single in enumerate(pieces.single):
        mean, sd, low, high = (
            float(np.ravel(part[b])[0])
            for part in (pieces.mean, pieces.sd, pieces.low, pieces.high)
        )
        nodes = (
            (np.array([mean]), np.zeros(1))
            if single
            else nodes_of(mean, sd, low, high, x)
        )
        for bit, share in (
            (1.0, samples.alpha[0] * samples.inside[b, 0]),
            (0.0, samples.complement[0] * samples.outside[b, 0]),
        ):
            if share > 0.0:
                values, log_masses = nodes
                bits = np.full((1, len(values)), bit)
                kernel = column.log_kernel(
                    at[:, None], values[None], bits, np.array([[width]])
                )
                parts.append((values, np.log(share) + log_masses + kernel[0], bits[0]))
    values, logs, bits = map(np.concatenate, zip(*parts, strict=True))
    law, one, zero = (_shares(logs, own) for own in (bits >= 0, bits == 1, bits == 0))
    both = one.any() and zero.any()  # one bin alone has no contrast
    return Masses(values, law, (one, zero) if both else (law, law))


_LEAST = 1e-300
"""In place of masses that underflow: a missing value among them still counts."""


def _shares(logs, own):
    """Masses of some values, which sum to 1."""
    some = own & (logs > -np.inf)
    masses = np.zeros(len(logs))
    if some.any():
        masses[some] = np.maximum(np.exp(logs[some] - logs[some].max()), _LEAST)
        masses /= masses.sum()
    return masses


_UNIT, _LENGTHS = np.polynomial.legendre.leggauss(16)
_HALVES = 2.0 ** -np.arange(45.0)
_QUARTERS = np.arange(-32, 33) / 4.0


def nodes_of(mean, sd, low, high, x):
    """Values and log masses of a truncated normal, by nodes of Gauss and Legendre.

    Parts halve towards ends, x and the mean, so that kernels of any width are followed.
    """
    close = np.array([mean, mean if np.isnan(x) else x])
    start = max(low, min(*close, high) - 14.0 * sd)
    stop = min(high, max(*close, low) + 14.0 * sd)
    steps = (stop - start) * _HALVES
    cuts = [c + s * steps for c in (start, stop, *close) for s in (-1.0, 1.0)]
    cuts = np.unique(np.concatenate([*cuts, close, _QUARTERS, [start, stop]]))
    cuts = cuts[(start <= cuts) & (cuts <= stop)]
    half = 0.5 * np.diff(cuts)[:, None]
    values = (cuts[:-1, None] + half * (1.0 + _UNIT)).ravel()
    logs = np.log((half * _LENGTHS).ravel()) - 0.5 * ((values - mean) / sd) ** 2
    return values, logs - np.logaddexp.reduce(logs)
