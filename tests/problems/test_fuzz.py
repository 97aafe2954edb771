"""Whatever a problem file holds, what comes back is an answer or a line to look at."""

import contextlib
import io
import re
import resource
import signal
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from fuzz.csv_files import TABLE
from fuzz.problem_files import BASES, Case, case, dump

from propopt.cli import main
from propopt.problems import read_problem
from propopt.problems.jobs.interactions import MinipatchesSection


SECONDS, BYTES = 4.0, 2**30


class Hang(BaseException):
    """Not to be caught by what hangs."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """At most 4 s of this processor, and 1 GiB beyond what is in use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + BYTES
    before = signal.signal(signal.SIGPROF, _hang)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGPROF, before)


def _hang(*_: object) -> None:
    raise Hang(f"more than {SECONDS} s")


def ending(*arguments: object) -> tuple[int, str]:
    """The exit code of a command and what it complains of."""
    err = io.StringIO()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
        limited(),
    ):
        warnings.simplefilter("ignore")
        code = main([str(argument) for argument in arguments])
    return code, err.getvalue()


def assert_has_places(complaints: str, path: Path) -> None:
    """Each complaint has file and line, and there are few of them."""
    lines = [x for x in complaints.splitlines() if not x.startswith("warning: ")]
    assert len(lines) <= 21
    for line in lines:
        assert re.match(rf"(propopt: )?{re.escape(str(path))}:\d+: \S", line), line
        assert len(line) < len(str(path)) + 1200


def valid(seeds: range, folder: Path) -> Iterator[tuple[Case, Path]]:
    """Check files of these seeds; those that are valid."""
    for seed in seeds:
        made = case(seed)
        path = write(folder, made)
        code, complaints = ending("check", path)
        assert code in (0, 2), (seed, made.changes)
        assert bool(complaints) == bool(code)
        assert_has_places(complaints, path)
        if not code:
            yield made, path


def write(folder: Path, made: Case) -> Path:
    table = folder / made.table_name
    with contextlib.suppress(OSError):  # names that no file can have
        table.write_bytes(made.table)
    path = folder / "file.yaml"
    path.write_bytes(made.problem)
    return path


@pytest.fixture(scope="module", autouse=True)
def few_patches():
    """At most 100: each is a fit, and files may ask for ten million."""
    build = MinipatchesSection.make

    def few(section, **others):
        scheme = build(section, **others)
        return replace(scheme, n_patches=min(scheme.n_patches, 100))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MinipatchesSection, "make", few)
        yield


@pytest.fixture(scope="module", autouse=True)
def used(tmp_path_factory):
    """Packages are loaded, and have reserved their addresses, without a limit."""
    folder = tmp_path_factory.mktemp("used")
    for base in BASES:
        path = write(folder, Case(dump(base), "table.csv", TABLE, ()))
        assert main(["check", str(path)]) == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(5))
def test_each_complaint_has_file_and_line(tmp_path, seed):
    assert 0 < len(list(valid(range(60 * seed, 60 * seed + 60), tmp_path))) < 30


@pytest.mark.slow
def test_five_thousand_files(tmp_path):
    assert len(list(valid(range(1_000_000, 1_005_000), tmp_path))) > 500


MANY = pytest.param(range(2_000_000, 2_001_000), marks=pytest.mark.slow)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", [range(300, 320), MANY], ids=["some", "many"])
def test_what_is_valid_is_swept_or_refused_with_file_and_line(tmp_path, seeds):
    def job(path):
        """What runs the job of a valid file, and writes beside it."""
        command = read_problem(path).schema.job.command.removeprefix("propopt ")
        return command, "-q", "-o", str(tmp_path / "out"), str(path)

    for base in BASES:  # the packages of solvers and baselines, too
        path = write(tmp_path, Case(dump(base), "table.csv", TABLE, ()))
        assert main([*job(path)]) in (0, 4)  # an audit of wrong values, too
    for made, path in valid(seeds, tmp_path):
        code, complaints = ending(*job(path))
        assert code in (0, 2, 3, 4), made.changes
        assert_has_places(complaints, path)
