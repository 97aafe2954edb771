"""Compiled kernels: chosen, refused with a reason, equal to what NumPy does."""

import ctypes

import numpy as np
import pytest
from command_line import python

from propopt.base import kernels as own
from propopt.base.errors import InvalidInput, Refused
from propopt.structures.products.families import Powers
from propopt.structures.products.sums import SumOfProducts


needs_kernels = pytest.mark.skipif(
    own.why_no_kernels() is not None, reason=str(own.why_no_kernels())
)


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """A package whose library is not there yet, and what was found before forgotten."""
    monkeypatch.setattr(own, "LIBRARY", tmp_path / own.LIBRARY.name)
    own.kernels_of.cache_clear()
    own.load_kernels.cache_clear()
    yield own.LIBRARY
    own.kernels_of.cache_clear()
    own.load_kernels.cache_clear()


def test_numpy_can_be_chosen(monkeypatch):
    monkeypatch.setenv("PROPOPT_KERNELS", "numpy")
    assert own.kernel("contrasts") is None
    assert own.describe_kernels() == "kernels: NumPy; PROPOPT_KERNELS=numpy"


@needs_kernels
@pytest.mark.parametrize("choice", ["", "c"])
def test_compiled_kernels_are_used_where_they_are(choice, monkeypatch):
    monkeypatch.setenv("PROPOPT_KERNELS", choice)
    assert own.kernel("contrasts") is not None
    assert own.describe_kernels() == "kernels: C"


def test_other_choices_are_refused(monkeypatch):
    monkeypatch.setenv("PROPOPT_KERNELS", "C")
    with pytest.raises(InvalidInput, match=r"expected 'c' or 'numpy'.*got 'C'"):
        own.kernel("contrasts")


def test_without_a_library_numpy_is_used_and_c_is_refused(elsewhere, monkeypatch):
    assert not elsewhere.exists()
    monkeypatch.setenv("PROPOPT_KERNELS", "")
    assert own.kernel("contrasts") is None
    assert own.describe_kernels() == (
        "kernels: NumPy; no kernels were compiled when propopt was installed"
    )
    monkeypatch.setenv("PROPOPT_KERNELS", "c")
    with pytest.raises(Refused, match=r"PROPOPT_KERNELS=c: no kernels .* a C compiler"):
        own.kernel("contrasts")


@needs_kernels
def test_a_library_of_another_source_is_not_called(elsewhere, monkeypatch, tmp_path):
    elsewhere.write_bytes(own.KERNEL_SOURCE.with_name(elsewhere.name).read_bytes())
    edited = tmp_path / own.KERNEL_SOURCE.name
    edited.write_bytes(own.KERNEL_SOURCE.read_bytes() + b"/* edited */\n")
    monkeypatch.setattr(own, "KERNEL_SOURCE", edited)
    monkeypatch.setenv("PROPOPT_KERNELS", "")
    with pytest.warns(
        RuntimeWarning, match=r"compiled from another version of kernels\.c"
    ):
        assert own.kernel("contrasts") is None


def test_what_is_no_library_is_not_loaded(elsewhere, monkeypatch):
    elsewhere.write_bytes(b"no library")
    monkeypatch.setenv("PROPOPT_KERNELS", "")
    with pytest.warns(RuntimeWarning, match="cannot be loaded"):
        assert own.kernel("contrasts") is None


@needs_kernels
@pytest.mark.parametrize("array", [np.zeros(3, np.float32), np.zeros((3, 2))[:, 0]])
def test_arrays_of_other_types_or_orders_are_refused(array, monkeypatch):
    monkeypatch.setenv("PROPOPT_KERNELS", "c")
    contrasts = own.kernel("contrasts")
    with pytest.raises(ctypes.ArgumentError):
        contrasts(0, 0, 0, 0, array, *[None] * 8)


def test_nothing_is_loaded_before_it_is_used():
    code = "import propopt, sys; print('propopt.base.kernels' in sys.modules)"
    assert python("-c", code).stdout == "False\n"


# ---- sums of products


def products(rng, n_factors=40, n_products=60, n_columns=5, most=7):
    """Random products of up to seven factors, one of none, and measures of factors."""
    paths = np.full((n_products, most), -1)
    for path in paths[1:]:
        length = rng.integers(1, most + 1)
        path[:length] = rng.choice(n_factors, length, replace=False)
    column = np.sort(rng.integers(0, n_columns, n_factors))
    factors = Powers.first(column)
    values = rng.normal(size=n_products)
    return SumOfProducts(0.5, values, paths, (factors,), n_columns)


def expected(products, P, R):
    """By the definition, product by product."""
    total = np.full(P.shape[1], products.base)
    sizes = np.zeros((P.shape[1], products.n_columns))
    contrasts = np.zeros(sizes.shape)
    for value, path in zip(products.values, products.paths, strict=True):
        path = path[path >= 0]
        total += value * P[path].prod(axis=0)
        for u in path:
            term = value * R[u] * P[path[path != u]].prod(axis=0)
            contrasts[:, products.column[u]] += term
            sizes[:, products.column[u]] += np.abs(term)
    return total, contrasts, sizes


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("n", [1, 2, 33])
def test_contrasts_of_products_are_their_definition(n, rng):
    sums = products(rng)
    P, R = rng.normal(size=(2, sums.n_factors, n))
    P[3, 0] = 0.0  # nothing is divided
    total, contrasts = sums.contrasts(P, R)
    wanted, slopes, sizes = expected(sums, P, R)
    np.testing.assert_allclose(total, wanted, rtol=1e-12, atol=1e-12)
    assert (np.abs(contrasts - slopes) <= 1e-14 * sizes).all()


@pytest.mark.usefixtures("kernels")
def test_rows_of_products_are_the_same_in_any_block(rng):
    sums = products(rng)
    P, R = rng.normal(size=(2, sums.n_factors, 9))
    total, contrasts = sums.contrasts(P, R)
    for r in range(9):
        alone = sums.contrasts(P[:, [r]], R[:, [r]])
        assert alone[0][0] == total[r]
        np.testing.assert_array_equal(alone[1][0], contrasts[r])
