"""Problem files with something wrong: made by a seed, the same every time."""

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fuzz.csv_files import TABLE, bytes_changed, cut, odd_table


@dataclass(frozen=True)
class Case:
    """A problem file and the table beside it, as bytes, and what was done to them."""

    problem: bytes
    table_name: str
    table: bytes
    changes: tuple[str, ...]


SHIPPED = Path(__file__).parents[3] / "problems"
SOUND = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
BASES = tuple(yaml.safe_load_all(SOUND.replace("SHIPPED", str(SHIPPED))))

NUMBERS = [
    "0", "-0", "-1", "1", "2", "3", "1.5", "-1e-3", "1e-320", "5e-324", "1e-8", "1e8",
    "1e308", "-1.7e308", "1e400", ".nan", ".inf", "-.inf", "1000000000", "1" + 18 * "0",
    "1" + 400 * "0", "1" + 5000 * "0", 4000 * "1" + ".5", "0x" + 3000 * "f", "0b11",
    "017", "1_000", "1:30:00", ":".join(900 * ["1"]), ":".join(400 * ["1"]) + ".5",
    "0x" + 900 * "f", "4294967296", "10000001", "99999",
]  # fmt: skip
WORDS = [
    "", "~", "true", "no", "=", "<<", "'<<'", "''", '"\\0"', '"\\ud800"', '"\\e[31m"',
    '"a\\nb"', "2024-01-01", "x", "y", "a", "chain", "knn", "gaussian", "grid_gaussian",
    "complete", "correlation", "l1", "max", "iris", "diabetes", "mlp", "linear",
    "regression", "classification", "margin", "probability", "value", "log_odds",
    "exponential", "interactions", "sparsity", "city", "label", "inductive", "subset",
    "table.csv", ".", "/dev/null", "CLARABEL", "spectral", "conic", "krylov",
    5000 * "x", 'é☃', "@x", "`x`", "%x", "-50%", "-0%", "50%", "knee",
]  # fmt: skip
TAGGED = [
    "!!int ''", "!!int x", "!!bool x", "!!float x", "!!float ''", "!!null x",
    "!!str 3", "!!int [1]", "!!map x", "!!seq {}", "!!str [a]", "!!binary aGk=",
    "!!timestamp 2001-01-01", "!!set {a}", "!!omap [a: 1]", "!!merge x", "!!value x",
    "!!python/object/apply:os.getcwd []", "!local x", "!<tag:x,2000:y> z", "! x",
]  # fmt: skip
NESTED = [
    "&n 3", "*n", "*unknown", "&n [*n]", "&n {a: *n}", "[]", "{}", "[[]]", "[{}]",
    "{a: 1}", "{? [1]: 2}", "{? {a: 1} : 2}", "[1, [2]]", "[1, 2, 3]", "[a, a]",
    "{", "]", "'", '"', "- x", "a: b", "#", "|", ">", "&", "*", "!", "[0.1, 1, 1e300]",
    "{low: 0, high: 1, points: 3}", "{low: 1, high: 1e9, points: 1000000000}",
    "{low: 1, high: 9, points: 100000}", "{<<: {a: 1}}", "{kind: chain}",
    "{kind: complete}", "{kind: pixel, height: 1000000, width: 1000000}",
    "{kind: knn, n_neighbors: 500}", "{weight: 0}", "{graph: {kind: chain}}",
    30 * "[" + 30 * "]", 3000 * "[", "[" + 3000 * "1," + "1]",
    "{uniform: {low: 0, high: 1, points: 9999999, dimensions: 9999999}}",
]  # fmt: skip
KEYS = [
    "3", "~", "? [1]", "'<<'", "<<", '"a\\nb"', 3000 * "k", "on", "weight", "kind",
    "graph", "limits", "csv", "grid", "model", "function", "explain", "scale",
    "!!int 3", "standardize", "groups", "target", "sparsity", "a.b", '"\\ud800"', "''",
    "inductive", "lime", "rows", "kernel_width", "text", "vectorizer", "words",
    "interactions", "scheme", "sets", "order", "aim", "shares", "error",
    "compare", "before",
]  # fmt: skip


def case(seed: int) -> Case:
    """The problem file of a seed, with one to three things wrong with it."""
    rng = random.Random(seed)
    data = copy.deepcopy(rng.choice(BASES))
    raw: list[str] = []
    changes = [change(rng, data, raw) for change in rng.choices(IN_DATA, k=_few(rng))]
    name, table = "table.csv", TABLE
    if rng.random() < 0.4 and "csv" in str(data):
        name, table = odd_table(rng)
        if name != "table.csv" and isinstance(data.get("data"), dict):
            data["data"]["csv"] = name
        changes.append(f"table {name[:30]}")
    text = dump(data, raw)
    if rng.random() < 0.35:
        mutate = rng.choice(IN_TEXT)
        text = mutate(rng, text)
        changes.append(mutate.__name__)
    return Case(text, name, table, tuple(changes))


def _few(rng: random.Random) -> int:
    return rng.choice([0, 1, 1, 1, 2, 3])


def dump(data: Any, raw: Sequence[str] = ()) -> bytes:
    """YAML, with raw text where the data have its number between two signs of §."""
    text = yaml.safe_dump(
        data, sort_keys=False, default_flow_style=None, allow_unicode=True, width=80
    )
    for number, piece in enumerate(raw):
        text = text.replace(f"§{number}§", piece)
    return text.encode("utf-8", "surrogatepass")


def _raw(rng: random.Random, raw: list[str], *pools: list[str]) -> str:
    raw.append(rng.choice(rng.choice(pools)))
    return f"§{len(raw) - 1}§"


# ---- what may happen to data
def _places(data: Any) -> list[tuple[Any, Any]]:
    """Each container with each of its keys or positions."""
    results: list[tuple[Any, Any]] = []
    steps = data.items() if isinstance(data, dict) else enumerate(data)
    for step, value in steps:
        results.append((data, step))
        if isinstance(value, dict | list):
            results += _places(value)
    return results


def _replaced(rng: random.Random, data: Any, raw: list[str]) -> str:
    container, step = rng.choice(_places(data))
    pools = (NUMBERS, NUMBERS, NUMBERS, WORDS, TAGGED, NESTED)
    if rng.random() < 0.3:
        numbers = [(c, s) for c, s in _places(data) if isinstance(c[s], int | float)]
        container, step = rng.choice(numbers or _places(data))
    container[step] = _raw(rng, raw, *pools)
    return f"{step} replaced by {raw[-1][:40]}"


def _removed(rng: random.Random, data: Any, _: list[str]) -> str:
    container, step = rng.choice(_places(data))
    if len(_places(data)) > 1:
        del container[step]
    return f"{step} removed"


def _renamed(rng: random.Random, data: Any, raw: list[str]) -> str:
    container, step = rng.choice([p for p in _places(data) if isinstance(p[0], dict)])
    container[_raw(rng, raw, KEYS)] = container.pop(step)
    return f"{step} renamed {raw[-1][:40]}"


def _added(rng: random.Random, data: Any, raw: list[str]) -> str:
    container, _ = rng.choice(_places(data))
    value = _raw(rng, raw, NUMBERS, WORDS, NESTED, TAGGED)
    if isinstance(container, list):
        container.insert(rng.randint(0, len(container)), value)
    else:
        container[_raw(rng, raw, KEYS)] = value
    return f"{raw[-1][:40]} added"


def _grafted(rng: random.Random, data: Any, _: list[str]) -> str:
    """A part of another file, under the same name or in the place of another value."""
    source, name = rng.choice(_places(copy.deepcopy(rng.choice(BASES))))
    container, step = rng.choice(_places(data))
    graft = name if isinstance(container, dict) and rng.random() < 0.7 else step
    if isinstance(container, dict) or isinstance(graft, int):
        container[step if isinstance(container, list) else graft] = source[name]
    return f"{name} grafted"


def _wrapped(rng: random.Random, data: Any, _: list[str]) -> str:
    container, step = rng.choice(_places(data))
    container[step] = rng.choice([[container[step]], {str(step): container[step]}])
    return f"{step} wrapped"


Change = Callable[[random.Random, Any, list[str]], str]
IN_DATA: list[Change] = [
    *[_replaced] * 4, _removed, _renamed, _added, _grafted,
    _wrapped,
]  # fmt: skip


# ---- what may happen to text
def _inserted(rng: random.Random, text: bytes) -> bytes:
    """Some characters that mean something to YAML."""
    place = rng.randint(0, len(text))
    pieces = [
        b"\t", b"\0", b"\xff", b"{", b"]", b": ", b"- ", b"&a ", b"*a ", b"!!int ",
        b"\n", b"\r", b"\xc2\x85", b"\xe2\x80\xa8", b"#", b"'", b'"', b"? ", b"|\n",
    ]  # fmt: skip
    return text[:place] + rng.choice(pieces) + text[place:]


def _lines_changed(rng: random.Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    place = rng.randrange(len(lines))
    line = lines[place]
    new = [[], [line, line], [b"  " + line], [b"\t" + line], [line.strip()]]
    lines[place : place + 1] = rng.choice(new)
    return b"\n".join(lines)


def _encoded(rng: random.Random, text: bytes) -> bytes:
    readable = text.decode("utf-8", "replace") + "# é"
    encodings = ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "cp1252")
    return readable.encode(rng.choice(encodings), "replace")


def _headed(rng: random.Random, text: bytes) -> bytes:
    heads = [b"%YAML 9.9\n---\n", b"%TAG ! x\n---\n", b"---\n", b"...\n", b"--- |\n"]
    heads += [b"%YAML 1.1\n%YAML 1.1\n---\n", b"a: b\n---\n", b"- ", b"!!map\n", b"? "]
    return rng.choice(heads) + text


def _bombed(rng: random.Random, text: bytes) -> bytes:
    """More than it seems: aliases, merges, depth, or length."""
    width, kind = rng.choice([2, 9, 50]), rng.randrange(7)
    levels = range(1, rng.choice([4, 9, 15, 25]))
    aliases = [f"*a{n - 1}" for n in levels]
    bombs = [
        "a0: &a0 [x]\n"
        + "\n".join(
            f"a{n}: &a{n} [{', '.join(width * [aliases[n - 1]])}]" for n in levels
        ),
        "a0: &a0 {x: 1}\n"
        + "\n".join(
            f"a{n}: &a{n} {{<<: [{', '.join(width * [aliases[n - 1]])}]}}"
            for n in levels
        ),
        "deep: " + rng.choice([15, 25, 2000, 20000]) * rng.choice("[{"),
        "\n".join(f"{' ' * n}k{n}:" for n in range(rng.choice([15, 25, 900]))),
        "\n".join(f"k{n}: {n}" for n in range(rng.choice([50, 3000, 12000]))),
        "many: [" + rng.choice([1000, 20_000, 60_000]) * "1," + "1]",
        "# " + rng.choice([10, 2_000_000]) * "x",
    ]
    return text + b"\n" + bombs[kind].encode() + b"\n"


IN_TEXT = [
    bytes_changed, _inserted, _inserted, _lines_changed, cut, _encoded, _headed,
    _bombed,
]  # fmt: skip
