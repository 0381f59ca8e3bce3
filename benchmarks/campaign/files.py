"""Mutilated and forged checkpoints and models: refused by name, or harmless."""

from __future__ import annotations

import functools
import json
import re
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from benchmarks.campaign.report import Report
from smalto import Model, State, coders, constraints, learn
from smalto.learners import SGD, Batch, Continuation, Online
from smalto.learning.files.container import write_file

MUTILATED = "mutilated files are refused"
FORGED = "forged fields are refused by name, or harmless"
NUMBERS: Any = [
    None, True, -1, 0, 1, 3, 10**30, -(10**30), 1e-300, 1e300, -0.5, 2.5, "", "Lasso", "1",
    {"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"list": []}, {"tuple": [1, 2]},
    {"tuple": []}, {"list": [None]}, {}, [], {"kind": "Lasso", "fields": {}},
    {"kind": "os.system", "fields": {}}, {"array": "state.D"}, {"array": "D"}, {"array": "none"},
]  # fmt: skip
FIELDS = ("setting", "statistics", "last_used", "worst", "store", "history", "atoms", "D", "memory")
SAMPLES = np.random.default_rng(5).standard_normal((40, 6))


@functools.lru_cache
def originals() -> list[tuple[str, bytes]]:
    """Return the kind and content of valid files."""
    runs: list[Any] = [
        ({"coder": coders.Lasso(0.2), "learner": Online(8)}),
        ({"coder": coders.OMP(2), "learner": Online(8, memory="replace")}),
        ({"coder": coders.Lasso(0.3, ridge=0.1), "learner": Online(8, memory="two-epochs")}),
        ({"coder": coders.GroupLasso(0.2, [0, 0, 1, 1]), "learner": Batch()}),
        ({"coder": coders.TreeLasso(0.2, [-1, 0, 0, 1]), "learner": SGD(8)}),
        (
            {
                "coder": coders.Lasso(0.2, penalty_weights=[1.0, 2.0, 3.0, 1.0]),
                "continuation": Continuation(steps=4),
                "constraint": constraints.ElasticNetBall(0.3),
            }
        ),
        ({"coder": coders.Lasso(mean_nonzeros=2), "constraint": constraints.Simplex()}),
        ({"coder": coders.Lasso(0.2), "constraint": constraints.ElasticNetBall(density=0.5)}),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.safetensors"
        for number, options in enumerate(runs):
            X = SAMPLES.astype(np.float32) if number % 2 else SAMPLES
            state = learn(X, 4, max_steps=3, random_state=0, n_threads=1, **options).state
            state.save(path)
            found.append(("state", path.read_bytes()))
            Model.of(state, {"patch": [2, 3]}).save(path)
            found.append(("model", path.read_bytes()))
    return found


def damage(rng: np.random.Generator, report: Report) -> None:
    """Damage the bytes of a file in many ways, and load it."""
    kind, content = originals()[rng.integers(len(originals()))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.safetensors"
        path.write_bytes(content)
        whole = _load(kind, path)
        for _ in range(20):
            report.cases += 1
            bad = _damaged(rng, content)
            path.write_bytes(bad)
            try:
                found = _load(kind, path)
            except ValueError as error:
                report.check(MUTILATED, str(path) in str(error), f"{kind}: {str(error)[:150]}")
            else:  # a space of the header may become another one
                same = bad == content or _same(found, whole)
                report.check(MUTILATED, same, f"{kind}: loaded")


def _load(kind: str, path: Path) -> Any:
    return State.load(path) if kind == "state" else Model.load(path)


def _same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one.D, other.D)) and repr(one.coder) == repr(other.coder)


def _damaged(rng: np.random.Generator, content: bytes) -> bytes:
    """Cut, flip, overwrite, insert or exchange bytes."""
    data = bytearray(content)
    a, b = sorted(int(i) for i in rng.integers(0, len(data), 2))
    kind = rng.integers(7)
    if kind == 0:
        del data[a:]
    elif kind == 1:
        data[a] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        data[a:b] = bytes(b - a)
    elif kind == 3:
        data[a:a] = rng.bytes(int(rng.integers(1, 50)))
    elif kind == 4:
        del data[a:b]
    elif kind == 5:
        data[:8] = struct.pack("<Q", int(rng.integers(0, 2**62)))
    else:
        data[a:b] = rng.bytes(b - a)
    return bytes(data)


def forge(rng: np.random.Generator, report: Report) -> None:
    """Write files with right checksums but one wrong field, and load and use them."""
    kind, content = originals()[rng.integers(len(originals()))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.safetensors"
        path.write_bytes(content)
        arrays = load_file(path)
        (length,) = struct.unpack("<Q", content[:8])
        settings = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["settings"])
        for _ in range(10):
            report.cases += 1
            forged, others = json.loads(json.dumps(settings)), dict(arrays)
            if rng.random() < 0.5:
                name, value = _forge_setting(rng, forged)
            else:
                name, value = _forge_array(rng, others)
            what = f"{kind}, {name} = {value}"
            try:
                write_file(path, kind, forged, others)
            except (KeyError, ValueError):  # a type that the format does not have
                continue
            _try(kind, path, name, what, report)


def _try(kind: str, path: Path, name: str, what: str, report: Report) -> None:
    """Load a forged file; if that succeeds, it must be of use."""
    try:
        found = _load(kind, path)
    except ValueError as error:
        # where two fields do not fit together, either may be named
        text = str(error).replace(str(path), "")
        words = set(re.findall(r"[A-Za-z_]\w*", " ".join([name, *FIELDS])))
        named = not name or any(re.search(rf"\b{word}\b", text) for word in words)
        report.check(FORGED, named, f"{what}: not named in {str(error)[-200:]!r}")
        return
    X = SAMPLES.astype(found.D.dtype)
    if found.D.shape[1] != X.shape[1]:
        report.check(FORGED, kind == "model", f"{what}: other features")
        return
    try:
        if kind == "model":
            values = found.encode(X, n_threads=1).toarray()
        else:
            more = {"max_steps": found.step + 2, "n_threads": 1}
            values = learn(X, len(found.D), state=found, **more).D
    except ValueError as error:
        # A model may have limits for each of so many signals, and a state be of other data.
        other = "one per signal" if kind == "model" else "the state was created from"
        fits = other in str(error)
        report.check(FORGED, fits, f"{what}: loaded, then {error!s:.120}")
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a failure)
        report.check(FORGED, False, f"{what}: loaded, then {type(error).__name__}: {error!s:.120}")
    else:
        report.check(FORGED, np.isfinite(values).all(), f"{what}: loaded, then not finite")


def _forge_setting(rng: np.random.Generator, settings: Any) -> tuple[str, Any]:
    """Change one value of the settings, in place; return its name and value."""
    places: list[tuple[Any, Any, str]] = []

    def walk(data: Any, name: str) -> None:
        items: Any = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            inner = name if key in ("fields", "kind", "tuple", "list") else f"{name}.{key}"
            if isinstance(key, int) and "info" not in name:
                inner = name
            places.append((data, key, inner))
            if isinstance(value, dict | list):
                walk(value, inner)

    walk(settings, "")
    places = [place for place in places if "info" not in place[2]]
    data, key, name = places[rng.integers(len(places))]
    value = NUMBERS[rng.integers(len(NUMBERS))]
    if isinstance(data[key], float | int) and rng.random() < 0.3:
        value = -data[key]
    data[key] = value
    return name, value


def _forge_array(rng: np.random.Generator, arrays: dict[str, Any]) -> tuple[str, str]:
    """Change one array: its type, shape or values; return its name and what was done."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    kind = int(rng.integers(9))
    flat = array.reshape(-1)
    if kind == 0:
        other = np.float64 if array.dtype != np.float64 else np.int32
        array = array.astype(other)
    elif kind == 1:
        array = array[..., :-1]
    elif kind == 2:
        array = np.concatenate([array, array])
    elif kind == 3:
        array = array.reshape(-1)
    elif kind == 4:
        array = array[:0]
    elif kind == 5 and array.dtype.kind == "f" and flat.size:
        flat[rng.integers(flat.size)] = rng.choice([np.nan, np.inf, -np.inf])
    elif kind == 6 and flat.size:
        flat[:] = -1 - np.abs(flat)
    elif kind == 7 and array.dtype.kind == "i" and flat.size:
        flat[rng.integers(flat.size)] = np.iinfo(array.dtype).max
    else:
        del arrays[name]
        return name, "removed"
    arrays[name] = np.ascontiguousarray(array)
    return name, f"change {kind}"
