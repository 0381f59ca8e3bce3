"""Missing pixels of similar patches, predicted from the known ones by the covariance of their group."""

from __future__ import annotations

from smalto.kernels.jit import kernel, summing


@summing
def _dot(x, y, count):
    total = x.dtype.type(0.0)
    for i in range(count):
        total += x[i] * y[i]
    return total


@summing
def _gram(K, count, A):
    """Write the upper half of ``A = KKᵀ``, over the first ``count`` columns, two rows at a time."""
    n = A.shape[0]
    for i in range(0, n - 1, 2):
        x, y = K[i], K[i + 1]
        for k in range(i, n - 1, 2):
            u, v = K[k], K[k + 1]
            xu = xv = yu = yv = K.dtype.type(0.0)
            for p in range(count):
                xu += x[p] * u[p]
                xv += x[p] * v[p]
                yu += y[p] * u[p]
                yv += y[p] * v[p]
            A[i, k], A[i, k + 1] = xu, xv
            A[i + 1, k], A[i + 1, k + 1] = yu, yv
    if n % 2:
        for i in range(n):
            A[i, n - 1] = _dot(K[i], K[n - 1], count)


@summing
def _add_scaled(factor, x, y):
    for i in range(y.size):
        y[i] += factor * x[i]


@kernel
def _center(flat, trust, corners, lines, Z, mean, total):
    """Copy the patches of a group to Z, less their mean, weighted by trust; return ``‖Z‖²``."""
    starts, span, _ = lines
    mean[:] = 0.0
    total[:] = 0.0
    for i in range(corners.size):
        for a in range(starts.size):
            begin = corners[i] + starts[a]
            for b in range(span):
                value, weight = flat[begin + b], trust[begin + b]
                Z[i, a * span + b] = value
                mean[a * span + b] += weight * value
                total[a * span + b] += weight
    for b in range(mean.size):
        mean[b] /= total[b]
    squares = 0.0
    for i in range(corners.size):
        for b in range(mean.size):
            Z[i, b] -= mean[b]
        squares += _dot(Z[i], Z[i], mean.size)
    return squares


@kernel
def _known(flat, trust, corner, lines, mean, places, values):
    """Find the known numbers of a patch: their places, and values less the mean; return how many."""
    starts, span, _ = lines
    count = 0
    for a in range(starts.size):
        begin = corner + starts[a]
        for b in range(span):
            if trust[begin + b] == 1.0:
                places[count] = a * span + b
                values[count] = flat[begin + b] - mean[a * span + b]
                count += 1
    return count


@kernel
def _solve(A, x):
    """Solve ``A z = x`` in place, by elimination; A is overwritten, of which the upper half is read."""
    n = x.size
    for i in range(n):
        row, inverse = A[i, i:], A.dtype.type(1.0) / A[i, i]
        for j in range(1, n - i):
            factor = row[j] * inverse
            _add_scaled(-factor, row[j:], A[i + j, i + j :])
            x[i + j] -= factor * x[i]
    for i in range(n - 1, -1, -1):
        x[i] = (x[i] - _dot(A[i, i + 1 :], x[i + 1 :], n - i - 1)) / A[i, i]


@kernel
def fill_groups(flat, trust, corners, lines, ridge, least, scratch, out, filled):
    """Predict the first patches of each group from what is known of them.

    The patches of a group begin at ``corners`` (groups, n) in a picture, flat, whose missing pixels
    have been estimated; ``trust`` has 1 for each of its known numbers, less for others. With the
    deviations Z (n, m) from the weighted mean of a group, and Y those of the known numbers of a
    patch, the estimate is ``mean + αZ`` for ``min_α ‖Y − αZ‖² + n·ridge‖α‖²``, over the known
    numbers; the penalty is at least ``least ‖Z‖²``. ``out`` (groups, some, m) receives it;
    ``filled`` (groups, some) whether a patch has missing pixels: otherwise nothing is written.
    """
    Z, K, A, mean, total, values, alpha, places = scratch
    n, m = Z.shape
    for g in range(corners.shape[0]):
        penalty = max(n * ridge, least * _center(flat, trust, corners[g], lines, Z, mean, total))
        for j in range(filled.shape[1]):
            count = _known(flat, trust, corners[g, j], lines, mean, places, values)
            filled[g, j] = count < m
            if count == m:
                continue
            estimate = out[g, j]
            for b in range(m):
                estimate[b] = mean[b]
            if count == 0 or penalty == 0.0:
                continue
            for i in range(n):
                for p in range(count):
                    K[i, p] = Z[i, places[p]]
                alpha[i] = _dot(K[i], values, count)
            _gram(K, count, A)
            for i in range(n):
                A[i, i] += penalty
            _solve(A, alpha)
            for i in range(n):
                _add_scaled(alpha[i], Z[i], estimate)
