"""Every experiment of the paper runs, quickly and small."""

import importlib
import json
import math
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

if not (ROOT / "benchmarks" / "paper").is_dir():
    pytest.skip("the benchmarks are not part of this copy", allow_module_level=True)
pytest.importorskip("spams", reason='the experiments need pip install ".[bench]"')

pytest.importorskip("fcntl", reason="parts are shared through locks of files")

from benchmarks.paper import page
from benchmarks.paper.__main__ import EXPERIMENTS, main
from benchmarks.paper.data import PLACES, Data
from benchmarks.paper.frame import HELD, IN_PART, NOT_HELD, Study, Task, Verdict, markdown
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
    for ending in ("png", "svg", "json"):
        assert (out / f"{name}.{ending}").stat().st_size > 100
        assert f"{name}.{ending}" in printed
    content = json.loads((out / f"{name}.json").read_text())
    assert content["experiment"] == name
    assert content["quick"] is True
    assert content["machine"]["cores"] >= 1
    assert len(content["machine"]["load_average"]) == 2
    assert content["results"]
    assert finite(content["results"])
    assert content["verdicts"]
    module = importlib.import_module(f"benchmarks.paper.{name}")
    rules = {claim.key: claim.rule for claim in module.CLAIMS}
    assert len(rules) == len(module.CLAIMS)
    for verdict in content["verdicts"]:
        assert verdict["rule"] == rules[verdict["key"]]
        assert verdict["state"] in (HELD, IN_PART, NOT_HELD)
        assert verdict["said"].endswith(".")
        assert verdict["evidence"]
    assert {len(row) for row in content["rows"]} == {len(content["header"])}
    check = globals().get(f"check_{name}")
    if check is not None:
        check(content["results"])


def test_claims_have_different_words():
    claims = [
        claim
        for name in EXPERIMENTS
        for claim in importlib.import_module(f"benchmarks.paper.{name}").CLAIMS
    ]
    assert len({claim.said for claim in claims}) == len(claims) >= 43


def check_online_batch(results):
    curves = results["A"]["curves"]
    assert set(curves) == {
        "OL1", "OL2", "OL3", "OL1, bare formula", "smalto's defaults", "batch, 1,024", "batch, 4,096",
        "OL1 on 1,024", "SPAMS", "scikit-learn",
    }  # fmt: skip
    for runs in curves.values():
        for run in runs:
            assert {len(column) for column in run.values()} == {len(run["samples"])}
            assert run["seconds"] == sorted(run["seconds"])
            assert run["cost"][-1] < results["A"]["first"]


def check_sgd(results):
    assert {"SG1", "SG2", "SG3"} < set(results["A"]["curves"])
    assert {"1e+06 0", "200000 400000"} < set(results["grid"])


def check_nmf(results):
    for label, curves in results.items():
        rule = {"NMF": "Lee and Seung", "NNSC": "Hoyer"}[label.split()[0]]
        cost = curves[rule][0]["cost"]
        assert cost == sorted(cost, reverse=True)


def check_features(results):
    for methods in results.values():
        assert len(methods) == 11
        assert methods["PCA"]["density"] == 1.0
        assert methods["SPCA, τ = 10 %"]["density"] < methods["SPCA, τ = 70 %"]["density"]
        assert methods["NMF, converged"]["focus"] > methods["NMF, 1 epoch"]["focus"]


def check_genomics(results):
    best = results["best_pmd"]
    assert np.shape(results["OL"]) == np.shape(results[best]) == (2, 3, 2)
    assert np.mean(results["OL"]) > 0.7
    paired = np.array(results["OL"])[:, :, 1] - np.array(results[best])[:, :, 1]
    np.testing.assert_allclose(results["paired"], paired, atol=1e-5)


def check_projections(results):
    assert results["pieces"]["pieces"] == sorted(results["pieces"]["pieces"])


def check_convergence(results):
    run = results["ρ = 0"]
    assert len({len(values) for values in run.values()}) == 1
    assert all(f <= s for f, s in zip(run["empirical"], run["surrogate"], strict=True))
    for residual, floor, free in zip(run["residual"], run["floor"], run["free"], strict=True):
        assert residual**2 == pytest.approx(free**2 + floor**2, rel=0.02)
    assert run["change"][-1] < 0.05 * run["change"][0]


def study(tmp_path, folder=None):
    return Study("some", True, Data(folder), tmp_path)


def test_an_interrupted_run_goes_on(tmp_path, capsys):
    calls = []

    def compute():
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return {"numbers": [1.5, 2.0], "word": "x", "array": np.arange(3.0)}

    tasks = [Task("thing", {"seed": seed}, compute) for seed in range(3)]
    with pytest.raises(KeyboardInterrupt):
        study(tmp_path).work(tasks, np.inf)
    assert study(tmp_path).work(tasks, np.inf) == []
    assert len(calls) == 4  # the first of them was kept
    for task in tasks:
        part = study(tmp_path).part(task)
        assert part["numbers"] == [1.5, 2.0]
        assert part["array"].tolist() == [0.0, 1.0, 2.0]
        assert len(part["load"]) == 2
        assert part["wall"] >= 0
    assert {path.suffix for path in (tmp_path / "parts").iterdir()} <= {".npz", ".lock"}


def test_time_that_is_over_begins_one_part_only(tmp_path, capsys):
    tasks = [Task("thing", {"seed": seed}, lambda: {"x": 1}, minutes=1.0) for seed in range(3)]
    assert study(tmp_path).work(tasks, 0.0) == tasks[1:]
    assert study(tmp_path).work(tasks, 0.0) == tasks[2:]


def test_what_another_process_computes_is_left_to_it(tmp_path, capsys):
    first, second = (Task("thing", {"seed": seed}, lambda: {"x": 1}) for seed in range(2))
    inner = []

    def meanwhile():  # locks belong to open files, so this is as good as another process
        inner.extend(study(tmp_path).work([outer, second], np.inf))
        return {"x": 2}

    outer = Task("thing", {"seed": 5}, meanwhile)
    assert study(tmp_path).work([outer, first, second], np.inf) == []
    assert inner == [outer]
    assert study(tmp_path).part(outer)["x"] == 2


def test_two_processes_share_the_parts(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(["genomics", "--quick", "--processes", "2", "--out", str(tmp_path)]) == 0
    printed = capfd.readouterr().out
    assert printed.count("  genomics split=") == 2
    assert "written:" in printed


def test_interrupt_ends_with_130_and_fresh_forgets(tmp_path, monkeypatch, capsys):
    import benchmarks.paper.projections as module

    def interrupted():
        raise KeyboardInterrupt

    kept = Task("kept", {}, lambda: {"x": 1})
    monkeypatch.setattr(module, "tasks", lambda study: {1: kept, 2: Task("ended", {}, interrupted)})
    assert main(["projections", "--quick", "--out", str(tmp_path)]) == 130
    assert "are kept" in capsys.readouterr().out
    assert len(list((tmp_path / "parts").glob("*.npz"))) == 1

    def failing(study):
        raise RuntimeError("no")

    monkeypatch.setattr(module, "tasks", failing)
    assert main(["projections", "--quick", "--fresh", "--out", str(tmp_path)]) == 1
    assert "failed: projections" in capsys.readouterr().out
    assert not (tmp_path / "parts").exists()


def test_parts_of_the_long_runs_take_at_most_twenty_minutes(tmp_path):
    long = Study("some", False, Data(None), tmp_path)
    for name in EXPERIMENTS:
        for task in importlib.import_module(f"benchmarks.paper.{name}").tasks(long).values():
            assert 0 < task.minutes < 20, (name, task.settings)


def test_the_page_is_what_the_results_say(tmp_path, capsys):
    page.write(tmp_path)
    text = (tmp_path / "experiments.md").read_text()
    assert text.count(page.NOT_YET) > 43  # no results there
    (tmp_path / "figures").mkdir()
    name = "genomics"
    main([name, "--quick", "--out", str(tmp_path)])
    made = Study(name, True, Data(None), tmp_path)
    page.take(made, tmp_path)
    text = (tmp_path / "experiments.md").read_text()
    content = json.loads((tmp_path / "figures" / "genomics.json").read_text())
    for verdict in content["verdicts"]:
        assert verdict["rule"] in text
        assert verdict["evidence"] in text
    assert "(figures/genomics.png)" in text
    assert (tmp_path / "figures" / "genomics.png").is_file()


def test_the_page_in_the_documentation_is_up_to_date(tmp_path, capsys):
    figures = ROOT / "docs" / "figures"
    (tmp_path / "figures").mkdir()
    for name in EXPERIMENTS:
        for path in figures.glob(f"{name}.*"):
            (tmp_path / "figures" / path.name).write_bytes(path.read_bytes())
    page.write(tmp_path)
    written = (tmp_path / "experiments.md").read_text(encoding="utf-8")
    assert written == (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")


def test_verdicts():
    assert Verdict.of(True, "x", True).state == HELD
    assert Verdict.of(False, "x", True).state == IN_PART
    assert Verdict.of(False, "x").state == NOT_HELD


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
