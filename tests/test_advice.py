"""Advice in messages is carried out, literally, and keeps what a model predicts.

Messages with code are collected from the source. Each needs a case of ``advice.txt`` in
which the message is provoked and its code executed.
"""

import ast
import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import situations
from advice import HOLE, messages, pieces_of


LINES = Path(__file__).with_name("advice.txt").read_text(encoding="utf-8")
NAMES = vars(situations)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def cases():
    """The name, the provoking line, the bindings and the remedy of each case."""
    for block in LINES.strip().split("\n\n")[1:]:
        name, provoking, *bound, remedy = block.split("\n    ")
        yield pytest.param(provoking, bound, remedy.removeprefix("→ "), id=name)


CASES = [*cases()]
MESSAGES = messages()


@cache
def pattern(text: str) -> re.Pattern[str]:
    """Text of the source as a pattern of messages, with holes and dots as anything."""
    parts = re.split(f"({HOLE}|\\.\\.\\.)", text)
    return re.compile(
        "".join(".*?" if p in (HOLE, "...") else re.escape(p) for p in parts), re.S
    )


@cache
def message_of(line: str) -> str:
    """The message of the error, or of the warnings, of a line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(line, NAMES)
        except Exception as error:  # noqa: BLE001  # of any kind
            return f"{error}\n{error.__cause__ or ''}"  # as a traceback
    assert caught, f"{line} neither fails nor warns"
    return "\n".join(str(one.message) for one in caught)


def prediction(line: str, names) -> object:
    """The model's own prediction for the rows of a line of po.explain, or None."""
    tree = ast.parse(line, mode="eval").body
    if not (isinstance(tree, ast.Call) and ast.unparse(tree.func) == "po.explain"):
        return None
    model, rows = (eval(ast.unparse(x), {**NAMES, **names}) for x in tree.args[:2])
    for method in ("predict_proba", "predict"):
        if hasattr(model, method):
            try:
                return np.asarray(getattr(model, method)(rows), float)
            except (ValueError, TypeError, AttributeError):
                return None  # the model cannot predict before
    return None


def advised(text: str) -> list[str]:
    return re.findall(r"«(.*?)»", text)


def carry_out(message: str, provoking: str, names, remedy: str) -> None:
    """Execute a remedy that the message has, and compare predictions of the model."""
    literal = [piece for one in pieces_of(message) for piece in (one, *nested(one))]
    for code in advised(remedy):
        assert any(pattern(piece).fullmatch(code) for piece in literal), message
    before = prediction(provoking, {})
    line = remedy.replace("«", "").replace("»", "")
    assert eval(line, {**NAMES, **names}) is not None
    after = prediction(line, names)
    if before is not None and after is not None:
        np.testing.assert_allclose(after, before, rtol=1e-6)


@pytest.mark.parametrize(("provoking", "bound", "remedy"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_advice_works_and_keeps_the_prediction(provoking, bound, remedy):
    message, names = message_of(provoking), {}
    assert advised(remedy)
    for one in bound:
        name, _, value = one.partition(" = ")
        names[name] = eval(value, {**NAMES, **names})
    carry_out(message, provoking, names, remedy)


_CODE = ast.Call | ast.ListComp


def nested(piece: str) -> list[str]:
    """The parts of a piece that are calls: of its inner calls and without its end."""
    tree = ast.parse(piece.replace("...", "_dots").replace(HOLE, "_hole"), mode="eval")
    inner = [ast.unparse(x) for x in ast.walk(tree) if isinstance(x, _CODE)]
    return [x.replace("_dots", "...").replace("_hole", HOLE) for x in inner]


def key(message) -> str:
    """The file and the code of a message, which stay if lines move."""
    return f"{message.place.partition(':')[0]}: {'; '.join(message.pieces)}"


def is_covered(message) -> bool:
    """Whether a case provokes a message and executes code of it."""
    texts = [x for one in message.pieces for x in (one, *nested(one))]
    pieces = [pattern(text) for text in texts]
    return any(
        any(x.fullmatch(code) for code in advised(remedy) for x in pieces)
        and provokes(provoking, message)
        for provoking, _, remedy in (case.values for case in CASES)
    )


def provokes(line: str, message) -> bool:
    """Whether a line gives a message; taken for granted if a library is absent."""
    try:
        return pattern(message.text).search(message_of(line)) is not None
    except pytest.skip.Exception:
        return True


NO_ADVICE = re.compile(
    r"problems/subject/onnx\.py: tensor|\bf\(x\)$|interactions/learning\.py: \w+\(s\)"
    r"|structures/tfidf/vectorisers\.py: □\(input=□\)|metrics/metric\.py: □\(□\)"
)
"""Types of ONNX, a formula, plurals, and shown settings."""

NEXT_STEPS = re.compile(r": print\((iloco|explainer)\.")
"""What printed estimators say, which ``test_mistakes`` executes."""


@pytest.mark.filterwarnings("ignore")
def test_every_message_with_code_is_executed():
    keys = {key(message) for message in MESSAGES}
    keys -= {key(message) for message in MESSAGES if is_covered(message)}
    keys = {x for x in keys if not NO_ADVICE.search(x) and not NEXT_STEPS.search(x)}
    assert keys == set()
