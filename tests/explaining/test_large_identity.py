"""Large tables are known by their cells: other files, other rows, damaged parts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

import propopt as po
from propopt.base import files as base_files
from propopt.base.errors import InvalidInput
from propopt.explaining import large_tables
from propopt.results.explained_table import MANIFEST


pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

N = 120
KINDS = [".parquet", ".arrow"]


def table(seed, n=N):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    frame["count"] = rng.integers(0, 5, n).astype(float)
    return frame


X, X_NEW = table(0), table(1)
Y = X.a * X.b + X["count"] + 3.0  # the intercept is not zero
MODELS = {
    "lightgbm": LGBMRegressor(n_estimators=5, num_leaves=6, verbose=-1, n_jobs=1),
    "sklearn": HistGradientBoostingRegressor(max_iter=5, max_leaf_nodes=6),
}


@pytest.fixture(scope="module", params=MODELS)
def explainer(request):
    model = MODELS[request.param].fit(X, Y)
    return po.Explainer(model, data=X).fit(progress=False)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of 32 rows, which are explained in blocks of eight."""
    monkeypatch.setattr(large_tables, "_PART_ROWS", 32)
    monkeypatch.setattr(large_tables, "_BLOCK_ROWS", 8)


def store(rows, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(rows, pd.DataFrame):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if path.suffix == ".parquet":
        pq.write_table(rows, path, compression="none", use_dictionary=False)
    else:
        feather.write_feather(rows, path, compression="uncompressed")


def bytes_of(folder) -> dict[str, bytes]:
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


# ---- Other data under the same names


def resumed(explainer, source, to):
    """Whether a run that lacks its last part continues; nothing else is changed."""
    (to / "part-000003.parquet").unlink(missing_ok=True)
    before = bytes_of(to)
    try:
        explainer.explain(source, to=to)
    except InvalidInput as error:
        told = str(error)
    else:
        return True
    assert "are of another table" in told
    assert bytes_of(to) == before
    return False


def test_changed_cells_are_another_table(kind, explainer, tmp_path, monkeypatch):
    monkeypatch.setattr(large_tables, "_PART_ROWS", 4096)
    monkeypatch.setattr(large_tables, "_BLOCK_ROWS", 4096)
    rows = X_NEW.loc[np.arange(13_000) % N].reset_index(drop=True)
    path = tmp_path / f"rows{kind}"
    store(rows, path)
    explainer.explain(path, to=tmp_path / "to", progress=False)
    whole, size = bytes_of(tmp_path / "to"), path.stat().st_size
    rows.loc[31:61, "a"] = rows.loc[30:60, "a"].to_numpy()
    store(rows, path)
    assert path.stat().st_size == size
    assert not resumed(explainer, path, tmp_path / "to")
    rows.loc[31:61, "a"] = X_NEW.a[31:62].to_numpy()
    store(rows, path)
    assert resumed(explainer, path, tmp_path / "to")
    assert bytes_of(tmp_path / "to") == whole


# ---- Damaged parts


def test_a_damaged_part_is_made_again(kind, explainer, tmp_path):
    store(X_NEW.assign(id=range(N)), tmp_path / f"rows{kind}")
    explained = explainer.explain(
        tmp_path / f"rows{kind}", to=tmp_path / "to", keep=["id"]
    )
    whole = bytes_of(tmp_path / "to")
    part = tmp_path / "to" / "part-000001.parquet"
    content = whole[part.name]
    rng = np.random.default_rng(0)
    middle = len(content) // 2
    zeroed = content[: middle - 200] + bytes(400) + content[middle + 200 :]
    damages = [zeroed, content[:-1], content[:300], b"", content + b"\0"]
    damages += [whole["part-000002.parquet"]]
    for place in rng.integers(0, len(content), 40):
        changed = bytearray(content)
        changed[place] ^= 1 << rng.integers(8)
        damages.append(bytes(changed))
    for damage in damages:
        part.write_bytes(damage)
        parts = explained.parts()
        assert len(next(parts)) == 32
        with pytest.raises(
            InvalidInput, match=r"part-000001\.parquet: .*damaged.*again"
        ):
            next(parts)
        explainer.explain(tmp_path / f"rows{kind}", to=tmp_path / "to", keep=["id"])
        assert bytes_of(tmp_path / "to") == whole


def test_sums_that_were_changed_are_not_loaded(explainer, tmp_path):
    explainer.explain(X_NEW, to=tmp_path / "to")
    part = tmp_path / "to" / "part-000001.parquet"
    content = part.read_bytes()
    place = content.rindex(b'"sizes"') + 12  # a digit of a sum
    digit = content[place : place + 1]
    assert digit.isdigit()
    other = b"3" if digit != b"3" else b"4"
    part.write_bytes(content[:place] + other + content[place + 1 :])
    pq.read_table(part)  # other programs see nothing
    with pytest.raises(InvalidInput, match="1 of 4 parts are missing or broken"):
        po.results.ExplainedTable.load(tmp_path / "to")


# ---- Two runs in a folder, and what killed ones leave


def owner(pid, start, machine=None):
    machine = base_files.platform.node() if machine is None else machine
    return f".propopt-lock-{pid}-{start:.0f}-{machine}-x1"


def test_a_second_run_waits_and_leaves_the_drafts_of_the_first(explainer, tmp_path):
    explainer.explain(X_NEW, to=tmp_path / "to")
    (tmp_path / "to" / "part-000001.parquet").unlink()
    draft = tmp_path / "to" / ".draft-0000-x.parquet"
    draft.touch()
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        start = base_files.psutil.Process(other.pid).create_time()
        lock = tmp_path / "to" / owner(other.pid, start)
        lock.touch()
        before = bytes_of(tmp_path / "to")
        with pytest.raises(
            InvalidInput, match=rf"another run .*delete .*lock-{other.pid}-"
        ):
            explainer.explain(X_NEW, to=tmp_path / "to")
        assert bytes_of(tmp_path / "to") == before
    finally:
        other.kill()
    # it is a zombie: nobody has asked for its exit code yet
    explainer.explain(X_NEW, to=tmp_path / "to")
    other.wait()
    assert not draft.exists()
    assert not lock.exists()


def test_locks_of_other_processes(explainer, tmp_path):
    explainer.explain(X_NEW, to=tmp_path / "to")
    this = base_files.psutil.Process()
    for name, is_held in {
        owner(
            this.pid, this.create_time() - 1000
        ): False,  # an earlier one of this number
        owner(2**22 + 1, 0.0): False,
        owner(1, 0.0, "another-machine"): True,  # which this one cannot ask
        owner(this.pid, this.create_time()): True,  # another thread
    }.items():
        lock = tmp_path / "to" / name
        lock.touch()
        if is_held:
            with pytest.raises(InvalidInput, match="wait for it, or"):
                explainer.explain(X_NEW, to=tmp_path / "to")
            assert lock.exists()
            lock.unlink()  # as the message says
        explainer.explain(X_NEW, to=tmp_path / "to")
        assert not lock.exists()


def test_a_folder_of_a_run_that_was_killed_before_its_manifest(explainer, tmp_path):
    folder = tmp_path / "to"
    folder.mkdir()
    (folder / ".draft-1234abcd-x.json").write_text("{")
    (folder / owner(2**22 + 1, 0.0)).touch()
    explainer.explain(X_NEW, to=folder)
    assert sorted(bytes_of(folder)) == [
        MANIFEST,
        *(f"part-{n:06}.parquet" for n in range(4)),
    ]


KILLED = """
import sys
from test_large_identity import *
large_tables._PART_ROWS = large_tables._BLOCK_ROWS = 4
model = MODELS["sklearn"].fit(X, Y)
po.Explainer(model, data=X).fit(progress=False).explain(sys.argv[1], to=sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_killed_continues_with_the_same_bytes(sent, kind, tmp_path):
    rows = pd.concat([X_NEW] * 10, ignore_index=True)
    store(rows, tmp_path / f"rows{kind}")
    where = [sys.executable, "-c", KILLED, str(tmp_path / f"rows{kind}")]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])
    }
    subprocess.run([*where, str(tmp_path / "once")], check=True, env=env)
    folder = tmp_path / "to"
    for few in (1, 60, 150):
        process = subprocess.Popen(
            [*where, str(folder)], env=env, stderr=subprocess.DEVNULL
        )
        while process.poll() is None and len([*folder.glob("part-*")]) < few:
            time.sleep(0.01)
        process.send_signal(sent)
        process.wait()
    assert process.returncode != 0
    subprocess.run([*where, str(folder)], check=True, env=env)
    assert bytes_of(folder) == bytes_of(tmp_path / "once")


# ---- What is typed


def test_a_model_of_arrays_takes_all_columns_but_those_to_keep(kind, tmp_path):
    explainer = po.Explainer(Ridge().fit(X.to_numpy(), Y), data=X.to_numpy()).fit()
    rows = X_NEW.assign(id=range(N)).set_index(X_NEW.index[::-1])
    store(pa.Table.from_pandas(rows), tmp_path / f"rows{kind}")  # with an index
    with pytest.raises(InvalidInput, match="X: expected 4 columns, got 5"):
        explainer.explain(tmp_path / f"rows{kind}", to=tmp_path / "to")
    explained = explainer.explain(
        tmp_path / f"rows{kind}", to=tmp_path / "to", keep=["id"]
    )
    expected = explainer.explain(X_NEW.to_numpy()).attributions
    assert explained.attributions.tobytes() == expected.tobytes()
    assert pd.concat([*explained.parts(["id"])])["id"].tolist() == [*range(N)]


def test_other_libraries_of_tables_are_explained_too(explainer, tmp_path):
    polars = pytest.importorskip("polars")
    whole = explainer.explain(X_NEW, to=tmp_path / "pandas")
    rows = polars.DataFrame({name: X_NEW[name].to_numpy() for name in X_NEW})
    explained = explainer.explain(rows, to=tmp_path / "polars")
    assert explained.attributions.tobytes() == whole.attributions.tobytes()
