import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

ROOT = Path(__file__).parents[2]

if not (ROOT / "benchmarks" / "peers").is_dir():
    pytest.skip("the benchmarks are not part of this copy", allow_module_level=True)

pytest.importorskip("spams", reason='the benchmarks need pip install ".[bench]"')


def run(name, out, *more, written=None):
    """Run a script on its small problem; what it prints, and the JSON it writes."""
    environment = {key: value for key, value in os.environ.items() if key != "SMALTO_DATA"}
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.peers.{name}", "--quick", "--out", str(out), *more],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    content = json.loads((out / f"{written or name}.json").read_text())
    assert content["machine"]["cores"] >= 1
    assert content["options"]["quick"] is True
    return done.stdout, content


def test_learning(tmp_path):
    printed, content = run("learning", tmp_path)
    assert "median" in printed
    assert "speed-up" in printed
    (part,) = content["runs"]
    names = [entry["method"] for entry in part["methods"]]
    assert names == ["smalto", "SPAMS trainDL", "scikit-learn cd", "scikit-learn lars"]
    smalto, spams = part["methods"][:2]
    assert [target["steps"] for target in part["targets"]] == [5, 8]
    assert [target["cost"] for target in part["targets"]] == spams["cost"]
    assert spams["cost"][-1] < part["first_cost"]
    for target in part["targets"]:
        enough = [cost <= target["cost"] for cost in smalto["cost"]]
        reached = smalto["seconds"][enough.index(True)] if any(enough) else None
        assert target["smalto"] == reached
        assert reached is None or target["ratio"] == target["spams"] / reached
    assert spams["samples"][-1] == smalto["samples"][-1] == 4096
    for entry in part["methods"]:
        lengths = {len(entry[key]) for key in ("samples", "seconds", "cost")}
        assert len(lengths) == 1
        assert entry["seconds"] == sorted(entry["seconds"])
    assert part["threads"]["speed_up"] == part["threads"]["one"] / part["threads"]["two"]
    assert {path.name for path in tmp_path.iterdir()} >= {"learning.png", "learning.svg"}

    again, kept = run("learning", tmp_path)  # a part that is there is not measured again
    assert kept["runs"] == content["runs"]
    assert again.count("start 0") == 0


def test_watching(tmp_path):
    printed, content = run("watching", tmp_path)
    assert "of the run" in printed
    assert content["both"]["seconds"] == content["log"]["seconds"] + content["report"]["seconds"]
    assert 0 < content["both"]["share"] < 1
    assert content["steps"] > 0
    assert content["page_bytes"] > 20_000


def test_coding(tmp_path):
    printed, content = run("coding", tmp_path)
    assert "KKT" in printed
    assert len(content["runs"]) == 2 * 2 * 4
    for entry in content["runs"]:
        assert entry["microseconds"] > 0
        assert entry["nonzeros"] > 0
        tolerance = 1e-3 if entry["dtype"] == "float32" else 1e-6
        if entry["method"].startswith(("smalto", "SPAMS")):
            assert abs(entry["excess"]) < tolerance
        if entry["method"].startswith("smalto"):
            assert entry["violation"] < tolerance


def test_coders(tmp_path):
    printed, content = run("coders", tmp_path)
    assert "over bound" in printed
    found = {(entry["problem"], entry["method"]) for entry in content["runs"]}
    assert ("error, OMP", "SPAMS omp") in found
    assert ("ridge", "NumPy solve") in found
    for share in ("30%", "80%"):
        assert (f"nonzeros, {share} missing", "SPAMS ompMask") in found
        assert (f"lasso, {share} missing", "SPAMS lassoMask") in found
    assert {entry["threads"] for entry in content["runs"]} == {1, 2}
    for entry in content["runs"]:
        assert entry["microseconds"] > 0
        tolerance = 1e-3 if entry["dtype"] == "float32" else 1e-6
        if entry["method"].startswith("smalto"):
            assert entry["broken"] < tolerance
        elif entry["method"] != "scikit-learn orthogonal_mp_gram":  # it looks not ahead
            assert entry["excess"] > -tolerance  # no peer has a better objective


def test_nmf(tmp_path):
    printed, content = run("nmf", tmp_path, written="nmf_peers")
    assert "x smalto" in printed
    dense, sparse_codes = content["runs"]
    names = [entry["method"] for entry in dense["methods"]]
    assert names[0] == "smalto NMF"
    assert {"scikit-learn cd nndsvda", "scikit-learn MiniBatchNMF", "SPAMS nmf"} < set(names)
    assert [entry["method"] for entry in sparse_codes["methods"]] == ["smalto NMF", "SPAMS nnsc"]
    for each in content["runs"]:
        for entry in each["methods"]:
            (curve,) = entry["curves"]
            assert len(curve["seconds"]) == len(curve["cost"]) > 0
        assert each["target"] > 0
    assert (tmp_path / "nmf_peers.png").stat().st_size > 10_000
    again, kept = run(
        "nmf", tmp_path, written="nmf_peers"
    )  # a part that is there is not measured again
    assert kept["runs"] == content["runs"]
    assert "x smalto" not in again


def test_extrapolated_hals_fits_sparse_data_as_well_as_scikit_learn():
    from benchmarks.peers import nmf, sparse_counts

    NMF = pytest.importorskip("sklearn.decomposition").NMF
    X = sparse_counts.texts(200, 300)
    assert X.nnz < 0.3 * 200 * 300
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1.0, rtol=1e-5)
    cost = [
        nmf.cost_of(X, C, D, 0.0) for C, D in itertools.islice(nmf.extrapolated_hals(X, 5, 0), 100)
    ]
    peer = NMF(5, init="random", random_state=0, tol=1e-6, max_iter=500)
    C = peer.fit_transform(X)
    best = nmf.cost_of(X, C, peer.components_, 0.0)
    assert best == pytest.approx(nmf.cost_of(X.toarray(), C, peer.components_, 0.0), rel=1e-4)
    assert cost[-1] < 1.03 * best
    assert cost[-1] < cost[0]


def test_joint(tmp_path):
    printed, content = run("joint", tmp_path)
    assert "x smalto" in printed
    assert len(content["runs"]) == 2 * 2 * 7
    for entry in content["runs"]:
        assert entry["microseconds"] > 0
        if entry["method"] != "smalto encode" and entry["problem"] != "l1/l2":
            assert abs(entry["excess"]) < (1e-3 if entry["dtype"] == "float32" else 1e-6)
        assert entry["excess"] > -1e-5


def test_groups(tmp_path):
    printed, content = run("groups", tmp_path)
    assert "worst gap" in printed
    assert {entry["problem"] for entry in content["runs"]} == {"groups", "sparse groups", "tree"}
    for entry in content["runs"]:
        assert entry["microseconds"] > 0
        assert entry["nonzeros"] > 0
        assert abs(entry["excess"]) < 1e-5
        if entry["method"].startswith("smalto"):
            assert entry["gap"] < (1e-5 if entry["dtype"] == "float32" else 1e-9)


def test_defaults(tmp_path):
    printed, content = run("defaults", tmp_path)
    assert "supported:" in printed
    assert set(content["parts"]) == {"A", "A n=2048", "B"}
    for runs in content["parts"].values():
        assert any(run["rho"] == 15.0 and run["t0"] == 0.001 for run in runs)
        assert all(run["cost"][-1] < run["cost"][0] for run in runs)
    assert content["overall"]
    assert content["verdicts"]


def test_startup(tmp_path):
    printed, content = run("startup", tmp_path)
    assert "anonymous memory" in printed or sys.platform != "linux"
    calls = {entry["call"]: entry["warm"] for entry in content["calls"]}
    assert set(calls) == {"import", "encode, float32", "OMP"}
    assert all(seconds > 0 for seconds in calls.values())
    assert len(content["memory"]) == 2
    if sys.platform == "linux":
        assert abs(content["growth"]) < 20 * 2**20


def test_restoration(tmp_path):
    printed, content = run("denoise", tmp_path)
    assert "peak signal-to-noise ratio" in printed
    by_method = {}
    for entry in content["runs"]:
        by_method.setdefault(entry["method"], []).append(entry["psnr"])
    assert all(len(by_method[f"smalto {effort}"]) == 3 * 2 for effort in range(3))
    printed, content = run("inpaint", tmp_path)
    assert "80% missing" in printed
    assert all(entry["psnr"] > 15 for entry in content["runs"])
    printed, content = run("video", tmp_path)
    found = {entry["method"]: entry["psnr"] for entry in content["runs"]}
    assert found["denoise_video, depth 3"] > found["denoise_video, depth 1"] > 28
    printed, content = run("video", tmp_path, "--inpaint")
    found = {entry["method"]: entry["psnr"] for entry in content["runs"]}
    others = found["inpaint, frame by frame"], found["inpaint, as a volume"]
    assert found["inpaint_video"] > max(others) > 15


def test_results_that_were_kept_are_not_computed_again(tmp_path):
    from benchmarks.peers.denoise import Kept

    asked = []

    def measure():
        asked.append(1)
        return {"psnr": 30.0 + len(asked)}

    for _ in range(2):
        kept = Kept(tmp_path / "kept.jsonl")
        assert kept.get({"sigma": 15.0, "shape": (4, 5)}, measure) == {"psnr": 31.0}
        assert kept.get({"sigma": 25.0, "shape": (4, 5)}, measure) == {"psnr": 32.0}
    assert Kept(None).get({"sigma": 15.0, "shape": (4, 5)}, measure) == {"psnr": 33.0}


def test_sparse_pca(tmp_path):
    printed, content = run("sparse_pca", tmp_path)
    assert "smalto, soonest" in printed
    assert [entry["set"] for entry in content["runs"]] == ["D"] * 4 + ["F"] * 4
    for entry in content["runs"]:
        ours = entry["pass"]
        assert abs(ours["density"] - entry["density"]) < 0.1
        assert 0 < ours["adjusted"] <= ours["span"] < 1
        if entry["soonest"]:
            assert entry["soonest"]["adjusted"] >= entry["adjusted"]


def test_sparse_cca(tmp_path):
    printed, content = run("sparse_cca", tmp_path)
    assert "best of PMD" in printed
    ours, theirs = content["runs"][0], content["runs"][-1]
    assert ours["method"] == "smalto"
    assert theirs["method"].startswith("PMD")
    for entry in (ours, theirs):  # what was made up is found
        assert entry["train"] > 0.9
        assert entry["test"] > 0.85
        assert len(entry["test_by_chromosome"]) == 2


def test_violation_and_cost():
    from benchmarks.peers.coding import violation
    from benchmarks.peers.common import costs

    D, x = np.eye(2), np.array([[3.0, 0.5]])
    exact = sparse.csr_array(np.array([[2.0, 0.0]]))
    assert violation(x, D, exact, 1.0) == 0.0
    np.testing.assert_allclose(costs(x, D, exact, 1.0), [0.5 + 0.125 + 2.0])
    assert violation(x, D, sparse.csr_array(np.array([[1.5, 0.0]])), 1.0) == pytest.approx(0.5)
    assert violation(x, D, sparse.csr_array(np.zeros((1, 2))), 1.0) == pytest.approx(2.0)


def test_spacing():
    from benchmarks.peers.common import spaced

    assert spaced(1, 1.5) == [1]
    assert spaced(6, 1.5) == [1, 2, 3, 4, 6]
    steps = spaced(1000, 1.05)
    assert steps[-1] == 1000
    assert steps == sorted(set(steps))


def test_large_picture(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers.large_picture", "--quick", "--atoms", "32",
         "--out", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "large_picture.json").read_text())
    assert content["psnr"]["smalto"] > 20
    assert "per second" in done.stdout


def test_demosaicking(tmp_path):
    printed, content = run("demosaic", tmp_path)
    assert "bilinear" in printed
    by_method = {}
    for entry in content["runs"]:
        by_method.setdefault(entry["method"], []).append(entry["psnr"])
    assert min(by_method["smalto"]) > max(by_method["bilinear"]) - 3
    assert np.mean(by_method["smalto"]) > np.mean(by_method["bilinear"])
