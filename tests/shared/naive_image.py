"""Slow NumPy twins of the kernels for pictures."""

import numpy as np


def picture(height, width, shift=0.0):
    """Stripes of two kinds, a slope and an edge, from 0 to 255."""
    y, x = np.mgrid[:height, :width].astype(float)
    x = x + shift
    waves = np.where(y + 0.3 * x < 0.6 * height, np.sin(0.9 * x), np.sin(0.5 * (x + 2 * y)))
    return 128 + 45 * waves + 40 * (y / height) + 40 * np.sign(np.sin(x / 15.0))


def patches(image, size):
    """All patches of (height, width, channels), row of positions by row of positions."""
    lines, columns = image.shape[0] - size[0] + 1, image.shape[1] - size[1] + 1
    return np.array(
        [
            image[r : r + size[0], c : c + size[1]].ravel()
            for r in range(lines)
            for c in range(columns)
        ]
    )


def centered(X, groups):
    """Rows without the means of every ``groups``-th entry, and these means."""
    if groups == 0:
        return X.copy(), np.zeros((len(X), 1))
    parts = X.reshape(len(X), -1, groups)
    means = parts.mean(axis=1)
    return (parts - means[:, None]).reshape(X.shape), means


def contrast(X, channels):
    """Root mean square of the difference of pixels from the mean color."""
    return np.sqrt(X.reshape(len(X), -1, channels).var(axis=1).mean(axis=1))


def average(X, rows, columns, weights, shape, size):
    """Weighted mean of the patches that cover each value."""
    total, weight = np.zeros(shape), np.zeros(shape)
    for x, r, c, w in zip(X, rows, columns, weights, strict=True):
        total[r : r + size[0], c : c + size[1]] += w * x.reshape(*size, *shape[2:])
        weight[r : r + size[0], c : c + size[1]] += w
    return total, weight


def similar_groups(guide, size, most, stride, reach):
    """Around patches on a grid, each and those nearest to it, in order of distance: positions."""
    lines, columns = (guide.shape[i] - size[i] + 1 for i in range(2))
    X = patches(guide, size)
    members = min(most, min(lines, reach + 1) * min(columns, reach + 1))
    found = []
    for r in sorted({*range(0, lines, stride), lines - 1}):
        for c in sorted({*range(0, columns, stride), columns - 1}):
            near = [
                (((X[i * columns + j] - X[r * columns + c]) ** 2).sum(), i * columns + j)
                for i in range(max(r - reach, 0), min(r + reach + 1, lines))
                for j in range(max(c - reach, 0), min(c + reach + 1, columns))
            ]
            own = r * columns + c
            near = [(-1.0 if place == own else distance, place) for distance, place in near]
            found.append([place for _, place in sorted(near)[:members]])
    return np.array(found)


def over_each_other(noisy, guide, groups, size, sigma):
    """The mean of Wiener's filters of groups of patches, each by its own covariance."""
    channels = noisy.shape[2]
    columns = noisy.shape[1] - size[1] + 1
    Y, X = patches(noisy, size), patches(guide, size)
    out, weights = [], []
    for group in groups:
        parts = [P[group].reshape(len(group), -1, channels) for P in (Y, X)]
        means = [part.mean(axis=(0, 1)) for part in parts]
        y, x = ((p - mu).reshape(len(group), -1) for p, mu in zip(parts, means, strict=True))
        C = x.T @ x / len(group)
        values, V = np.linalg.eigh(C)
        shrink = np.maximum(values, 0) / (np.maximum(values, 0) + sigma**2)
        z = (y @ V * shrink @ V.T).reshape(parts[0].shape) + means[0]
        out.append(z.reshape(len(group), -1))
        weights.append(np.full(len(group), 1 / (1 + shrink.sum())))
    rows, cols = np.divmod(groups.ravel(), columns)
    total, weight = average(
        np.concatenate(out), rows, cols, np.concatenate(weights), noisy.shape, size
    )
    return total / weight


def filled_patch(group, trust, number, penalty):
    """One patch of a group (n, m), predicted from its known entries, those with trust 1."""
    mean = (trust * group).sum(axis=0) / trust.sum(axis=0)
    Z, known = group - mean, trust[number] == 1.0
    K = Z[:, known]
    alpha = np.linalg.solve(K @ K.T + penalty * np.eye(len(group)), K @ Z[number, known])
    return mean + alpha @ Z


def least_curvature(pixels, mask):
    """The picture whose missing pixels make the sum of squared Laplacians least."""
    height, width = mask.shape
    L = np.zeros((mask.size, mask.size))
    for r in range(height):
        for c in range(width):
            for i, j in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
                if 0 <= i < height and 0 <= j < width:
                    L[r * width + c, r * width + c] += 1
                    L[r * width + c, i * width + j] -= 1
    flat, gone = pixels.reshape(mask.size, -1).copy(), mask.ravel()
    flat[gone] = np.linalg.lstsq(L[:, gone], -L[:, ~gone] @ flat[~gone], rcond=None)[0]
    return flat.reshape(pixels.shape)
