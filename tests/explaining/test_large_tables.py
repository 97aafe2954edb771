"""Tables larger than memory: the bits of one explanation, whatever is interrupted."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dask_workers import workers_of_dask
from lightgbm import LGBMRegressor
from refusals import refusals
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from text_models import DOCUMENTS, linear  # noqa: F401  # of refusals.txt

import propopt as po
from propopt.base.errors import InvalidInput
from propopt.base.row_sample import RowSample
from propopt.explaining import large_tables
from propopt.explaining.out_of_sample import FittedRows
from propopt.explaining.saved_explainer import SavedExplainer
from propopt.explaining.targets import error_of_parts
from propopt.losses.faithfulness import Estimate
from propopt.proofs.sampling_error import TargetError, exact_target, unknown_target
from propopt.results import explained_table
from propopt.results.explained_table import MANIFEST, PartSums


pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")
feather = pytest.importorskip("pyarrow.feather")

N, N_NEW = 120, 150


def table(seed, n):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))


X, X_NEW = table(0, N), table(1, N_NEW)
IDS = X_NEW.assign(customer=[f"no. {n}" for n in range(N_NEW)])[
    ["c", "customer", "a", "b"]
]


def fitted(model=None, **settings):
    small = LGBMRegressor(n_estimators=5, num_leaves=6, verbose=-1, n_jobs=1)
    model = model or small.fit(X, X.a * X.b)
    return po.Explainer(model, data=X, **settings).fit(progress=False)


@pytest.fixture(scope="module")
def explainer():
    return fitted()


@pytest.fixture(scope="module")
def whole(explainer):
    return explainer.transform(X_NEW)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of 32 rows, which are explained in blocks of eight."""
    monkeypatch.setattr(large_tables, "_PART_ROWS", 32)
    monkeypatch.setattr(large_tables, "_BLOCK_ROWS", 8)


@pytest.fixture
def source(tmp_path):
    """A file of 150 rows, five parts, which is not changed."""
    pq.write_table(pa.Table.from_pandas(IDS), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def files_of(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


# ---- Sources: the bits are those of one explanation in memory


def in_row_groups(size):
    def write(path):
        pq.write_table(pa.Table.from_pandas(IDS), path / "r.parquet", size)
        return path / "r.parquet"

    return write


def in_files(path):
    (path / "sub").mkdir()
    for n, start in enumerate((0, 47, 60)):
        rows = IDS.iloc[start : [47, 60, N_NEW][n]]
        rows = rows[sorted(rows)] if n == 1 else rows  # columns in another order
        rows.to_parquet(path / ("sub" if n == 2 else ".") / f"{n}.parquet")
    IDS[:0].to_parquet(path / "3.parquet")
    (path / "_SUCCESS").touch()
    return str(path)


def in_years(path):
    """A folder for each value of a column, which files do not have."""
    rows = IDS.assign(b=np.repeat([1, 2, 3], 50))
    dataset = ds.partitioning(pa.schema([("b", pa.int32())]), flavor="hive")
    ds.write_dataset(
        pa.Table.from_pandas(rows), path, format="parquet", partitioning=dataset
    )
    return path


def in_arrow(path):
    feather.write_feather(IDS, path / "r.arrow", chunksize=11)
    return path / "r.arrow"


SOURCES = {
    "row groups of 7": in_row_groups(7),
    "one row group": in_row_groups(10_000),
    "files": in_files,
    "folders by value": in_years,
    "arrow": in_arrow,
    "dataset": lambda path: ds.dataset(in_row_groups(40)(path)),
    "table": lambda _: pa.Table.from_pandas(IDS),
    "frame": lambda _: IDS,
}


@pytest.mark.parametrize("name", SOURCES)
def test_any_table_has_the_bits_of_one_explanation(name, explainer, whole, tmp_path):
    (tmp_path / "rows").mkdir()
    X = SOURCES[name](tmp_path / "rows")
    expected = whole
    if name == "folders by value":
        rows = X_NEW.assign(b=np.repeat([1, 2, 3], 50))
        expected = explainer.transform(rows)
    with interrupted_at() as blocks:
        explained = explainer.explain(X, to=tmp_path / "to", keep=["customer"])
    assert max(blocks) == 8
    assert sum(blocks) == N_NEW
    assert explained.header.n_parts == 5
    rows = pd.concat([*explained.parts()])
    assert list(rows.columns) == ["customer", *expected.columns]
    assert rows.customer.tolist() == IDS.customer.tolist()
    assert rows[whole.columns].to_numpy().tobytes() == expected.to_numpy().tobytes()
    assert rows.index.equals(pd.RangeIndex(N_NEW))
    read = pd.read_parquet(tmp_path / "to")  # as other programs read it
    cells = ["contributions", "standard_errors"]
    assert list(read.columns) == [*rows.columns, *cells]
    pd.testing.assert_frame_equal(read[rows.columns], rows, check_exact=True)
    features = expected[list("abc")].to_numpy()
    assert explained.attributions.tobytes() == features.tobytes()
    assert explained.to_frame().columns.tolist() == list("abc")


def test_sums_are_those_of_all_rows(explainer, source, tmp_path):
    explained = explainer.explain(source, to=tmp_path / "to")
    best = explainer.explain(X_NEW)
    W = best.attributions
    top = best.top(3)
    pd.testing.assert_frame_equal(explained.summary()[top.columns], top, rtol=1e-12)
    rms = np.sqrt((W**2).mean(axis=0))
    np.testing.assert_allclose(explained.summary().rms[list("abc")], rms, rtol=1e-12)
    assert explained.gap == best.details["gap"].max()
    assert explained.shape == (N_NEW, 3)
    assert explained.base_value == pytest.approx(best.base_value[0], rel=1e-12)
    assert explained.prediction == pytest.approx(best.prediction.mean(), rel=1e-12)
    assert explained.units_in_words == best.units_in_words
    assert explained.quantity == best.quantity
    assert explained.header.background == best.background
    assert dict(explained.header.parameters) == dict(best.parameters)


# ---- The error of sampling


def wide(seed, n):
    numbers = np.random.default_rng(seed).normal(size=(n, 8))
    return pd.DataFrame(numbers, columns=list("abcdefgh"))


WIDE, WIDE_NEW = wide(2, 30), wide(3, 20)


def sampled(**settings):
    """An explainer of a model whose contributions are sampled."""
    model = MLPRegressor(hidden_layer_sizes=(8,), max_iter=300, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has not converged
        model.fit(WIDE, WIDE.a * WIDE.b + WIDE.h)
    return po.Explainer(model.predict, data=WIDE, **settings).fit(progress=False)


ERRORS = {
    "exact": (fitted, {}, X_NEW[:20]),
    "exact slopes": (fitted, {"kind": "slopes"}, X_NEW[:20]),
    "sampled": (sampled, {}, WIDE_NEW),
    "sampled slopes": (sampled, {"kind": "slopes", "law": "data"}, WIDE_NEW),
    "unknown": (sampled, {"kind": "slopes", "law": "none"}, WIDE_NEW),
}


@pytest.fixture(scope="module", params=ERRORS)
def in_memory(request):
    """An explainer, rows, and their explanation in memory."""
    make, settings, rows = ERRORS[request.param]
    explainer = make(**settings)
    return explainer, rows, explainer.explain(rows, progress=False)


@pytest.fixture
def few_rows(monkeypatch):
    """Parts of eight rows, which are explained in blocks of four."""
    monkeypatch.setattr(large_tables, "_PART_ROWS", 8)
    monkeypatch.setattr(large_tables, "_BLOCK_ROWS", 4)


def sampling_fact_of(result):
    """The error of the target on the card."""
    return result.document().facts["sampling error"]


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_files_have_the_error_of_memory(in_memory, suffix, tmp_path, frames):
    explainer, rows, best = in_memory
    getattr(rows, f"to_{suffix}")(tmp_path / f"rows.{suffix}")
    explained = explainer.explain(tmp_path / f"rows.{suffix}", to=tmp_path / "to")
    explained.save(tmp_path / "it.npz")
    for one in (explained, po.results.ExplainedTable.load(tmp_path / "it.npz")):
        for name in ("value", "scale", "spread", "degrees", "interval"):
            expected = getattr(best.target, name)
            found = getattr(one.target, name)
            assert found == pytest.approx(expected, rel=1e-9, nan_ok=True)
        assert one.target.source == best.target.source
        assert sampling_fact_of(one) == sampling_fact_of(best)
    table = pd.concat([*explained.parts()])
    blocks = pd.concat([explainer.transform(rows[:3]), explainer.transform(rows[3:])])
    lazy = explainer.explain(frames.from_pandas(rows, npartitions=3)).compute()
    for other in (blocks, lazy, best.details):
        assert table.error.to_numpy().tobytes() == np.array(other["error"]).tobytes()


def test_errors_of_rows_add_up_to_that_of_the_table(in_memory):
    explainer, rows, best = in_memory
    errors = explainer.transform(rows).error
    assert errors.isna().all() == np.isnan(best.sampling_excess)
    if best.units == "output":
        total = best.shape[1] * float((errors**2).sum())
        assert total == pytest.approx(best.target.value, rel=1e-9)


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_a_folder_has_the_conclusions_of_memory(in_memory, suffix, tmp_path):
    explainer, rows, best = in_memory
    getattr(rows, f"to_{suffix}")(tmp_path / f"rows.{suffix}")
    explained = explainer.explain(tmp_path / f"rows.{suffix}", to=tmp_path / "to")
    pd.testing.assert_frame_equal(explained.top(2), best.top(2), rtol=1e-9, atol=1e-12)
    assert str(explained.clear()) == str(best.clear())
    chosen, groups = [15, 3, 10], {"both": ["a", "c"]}
    some = explained.rows(chosen)
    assert some.labels.points == (15, 3, 10)
    assert some.attributions.tobytes() == best.attributions[chosen].tobytes()
    for options in ({}, {"order": "value"}, {"groups": groups}, {"small_change": 0.1}):
        found, expected = explained.clear(**options, rows=chosen), best.clear(**options)
        for name in ("signs", "best_ranks", "worst_ranks"):
            every = getattr(expected, name)
            assert np.array_equal(getattr(found, name), every[chosen])
    if best.units != "output":
        assert (explained.base_value, explained.prediction) == (None, None)
        with pytest.raises(InvalidInput, match="expected contributions, got slopes"):
            explained.reasons()
        return
    for options in ({}, {"towards": "lower"}, {"groups": groups, "k": 2}):
        found = explained.reasons(**options, rows=chosen)
        expected = best.reasons(**options, rows=chosen)
        pd.testing.assert_frame_equal(  # values of the columns are not in the folder
            found.to_frame().drop(columns="value"),
            expected.to_frame().drop(columns="value"),
        )
    every = explained.reasons()
    assert (every.clear_rows, every.drawn_from) == (best.reasons().clear_rows, None)


def test_rows_are_read_from_their_parts_alone(explainer, source, tmp_path):
    explained = explainer.explain(source, to=tmp_path / "to")
    (tmp_path / "to" / "part-000001.parquet").unlink()  # rows 32 to 63
    some = explained.rows([149, 2, 2])
    assert some.labels.points == (149, 2, 2)
    with pytest.raises(InvalidInput, match=r"part-000001\.parquet: it cannot be read"):
        explained.rows([32])
    for rows in ([150], [-1], []):
        with pytest.raises(InvalidInput, match="positions from 0 to 149"):
            explained.reasons(rows=rows)
    in_memory = explainer.explain(X_NEW.iloc[[149, 2]])
    assert in_memory.attributions.tobytes() == some.attributions[:2].tobytes()
    assert in_memory.certain().shape == (2, 3)


def test_a_large_folder_has_reasons_of_a_sample(
    explainer, source, tmp_path, monkeypatch
):
    explained = explainer.explain(source, to=tmp_path / "to")
    monkeypatch.setattr(explained_table, "MOST_LISTED", 100)
    few = partial(RowSample.of, most=90)
    monkeypatch.setattr(RowSample, "of", few)
    some = explained.reasons()
    assert (len(some.names), some.drawn_from) == (90, N_NEW)
    assert explained.rows().shape == (90, 3)


def test_errors_of_blocks_are_joined():
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(10, n, 4)) for n in (3, 5, 1)]
    errors = []
    for block in [*blocks, np.concatenate(blocks, axis=1)]:
        aim = Estimate.of_blocks(block, source="draws", n_draws=10)
        errors.append(error_of_parts(aim))
    whole = errors.pop()
    joined = TargetError.joined(errors)
    for name in ("value", "scale", "spread", "degrees"):
        assert getattr(joined, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    assert joined.share == pytest.approx(whole.share, rel=1e-12)
    exact = exact_target("trees", 2.0)
    with_exact = TargetError.joined([exact, *errors])
    assert with_exact.value == pytest.approx(whole.value, rel=1e-12)
    assert with_exact.scale == pytest.approx(whole.scale + 2.0, rel=1e-12)
    assert with_exact.source == whole.source
    assert TargetError.joined([exact, exact]) == exact_target("trees", 4.0)
    unknown = unknown_target("given", 1.0)
    assert np.isnan(TargetError.joined([*errors, unknown, exact]).value)


# ---- Columns of other types


def mixed(seed, n):
    rng = np.random.default_rng(seed)
    frame = table(seed, n)
    frame["kind"] = pd.Categorical(rng.choice(["u", "v", "w"], n), list("uvw"))
    frame["word"] = rng.choice(["red", "green"], n).astype(object)
    frame["flag"] = rng.random(n) < 0.5
    frame["count"] = rng.integers(0, 5, n)
    frame.loc[rng.random(n) < 0.1, "b"] = np.nan
    return frame


MIXED, MIXED_NEW = mixed(0, N), mixed(1, N_NEW)


def mixed_explainer():
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["kind", "word", "flag"]),
        ("passthrough", ["a", "c", "count"]),
    )
    forest = RandomForestRegressor(6, max_depth=5, random_state=0)
    model = make_pipeline(columns, forest)
    model.fit(MIXED, MIXED.a * (MIXED.word == "red") + MIXED.flag)
    return po.Explainer(model, data=MIXED).fit(progress=False)


def test_categories_texts_flags_and_missing_values(tmp_path):
    explainer, rows = mixed_explainer(), MIXED_NEW.copy()
    rows.loc[rows.index[40:80:3], "word"] = "blue"  # not in data, and not in each part
    rows.loc[rows.index[100], "word"] = "grey"
    whole = explainer.explain(rows, progress=False)
    pq.write_table(pa.Table.from_pandas(rows), tmp_path / "r.parquet", 13)
    explained = explainer.explain(tmp_path / "r.parquet", to=tmp_path / "to")
    assert explained.attributions.tobytes() == whole.attributions.tobytes()
    assert explained.n_new == 15
    assert any("'blue'" in text for text in explained.new)
    assert "15 rows have categories that do not occur in data" in str(explained)
    assert "'grey'" in str(explained)


def test_a_cell_that_cannot_be_used_is_named_by_its_row(explainer, tmp_path):
    rows = X_NEW.copy()
    rows.loc[77, "b"] = np.inf
    with pytest.raises(InvalidInput, match=r"column 'b', row 77: .*finite"):
        explainer.explain(rows, to=tmp_path / "to")


# ---- Runs that are interrupted


@contextmanager
def interrupted_at(block=0) -> Iterator[list[int]]:
    """Ctrl-C at the block of a number; the numbers of blocks that were explained."""
    before, done = FittedRows.explain, list[int]()

    def explain(self, rows, progress):
        if len(done) + 1 == block:
            raise KeyboardInterrupt
        done.append(len(rows))
        return before(self, rows, progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FittedRows, "explain", explain)
        with pytest.raises(KeyboardInterrupt) if block else nullcontext():
            yield done


def test_a_run_that_continues_has_the_same_bytes(explainer, source, tmp_path):
    explainer.explain(source, to=tmp_path / "once", keep=["customer"])
    folder = tmp_path / "twice"
    with interrupted_at(11):  # in the third part
        explainer.explain(source, to=folder, keep=["customer"])
    finished = ["part-000000.parquet", "part-000001.parquet"]
    assert sorted(files_of(folder)) == [MANIFEST, *finished]
    before = {name: os.stat(folder / name).st_mtime_ns for name in finished}
    with pytest.raises(InvalidInput, match="3 of 5 parts are missing"):
        po.results.ExplainedTable.load(folder)
    with interrupted_at() as blocks:
        explainer.explain(str(source), to=str(folder), keep=("customer",))
    assert blocks == [8] * 10 + [6]  # of the parts that were missing
    assert files_of(folder) == files_of(tmp_path / "once")
    assert {x: os.stat(folder / x).st_mtime_ns for x in finished} == before
    with interrupted_at() as blocks:  # nothing is left to do
        explainer.explain(source, to=folder, keep=["customer"])
    assert blocks == []


def test_a_saved_explainer_continues(explainer, source, tmp_path):
    explainer.explain(source, to=tmp_path / "once")
    with interrupted_at(11):
        explainer.explain(source, to=tmp_path / "to")
    explainer.save(tmp_path / "it.npz")
    loaded = po.Explainer.load(tmp_path / "it.npz", explainer.model)
    loaded.explain(source, to=tmp_path / "to")
    assert files_of(tmp_path / "to") == files_of(tmp_path / "once")
    again = fitted(explainer.model)  # fitted later, and no faster
    digests = [SavedExplainer.of(one.fitted_).digest for one in (explainer, again)]
    assert digests[0] == digests[1]


def another_model(source):
    model = LGBMRegressor(n_estimators=6, num_leaves=6, verbose=-1, n_jobs=1)
    return fitted(model.fit(X, X.a * X.b)), source, {}


def another_row(source):
    pq.write_table(pa.Table.from_pandas(IDS.iloc[1:]), source)
    return fitted(), source, {}


OTHERS = {
    "another explainer: its model": another_model,
    "another explainer": lambda source: (fitted(robustness=0.3), source, {}),
    "another table: .* number of rows": another_row,
    "other columns to keep: none": lambda source: (
        fitted(),
        source,
        {"keep": ["customer"]},
    ),
}


@pytest.mark.parametrize("message", OTHERS)
def test_rows_of_something_else_are_not_continued(message, explainer, source, tmp_path):
    explainer.explain(source, to=tmp_path / "to")
    before = files_of(tmp_path / "to")
    other, X, options = OTHERS[message](source)
    with pytest.raises(InvalidInput, match=f"of {message}.*give another folder"):
        other.explain(X, to=tmp_path / "to", **options)
    assert files_of(tmp_path / "to") == before


def test_manifests_are_checked(explainer, source, tmp_path):
    folder = tmp_path / "to"
    explainer.explain(source, to=folder)
    manifest = (folder / MANIFEST).read_text()
    changes = {
        manifest.replace('"gap"', '"gaps"'): "has been changed",
        manifest.replace('"n_rows": 150', '"n_rows": 0'): "n_rows: expected an integer",
        manifest[:-9]: "it cannot be read",
        "{}": "expected the format propopt explained table 3",
        manifest.replace('"0.', '"9.'): "propopt 9.",
        manifest.replace('"a",', '"b",'): "two columns have one name",
    }
    for text, message in changes.items():
        assert text != manifest
        (folder / MANIFEST).write_text(text)
        with pytest.raises(InvalidInput, match=message):
            explainer.explain(source, to=folder)
    (folder / MANIFEST).unlink()
    with pytest.raises(InvalidInput, match="has other files; give a new or empty"):
        explainer.explain(source, to=folder)
    with pytest.raises(InvalidInput, match=f"there is no {MANIFEST}"):
        po.results.ExplainedTable.load(folder)


# ---- What is refused


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "large tables"))
def test_what_does_not_fit_is_refused(line, message, explainer, source, tmp_path):
    (tmp_path / "rows").mkdir()
    folder = tmp_path / "to"

    def stored(name, content=b""):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    def explained(X, *, to=folder, by=explainer, **options):
        return by.explain(X, to=to, **options)

    with pytest.raises(InvalidInput, match=message):
        eval(line, globals() | locals())
    assert not folder.exists()


# ---- The result


def test_a_folder_and_a_file_give_back_the_result(explainer, source, tmp_path):
    explained = explainer.explain(source, to=tmp_path / "to", keep=["customer"])
    explained.save(tmp_path / "it.npz")
    for path in (tmp_path / "to", str(tmp_path / "to"), tmp_path / "it.npz"):
        again = po.results.ExplainedTable.load(path)
        assert repr(again) == repr(explained)
        assert str(again) == str(explained)
        pd.testing.assert_frame_equal(again.to_frame(), explained.to_frame())
    narrow = next(explained.parts(["gap", "customer"]))
    assert sorted(narrow.columns) == ["customer", "gap"]
    with pytest.raises(InvalidInput, match="columns: there is no column 'x'"):
        next(explained.parts(["x"]))


def test_a_large_sum_is_rounded_once():
    numbers = np.array([[1e16, 0.0, 0.0], [1.0, 0.0, 0.0], [-1e16, 0.5, 0.0]])
    sums = PartSums.of(numbers, 1, {"kind: 'x'": 2}, [exact_target("trees", 1.0)])
    assert sums.sizes[0] == 2e16
    assert (sums.raises[0], sums.lowers[0], sums.gap) == (2.0, 1.0, 0.5)
    assert (sums.n_new, list(sums.new)) == (2, ["kind: 'x'"])
    assert len(sums.ends) == 0


# ---- Dask


@pytest.fixture
def frames():
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        yield pytest.importorskip("dask.dataframe")


@pytest.mark.filterwarnings("ignore")
def test_a_frame_of_dask_is_explained_lazily(explainer, whole, frames, monkeypatch):
    rows = X_NEW.set_axis(range(0, 2 * N_NEW, 2), axis=0)
    lazy = frames.from_pandas(rows, npartitions=4)
    before = FittedRows.explain
    with monkeypatch.context() as patch:
        patch.setattr(FittedRows, "explain", None)  # nothing is explained yet
        explained = explainer.explain(lazy)
    assert FittedRows.explain is before
    assert explained.divisions == lazy.divisions
    assert explained.npartitions == 4
    assert list(explained.columns) == list(whole.columns)
    assert (explained.dtypes == whole.dtypes).all()
    expected = whole.set_axis(rows.index, axis=0)
    pd.testing.assert_frame_equal(explained.compute(), expected, check_exact=True)
    one = explained.get_partition(2).compute()
    assert one.to_numpy().tobytes() == expected.loc[one.index].to_numpy().tobytes()
    few = explainer.explain(lazy[lazy.a > 100.0])  # partitions without rows
    assert few.compute().shape == (0, 7)
    assert few.gap.dtype == float


@pytest.mark.filterwarnings("ignore")
def test_threads_of_dask_write_the_same_bytes(explainer, source, tmp_path):
    pytest.importorskip("distributed")
    explainer.explain(source, to=tmp_path / "one")
    with workers_of_dask(processes=False) as client:
        explainer.explain(source, to=tmp_path / "two", scheduler=client)
    assert files_of(tmp_path / "two") == files_of(tmp_path / "one")


# ---- Small tables
