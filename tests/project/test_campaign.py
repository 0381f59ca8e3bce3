"""The campaign finds what is planted: wrong codes, crashes, hangs, exceptions."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import planted
import pytest
from scipy import sparse

ROOT = Path(__file__).parents[2]
if not (ROOT / "benchmarks" / "campaign").is_dir():
    pytest.skip("the campaign is not part of this copy", allow_module_level=True)

from benchmarks.campaign import coding, coding_problems, least_squares, referee, workers
from benchmarks.campaign.__main__ import batches
from benchmarks.campaign.families import load
from benchmarks.campaign.report import Report
from smalto import encode

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the campaign needs fork")


def lasso_problem(**numbers):
    rng = np.random.default_rng(0)
    X, D = rng.standard_normal((30, 8)), rng.standard_normal((12, 8))
    numbers = {"lam": 0.5, "ridge": 0.0, **numbers}
    return coding_problems.CodingProblem("lasso", X, D, np.float64, "ordinary", numbers)


def judged(problem, change):
    """The promises that codes with a planted fault break."""
    X, D, options = problem.arguments()
    codes, info = encode(X, D, problem.coder(), return_info=True, **options)
    codes = sparse.csr_array(change(codes.toarray()))
    report = Report()
    nonzeros = np.diff(codes.indptr)
    coding.judge(problem, codes, info._replace(nonzeros=nonzeros), "", report)
    return {name for name in report.tried if report.held[name] < report.tried[name]}


def put(value):
    def change(codes):
        codes[3, 2] = value
        return codes

    return change


def test_the_referee_has_nothing_against_right_codes():
    for problem in (lasso_problem(), lasso_problem(ridge=0.3)):
        assert judged(problem, lambda codes: codes) == set()
        problem.signal, problem.atom = 300, -200
        assert judged(problem, lambda codes: codes) == set()


def test_wrong_codes_without_a_penalty_are_found(monkeypatch):
    def tried():
        report = Report()
        for seed in range(20):
            least_squares.compare(np.random.default_rng(seed), report)
        return report

    assert tried().failures == []
    plain = least_squares.encode
    monkeypatch.setattr(least_squares, "encode", lambda *a, **k: 0.9 * plain(*a, **k))
    assert len(tried().failures) > 10


def test_the_referee_finds_wrong_codes():
    assert judged(lasso_problem(), put(np.nan)) == {coding.FINITE, coding.OPTIMAL, coding.GAP}
    assert judged(lasso_problem(), lambda codes: 1.001 * codes) == {coding.OPTIMAL, coding.GAP}
    broken = judged(lasso_problem(), lambda codes: -10 * codes)
    assert broken == {coding.ZERO, coding.OPTIMAL, coding.GAP}
    positive = lasso_problem()
    positive.positive = True
    assert coding.WITHIN in judged(positive, put(-1e-3))


@pytest.mark.parametrize("seed", range(40))
def test_lower_bounds_are_below_the_objective_of_any_code(seed):
    rng = np.random.default_rng(seed)
    problem = coding_problems.make(rng)
    if problem.kind not in referee.CONVEX or problem.kind == "error bound":
        return
    shape = len(problem.X), len(problem.D)
    codes = [np.zeros(shape), 0.1 * np.abs(rng.standard_normal(shape))]
    if problem.kind == "l1 ball":
        lengths = referee.lengths(problem, np.ones(shape))[:, None]
        codes[1] = np.where(np.isfinite(lengths), problem.numbers["radius"] / lengths, 0.0)
        codes[1] = np.broadcast_to(codes[1], shape)
    if problem.weights is not None:
        codes = [np.where(np.isfinite(problem.weights), code, 0.0) for code in codes]
    for theta in (problem.known, rng.standard_normal(problem.X.shape)):
        if problem.missing is not None:
            theta = np.where(problem.missing, 0.0, theta)
        bound = referee.lower_bound(problem, theta)
        for code in codes:
            value = referee.objective(problem, code)
            assert np.all(bound <= value * (1 + 1e-9) + 1e-12)


def test_crashes_hangs_and_exceptions_are_counted_and_the_rest_goes_on():
    tickets = [("fine", 1), ("crash", 2), ("fine", 3), ("wrong", 4), ("hang", 5), ("fine", 6)]
    total, culprits = Report(), {}
    limits = {"fine": 300.0, "crash": 300.0, "wrong": 300.0, "hang": 1.0}
    with workers.Pool(planted.load, limits, 1) as pool:
        for ticket, report in pool.run(iter([tickets])):
            total.add(report)
            if report.failures:
                culprits[ticket] = report.failures
    assert total.held["fine"] == 3
    assert set(culprits) == {("crash", 2), ("wrong", 4), ("hang", 5)}
    assert total.tried[workers.CRASH] - total.held[workers.CRASH] == 1
    assert total.tried[workers.HANG] - total.held[workers.HANG] == 1
    assert "planted" in culprits["wrong", 4][0]


def test_problems_are_the_same_for_the_same_seed():
    first, second = (list(batches(7, ["coding", "kills"], 25, np.inf)) for _ in range(2))
    assert first == second
    assert sum(map(len, first)) == 25
    assert next(batches(8, ["coding", "kills"], 25, np.inf)) != first[0]


def test_the_command_prints_a_table_and_fails_if_anything_did(tmp_path):
    command = [sys.executable, "-m", "benchmarks.campaign"]
    done = subprocess.run(
        [*command, "--problems", "6", "--only", "refusing", "--workers", "1"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| promise | tried | held |" in done.stdout
    assert "18 other cases" in done.stdout
    fault = (
        "import sys; from benchmarks.campaign import __main__ as m, families, refusing\n"
        "refusing.encode = lambda *a, **k: None\n"
        "sys.argv = ['campaign', '--reproduce', 'refusing:0']\n"
        "sys.exit(m.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", fault], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "python -m benchmarks.campaign --reproduce refusing:0" in done.stdout


@pytest.mark.parametrize(
    "ticket",
    [
        ("coding", 8000003630),  # a radius exceeded
        ("coding", 21000002674),  # an error above its bound, unsaid
        ("coding", 21000019165),  # a joint pursuit far from least squares, out of reach
        ("coding", 25000002230),  # the same within its bound
        ("forged-files", 8000004725),  # a gamma of zero to start a search from
        ("forged-files", 21000007911),  # an integer too large for a kernel
        ("forged-files", 25000000504),  # a scale of statistics that overflows
    ],
)
def test_what_was_found_stays_mended(ticket):
    report = workers.run_problem(load(), ticket)
    assert report.held == report.tried
