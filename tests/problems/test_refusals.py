"""What is wrong with a file is told before any work: by checks, and by its job."""

import re
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from problem_texts import FILE, NOTES, complaint, instead  # noqa: F401  # of refusals.txt
from refusals import refusals

import propopt as po
from propopt.base.errors import ProblemFileError
from propopt.cli import main
from propopt.problems.subject import subject


TOLD = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8")


def parts():
    """Each file, with its name and its cases."""
    for part in TOLD.partition("\n==== odd files")[0].split("\n==== ")[1:]:
        name, _, rest = part.partition("\n")
        plain, _, cases = rest.partition("\n\n")
        yield name, f"{plain}\n", f"{cases}\n"


def mistakes():
    """The text of each case, and its complaints."""
    instead_of_key = r"^= (( *\w+:).*\n)"
    lines = r"((?:^- .*\n)*)((?:^\+ .*\n)*)"
    for name, plain, cases in parts():
        for case in re.findall(r"(?m)((?:^[-+=] .*\n)+(?:^> .*\n)+)", cases):
            text = plain
            for line, key, *both in re.findall(f"(?m){instead_of_key}|{lines}", case):
                old, new = (re.sub("(?m)^. ", "", one) for one in both)
                if line:
                    old, new = re.findall(f"(?m)^{key}.*\n", text)[-1], line
                assert not old or old in text, case
                text = new.join(text.rsplit(old, 1)) if old else text + new
            message = re.findall("(?m)^> (.*)$", case)
            yield pytest.param(text, message, id=f"{name}: {message[0][:50]}")


PLAIN = {name: plain for name, plain, _ in parts()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tables."""
    made = tmp_path_factory.mktemp("refused")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("abcd"))
    frame["y"] = frame["a"] - 2 * frame["b"]
    gaps = frame[["a", "b", "y"]].assign(a=frame["a"].where(frame["a"] > 0))
    gaps.to_csv(made / "gaps.csv", index=False)
    frame["kind"] = np.where(frame["a"] > 0, "up", "down")
    frame["one"] = "same"
    frame["whole"] = np.arange(40) % 3
    frame.to_csv(made / "table.csv", index=False)
    (made / "notes.csv").write_text(NOTES, encoding="utf-8")
    return made


@pytest.fixture
def told(folder, capsys):
    """The complaints about a text, without the name of its file."""
    path = folder / "file.yaml"

    def told_by(text, *command, code=2):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert main([*command, str(path)]) == code
        lines = capsys.readouterr().err.replace(f"{folder}/", "").splitlines()
        assert all(line.startswith("file.yaml:") for line in lines)
        return [line.removeprefix("file.yaml:") for line in lines]

    return told_by


@pytest.fixture
def message(told):
    """What a check says of a text within 4 s."""

    def check(text):
        began = time.process_time()
        lines = told(text, "check")
        assert time.process_time() - began < 4.0
        return lines

    return check


@pytest.mark.parametrize("name", PLAIN)
def test_without_mistakes_nothing_is_told_nor_fitted(told, name, monkeypatch):
    monkeypatch.setattr(subject, "fit", lambda *_: pytest.fail("fitted"))
    assert told(PLAIN[name], "check", code=0) == []


@pytest.mark.parametrize(("text", "expected"), list(mistakes()))
def test_each_mistake_is_told_with_its_line_and_key(told, tmp_path, text, expected):
    job = (re.findall(r"(?m)^(explain|lime|interactions):", text) or ["sweep"])[0]
    lines = told(text, job, "-q", "-o", str(tmp_path / "out"))
    assert len(lines) == len(expected)
    assert all(map(str.startswith, lines, expected)), lines


# ---- what is made to take long, or much


def multiplied(first, each, count):
    """Lines of which each stands nine times in the next."""
    many = (", ".join(9 * [f"*a{n - 1}"]) for n in range(1, count))
    lines = [each.format(n=n, many=x) for n, x in enumerate(many, start=1)]
    return FILE + "\n".join([first, *lines])


DIGITS = 400 * "0"
NETWORK = """\
data: {{sklearn: iris}}
model: {{kind: mlp, hidden: [{hidden}], target_class: setosa}}
objective: {{gradient_matching: 1}}
"""
ODD = refusals(__file__, "odd files")
ASKS_FOR_MUCH = [case for case in mistakes() if case.id.startswith(("large", "netw"))]


@pytest.mark.parametrize(("text", "expected"), ASKS_FOR_MUCH)
def test_what_asks_for_much_is_refused_before_it_is_made(message, text, expected):
    tracemalloc.start()
    (line,) = message(text)
    assert line.startswith(expected[0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**26


@pytest.mark.parametrize(("line", "expected"), ODD)
def test_odd_files_are_refused_at_once(message, line, expected):
    first, *_ = message(eval(line))
    assert first.startswith(expected)
    assert len(first) < 1100


def test_messages_have_an_end_and_so_have_their_lists(message):
    (line,) = message(f"{FILE}name: *{5000 * 'x'}\n")
    assert line.startswith("11: not valid YAML: found undefined alias 'xxx")
    assert line.endswith("x… (5,040 characters)")
    assert len(line) < 1100
    lines = message(FILE + "\n".join(f"k{n}: 1" for n in range(12_000)))
    assert len(lines) == 21
    assert lines[19].startswith("30: k19: unknown key")
    assert lines[20] == "31: and more errors, from here on"


def test_what_is_no_file_is_refused():
    for path, printed in [
        ("/dev/zero", r"/dev/zero:1: a problem file has at"),
        ("a\0b", "cannot be read: embedded"),
        ("none.yaml", "none.yaml: cannot be read: No such file or directory"),
    ]:
        with pytest.raises(ProblemFileError, match=printed):
            po.problems.read_problem(path)


def test_code_in_a_file_is_refused_and_not_run(write, tmp_path):
    trap = tmp_path / "trap"
    call = f"name: !!python/object/apply:os.mkdir ['{trap}']\n"
    assert complaint(write(FILE + call)) == (
        "file.yaml:11: name: the tag !!python/object/apply:os.mkdir is not allowed: "
        "plain data only"
    )
    assert not trap.exists()


# options of the command line are checked as settings of the file


IRIS = {"data": {"sklearn": "iris"}, "model": {"kind": "logistic", "target_class": 1}}
ALL = {"data": {"sklearn": "iris"}, "model": {"kind": "logistic"}}
SINE = {"data": {"sklearn": "iris"}, "function": {"name": "sine"}}
WRONG = [
    ("lime", IRIS, "rows", 0),
    ("lime", IRIS, "rows", [2, -3]),
    ("explain", IRIS, "rows", 3),
    ("explain", IRIS, "kind", "slope"),
    ("audit", IRIS, "attributions", 0),
    ("audit", IRIS, "tolerance", -1.0),
    ("interactions", ALL, "order", 0),
    ("compare", IRIS, "level", "x"),
    ("objective", SINE, "solver", "CLARABELL"),
    ("objective", SINE, "tolerance", 0),
]
VALID = {
    "audit": {"attributions": "shap.csv", "output": "probability"},
    "compare": {"before": "old.yaml"},
    "objective": {"gradient_matching": 1, "sparsity": 0.1},
}


@pytest.mark.parametrize(("job", "subject", "option", "value"), WRONG)
def test_an_option_is_refused_where_the_section_refuses_it(job, subject, option, value):
    section = VALID.get(job, {})
    file = po.problems.read_sections(subject | {job: section})
    is_sweep = job == "objective"
    changed = {option: value} if is_sweep else {job: section | {option: value}}
    with pytest.raises(ProblemFileError) as of_section:
        po.problems.read_sections(subject | {job: section} | changed)
    with pytest.raises(ProblemFileError) as of_option:
        file.with_options(**{option: value})
    assert str(of_option.value) == str(of_section.value)
    assert option in str(of_option.value)


def test_a_valid_option_replaces_the_setting_of_the_file():
    file = po.problems.read_sections(IRIS | {"lime": {"rows": 2, "n_bins": 3}})
    changed = file.with_options(rows=[4, 5], n_jobs=2)
    assert (changed.job.rows, changed.job.n_bins, changed.n_jobs) == ([4, 5], 3, 2)
    assert file.job.rows == 2
    with pytest.raises(po.errors.InvalidInput, match="n_jobs"):
        file.with_options(n_jobs=0)


def test_reasons_are_added_to_a_section_without_them():
    plain = po.problems.read_sections(IRIS | {"explain": {}})
    assert plain.with_options(reasons=True).job.reasons.k == 4
    own = po.problems.read_sections(IRIS | {"explain": {"reasons": {"k": 2}}})
    assert own.with_options(reasons=True).job.reasons.k == 2
