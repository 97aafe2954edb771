"""Which faults on purpose the tests see: `python tools/mutants.py --n 100 --seed 0`.

A mutant changes one expression or drops one statement of propopt. Each statement has
the same chance, and so has each of its changes. The tests of its rooms run once, and
drawn places report which tests reach them. Only these run on the mutant, the quickest
first, until one fails. Mutants that no test can see (`mutants.txt`) are not counted.
It needs pytest and the standard library.
"""

import argparse
import ast
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple


ROOT = Path(__file__).resolve().parent.parent
MOST = 90
"""Seconds of the tests of a mutant, which may take six times as long and a minute."""

JUDGED = Path(__file__).with_suffix(".txt")
COMPARED = "Lt LtE, Lt GtE, Gt GtE, Gt LtE, Eq NotEq, Is IsNot"
OTHERS = "In NotIn, And Or, Add Sub, Mult Div"  # codespell:ignore
PAIRS = defaultdict(list)
for pair in f"{COMPARED}, {OTHERS}".split(", "):
    one, other = (getattr(ast, name) for name in pair.split())
    PAIRS[one].append(other)
    PAIRS[other].append(one)
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
NOTHING = "return", "return None"
SKIPPED = (ast.JoinedStr, ast.pattern, ast.Raise, ast.Import, ast.ImportFrom)
"""Words, patterns and messages of errors: nothing inside is changed."""

REPORTER = '''"""Reports the outcomes of tests, and which of them reach a place."""
import os
import sys

seen = {{}}
current = set()

def write(*words):
    with open({file!r}, "a", encoding="utf-8") as file:
        file.write("\\t".join(map(str, words)) + "\\n")

def reach(place):
    if place not in current:
        test = os.environ.get("PYTEST_CURRENT_TEST", " (import)")
        if sys._getframe(1).f_code.co_flags & 1:
            current.add(place)
        else:  # of a module or of a class
            test = " (import)"
        if place not in seen.setdefault(test, set()):
            seen[test].add(place)
            write("reached", place, test)

def pytest_runtest_logstart():
    current.clear()

def pytest_runtest_setup():
    current.clear()

def pytest_runtest_call():
    current.clear()

def pytest_runtest_teardown():
    current.clear()

def pytest_runtest_logreport(report):
    write(report.outcome, report.duration, report.nodeid)
'''


class Mutant(NamedTuple):
    """A part of a file, by bytes, and what replaces it."""

    path: str
    line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def room(self) -> str:
        """The folder of the file in propopt, or the file."""
        return self.path.split("/")[1].removesuffix(".py")

    @property
    def key(self) -> str:
        """File and change, which stay if lines move."""
        return " ".join(f"{self.path}: {self.old} -> {self.new}".split())


class Cost(NamedTuple):
    """What a test costs that reaches a mutant; those that do so alone are first."""

    through_others: bool  # by a fixture that another test made, or an import
    seconds: float


def changes(node: ast.AST) -> Iterator[ast.AST | str]:
    """What may stand in place of an expression or a statement."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right):
            yield from (ast.Compare(left, [kind()], right) for kind in PAIRS[type(op)])
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(PAIRS[type(op)][0](), values)
            for k in range(len(values)):
                yield ast.BoolOp(op, values[:k] + values[k + 1 :])
        case ast.BinOp(left=left, op=op, right=right):
            yield from (ast.BinOp(left, kind(), right) for kind in PAIRS[type(op)])
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield from (ast.Constant(x) for x in (value + 1, value - 1) if x != value)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Call(func=func, args=args, keywords=words):
            if isinstance(func, ast.Name) and func.id in NAMES:
                yield ast.Call(ast.Name(NAMES[func.id]), args, words)
            if len(args) > 1 and not any(isinstance(x, ast.Starred) for x in args[:2]):
                yield ast.Call(func, [args[1], args[0], *args[2:]], words)
            for k, word in enumerate(words):
                if word.arg != "strict":
                    yield ast.Call(func, args, words[:k] + words[k + 1 :])
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "pass"


def mutants_of(path: Path) -> dict[int, list[Mutant]]:
    """The mutants of each statement of a file, by its line."""
    source, begins = path.read_bytes(), [0]
    begins += [place.end() for place in re.finditer(b"\n", source)]
    found: dict[int, list[Mutant]] = defaultdict(list)

    def add(line: int, node: ast.AST, new: ast.AST | str) -> None:
        start = begins[node.lineno - 1] + node.col_offset
        end = begins[node.end_lineno - 1] + node.end_col_offset
        text = new if isinstance(new, str) else f"({ast.unparse(new)})"
        file, old = str(path.relative_to(ROOT)), source[start:end].decode()
        found[line].append(Mutant(file, line, start, end, old, text))

    def visit(node: ast.AST, line: int) -> None:
        line = node.lineno if isinstance(node, ast.stmt) else line
        for new in changes(node):
            if isinstance(new, str) or ast.unparse(new) != ast.unparse(node):
                add(line, node, new)
        if isinstance(node, ast.If):
            add(line, node.test, f"(not ({ast.unparse(node.test)}))")
        if isinstance(node, ast.Return) and ast.unparse(node) not in NOTHING:
            add(line, node.value, "None")
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(node, SKIPPED):
                    visit(child, line)

    visit(ast.parse(source), 0)
    return found


def draw(n: int, seed: int, rooms: list[str]) -> list[Mutant]:
    """Mutants of n statements of some rooms, or of all."""
    paths = sorted((ROOT / "propopt").rglob("*.py"))
    places = [x for path in paths for x in mutants_of(path).values()]
    places = [x for x in places if not rooms or x[0].room in rooms]
    rng = random.Random(seed)
    return [rng.choice(place) for place in rng.sample(places, min(n, len(places)))]


def reporting(source: bytes, mutants: dict[int, Mutant]) -> bytes:
    """A file in which the places of mutants report that they are reached."""
    parts = []
    for k, x in mutants.items():
        call, whole = f'__import__("reporter").reach({k})', x.new == "pass"
        parts.append((x.start, 1, -x.end, k, f"{call}; " if whole else f"({call} or ("))
        parts.append((x.end, 0, -x.start, -k, "" if whole else "))"))
    for place, *_, text in sorted(parts, reverse=True):  # inner ones before outer ones
        source = source[:place] + text.encode() + source[place:]
    return source


class Tree:
    """A copy of the project, in which pytest runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(".*"))
        self.reports = root.with_suffix(".reports")
        self.reports.touch()
        reporter = REPORTER.format(file=str(self.reports))
        (root / "reporter.py").write_text(reporter)

    def pytest(self, *arguments: str, limit: float = 36_000.0) -> str:
        """What pytest prints; nothing where it needs longer than so many seconds."""
        here = {"PYTHONPATH": str(self.root), "MPLBACKEND": "Agg", "COLUMNS": "300"}
        python = ["timeout", "-s", "KILL", str(limit), sys.executable, "-B", "-m"]
        options = ["pytest", "-q", "--tb=no", "-p", "reporter", "-pno:cacheprovider"]
        command = [*python, *options, *arguments]
        settings = {"cwd": self.root, "stdout": subprocess.PIPE, "text": True}
        done = subprocess.run(command, env={**os.environ, **here}, **settings)
        return done.stdout if done.returncode in range(6) else ""

    def reached(self, mutants: list[Mutant], *options: str) -> list[dict[str, Cost]]:
        """Tests that pass and reach each mutant, and what they cost.

        What a fixture reaches counts for its file, what an import reaches for its room.
        """
        for path in {x.path for x in mutants}:
            own = {k: x for k, x in enumerate(mutants) if x.path == path}
            (self.root / path).write_bytes(reporting((ROOT / path).read_bytes(), own))
        print(self.pytest(*options).splitlines()[-1], flush=True)
        for path in {x.path for x in mutants}:
            shutil.copy(ROOT / path, self.root / path)
        text = self.reports.read_text("utf-8")
        lines = [line.split("\t") for line in text.splitlines()]
        seconds: dict[str, float] = defaultdict(float)
        for outcome, number, test in lines:
            if outcome != "reached":
                seconds[test] += float(number) if outcome == "passed" else math.inf
        result: list[dict[str, Cost]] = [{} for _ in mutants]
        for k, test in ((int(k), test) for kind, k, test in lines if kind == "reached"):
            name, _, phase = test.rpartition(" (")
            own = [name]
            if phase == "setup)":
                own += [x for x in seconds if x.startswith(f"{name.split('::')[0]}::")]
            elif phase == "import)":
                own = [x for x in seconds if x.split("/")[1] == mutants[k].room]
            passed = [x for x in own if seconds.get(x, math.inf) < math.inf]
            for x in passed:
                by_itself = x == name and phase != "import)"
                cost = Cost(not by_itself, seconds[x])
                result[k][x] = min(cost, result[k].get(x, cost))
        return result

    def verdict(self, mutant: Mutant, tests: dict[str, Cost]) -> str:
        """The result of the tests that reach a mutant, the quickest first."""
        chosen, total = [], 0.0
        for test in sorted(tests, key=tests.__getitem__):
            if not chosen or total + tests[test].seconds <= MOST:
                chosen.append(test)
                total += tests[test].seconds
        source, place = (ROOT / mutant.path).read_bytes(), self.root / mutant.path
        ends = source[: mutant.start], source[mutant.end :]
        place.write_bytes(mutant.new.encode().join(ends))
        # ids with an address of memory are others in each run
        names = [x.partition("[")[0] if " at 0x" in x else x for x in chosen]
        said = self.pytest("-x", *names, limit=60 + 6 * total).splitlines()
        place.write_bytes(source)
        if said and re.match(r"\d+ passed", said[-1]):
            return f"survived {len(chosen)} of {len(tests)} tests"
        why = re.search(r"^(?:FAILED|ERROR) .*? - ([\w.]+)", "\n".join(said), re.M)
        return f"killed by {why[1] if why else 'another failure' if said else 'time'}"


def main() -> None:
    """Draw, run, and print a line for each mutant and the share that is killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--room", action="append", default=[], help="in place of all")
    asked = parser.parse_args()
    mutants = draw(asked.n, asked.seed, asked.room)
    blocks = JUDGED.read_text("utf-8").strip().split("\n\n")[1:]
    judged = dict(block.split("\n    ") for block in blocks)
    rooms = sorted({x.room for x in mutants})
    folders = [f"{top}/{room}" for top in ("tests", "propopt") for room in rooms]
    folders = [x for x in folders if (ROOT / x).is_dir()]
    shares = [folders[k :: asked.jobs] for k in range(min(asked.jobs, len(folders)))]
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(asked.jobs) as pool:
        trees = [Tree(Path(place) / f"tree{k}") for k in range(len(shares))]

        def run_once(tree: Tree, share: list[str]) -> list[dict[str, Cost]]:
            return tree.reached(mutants, "--turn", "0/5", *share)

        runs = [*pool.map(run_once, trees, shares)]

        def judge(k: int) -> str:
            tests = {test: t for run in runs for test, t in run[k].items()}
            result = "not reached"
            if mutants[k].key in judged:
                result = f"equivalent: {judged[mutants[k].key]}"
            elif tests:
                tree = trees.pop()
                result = tree.verdict(mutants[k], tests)
                trees.append(tree)
            print(f"{result:30} line {mutants[k].line} of {mutants[k].key}", flush=True)
            return result.split()[0].removesuffix(":")

        counts = Counter(pool.map(judge, range(len(mutants))))
    counted = len(mutants) - counts["equivalent"]
    print(", ".join(f"{n} {name}" for name, n in counts.most_common()))
    print(f"{100 * counts['killed'] / max(counted, 1):.0f} % of {counted} are killed")


if __name__ == "__main__":
    main()
