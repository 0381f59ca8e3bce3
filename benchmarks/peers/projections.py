"""Projections against SPAMS, sorting, the filter of Condat, and bisection over total variation.

One process, one thread, the same data and dtype for all methods, kernels compiled first, the best
of several runs. A ratio is the peer's time over ours. SPAMS is skipped if it is not installed.

Run it with ``python -m benchmarks.peers.projections``.
"""

from __future__ import annotations

import time

import numpy as np
from numba import njit

from smalto.projections import (
    fused_lasso_path,
    fused_lasso_signal,
    project_elastic_net_ball,
    project_fused_lasso_ball,
    project_l1_ball,
    project_simplex,
)

try:
    import spams
except ImportError:  # pragma: no cover
    spams = None

SHAPES = [(4096, 64), (500, 1000), (20, 10**5), (1, 10**6), (1, 10**7)]


def best(call, seconds=0.6, runs=9):
    """Return the shortest time of a call in seconds, after one warm-up."""
    call()
    least, begin = np.inf, time.perf_counter()
    for _ in range(runs):
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        least = min(least, now - start)
        if now - begin > seconds:
            break
    return least


def slope(sizes, times):
    """Return the exponent of growth over all sizes."""
    return np.polyfit(np.log(sizes), np.log(times), 1)[0]


def by_spams(U, **how):
    """Project columns with SPAMS on one thread."""
    return spams.sparseProject(U, thrs=1.0, pos=False, numThreads=1, **how)


def by_sorting(V, radius=1.0, simplex=False):
    """Project rows onto the l1 ball or the simplex by sorting, with NumPy."""
    x = V if simplex else np.abs(V)
    ordered = -np.sort(-x, axis=1)
    means = (np.cumsum(ordered, axis=1) - radius) / np.arange(1, V.shape[1] + 1)
    last = np.count_nonzero(ordered > means, axis=1) - 1
    t = means[np.arange(len(V)), last][:, None]
    if simplex:
        return np.maximum(V - t, 0)
    return np.sign(V) * np.maximum(x - np.maximum(t, 0), 0)


def by_filtering(V, radius=1.0, simplex=False):
    """Project rows onto the l1 ball or the simplex by Condat's filter."""
    out, kept, spare = np.empty_like(V), np.empty_like(V[0]), np.empty_like(V[0])
    _filter(V, V.dtype.type(radius), simplex, out, kept, spare)
    return out


@njit(nogil=True, error_model="numpy")
def _filter(V, radius, simplex, out, kept, spare):
    for row in range(V.shape[0]):
        v = V[row]
        first = v[0] if simplex else abs(v[0])
        kept[0] = first
        n, spared = 1, 0
        t = first - radius
        for i in range(1, v.size):
            x = v[i] if simplex else abs(v[i])
            if x > t:
                t += (x - t) / (n + 1)
                if t > x - radius:
                    kept[n] = x
                    n += 1
                else:
                    for j in range(n):
                        spare[spared + j] = kept[j]
                    spared += n
                    kept[0] = x
                    n = 1
                    t = x - radius
        for j in range(spared):
            if spare[j] > t:
                kept[n] = spare[j]
                n += 1
                t += (spare[j] - t) / n
        before = 0
        while n != before:
            before, left = n, 0
            for j in range(before):
                x = kept[j]
                if x > t:
                    kept[left] = x
                    left += 1
                else:
                    n -= 1
                    t += (t - x) / n
        if not simplex:
            t = max(t, 0.0)
        for i in range(v.size):
            up = max(v[i] - t, 0.0)
            out[row, i] = up if simplex else up - max(-v[i] - t, 0.0)


def elastic_net(rng):
    """Compare the elastic-net ball with SPAMS, and fit the growth of the cost."""
    print("\nelastic-net ball, ns per entry (peer / ours)")
    for dtype in (np.float32, np.float64):
        times: dict[float, list[float]] = {}
        for n, m in SHAPES:
            V = rng.standard_normal((n, m)).astype(dtype)
            U = np.asfortranarray(V.T)
            for gamma in (0.1, 1.0):
                ours = best(lambda V=V, g=gamma: project_elastic_net_ball(V, g, n_threads=1))
                line = f"  {dtype.__name__} ({n}, {m}) gamma {gamma}: {ours / V.size * 1e9:6.2f}"
                if spams:
                    theirs = best(lambda U=U, g=gamma: by_spams(U, mode=2, lambda1=g), runs=3)
                    line += f"   spams {theirs / V.size * 1e9:6.2f} ({theirs / ours:5.1f}x)"
                print(line, flush=True)
                times.setdefault(gamma, []).append(ours / n)
        for gamma, each in times.items():
            sizes = [m for _, m in SHAPES]
            print(f"  {dtype.__name__} gamma {gamma}: cost ~ m^{slope(sizes, each):.2f}")


def thresholds(rng):
    """Compare the l1 ball and the simplex with sorting, filtering and SPAMS."""
    for simplex in (False, True):
        name = "simplex" if simplex else "l1 ball"
        print(f"\n{name}, radius 1, ns per entry (peer / ours)")
        for dtype in (np.float32, np.float64):
            for n, m in SHAPES:
                V = rng.standard_normal((n, m)).astype(dtype)
                project = project_simplex if simplex else project_l1_ball
                ours = best(lambda V=V, p=project: p(V, n_threads=1))
                peers = {
                    "sorting": lambda V=V, s=simplex: by_sorting(V, simplex=s),
                    "filter": lambda V=V, s=simplex: by_filtering(V, simplex=s),
                }
                if spams and not simplex:
                    U = np.asfortranarray(V.T)
                    peers["spams"] = lambda U=U: by_spams(U, mode=1)
                line = f"  {dtype.__name__} ({n}, {m}): {ours / V.size * 1e9:6.2f}  "
                for peer, call in peers.items():
                    theirs = best(call, runs=3)
                    line += f" {peer} {theirs / V.size * 1e9:6.2f} ({theirs / ours:5.1f}x)"
                print(line, flush=True)


def left_side(u, gamma1, gamma2):
    """Return the left side of the fused-lasso constraint."""
    return (u**2).sum() + gamma1 * np.abs(u).sum() + gamma2 * np.abs(np.diff(u)).sum()


def by_bisection(v, gamma1, gamma2):
    """Project onto the fused-lasso ball by bisection, to 12 digits of the multiplier."""

    def u(tau):
        return fused_lasso_signal(v, tau * gamma1, tau * gamma2, 2 * tau, n_threads=1)

    low, high = 0.0, 1.0
    while left_side(u(high), gamma1, gamma2) > 1:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if left_side(u(middle), gamma1, gamma2) > 1:
            low = middle
        else:
            high = middle
    return u(high)


def fused(rng):
    """Compare the methods for the fused-lasso ball with each other and with bisection."""
    print("\nfused-lasso ball, microseconds (peer / ours)")
    signals = {
        "noise": lambda m: rng.standard_normal(m),
        "steps": lambda m: (
            np.repeat(3 * rng.standard_normal(20), m // 20) + 0.3 * rng.standard_normal(m)
        ),
        "walk": lambda m: rng.standard_normal(m).cumsum(),
    }
    for kind, make in signals.items():
        for gamma1, gamma2 in [(0.1, 0.1), (0.01, 1.0)]:
            times = {}
            for m in (10**3, 10**4, 10**5):
                v = make(m)
                p = project_fused_lasso_ball(v, gamma1, gamma2)
                off = np.abs(p - by_bisection(v, gamma1, gamma2)).max()
                assert off < 1e-9, off
                ours = times[m] = best(
                    lambda v=v, g=gamma1, h=gamma2: project_fused_lasso_ball(v, g, h)
                )
                pieces = 1 + np.count_nonzero(np.diff(p))
                line = f"  {kind} m = {m} gammas {gamma1} {gamma2}: {ours * 1e6:8.1f}"
                line += f" ({pieces} pieces)"
                peers = {"bisection": lambda v=v, g=gamma1, h=gamma2: by_bisection(v, g, h)}
                for road in ("merge", "homotopy"):
                    peers[road] = lambda v=v, g=gamma1, h=gamma2, r=road: project_fused_lasso_ball(
                        v, g, h, method=r
                    )
                for peer, call in peers.items():
                    line += f" {peer} {best(call, runs=3) / ours:5.1f}x"
                print(line, flush=True)
            growth = slope(list(times), list(times.values()))
            print(f"  {kind} gammas {gamma1} {gamma2}: cost ~ m^{growth:.2f}")


def paths(rng):
    """Time the signal approximation and its whole path."""
    print("\nfused-lasso signal (one gamma2) and path (all of them), ns per entry")
    for m in (10**3, 10**5):
        for kind, b in {
            "noise": rng.standard_normal(m),
            "walk": rng.standard_normal(m).cumsum(),
            "slope": np.arange(m) + rng.standard_normal(m),
        }.items():
            line = f"  {kind} m = {m}: signal "
            line += f"{best(lambda b=b: fused_lasso_signal(b, 0, 3.0)) / m * 1e9:.1f}; path"
            for method in ("auto", "merge"):
                seconds = best(lambda b=b, w=method: fused_lasso_path(b, method=w), runs=3)
                line += f" {method} {seconds / m * 1e9:.0f}"
            print(line, flush=True)


def main():
    """Print every comparison."""
    rng = np.random.default_rng(0)
    elastic_net(rng)
    thresholds(rng)
    fused(rng)
    paths(rng)


if __name__ == "__main__":
    main()
