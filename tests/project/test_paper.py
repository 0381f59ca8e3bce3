"""Every experiment of the paper runs, quickly and small."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

if not (ROOT / "benchmarks" / "paper").is_dir():
    pytest.skip("the benchmarks are not part of this copy", allow_module_level=True)
pytest.importorskip("spams", reason='the experiments need pip install ".[bench]"')

from benchmarks.paper.__main__ import EXPERIMENTS, main
from benchmarks.paper.data import PLACES, Data
from benchmarks.paper.frame import Study, markdown
from smalto import encode
from smalto.coders import Lasso


@pytest.fixture(autouse=True)
def without_data(monkeypatch):
    monkeypatch.delenv("SMALTO_DATA", raising=False)


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    """One folder for all: experiments share parts."""
    return tmp_path_factory.mktemp("paper")


def finite(value):
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment(name, out, capsys):
    assert main([name, "--quick", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    for ending in ("png", "svg", "json", "md"):
        assert (out / f"{name}.{ending}").stat().st_size > 100
        assert f"{name}.{ending}" in printed
    content = json.loads((out / f"{name}.json").read_text())
    assert content["experiment"] == name
    assert content["quick"] is True
    assert content["machine"]["cores"] >= 1
    assert content["results"]
    assert finite(content["results"])
    assert content["verdicts"]
    for verdict in content["verdicts"]:
        assert set(verdict) == {"claim", "held", "evidence"}
        assert isinstance(verdict["held"], bool)
        assert verdict["claim"].endswith(".")
    check = globals().get(f"check_{name}")
    if check is not None:
        check(content["results"])


def check_online_batch(results):
    curves = results["A"]["curves"]
    assert set(curves) == {
        "OL1", "OL2", "OL3", "smalto's defaults", "batch, 1,024", "batch, 4,096",
    }  # fmt: skip
    for runs in curves.values():
        for run in runs:
            assert len(run["samples"]) == len(run["seconds"]) == len(run["cost"])
            assert run["seconds"] == sorted(run["seconds"])
            assert run["cost"][-1] < 0.4


def check_sgd(results):
    assert {"SG1", "SG2", "SG3"} < set(results["A"]["curves"])
    grid = results["tuning"]
    assert np.shape(grid["cost"]) == (len(grid["a"]), len(grid["b"]))


def check_nmf(results):
    for label, curves in results.items():
        rule = {"NMF": "Lee and Seung", "NNSC": "Hoyer"}[label.split()[0]]
        cost = curves[rule]["cost"]
        assert cost == sorted(cost, reverse=True)


def check_features(results):
    for methods in results.values():
        assert len(methods) == 6
        assert methods["PCA"]["density"] == 1.0
        assert methods["SPCA, τ = 10 %"]["density"] < methods["SPCA, τ = 70 %"]["density"]


def check_genomics(results):
    best = results["best_pmd"]
    assert np.shape(results["OL"]) == np.shape(results[best]) == (2, 3, 2)
    assert np.mean(results["OL"]) > 0.7


def check_projections(results):
    assert results["pieces"]["pieces"] == sorted(results["pieces"]["pieces"])


def check_convergence(results):
    assert results["exponents"]["‖Dₜ − Dₜ₋₁‖"] < -0.5
    assert len({len(results[key]) for key in ("t", "surrogate", "cost", "residual")}) == 1


def study(tmp_path, folder=None):
    return Study("some", True, 0.01, Data(folder), tmp_path)


def test_an_interrupted_run_goes_on(tmp_path, capsys):
    calls = []

    def compute():
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return {"numbers": [1.5, 2.0], "word": "x", "array": np.arange(3.0)}

    def go(seeds):
        return [study(tmp_path).part("thing", {"seed": seed}, compute) for seed in seeds]

    with pytest.raises(KeyboardInterrupt):
        go([0, 1, 2])
    first, second, third = go([0, 1, 2])
    assert len(calls) == 4  # the first of them was kept
    assert first["numbers"] == second["numbers"] == third["numbers"] == [1.5, 2.0]
    assert first["array"].tolist() == [0.0, 1.0, 2.0]
    assert not list((tmp_path / "parts").glob("*.half"))


def test_interrupt_ends_with_130_and_fresh_forgets(tmp_path, monkeypatch, capsys):
    import benchmarks.paper.projections as module

    def interrupted(study):
        study.part("kept", {}, lambda: {"x": 1})
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run", interrupted)
    assert main(["projections", "--quick", "--out", str(tmp_path)]) == 130
    assert "are kept" in capsys.readouterr().out
    assert len(list((tmp_path / "parts").iterdir())) == 1

    def failing(study):
        raise RuntimeError("no")

    monkeypatch.setattr(module, "run", failing)
    assert main(["projections", "--quick", "--fresh", "--out", str(tmp_path)]) == 1
    assert "failed: projections" in capsys.readouterr().out
    assert not (tmp_path / "parts").exists()


def test_missing_data_is_named_and_replaced(tmp_path, capsys):
    data = Data(tmp_path)
    X, shape, source = data.vectors("D", 50, center=True)
    assert X.shape == (50, 64)
    assert shape == (8, 8)
    assert source == "digits"
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(X.mean(axis=1), 0, atol=1e-6)
    assert data.vectors("E", 20, center=False)[0].min() >= 0
    assert data.vectors("F", 20, center=False)[1] == (16, 16)
    assert data.genomes().source == "made up"
    assert data.photo()[1] == "flower"
    printed = capsys.readouterr().out
    for pattern, what, _ in PLACES.values():
        assert pattern in printed
        assert what in printed
    assert len(data.missing) == len(PLACES)


def test_data_of_a_folder_is_used(tmp_path, capsys):
    folder = tmp_path / "cbcl_faces"
    folder.mkdir()
    rng = np.random.default_rng(0)
    faces = rng.integers(0, 255, (30, 5, 4), dtype=np.uint8)
    faces[3] = 7  # constant: no direction once it is centred
    np.savez(folder / "cbcl_faces.npz", train=faces)
    data = Data(tmp_path)
    assert data.fingerprint() == "cbcl"
    X, shape, source = data.vectors("D", 100, center=True)
    assert X.shape == (29, 20)
    assert shape == (5, 4)
    assert source == "MIT-CBCL faces"
    assert not data.missing
    assert not capsys.readouterr().out


def test_multiplicative_rules_lower_the_cost():
    from benchmarks.paper.multiplicative import hoyer, lee_seung

    rng = np.random.default_rng(0)
    X = rng.random((40, 5)) @ rng.random((5, 12))
    for lam in (0.0, 0.1):
        D, codes, costs = rng.random((5, 12)), rng.random((40, 5)), []
        D /= np.linalg.norm(D, axis=1, keepdims=True)

        def watch(codes, D, costs=costs, lam=lam):
            costs.append(0.5 * np.sum((X - codes @ D) ** 2) + lam * codes.sum())
            return len(costs) == 300

        if lam:
            hoyer(X, D, codes, lam, watch)
        else:
            lee_seung(X, D, codes, watch)
        assert (np.diff(costs) <= 1e-9 * costs[0]).all()
        assert min(D.min(), codes.min()) >= 0
        np.testing.assert_allclose(np.linalg.norm(D, axis=1), 1)
        if lam:  # little is left to gain from better codes
            best = encode(X, D, Lasso(lam, positive=True)).toarray()
            cost = 0.5 * np.sum((X - best @ D) ** 2) + lam * best.sum()
            assert cost <= costs[-1] < 1.03 * cost
        else:
            assert costs[-1] < 0.01 * costs[0]


def test_markdown():
    assert markdown(["a", "b"], [["x", 1.23456], [None, 2]]) == (
        "| a | b     |\n|---|-------|\n| x | 1.235 |\n|   | 2     |"
    )
