"""What every result keeps: its files, its tables, its card; a new one is one line here.

Digests find what was altered by accident. Whatever is signed again loads as what it
says, or is refused in one sentence.
"""

import atexit
import copy
import csv
import dataclasses
import io
import math
import pickle
import re
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np
import pandas as pd
import pytest
from crafted_archives import (
    ARRAYS,
    WEIRD,
    changed,
    craft,
    forgeries_of,
    header_of,
    members_of,
    npy,
    places,
    signed,
    with_header,
    write,
)
from exact_csv import read_csv
from exact_values import same
from interaction_scores import scores_of
from refusals import refusals
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

import propopt as po
from propopt.base.codecs import codecs_of
from propopt.base.document import minus
from propopt.base.errors import InvalidInput, Refused
from propopt.base.files import unescape_cell, write_csv
from propopt.base.text import HIDDEN, Quantity, in_html, printable
from propopt.interactions import InteractionScores
from propopt.lime import LimeExplanation
from propopt.problems.jobs.job import load_result
from propopt.results.report.page import page_of
from propopt.results.result import Result
from propopt.tables.frames import Labels


def quantity_of(text: str) -> Quantity:
    return Quantity(model=text, kind="log_odds", label=text, outcome=text)


@cache
def explained(text: str) -> po.results.Explanation:
    """Two features of three rows; whatever has a name has this one."""
    rows, numbers = [text, "r", 7], [[1.0, -2.0], [1.2, 1.5], [0.9, -1.0]]
    table = pd.DataFrame(numbers, columns=[text, "b"], index=rows)
    robust = po.PairwiseRobustness(po.graphs.chain_graph(3), name=text)
    best = po.solve(po.GradientMatching(table) + 0.25 * robust)
    return dataclasses.replace(best, quantity=quantity_of(text))


def filed(result: Any) -> Any:
    """As files have it: what takes program or model to know is told."""
    with TemporaryDirectory() as folder:
        result.save(Path(folder) / "it.npz")
        return type(result).load(Path(folder) / "it.npz")


def pickled(result: Any) -> Any:
    return pickle.loads(pickle.dumps(result))


def swept(text: str) -> po.TradeOffs:
    """An optimum, and another explanation that is measured on the same losses."""
    best = filed(explained(text))
    other = po.results.Explanation(
        attributions=0.5 * best.attributions,
        method=text,
        labels=best.labels,
        parameters={text: 0.5},
        losses=best.losses,
        standard_errors=0.1 * np.abs(best.attributions),
        details={text: np.ones(3)},
        quantity=best.quantity,
    )
    fields = {"optimized": (best,), "baselines": (other,), "failures": (text,)}
    return po.TradeOffs(losses=tuple(best.losses), **fields)


def reasoned(text: str) -> po.results.Reasons:
    """Of parts of the output, two of them a group, a row has none."""
    parts = dataclasses.replace(explained(text), units="output")
    return parts.reasons(k=1, groups={f"{text}+": [text, "b"]})


class Retrained:
    """Contributions of models that are numbers, at three rows of two features."""

    n_rows = 600

    def contributions(self, model: float = 0.0) -> tuple[Any, Any]:
        phi = np.array([[1.0, -0.5], [0.25, 0.0], [0.5, 0.1]]) * (1.0 + model)
        return phi, phi


def stable(text: str) -> po.results.Stable:
    """Of three rows, whose first reason is stable."""
    phi, _ = Retrained().contributions()
    parts = dataclasses.replace(
        explained(text), units="output", contributions=phi, retrained=Retrained()
    )
    return parts.stable([0.1, -0.1, 0.2, 0.0, 0.05], k=1)


def scored(text: str) -> InteractionScores:
    """Two pairs of three features, beside main effects."""
    quantity = Quantity(model=text, outcome=text)
    main = scores_of([text, "b", "c"], {(0,): 0.5, (1,): 0.1, (2,): 0.0}, order=1)
    pairs = {(0, 1): 1.0, (1, 2): -0.25}
    return scores_of([text, "b", "c"], pairs, main=main, quantity=quantity)


@cache
def limits(text: str) -> LimeExplanation:
    """Two rows of two columns, by a tree."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=[text, "b"])
    model = DecisionTreeRegressor(max_depth=2).fit(X.to_numpy(), X[text] * X["b"])
    function = po.wrap(model, data=X.to_numpy())
    rows = X.iloc[:2].set_axis([text, "r"], axis=0)
    solution = po.lime.limits(function, rows.to_numpy(), data=X.to_numpy())
    labels = Labels(points=(text, "r"), features=(text, "b"))
    return dataclasses.replace(solution, labels=labels, quantity=quantity_of(text))


def text_limits(text: str) -> LimeExplanation:
    """Two documents of a few words."""
    texts = ["good food", "bad food", "good staff", "bad staff"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    model.fit(texts, [1, 0, 1, 0])
    solution = po.lime.text_limits(model, [f"good {text}", "bad food"])
    return dataclasses.replace(solution, quantity=quantity_of(text))


@cache
def audited(text: str) -> po.results.Audit:
    """Twelve rows of two columns, of which one is wrong."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(12, 2)), columns=[text, "b"])
    X.index = [text, *range(1, 12)]
    model = DecisionTreeRegressor(max_depth=4).fit(X.to_numpy(), X[text] * X["b"])
    function = po.wrap(model, data=X.to_numpy())
    exact = po.explainers.ExactShap(data=X.to_numpy())
    W = exact.explain(function, X.to_numpy()).attributions + np.eye(12, 2)
    table = pd.DataFrame(W, columns=list(X), index=X.index)
    solution = po.audit(table, function, X.set_axis([text, "b"], axis=1), base=0.0)
    reported = dataclasses.replace(solution.explanation, quantity=quantity_of(text))
    return dataclasses.replace(solution, explanation=reported)


def main_effects(text: str) -> po.explainers.MainEffects:
    """Two columns of two rows."""
    return po.explainers.MainEffects(
        explanation=po.results.Explanation(
            attributions=np.array([[1.0, -0.5], [0.25, 0.0]]),
            method=text,
            labels=Labels(points=(text, "r"), features=(text, "b")),
            units="output",
            quantity=quantity_of(text),
        ),
        background=text,
        n_background=700,
    )


def interaction_values(text: str) -> po.results.Interactions:
    """Two rows of two features, and what both together change."""
    M = np.array([[[1.0, 0.5], [0.5, -1.0]], [[0.2, -0.1], [-0.1, 0.0]]])
    return po.results.Interactions(
        values=M,
        base_value=np.full(2, 3.0),
        prediction=3.0 + M.sum(axis=(1, 2)),
        background=text,
        labels=Labels(points=(text, "r"), features=(text, "b")),
        quantity=quantity_of(text),
    )


def compared(text: str) -> po.results.Comparison:
    """Two versions of three rows, beside bootstrap_refits."""
    old = filed(explained(text))
    W = old.attributions
    others = [dataclasses.replace(old, attributions=W * k) for k in (2, 1.2, 1.3, 1.1)]
    five = [old, *(dataclasses.replace(x, losses={}, weights={}) for x in others)]
    plain = [dataclasses.replace(x, certificate=None, gradient=None) for x in five]
    solution = po.compare(plain[0], plain[1], level=(plain, plain[::-1]))
    fields = {"names": (text, "b"), "sources": (text, text), "parameters": {text: 1.0}}
    return dataclasses.replace(
        solution, optimized=W[0] ** 2, prices=W[1] ** 2, **fields
    )


@cache
def explained_rows(text: str) -> po.results.ExplainedTable:
    """Rows of two features, in a folder that is there until the end."""
    numbers = np.random.default_rng(0).normal(size=(9, 2))
    X = pd.DataFrame(numbers, columns=[text, "b"])
    explainer = po.Explainer(lambda X: X[text] * X["b"], data=X, outcome=text)
    explainer.fit(progress=False)
    folder = mkdtemp()
    atexit.register(rmtree, folder)
    solution = explainer.explain(X, to=folder)
    return dataclasses.replace(solution, n_new=1, new=(text,))


CATALOGUE: dict[str, Callable[[str], Result]] = {
    "explanation": lambda text: filed(explained(text)),
    "trade_offs": swept,
    "certain": lambda text: explained(text).certain(),
    "clear": lambda text: explained(text).clear(),
    "reasons": lambda text: reasoned(text),
    "shares": lambda text: explained(text).shares(),
    "stable": stable,
    "comparison": compared,
    "interactions": scored,
    "interaction_values": interaction_values,
    "main_effects": main_effects,
    "lime": lambda text: filed(limits(text)),
    "diagnosis": lambda text: limits(text).diagnose(),
    "text_lime": lambda text: filed(text_limits(text)),
    "audit": lambda text: filed(audited(text)),
    "explained_table": explained_rows,
}
"""By name a result in which whatever users name has the text that is given."""


@cache
def made(name: str, text: str = "größe a") -> Result:
    return CATALOGUE[name](text)


each_result = pytest.mark.parametrize("name", CATALOGUE)


def test_every_class_of_results_is_here():
    kinds, todo = set(), [Result]
    while todo:
        kind = todo.pop()
        children = kind.__subclasses__()
        todo += children
        if not children and kind.__module__.startswith("propopt."):
            kinds.add(kind)
    assert kinds <= set(map(type, map(made, CATALOGUE)))


# ---- files, tables, copies


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The path of each result's file, which nobody changes."""
    folder = tmp_path_factory.mktemp("contract")

    def path_of(name):
        path = folder / f"{name}.npz"
        if not path.exists():
            made(name).save(path)
        return path

    return path_of


@each_result
def test_a_file_gives_back_every_field_and_the_same_card(name, saved):
    result = made(name)
    again = type(result).load(saved(name))
    assert same(again, result)
    assert str(again) == str(result)
    assert repr(again) == repr(result)
    assert again._repr_html_() == result._repr_html_()


@each_result
def test_the_kind_of_a_file_is_in_its_header(name, saved):
    assert same(load_result(saved(name)), type(made(name)).load(saved(name)))


@each_result
def test_tables_and_their_files_are_the_same_after_loading(name, saved, tmp_path):
    result = made(name)
    again = type(result).load(saved(name))
    pd.testing.assert_frame_equal(again.to_frame(), result.to_frame(), check_exact=True)
    for write_to in ("to_csv", "to_json"):
        one, other = tmp_path / f"{write_to}.one", tmp_path / f"{write_to}.other"
        getattr(result, write_to)(one)
        getattr(again, write_to)(other)
        assert one.read_bytes() == other.read_bytes()
        assert "größe" in one.read_text(encoding="utf-8")
    written = result.to_frame()
    if not isinstance(written.index, pd.RangeIndex):
        written = written.reset_index()
    table = read_csv(tmp_path / "to_csv.one")
    assert len(table.columns) == len(written.columns)
    for (_, cells), (_, values) in zip(table.items(), written.items(), strict=True):
        if values.dtype.kind in "fiu":
            ours = values.to_numpy(float, na_value=np.nan)
            np.testing.assert_array_equal(cells.to_numpy(float), ours)
        else:
            # an absent value is an empty cell
            words = ["" if pd.isna(value) else str(value) for value in values]
            cell = ["" if pd.isna(value) else str(value) for value in cells]
            assert cell == words


@each_result
def test_other_kinds_and_folders_that_are_not_there_are_refused(name, saved, tmp_path):
    other = saved("explanation" if name == "trade_offs" else "trade_offs")
    with pytest.raises(InvalidInput, match=r"\.npz: not (a )?saved .*: .*else"):
        type(made(name)).load(other)
    for write_to in ("to_csv", "to_json", "save"):
        with pytest.raises(InvalidInput, match=r"file\S*: there is no folder .*/none$"):
            getattr(made(name), write_to)(tmp_path / "a" / "none" / "file")
    assert list(tmp_path.iterdir()) == []


@each_result
def test_copies_have_the_fields_and_nobody_writes_to_them(name):
    result = made(name)
    for way in (copy.copy, copy.deepcopy, filed, pickled, dataclasses.replace):
        again = way(result)
        assert same(again, result)
        assert again._repr_html_() == result._repr_html_()
        for value in vars(again).values():
            assert not isinstance(value, np.ndarray) or not value.flags.writeable


ORIGINALS = CATALOGUE | {
    "explanation": explained,
    "trade_offs": lambda text: dataclasses.replace(
        swept(text), optimized=(explained(text),)
    ),
    "comparison": lambda text: po.compare(explained(text), explained(text)),
    "lime": limits,
    "text_lime": text_limits,
    "audit": audited,
}
"""The same as they are computed, with program and model."""


def conclusions_of(result: Any) -> dict[str, Any]:
    """All that a result says, beside its fields."""
    words = {"repr": repr(result), "card": str(result), "html": result._repr_html_()}
    words["page"] = page_of([result.document()])
    if isinstance(result, po.results.Explanation):
        for requested in ("certain", "clear", "shares"):
            words[requested] = getattr(result, requested)()
    if isinstance(result, po.TradeOffs):
        return words | {"of one": conclusions_of(result.optimized[0])}
    if isinstance(result, LimeExplanation):
        words |= {"diagnosis": result.diagnose(), "expected": list(result.expected(50))}
        words["path"] = result.path().coefficients
    return words


@each_result
def test_copies_say_as_much_as_the_original(name):
    result = ORIGINALS[name]("größe a")
    expected = conclusions_of(result)
    for way in (copy.copy, copy.deepcopy, pickled, lambda x: copy.copy(pickled(x))):
        assert same(conclusions_of(way(result)), expected)


def test_a_pickle_says_what_it_cannot_hold():
    X = np.random.default_rng(0).normal(size=(40, 2))
    solution = po.lime.limits(po.wrap(lambda X: X[:, 0] * X[:, 1]), X[:2], data=X)
    again, expected = pickled(solution), solution.diagnose()
    assert same(again, dataclasses.replace(solution, scatter=solution.runs))
    for way in (copy.copy, copy.deepcopy):
        assert same(way(solution).diagnose(), expected)
    for later in (again, pickled(again), copy.copy(again)):
        with pytest.raises(Refused, match=r"a pickle has lost it: .*lambda"):
            later.diagnose()


BREAKING = "\r=1+1\n@b,'\"\u2028+c"


@each_result
def test_no_line_of_a_cell_is_a_formula_and_names_read_back(name, tmp_path):
    result, path = made(name, BREAKING), tmp_path / "table.csv"
    result.to_csv(path)
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {len(rows[0])}
    lines = [line for row in rows for cell in row for line in acting_lines(cell)]
    assert lines == []
    table = result.to_frame()
    if not isinstance(table.index, pd.RangeIndex):
        table = table.reset_index()
    assert len(rows) == len(table) + 1
    solution = {unescape_cell(cell) for row in rows for cell in row} | {"index"}
    there = {str(x) for x in [*table, *table.to_numpy().ravel()] if isinstance(x, str)}
    # words of documents are parted at these signs
    assert any("=1+1" in text for text in there) or name == "text_lime"
    assert there <= solution


def acting_lines(cell):
    """What a spreadsheet would compute; a number is what it says."""
    with suppress(ValueError):
        float(cell)
        return []
    pieces = re.split("[\n\r\v\f\x85\u2028\u2029]", cell)
    return [piece for piece in pieces if piece.startswith(("=", "+", "-", "@", "\t"))]


@pytest.mark.sampled(5)
def test_any_name_reads_back_from_a_table(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "table.csv"
    signs = [*"=+-@\t\r\n'\"\u2028a,1"]
    for _ in range(40):
        names = {"".join(rng.choice(signs, rng.integers(1, 6))) for _ in range(30)}
        names = sorted(names)
        table = pd.DataFrame([names], columns=names, index=names[:1])
        write_csv(path, table, names_of_rows=True)
        with open(path, newline="", encoding="utf-8") as file:
            header, row = csv.reader(file)
        assert [*map(unescape_cell, header[1:])] == names
        assert [*map(unescape_cell, row)] == [names[0], *names]
        assert not [x for cell in [*header, *row] for x in acting_lines(cell)]


# ---- forgeries


def outcome(name: str, path: Any) -> Result | None:
    """What a file holds, or None where it is refused in one sentence about it."""
    reason = ""
    try:
        return type(made(name)).load(path)
    except InvalidInput as error:
        reason = str(error)
    assert reason.startswith(f"{path}: ")
    assert len(reason.splitlines()) == 1
    assert len(reason) < 500 + len(str(path))
    assert reason == printable(reason)
    return None


HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e&\n"
ABOUT_THE_FILE = ("format", "version", "digest")


def contents(header: dict[str, Any]) -> Any:
    return plain({k: v for k, v in header.items() if k not in ABOUT_THE_FILE})


def plain(value: Any) -> Any:
    """What is not finite, as headers have it."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(plain, value))
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def is_sound(result: Result, path: Any) -> dict[str, bytes]:
    """What can be shown, and saved again: the members of its file."""
    assert str(result)
    result.save(path)
    return members_of(path)


@pytest.mark.sampled(10)
@each_result
@pytest.mark.parametrize("part", range(6))
def test_forged_headers_load_as_they_say_or_not(name, part, saved, tmp_path):
    members = members_of(saved(name))
    header, crafted = header_of(members), tmp_path / "crafted.npz"
    loaded = refused = 0
    for nth, position in enumerate(places(header)):
        for value in WEIRD[(nth + part) % 6 :: 6]:
            forged = changed(header, position, value)
            mine = with_header(members, forged)
            write(crafted, mine if position[0] in ABOUT_THE_FILE else signed(mine))
            result = outcome(name, crafted)
            loaded, refused = loaded + bool(result), refused + (not result)
            if result is not None:
                again = header_of(is_sound(result, tmp_path / "again.npz"))
                assert contents(again) == contents(forged), (position, value)
    assert refused > 2 * loaded


@pytest.mark.sampled(5)
@each_result
def test_forged_arrays_load_as_what_they_say_or_not_at_all(name, saved, tmp_path):
    members, original = members_of(saved(name)), made(name)
    crafted = tmp_path / "crafted.npz"
    for member in [key for key in members if key != "header.npy"]:
        ours = np.load(io.BytesIO(members[member]))
        with np.errstate(invalid="ignore"):
            arrays = [*ARRAYS, *forgeries_of(ours)]
        for array in map(np.asarray, arrays):
            forged = {**members, member: npy(array)}
            write(crafted, forged)
            result = outcome(name, crafted)
            assert result is None or same(result, original)  # by the digest
            if array.dtype.kind not in "fiubcU":
                continue
            write(crafted, signed(forged))
            result = outcome(name, crafted)
            if result is not None:
                again = is_sound(result, tmp_path / "again.npz")
                now = np.load(io.BytesIO(again[member]))
                native = array.astype(array.dtype.newbyteorder("="))
                assert same(np.ascontiguousarray(now), np.ascontiguousarray(native))


@each_result
def test_what_is_gone_added_or_packed_is_refused(name, saved, tmp_path):
    members, crafted = members_of(saved(name)), tmp_path / "crafted.npz"
    header = header_of(members)
    headers = [{k: v for k, v in header.items() if k != key} for key in header]
    headers += [{**header, more: None} for more in ("more", HOSTILE)]
    forged = [with_header(members, other) for other in headers]
    forged = [signed(x) if "digest" in header_of(x) else x for x in forged]
    forged += [{k: v for k, v in members.items() if k != member} for member in members]
    for other in (*forged, signed({**members, "more.npy": npy(np.ones(3))})):
        write(crafted, other)
        assert outcome(name, crafted) is None
    write(crafted, members, zipfile.ZIP_DEFLATED)
    assert outcome(name, crafted) is None


def two_of_one_name(header: dict[str, Any]) -> None:
    labels = header.get("explanation", header)["labels"]
    labels = header["shared"][labels] if isinstance(labels, int) else labels
    labels["features"] = ["a"] * len(labels["features"])


def unknown_features(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """A reason for a feature beside all that there are."""
    header["n_features"] = 1
    arrays["best_ranks"][:] = arrays["worst_ranks"][:] = arrays["ranks"]
    header["features"] = ["new", *header["features"][1:]]
    arrays["are_groups"][:] = False


def scaled(numbers: dict[str, float], factor: float) -> None:
    """The first of a mapping of numbers is another."""
    numbers[next(iter(numbers))] *= factor


def higher(certificate: dict[str, float], key: str) -> None:
    """Above the value of the certificate by more than rounding."""
    certificate[key] = certificate["value"] * (1 + 1e-8)


def shorter(arrays: dict[str, Any], *names: str) -> None:
    """Without the first of each."""
    arrays.update({name: arrays[name][1:] for name in names})


@pytest.mark.parametrize(("line", "message"), refusals(__file__, "contradictions"))
def test_what_contradicts_itself_is_named(line, message, saved, tmp_path):
    name, _, change = line.partition(": ")
    members, crafted = members_of(saved(name)), tmp_path / "crafted.npz"
    header = header_of(members)
    arrays = {
        member.removesuffix(".npy"): np.load(io.BytesIO(data))
        for member, data in members.items()
        if member != "header.npy"
    }
    exec(change, globals() | {"h": header, "a": arrays})
    forged = {f"{key}.npy": npy(array) for key, array in arrays.items()}
    write(crafted, signed(with_header(forged, header)))
    with pytest.raises(InvalidInput, match=message):
        type(made(name)).load(crafted)


@pytest.mark.sampled(5)
@each_result
def test_a_mutated_archive_is_refused_in_one_sentence_or_sound(name, saved, tmp_path):
    rng, loads = np.random.default_rng(0), 0
    for _ in range(150):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # zipfile: two of one name
            craft(rng, saved(name), tmp_path / "crafted.npz")
        result = outcome(name, tmp_path / "crafted.npz")
        if result is not None:
            assert is_sound(result, tmp_path / "again.npz")
            assert repr(result).encode()
            assert result._repr_html_().encode()
            loads += 1
    assert 0 < loads < 150  # both kinds come up


@each_result
def test_names_are_shown_on_cards_and_pages_and_not_obeyed(name):
    result = made(name, HOSTILE)
    html, page = result._repr_html_(), page_of([result.document()])
    assert in_html(HOSTILE) in html
    assert in_html(HOSTILE) in page
    assert "<script" not in html
    assert "<script>alert" not in page
    for shown in (html, page, str(result), repr(result)):
        assert not any(map(HIDDEN.search, shown.split("\n")))
    assert printable(HOSTILE) in str(result)


@each_result
def test_a_card_says_what_is_explained_and_folds_its_settings(name):
    result = made(name)
    document = result.document()
    if "quantity" in codecs_of(type(result)):
        assert result.quantity.in_words() in document.title
    head, _, _ = result._repr_html_().partition("<details")
    texts = (document.title, document.subtitle, *document.dangers)
    for text in filter(None, texts):
        text = minus(text)
        assert in_html(text) in head
        assert " ".join(text.split()) in " ".join(str(result).split())
    assert document.subtitle
