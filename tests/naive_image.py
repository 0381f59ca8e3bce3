"""Slow NumPy twins of the kernels for pictures."""

import numpy as np


def picture(height, width, shift=0.0):
    """Stripes of two kinds, a slope and an edge, from 0 to 255."""
    y, x = np.mgrid[:height, :width].astype(float)
    x = x + shift
    waves = np.where(y + 0.3 * x < 0.6 * height, np.sin(0.9 * x), np.sin(0.5 * (x + 2 * y)))
    return 128 + 45 * waves + 40 * (y / height) + 40 * np.sign(np.sin(x / 15.0))


def patches(image, size):
    """All patches of (height, width, channels), row of places by row of places."""
    lines, columns = image.shape[0] - size[0] + 1, image.shape[1] - size[1] + 1
    return np.array(
        [
            image[r : r + size[0], c : c + size[1]].ravel()
            for r in range(lines)
            for c in range(columns)
        ]
    )


def centred(X, groups):
    """Rows without the means of every ``groups``-th entry, and these means."""
    if groups == 0:
        return X.copy(), np.zeros((len(X), 1))
    parts = X.reshape(len(X), -1, groups)
    means = parts.mean(axis=1)
    return (parts - means[:, None]).reshape(X.shape), means


def contrast(X, channels):
    """Root mean square of the difference of pixels from the mean colour."""
    return np.sqrt(X.reshape(len(X), -1, channels).var(axis=1).mean(axis=1))


def average(X, rows, columns, weights, shape, size):
    """Weighted mean of the patches that cover each value."""
    total, weight = np.zeros(shape), np.zeros(shape)
    for x, r, c, w in zip(X, rows, columns, weights, strict=True):
        total[r : r + size[0], c : c + size[1]] += w * x.reshape(*size, *shape[2:])
        weight[r : r + size[0], c : c + size[1]] += w
    return total, weight


def group_alike(guide, size, first, lines, reach, bound, most):
    """Labels of groups in a band of places, each founded by the next patch without one."""
    columns = guide.shape[1] - size[1] + 1
    cut = {
        (r, c): guide[first + r : first + r + size[0], c : c + size[1]].astype(float)
        for r in range(lines)
        for c in range(columns)
    }
    labels = -np.ones((lines, columns), int)
    groups = 0
    for here, mine in cut.items():
        if labels[here] >= 0:
            continue
        near = []
        for there, other in cut.items():
            far = max(abs(there[0] - here[0]), abs(there[1] - here[1]))
            if there != here and far <= reach and labels[there] < 0:
                near.append((((mine - other) ** 2).sum(), there))
        near = sorted(near)
        labels[here] = groups
        for distance, there in near[: most - 1]:
            if distance <= bound:
                labels[there] = groups
        groups += 1
    return labels
