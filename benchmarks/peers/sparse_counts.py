"""Sparse data with planted factors, made like texts and like counts of gene expression."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

TOPICS = 30
PROGRAMS = 10


def texts(n: int, n_words: int, seed: int = 0) -> Any:
    """Return documents as rows of unit norm: counts of words times the log of their rarity.

    The words of a document are drawn from a few of 30 topics, which draw theirs from a tenth of the
    vocabulary, where a word is as frequent as its rank is low (Zipf's law).
    """
    rng = np.random.default_rng(seed)
    common = 1.0 / (np.arange(n_words) + 3.0)
    shares = rng.dirichlet(np.full(TOPICS, 0.1), n)
    lengths = np.maximum(rng.lognormal(4.3, 0.6, n), 8.0)
    tokens = rng.poisson(lengths[:, None] * shares)
    documents, words = [], []
    for topic in range(TOPICS):
        own = common * np.where(rng.random(n_words) < 0.1, rng.gamma(1.0, 1.0, n_words), 0.02)
        ends = np.cumsum(own / own.sum())
        documents.append(np.repeat(np.arange(n), tokens[:, topic]))
        drawn = np.searchsorted(ends, rng.random(len(documents[-1])))
        words.append(np.minimum(drawn, n_words - 1))
    places = np.concatenate(documents), np.concatenate(words)
    counts = sparse.csr_array((np.ones(len(places[0])), places), shape=(n, n_words))
    counts.sum_duplicates()
    seen = np.bincount(counts.indices, minlength=n_words)
    counts.data *= (np.log((1.0 + n) / (1.0 + seen)) + 1.0)[counts.indices]
    return _of_unit_norm(counts)


def cells(n: int, n_genes: int, seed: int = 0) -> Any:
    """Return cells as rows: counts of genes, each gene divided by its standard deviation.

    Counts are negative binomial. A cell mixes 10 programs, each of which raises a twentieth of the
    genes; about one entry in ten is not zero.
    """
    rng = np.random.default_rng(seed)
    level = rng.lognormal(0.0, 1.5, n_genes)
    raised = rng.random((PROGRAMS, n_genes)) < 0.05
    programs = level * np.where(raised, rng.lognormal(2.0, 0.7, raised.shape), 1.0)
    programs /= programs.sum(axis=1, keepdims=True)
    usage = rng.dirichlet(np.full(PROGRAMS, 0.3), n)
    depth = rng.lognormal(7.3, 0.4, (n, 1))
    shape = 2.0
    counts = rng.poisson(depth * (usage @ programs) * rng.gamma(shape, 1.0 / shape, (n, n_genes)))
    spread = counts.std(axis=0)
    return sparse.csr_array((counts / np.where(spread > 0, spread, 1.0)).astype(np.float32))


def _of_unit_norm(rows: Any) -> Any:
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.repeat(1.0 / np.where(norms > 0, norms, 1.0), np.diff(rows.indptr))
    data, places = (rows.data * scale).astype(np.float32), (rows.indices, rows.indptr)
    indices, indptr = (array.astype(np.int32) for array in places)
    return sparse.csr_array((data, indices, indptr), shape=rows.shape)
