"""
Topics of texts
===============

Non-negative matrix factorization of a term matrix finds topics.

The documents are the docstrings of SciPy. Their weighted word counts are a sparse matrix with three
percent nonzeros, which is never made dense. Each topic is a non-negative combination of
words, each document a non-negative combination of topics.

Run it with ``python examples/topics.py [picture.png]``.
"""

import importlib
import inspect
import sys

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from smalto import NMF

MODULES = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse"]
MODULES += ["spatial", "special", "stats"]
documents, homes = [], []
for name in MODULES:
    module = importlib.import_module(f"scipy.{name}")
    for member in sorted(getattr(module, "__all__", dir(module))):
        text = inspect.getdoc(getattr(module, member, None)) or ""
        if len(text) > 400:
            documents.append(text)
            homes.append(name)

vectorizer = TfidfVectorizer(max_df=0.3, min_df=5, token_pattern=r"[a-z]{3,}", stop_words="english")
X = vectorizer.fit_transform(documents)
print(f"{X.shape[0]} documents, {X.shape[1]} words, {X.nnz / np.prod(X.shape):.1%} nonzero")

model = NMF(14, random_state=0, sparse_output=True)
codes = model.fit_transform(X)
words = vectorizer.get_feature_names_out()
titles = [", ".join(words[np.argsort(-atom)[:5]]) for atom in model.components_]
of_module = np.array([[home == name for home in homes] for name in MODULES])
shares = (codes.T @ of_module.T) / codes.sum(axis=0)[:, None]  # of each topic in each module
for title, share in zip(titles, shares, strict=True):
    print(f"{title}   ({share.max():.0%} in scipy.{MODULES[np.argmax(share)]})")

if len(sys.argv) > 1:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(shares, cmap="Blues", aspect="auto", vmin=0, vmax=1)
    axes.set_yticks(range(len(titles)), titles)
    axes.set_xticks(range(len(MODULES)), MODULES, rotation=45)
    axes.set_title("Where in SciPy each topic is found")
    figure.savefig(sys.argv[1])
