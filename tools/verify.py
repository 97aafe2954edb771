"""Check a saved result with NumPy alone, independently of the code that made it.

    python tools/verify.py results/NAME.json ...      # or NAME.npz

The script derives digests; losses, from attributions, targets and graphs; objectives;
the lower bound, by strong convexity, and so the gap; sums of rows; the share of clear
signs, which is printed; the points on the trade-off curve; and statistics of scores of
interactions. Archive, tables and manifest must agree. It does not derive outputs of the
model, errors of estimated targets, largest differences, kernels, lattices, LIME's
numbers, the scores of interactions themselves, and losses off the curve.
``proofs/problem_data.py`` lists the arrays. The exit code is 1 after a contradiction.
"""

import csv
import hashlib
import json
import math
import re
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np


SUMS, SOLVED = 1e-9, 1e-6  # relative tolerances: of sums in another order, of solvers
SMALL = 0.05  # changes of a row that turn no clear sign, of the mean square row
DUST = 1e-12  # of the largest of a row; smaller ones count as zero
KINDS = {f"propopt {kind}" for kind in ("audit", "block", "certain", "clear")}
KINDS |= {f"propopt {kind}" for kind in ("comparison", "explainer", "lime", "reasons")}
KINDS |= {f"propopt {kind}" for kind in ("lime diagnosis", "main effects")}
KINDS |= {f"propopt {kind}" for kind in ("scores", "shares")}
BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
APOSTROPHES = re.compile(f"(^|[{BREAKS}])'('*)(?=[-=+@＝＋－＠\\t{BREAKS}])")


BROKEN = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)


class Contradiction(Exception):
    """Two statements of a result that contradict each other."""


def agree(words, stated, derived, scale=0.0, tolerance=SUMS):
    """Refuse numbers that differ by more than a share of the larger, or of a scale."""
    a, b = np.asarray(stated, float), np.asarray(derived, float)
    if a.shape != b.shape:
        raise Contradiction(
            f"{words}: {a.shape} numbers are stated, and {b.shape} derived"
        )
    with np.errstate(invalid="ignore"):
        most = tolerance * np.maximum(np.maximum(abs(a), abs(b)), scale)
        right = (abs(a - b) <= most) | (a == b) | (np.isnan(a) & np.isnan(b))
    if not right.all():
        k = np.unravel_index(right.argmin(), right.shape)
        raise Contradiction(f"{words}: {a[k]:.12g} is stated, {b[k]:.12g} derived")


def same(words, stated, actual):
    """Refuse words that differ."""
    if stated != actual:
        raise Contradiction(f"{words}: {stated!r} is stated, and {actual!r} expected")


def under(arrays, name):
    """The arrays of a part, by the rest of their names."""
    return {
        k[len(name) + 1 :]: x for k, x in arrays.items() if k.startswith(f"{name}.")
    }


def read_archive(path):
    """Header and arrays of a file; refused if its digest is wrong."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    text = str(arrays.pop("header"))
    stated = json.loads(text)["digest"]
    digest = hashlib.sha256("".join(text.rsplit(f', "digest": "{stated}"', 1)).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    same("digest of the archive", stated, digest.hexdigest())
    return json.loads(text), arrays


# ---- Losses at W, and how far their sum is above its minimum


def measured(problem_data, name, W):
    """Value and slope of a loss at W (N, D); sizes have none; None if not saved."""
    parts = under(problem_data, name)
    if "target" in parts:
        return float(((W - parts["target"]) ** 2).sum()), 2.0 * (W - parts["target"])
    if "sizes" in parts:
        return float(abs(W - parts["sizes"]).sum()), None
    if "totals" in parts:
        rest = (W * parts["parts"]).sum(axis=1) - parts["totals"]
        return float(rest @ rest), 2.0 * rest[:, None] * parts["parts"]
    rest = W - parts.get("offset", 0.0)
    if "neighbours" in parts:  # rows compared with fixed ones
        S = parts["similarities"] * (parts["neighbours"] >= 0)
        apart = rest[:, None] - parts["fixed"][parts["neighbours"]]
        slope = 4.0 * (S[:, :, None] * apart).sum(axis=1)
        return float(2.0 * (S * (apart**2).sum(axis=2)).sum()), slope
    for kind, view in (("rows", rest), ("columns", W.T), ("entries", W.reshape(-1, 1))):
        if kind in parts:
            (i, j), S = parts[kind].T, parts["similarities"]
            apart, slope = view[i] - view[j], np.zeros(view.shape)
            np.add.at(slope, i, 4.0 * S[:, None] * apart)
            np.add.at(slope, j, -4.0 * S[:, None] * apart)
            slope = slope.T if kind == "columns" else slope.reshape(W.shape)
            return float(2.0 * S @ (apart**2).sum(axis=1)), slope
    return None


def in_metric(label, arrays, problem_data):
    """W and the program over √ω, in the columns that move, and the rounding of W.

    Other columns are equal to the target.
    """
    W, omega = arrays["attributions"], arrays.get("metric")
    if omega is None:
        return W, problem_data, 0.0
    moves, phi = omega > 0.0, arrays["contributions"]
    if (W[:, ~moves] != phi[:, ~moves]).any():
        raise Contradiction(f"{label}: a column without ω is moved")
    scaled, root = {}, np.sqrt(omega[moves])
    for name, x in problem_data.items():
        if name.rpartition(".")[2] in ("target", "offset", "fixed"):
            x = x[:, moves] / root
        elif name.endswith(".parts"):
            x = x[..., moves] * root
        elif name.endswith(".totals"):  # minus the columns that do not move
            v = problem_data[name.replace(".totals", ".parts")]
            x = x - (v * phi)[:, ~moves].sum(axis=1)
        scaled[name] = x
    rounding = 8.0 * np.finfo(float).eps * (abs(W) + abs(phi))[:, moves] / root
    return W[:, moves] / root, scaled, rounding


def least_excess(problem_data, rates, W, rounding=0.0):
    """The excess of Σ rate · loss: at most ‖slope‖²/2m, and a term for sizes."""
    losses = {
        name: measured(problem_data, name, W)
        for name, rate in rates.items()
        if rate > 0
    }
    m = 2.0 * sum(rates[name] for name in losses if f"{name}.target" in problem_data)
    if None in losses.values() or math.inf in rates.values() or not m > 0.0:
        return None
    slope, more = np.zeros(W.shape), 0.0
    for name, (_, loss_slope) in losses.items():
        slope = slope + (0.0 if loss_slope is None else rates[name] * loss_slope)
    sizes_only = [
        name for name, (_, loss_slope) in losses.items() if loss_slope is None
    ]
    if any(f"{name}.sizes" not in problem_data for name in sizes_only):
        return None  # it has no slope, and is no sum of sizes
    for name in sizes_only:
        R, c = W - problem_data[f"{name}.sizes"], rates[name]
        Y = np.clip(m * R - slope, -c, c)
        slope, more = slope + Y, more + float((c * abs(R) - Y * R).sum())
    stiff = sum(
        4.0 * rates[name] * saved["similarities"].sum(axis=1, keepdims=True)
        for name in losses
        if "neighbours" in (saved := under(problem_data, name))
    )
    for v in (x for name, x in problem_data.items() if name.endswith(".parts")):
        square = np.maximum((v * v).sum(axis=-1, keepdims=True), 1e-300)
        slope = slope - (slope * v).sum(axis=1, keepdims=True) / square * v  # W v stays
    slope = np.maximum(abs(slope) - (m + stiff) * rounding, 0.0)
    return more + float((slope**2).sum()) / (2.0 * m)


# ---- One explanation: its losses, its bound, its sums, its signs


def check_explanation(label, header, arrays, problem_data, report):
    """Refuse losses, sums and a bound that contradict the arrays."""
    losses, proof, target = header["losses"], header["certificate"], problem_data
    whole = arrays["attributions"]
    W, problem_data, rounding = in_metric(label, arrays, problem_data)
    for name, loss in losses.items():
        derived, limit = (
            measured(problem_data, name, W),
            problem_data.get(f"{name}.limit", math.inf),
        )
        if derived is None:
            report.add(f"not derived: {name}, because its graph or target is not saved")
            continue
        size = float((W**2).sum()) + float(
            (problem_data.get(f"{name}.target", W) ** 2).sum()
        )
        agree(f"{label}: {name}", loss, derived[0], 1e-5 * size)
        if loss > limit + SOLVED * max(limit, SUMS * size):
            raise Contradiction(f"{label}: {name} is {loss:.9g}, and its limit {limit}")
    check_size(label, header["target"], target.get("gradient_matching.target"))
    for name in ("gradient", "contributions"):
        if name in arrays and "gradient_matching.target" in problem_data:
            agree(f"{label}: {name}", arrays[name], target["gradient_matching.target"])
    if proof and {"base_value", "prediction"} <= arrays.keys():
        sums = arrays["base_value"] + whole.sum(axis=1)
        size = abs(whole).sum(axis=1).max()
        agree(f"{label}: sums of rows", arrays["prediction"], sums, size, SOLVED)
        totals, parts = (target.get(f"completeness.{k}") for k in ("totals", "parts"))
        if totals is not None and not np.isin(parts, (0.0, 1.0)).all():
            raise Contradiction(f"{label}: weights of a sum are neither 0 nor 1")
        if totals is not None and parts.all():
            derived = arrays["prediction"] - arrays["base_value"]
            agree(f"{label}: totals", totals, derived, size, SOLVED)
    if proof is None:
        return
    if proof.get("n_rows"):
        report.add("not derived: the bound, which is of more rows than are saved")
        return
    weights, prices = header["weights"], header["multipliers"]
    rates = {name: float(x) for name, x in {**weights, **prices}.items()}
    for name in [k for k, x in rates.items() if math.isinf(x)]:
        if f"{name}.parts" in problem_data:  # fixed sums: W moves only along them
            del rates[name]
    start = (
        0 * W if "metric" not in arrays else problem_data["gradient_matching.target"]
    )
    value, nothing = (
        sum(rate * at(name) for name, rate in weights.items())
        for at in (
            losses.get,
            lambda k: (measured(problem_data, k, start) or [math.inf])[0],
        )
    )
    agree(f"{label}: objective", proof["value"], value)
    largest = max(value * (1 + SUMS), 1e-8 * nothing)
    if not value * (1 - SUMS) <= proof["scale"] <= largest:
        raise Contradiction(f"{label}: the gap is in units of {proof['scale']}")
    if proof["kind"] == "conic duals":  # of losses or constraints that are not saved
        report.add("not derived: the bound, from duals of a conic program")
        return
    is_written = any(
        f"gradient_matching.{k}" in problem_data for k in ("target", "sizes")
    )
    if "gradient_matching" in weights and not is_written:
        raise Contradiction(f"{label}: the target of the optimum is not saved")
    excess = least_excess(problem_data, rates, W, rounding)
    if excess is None:
        report.add(
            "not derived: the bound, for losses such as these, or limits of zero"
        )
        return
    over = {k: losses[k] - problem_data.get(f"{k}.limit", losses[k]) for k in prices}
    value += max(sum(rates[k] * x for k, x in over.items() if k in rates), 0.0)
    miss = SOLVED if prices else SUMS
    if proof["lower_bound"] > value - excess + miss * proof["scale"]:
        raise Contradiction(
            f"{label}: bound {proof['lower_bound']:.12g} is stated, and "
            f"{value - excess:.12g} derived"
        )
    report.add("derived: losses, objectives and lower bounds, so gaps")


def count_signs(header, arrays, report):
    """Count the signs that no small change of a row turns."""
    W, size = arrays["attributions"], header["row_size"]
    if "standard_errors" in arrays:
        return
    adds_up, s = header["units"] == "output", np.sign(W)
    exact = arrays.get("contributions" if adds_up else "gradient", W)
    far = 2 * W - exact if adds_up else W
    size = np.sqrt((W**2).sum(axis=1).mean()) if size is None else size
    reach = SMALL * size * math.sqrt(1 - adds_up / W.shape[1])
    dust = DUST * abs(W).max(axis=1, keepdims=True)
    clear = (s * exact > dust) & (s * far > dust) & (abs(W) > reach + dust)
    labels = header["shared"][header["labels"]]
    names = labels["features"] or [f"x{j}" for j in range(W.shape[1])]
    for group in header["together"]:
        k = [names.index(name) for name in group]
        sums = [x[:, k].sum(axis=1, keepdims=True) for x in (W, exact, far)]
        clear[:, k] &= np.all([s[:, k] * x > dust for x in sums], axis=0)
    share = clear.sum() / max((abs(W) > dust).sum(), 1)
    report.add(f"derived: {100 * share:.3g} % of signs are clear")


# ---- Tables and the manifest


def read_table(path):
    """The names of columns, and the lines as dictionaries."""
    with open(path, newline="", encoding="utf-8") as stream:
        head, *rows = csv.reader(stream)
    return head, [dict(zip(head, row, strict=True)) for row in rows]


def name_in(cell):
    """A name without the apostrophes against formulas."""
    return APOSTROPHES.sub(r"\1\2", cell)


def number(cell):
    """The number of a cell; NaN if it is empty."""
    return math.nan if cell in ("", None) else float(cell)


def check_size(where, target, values):
    """Refuse a size of the target, or no error of a sampled one."""
    if target is None or target["rms"] is None:
        return
    same(f"{where}: error of the target", target["rms"] == 0.0, target["value"] == 0.0)
    if target["size"] is None:
        same(f"{where}: entries of the target", target["n_entries"], 0)
    elif values is not None:
        count = np.count_nonzero(values)
        same(f"{where}: entries of the target", target["n_entries"], count)
        size = math.sqrt(float((values**2).sum()) / max(count, 1))
        agree(f"{where}: size of the target", target["size"], size)


def check_target(where, excess, share, source, target, interval=None):
    """Refuse an error of the target that differs from the archive."""
    value, scale = (target or {}).get("value"), (target or {}).get("scale")
    derived = math.nan if None in (value, scale) else float(value)
    derived = (
        derived / float(scale) if scale else math.inf if derived > 0.0 else derived
    )
    agree(f"{where}: sampling excess", excess, derived)
    rms, size = (number((target or {}).get(key)) for key in ("rms", "size"))
    agree(f"{where}: sampling error", share, rms / size if rms else rms)
    same(f"{where}: target", source, (target or {}).get("source", ""))
    if target and (rms == 0.0 if target["n_blocks"] else rms > 0.0):
        raise Contradiction(
            f"{where}: an exact target has no blocks, a sampled one has"
        )
    if interval is None:
        return
    if not target["n_blocks"]:
        agree(f"{where}: interval of the sampling excess", interval, [derived, derived])
    elif target["relation"] == "at most":
        same(f"{where}: least sampling excess", interval[0], 0.0)
    if not interval[0] <= derived <= interval[1]:
        raise Contradiction(f"{where}: the sampling excess is outside its interval")


def check_claims(where, claims, header, ends):
    """Refuse losses, rates, objective, gap and shares that differ from the archive."""
    proof, losses = header["certificate"], header["losses"]
    same(f"{where}: losses", sorted(claims["losses"]), sorted(losses))
    if ends is None and "recorded_shares" in claims:
        same(f"{where}: shares", claims["shares"], claims["recorded_shares"])
    for name, loss in claims["losses"].items():
        agree(f"{where}: {name}", number(loss), losses[name], tolerance=SOLVED)
        share = number(claims["shares"].get(name))
        if ends and math.isfinite(share):
            start, end = ends["at_target"][name], ends["far"][name]
            if name in ends["roots"]:
                start, end, loss = (math.sqrt(float(x)) for x in (start, end, loss))
            derived = (start - float(loss)) / (start - end)
            derived = 1.0 - derived if name in ends["faithful"] else derived
            agree(f"{where}: share of {name}", share, derived, 1.0)
    rates = {**header["weights"], **header["multipliers"]}
    for name, rate in claims["weights"].items():
        agree(f"{where}: weight of {name}", number(rate), number(rates.get(name)))
    gap = math.nan
    if proof:
        whole = sum(rate * losses[name] for name, rate in header["weights"].items())
        agree(f"{where}: objective", number(claims["objective"]), whole, 0.0, SOLVED)
        above = max(proof["value"] - proof["lower_bound"], 0.0)
        gap = above / proof["scale"] if above else 0.0
    agree(f"{where}: gap", number(claims["gap"]), gap, 1.0)


def check_names(header):
    """Refuse parts of part archive that say another unit, quantity or background."""
    parts = [header, *header.get("optimized", []), *header.get("baselines", [])]
    for key in ("units", "quantity"):
        values = [part[key] for part in parts if key in part]
        for value in values:
            same(f"{key} of parts of the archive", value, values[0])
    for part in parts:
        parameters, digest = part.get("parameters", {}), part.get("background")
        _, marker, short = str(parameters.get("background", "")).partition("sha256:")
        if marker and digest:
            same("background", short, digest[: len(short)])
    for part in parts[1:]:
        same("names of parts of the archive", part["labels"], parts[1]["labels"])


def check_manifest(manifest, header, arrays):
    """Refuse a manifest that contradicts itself or the archive."""
    problem, quantity = manifest.get("problem", {}), header.get("quantity")
    picked, target = manifest.get("picked"), header.get("target")
    if picked and target and "gradient" in manifest and not target["n_blocks"]:
        same("manifest: gradient", manifest["gradient"], target["source"])
    for key in ("name", "seed"):
        if key in manifest and key in problem:
            same(f"manifest: {key}", manifest[key], problem[key])
    stated = manifest.get("quantity")
    if stated and quantity:
        expected = {k: x for k, x in quantity.items() if k in stated}
        same("manifest: quantity", {k: stated[k] for k in expected}, expected)
        for key in ("function", "units"):
            text = str(manifest.get(key, stated["in_words"]))
            is_formula = key == "function" and text.startswith(f"{stated['model']}(")
            if stated["in_words"] not in text and not is_formula:
                raise Contradiction(f"manifest: {key} is not of {stated['in_words']}")
    shape = [manifest.get("n_points"), manifest.get("n_features")]
    if None not in shape:
        same("manifest: its size", shape, [*arrays["attributions"].shape])
    for key in ("base_value", "prediction"):
        if key in manifest and key in arrays:
            expected = np.broadcast_to(
                np.array(manifest[key], float), arrays[key].shape
            )
            agree(f"manifest: {key}", expected, arrays[key])
    if "additivity_error" in manifest:
        missed = arrays["base_value"] + arrays["attributions"].sum(axis=1)
        missed = abs(missed - arrays["prediction"])
        size = abs(arrays["attributions"]).sum(axis=1).max()
        gap = manifest["additivity_error"]
        agree("manifest: additivity_error", gap, missed.max(), size, 1e-12)
    if "units" in manifest and picked and header["format"] == "propopt explanation":
        units = manifest["units"][: len(picked["attributions"])]
        same("manifest: units", units, picked["attributions"])


def refuse_below(where, losses, best):
    """Refuse losses that are smaller than the lower bound of an optimum."""
    proof, rates = best["certificate"], best["weights"]
    if proof is None or best["multipliers"]:
        return
    value = sum(rate * losses[name] for name, rate in rates.items())
    if value < proof["lower_bound"] * (1.0 - SOLVED):
        raise Contradiction(f"{where}: its losses are below a proved bound")


def check_front(path, header, report):
    """Refuse lines on the curve that are not in the archive, and wrong flags."""
    head, lines = read_table(path)
    names, ends = header["losses"], header["ends"]
    for start in ("loss.", "weight."):
        columns = [k.removeprefix(start) for k in head if k.startswith(start)]
        same(f"{path.name}: columns {start}", columns, names if columns else [])
    if ends:
        expected = [k for k in names if k not in ends["faithful"]]
        columns = [k.removeprefix("removed.") for k in head if k.startswith("removed.")]
        same(f"{path.name}: columns removed", columns, expected)
        retained = [k for k in head if k.partition(".")[0] == "faithfulness_kept"]
        same(
            f"{path.name}: columns retained", len(retained), len(names) - len(expected)
        )
    same(
        f"{path.name}: front_error", "front_error" in head, header["error"] is not None
    )
    values = np.array([[number(line[f"loss.{k}"]) for k in names] for line in lines])
    front = np.array([line["on_front"] == "True" for line in lines])
    optima, others = iter(header["optimized"]), iter(header["baselines"])
    for n, line in enumerate(lines):
        where, optimal = f"{path.name}: line {n + 2}", line["method"] == "optimized"
        beaten = (values <= values[n]).all(axis=1) & (values < values[n]).any(axis=1)
        if front[n] == (beaten & front).any() and (optimal or front[n]):
            raise Contradiction(f"{where}: on_front: {front[n]} is stated")
        if not front[n]:
            for one in header["optimized"]:
                refuse_below(where, dict(zip(names, values[n], strict=True)), one)
            report.add("not derived: losses off the trade-off curve")
            continue
        best = next(optima if optimal else others, {"method": "nothing"})
        same(f"{where}: method", line["method"], best["method"])
        claims = {"objective": line["objective"], "gap": line["gap"], "shares": {}}
        agree(f"{where}: seconds", number(line["seconds"]), best["seconds"])
        if best["certificate"]:
            errors = (number(line[f"sampling_{x}"]) for x in ("excess", "error"))
            check_target(where, *errors, line["target"], best["target"])
        for key in (k for k in head if k.startswith("parameter.")):
            expected, cell = best["parameters"].get(key[10:]), line[key]
            if isinstance(expected, int | float) and not isinstance(expected, bool):
                agree(f"{where}: {key}", number(cell), expected)
            else:
                same(
                    f"{where}: {key}",
                    name_in(cell),
                    "" if expected is None else str(expected),
                )
        if "front_error" in head:
            agree(f"{where}: front_error", number(line["front_error"]), header["error"])
        for kind, start in (("losses", "loss."), ("weights", "weight.")):
            claims[kind] = {k: line[start + k] for k in names if start + k in head}
        for k in names:
            every = (
                line.get("faithfulness_kept")
                if ends and k in ends["faithful"]
                else None
            )
            claims["shares"][k] = line.get(
                f"faithfulness_kept.{k}", line.get(f"removed.{k}", every)
            )
        check_claims(where, claims, best, ends)
    if next(optima, None) or next(others, None):
        raise Contradiction(f"{path.name}: the archive has more points on the curve")


def check_attributions(path, header, W, shared):
    """Refuse a table with numbers or names that differ from the archive."""
    (head, lines), labels = read_table(path), shared[header["labels"]]
    columns = head[-W.shape[1] :]
    for words, named, names in (
        ("columns", columns, labels["features"]),
        ("rows", [line[head[0]] for line in lines], labels["points"]),
    ):
        if names is None:  # rows and columns without names are counted
            counted = words == "rows"
            names = [n if counted else f"x{n}" for n in range(len(named))]
        expected = [str(name) for name in names]
        same(f"{path.name}: {words}", [*map(name_in, named)], expected)
    cells = [[number(line[k]) for k in columns] for line in lines]
    agree(path.name, cells, W, tolerance=0.0)


def check_scores(path, header, arrays, settings, report):
    """Refuse statistics of scores that do not follow from scores and errors."""
    head, lines = read_table(path)
    for index, values in enumerate(arrays["sets"].T, start=1):
        names = [name_in(line[f"feature_{index}"]) for line in lines]
        same(path.name, names, [str(header["names"][k]) for k in values])
    words = ("degenerate", "reject", "used")
    it = {k: [line[k] for line in lines] for k in words}
    for k in (k for k in head if k not in words and not k.startswith("feature_")):
        it[k] = np.array([number(line[k]) for line in lines])
    saved_as = {
        "score": "scores",
        "se": "standard_errors",
        "se_mc": "monte_carlo",
    }
    saved_as |= {"n_patches_min": "counts"}
    saved_as |= {"effective_rows": "effective_rows"}
    for column, name in saved_as.items():
        agree(f"{path.name}: {column}", it[column], arrays[name], tolerance=0.0)
    total, estimate, m = np.hypot(it["se"], it["se_mc"]), it["score"], 1
    plain = (total > 0.0) & (np.array(it["degenerate"]) == "False")
    T = np.divide(estimate, total, out=np.zeros(len(total)), where=plain)
    tails = 2.0 * np.minimum(it["p_one"], 1.0 - it["p_one"])
    derived = {"se_total": total, "stat": T, "p_two": tails}
    alpha = 1.0 - settings.get("level", 0.9)
    if settings.get("side", "both") == "both":
        derived["ci_low"] = 2.0 * estimate - it["ci_high"]
    if settings.get("adjust", "bonferroni") == "bonferroni" and "ci_low" in derived:
        m = header["n_candidates"]
        derived["p_adj"] = np.minimum(it["p_two"] * m, 1.0)
    if not (header["n_groups"] or header["n_row_groups"]) and "p_adj" in derived:
        normal = np.array([math.erfc(abs(t) / math.sqrt(2.0)) for t in T])
        wide = total * NormalDist().inv_cdf(1.0 - alpha / 2.0 / m)
        derived |= {"p_two": normal, "ci_high": estimate + wide}
    else:
        report.add("not derived: quantiles of Student's law, so widths of intervals")
    for column, values in derived.items():
        agree(f"{path.name}: {column}", it[column][plain], values[plain], 1e-6)
    expected = [str(bool(p <= alpha)) for p in it["p_adj"]]
    same(f"{path.name}: reject", it["reject"], expected)
    report.add("derived: errors, statistics and p-values of scores, not the scores")


# ---- A result: its archive, tables and manifest


def is_meant(picked, header):
    """Whether an optimum has the weights, or the losses, of the picked one."""
    if not picked:
        return False
    stated, actual = picked["losses"], header["losses"]
    agrees = all(abs(stated[k] - actual[k]) <= SOLVED * abs(actual[k]) for k in stated)
    rates = {**header["weights"], **header["multipliers"]}
    return agrees or rates.items() <= picked["weights"].items()


def verify(path):
    """Sentences about what was derived; raises a contradiction."""
    base, report, manifest = Path(path).with_suffix(""), set(), {}
    files = {x: base.with_name(base.name + x) for x in (".npz", ".csv", ".json")}
    if files[".json"].exists():
        manifest = json.loads(files[".json"].read_text(encoding="ascii"))
        finished = manifest.get("finished") or {"files": {}}
        for suffix, digest in finished["files"].items():
            data = hashlib.sha256(base.with_name(base.name + suffix).read_bytes())
            same(f"digest of {base.name}{suffix}", digest, data.hexdigest())
    if not files[".npz"].exists():
        return ["not derived: anything, because there is no archive"]
    header, arrays = read_archive(files[".npz"])
    table, kind = base.with_name(f"{base.name}_attributions.csv"), header["format"]
    check_names(header)
    picked, chosen = manifest.get("picked"), None
    if kind == "propopt interactions":
        parts = (("_interactions", header, arrays),)
        check_manifest(manifest, header, arrays)
        for key in ("n_rows", "method", "n_candidates", "error"):
            same(f"manifest: {key}", manifest.get(key, header[key]), header[key])
            if header["main"] and key in ("n_rows", "error"):
                same(f"main effects: {key}", header["main"][key], header[key])
        count = (manifest.get("patches") or {}).get("n_patches", header["n_patches"])
        same("manifest: n_patches", count, header["n_patches"])
        if header["main"]:
            for key in ("quantity", "names", "units"):
                same(f"main effects: {key}", header["main"][key], header[key])
        if "features" in manifest:
            same(
                "manifest: features", manifest["features"], [*map(str, header["names"])]
            )
        if "n_sets" in manifest:
            same("manifest: n_sets", manifest["n_sets"], len(arrays["sets"]))
        if header["main"]:
            parts += (("_main_effects", header["main"], under(arrays, "main")),)
        for name, head, part_arrays in parts:
            scores = base.with_name(f"{base.name}{name}.csv")
            if scores.exists():
                check_scores(
                    scores, head, part_arrays, manifest.get("settings", {}), report
                )
    elif kind == "propopt explanation":
        problem_data, chosen, ends = (
            under(arrays, "problem_data"),
            (header, arrays),
            None,
        )
        check_explanation(base.name, header, arrays, problem_data, report)
        count_signs(header, arrays, report)
    elif kind == "propopt trade-offs":
        problem_data, ends = under(arrays, "problem_data"), header["ends"]
        target = problem_data.get("gradient_matching.target")
        if ends and target is not None:
            size = ends["sizes"].get("gradient_matching", math.nan)
            agree("size of the target", size, (target**2).sum())
        points = [x for k, x in arrays.items() if k.endswith(".points")]
        for x in points[1:]:
            agree("points of parts of the archive", x, points[0], tolerance=0.0)
        for part in ("optimized", "baselines"):
            for n, one in enumerate(header[part]):
                part_arrays = under(arrays, f"{part}.{n}")
                check_explanation(f"{part} {n}", one, part_arrays, problem_data, report)
                if chosen is None and part == "optimized" and is_meant(picked, one):
                    chosen = (one, part_arrays)
        if picked and chosen is None:
            report.add("not derived: the picked point, which is off the curve")
        if files[".csv"].exists():
            check_front(files[".csv"], header, report)
    else:
        if kind not in KINDS:
            raise Contradiction(f"format: {kind!r} is none of propopt's")
        report.add(f"not derived: numbers of a file of {kind}; its digest is right")
    if chosen and picked:
        shares = (
            {"recorded_shares": chosen[0]["recorded_shares"]} if ends is None else {}
        )
        check_claims("picked", {**picked, **shares}, chosen[0], ends)
        error, stated = picked["sampling_error"], chosen[0]["target"]
        agree(
            "picked: rms of the sampling error",
            number(error["rms"]),
            number((stated or {}).get("rms")),
        )
        numbers = number(error["excess"]), number(error["share"]), error["source"]
        check_target("picked", *numbers, stated, error["interval"])
        for key in ("units", "solver", "parameters"):
            same(f"picked: {key}", picked[key], chosen[0][key])
        words = manifest["quantity"]["in_words"]
        if words not in picked["attributions"]:
            raise Contradiction(f"picked: attributions are not of {words}")
    if chosen and manifest:
        check_manifest(manifest, *chosen)
    if chosen and table.exists():
        check_attributions(
            table, chosen[0], chosen[1]["attributions"], header["shared"]
        )
    return sorted(report)


def main(paths):
    """Verify each; 1 if one is refused."""
    code = 0
    for path in paths:
        try:
            print(f"{path}: nothing contradicts", *verify(path), sep="\n  ")
        except (Contradiction, *BROKEN) as error:
            print(f"{path}: REFUSED: {type(error).__name__}: {error}")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
