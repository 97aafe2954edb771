"""What a problem file may cost: each limit is named, with the line that exceeds it."""

from __future__ import annotations

import time
import tracemalloc

import pytest

import propopt as po
from propopt.base.errors import ProblemFileError


FILE = """\
data:
  grid: {low: -1, high: 1, per_dimension: 5, dimensions: 1}
function: {name: power, degree: 3}
objective:
  gradient_matching: 1
  pairwise_robustness: {weight: 1, graph: {kind: chain}}
sweep:
  pairwise_robustness: [0.1, 1]
"""


@pytest.fixture
def complaint(tmp_path):
    """The message for a text, without the folder; it takes less than four seconds."""

    def read(text):
        path = tmp_path / "file.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        began = time.process_time()
        with pytest.raises(ProblemFileError) as caught:
            po.problems.read_problem(path).check_data()
        assert time.process_time() - began < 4.0
        return str(caught.value).replace(f"{path.parent}/", "")

    return read


@pytest.fixture
def little_memory():
    """Less than 64 MiB are taken."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**26


def instead(old, new):
    assert FILE.count(old) == 1
    return FILE.replace(old, new)


# ---- aliases, depth, length


def test_merge_keys_are_refused(complaint):
    assert complaint(f"{FILE}baselines: [{{<<: {{method: gradient}}}}]\n") == (
        "file.yaml:9: baselines.0: merge keys (<<) are not read; write out what they "
        "stand for"
    )


def test_merges_that_multiply_are_refused_at_once(complaint):
    lines = ["a0: &a0 {x: 1}"]
    lines += [
        f"a{n}: &a{n} {{<<: [{', '.join(9 * [f'*a{n - 1}'])}]}}" for n in range(1, 10)
    ]
    assert "file.yaml:10: a1: merge keys (<<)" in complaint(FILE + "\n".join(lines))


def test_a_key_in_quotes_is_no_merge(complaint):
    assert "merge keys (<<)" in complaint(f"{FILE}'<<': 1\n")


def test_aliases_count_as_often_as_they_stand(complaint):
    lines = ["seed: &a0 [x, x]"]
    lines += [f"k{n}: &a{n} [{', '.join(9 * [f'*a{n - 1}'])}]" for n in range(1, 20)]
    assert complaint(FILE + "\n".join(lines)) == (
        "file.yaml:14: k5: more than 50,000 values, aliases written out"
    )


@pytest.mark.parametrize("bracket", ["[", "{a: ", "- ", "? "])
def test_depth(complaint, bracket):
    assert complaint(f"{FILE}name:\n  {5000 * bracket}") == (
        "file.yaml:10: not valid YAML: nested more than 20 levels deep"
    )


def test_number_of_values(complaint):
    text = f"{FILE}description: [{60_000 * '1,'}1]\n"
    assert complaint(text) == "file.yaml:9: not valid YAML: more than 50,000 values"


def test_length_of_a_file(complaint):
    assert complaint(f"{FILE}\n# {2**20 * 'x'}") == (
        "file.yaml:10: a problem file has at most 1,048,576 bytes; this one has more"
    )


def test_a_device_without_an_end_is_not_read_to_it():
    with pytest.raises(ProblemFileError, match=r"/dev/zero:1: a problem file has at"):
        po.problems.read_problem("/dev/zero")


# ---- messages


def test_the_first_mistakes_are_listed_and_the_others_counted(complaint):
    lines = complaint(FILE + "\n".join(f"k{n}: 1" for n in range(12_000))).split("\n")
    assert len(lines) == 21
    assert lines[19].startswith("file.yaml:28: k19: unknown key")
    assert lines[20] == "file.yaml:29: and 11,980 more mistakes, from here on"


def test_a_long_key_is_shown_in_part(complaint):
    message = complaint(f"{FILE}? {100_000 * 'k'}\n: 1\n")
    start = f"file.yaml:9: '{40 * 'k'}'… (100,000 characters): unknown key; known here"
    assert message.startswith(start)


def test_a_message_has_one_line_and_an_end(complaint):
    alias = 5000 * "x"
    message = complaint(f"{FILE}name: *{alias}\n")
    assert message.startswith("file.yaml:9: not valid YAML: found undefined alias 'xxx")
    assert message.endswith("x… (5,040 characters)")
    assert len(message) < 1100
    assert complaint(f'{FILE}"a\\nb": 1\n').startswith(r"file.yaml:9: 'a\nb': unknown")


# ---- text and tags


def test_file_that_is_not_utf8(complaint):
    not_utf8 = "cannot be read: not UTF-8 text"
    assert complaint(b"\xff\xfe\x00") == f"file.yaml:1: {not_utf8}"
    assert complaint(f"{FILE}# é\n".encode("latin-1")) == f"file.yaml:9: {not_utf8}"
    assert complaint(FILE.encode("utf-16")) == f"file.yaml:1: {not_utf8}"


def test_a_mark_of_byte_order_is_no_mistake(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text(FILE, encoding="utf-8-sig")
    assert po.problems.read_problem(path).name == "file"


def test_a_name_that_no_file_can_have():
    with pytest.raises(ProblemFileError, match=r"'a\\x00b': cannot be read: embedded"):
        po.problems.read_problem("a\0b")


TAGGED = {
    "!!int ''": "expected a whole number, got ''",
    "!!int x": "expected a whole number, got 'x'",
    "!!bool x": "expected true or false, got 'x'",
    "!!float ''": "expected a number, got ''",
    "!!float x": "expected a number, got 'x'",
    "!!int [1]": "the tag !!int is not allowed: plain data only",
    "!!map x": "the tag !!map is not allowed: plain data only",
    "!!merge x": "the tag !!merge is not allowed: plain data only",
    '"\\ud800"': "half a character is not allowed (\\ud800 to \\udfff)",
    f"1{5000 * '0'}": "expected a number of at most 1,000 characters, got 5,001",
    f"{4000 * '1'}.5": "expected a number of at most 1,000 characters, got 4,002",
    f"0x{5000 * 'f'}": "expected a number of at most 1,000 characters, got 5,002",
    f"{400 * '1:'}1.5": f"expected a number, got '{30 * '1:'}'",
    f"0x{800 * 'f'}": "expected a number <= 4,294,967,295, got 197690647898256399365422"
    "6439837963340315… (964 characters)",
}


@pytest.mark.parametrize("value", TAGGED, ids=lambda value: value[:12])
def test_a_value_that_is_none_has_its_line(complaint, value):
    assert complaint(f"{FILE}seed: {value}\n").startswith(
        f"file.yaml:9: seed: {TAGGED[value]}"
    )


# ---- numbers that ask for much

GRID = "{low: -1, high: 1, per_dimension: 5, dimensions: 1}"
LARGE = {
    ("per_dimension: 5", "per_dimension: 1000000000"): (
        "2: data.grid.per_dimension: expected a number <= 10,000,000, got 1000000000"
    ),
    ("per_dimension: 5, dimensions: 1", "per_dimension: 1000000, dimensions: 3"): (
        "2: data.grid: expected at most 10,000,000 numbers (points × dimensions), got "
        "1,000,000,000,000,000,000 × 3"
    ),
    ("dimensions: 1", "dimensions: 9000000"): (
        "2: data.grid: grid: 5^9000000 points are too many; expected at most "
        "9223372036854775807"
    ),
    (
        "high: 1",
        "high: -1",
    ): "2: data.grid: expected low < high, got low -1 and high -1",
    ("per_dimension: 5", "per_dimension: 1"): (
        "2: data.grid: per_dimension: both ends need a point; expected at least 2"
    ),
    ("dimensions: 1", "dimensions: 1, first: 6"): (
        "2: data.grid: first: the grid has only 5 points, got 6"
    ),
    (GRID, "{low: -1e308, high: 1e308, per_dimension: 5, dimensions: 1}"): (
        "2: data.grid: low and high are too far apart"
    ),
    (f"grid: {GRID}", "uniform: {low: 0, high: 1, points: 9999999, dimensions: 9}"): (
        "2: data.uniform: expected at most 10,000,000 numbers (points × dimensions), "
        "got 9,999,999 × 9"
    ),
    (
        "degree: 3",
        "degree: 1000",
    ): "3: function.degree: expected a number <= 100, got 1000",
    ("[0.1, 1]", "{low: 1, high: 2, points: 1000000000}"): (
        "8: sweep.pairwise_robustness.points: expected a number <= 100,000, got "
        "1000000000"
    ),
    ("weight: 1,", "weight: 1e308,"): (
        "6: objective.pairwise_robustness.weight: expected a number <= 1e+100, got "
        "1e+308"
    ),
    ("{kind: chain}", "{kind: gaussian, lengthscale: 1e308}"): (
        "6: objective.pairwise_robustness.graph.lengthscale: expected a number <= "
        "1e+100, got 1e+308"
    ),
    ("[0.1, 1]", "[0.1, 5e-324]"): (
        "8: sweep.pairwise_robustness.1: expected 0, or a number >= 1e-100"
    ),
    ("sweep:", "seed: 4294967296\nsweep:"): (
        "7: seed: expected a number <= 4,294,967,295, got 4294967296"
    ),
    ("sweep:", "baselines: [{method: lime, scale: [1], n_samples: 9999999}]\nsweep:"): (
        "7: baselines.0.n_samples: expected a number <= 1,000,000, got 9999999"
    ),
    (
        "sweep:",
        f"name: {300 * 'n'}\nsweep:",
    ): "7: name: expected at most 100 characters",
    ("sweep:", "sweep:\n  gradient_matching: {low: 1, high: 2, points: 99999}"): (
        "7: sweep: expected at most 100,000 combinations, got 199,998"
    ),
}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("change", LARGE, ids=lambda change: change[1][-40:])
def test_what_asks_for_much_is_refused_before_it_is_made(complaint, change):
    assert complaint(instead(*change)).startswith(f"file.yaml:{LARGE[change]}")


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "old", ["per_dimension: 5", "dimensions: 1", "degree: 3", "[0.1, 1]", "weight: 1"]
)
def test_integers_of_400_digits(complaint, old):
    new = f"{old.rstrip('135')}1{400 * '0'}" if ":" in old else f"[1{400 * '0'}]"
    assert "… (401 characters)" in complaint(instead(old, new))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        (
            "1000000000",
            "model.hidden.0: expected a number <= 10,000,000, got 1000000000",
        ),
        (
            "9999999",
            "model.hidden: expected at most 10,000,000 weights, got 79,999,995",
        ),
        (", ".join(21 * ["1"]), "model.hidden: expected at most 20 values, got a list"),
    ],
)
def test_networks_that_are_too_large(complaint, hidden, message):
    text = f"""\
data: {{sklearn: iris}}
model: {{kind: mlp, hidden: [{hidden}], target_class: setosa}}
objective: {{gradient_matching: 1}}
"""
    assert complaint(text) == f"file.yaml:2: {message}"
