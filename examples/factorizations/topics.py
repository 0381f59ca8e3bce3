"""
Topics of texts
===============

Non-negative matrix factorization of a table of word counts finds topics: each topic is a sum of
words, and each document a sum of topics. The documents are the docstrings of SciPy.
"""

# %%
# Texts as a table
# ----------------
#
# A row per document, a column per word. Nearly all entries are zero. The table stays sparse all
# the way.

import importlib
import inspect

import matplotlib.pyplot as plt
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

# %%
# The topics
# ----------
#
# The model does not know which module a text comes from. That its topics belong to modules is what
# it has found by itself.

model = NMF(14, random_state=0, sparse_output=True)
codes = model.fit_transform(X)
words = vectorizer.get_feature_names_out()
titles = model.topics(words, n=4)
of_module = np.array([[home == name for home in homes] for name in MODULES])
shares = (codes.T @ of_module.T) / codes.sum(axis=0)[:, None]  # of each topic in each module
order = np.argsort(np.argmax(shares, axis=1), kind="stable")
for j in order:
    print(f"{shares[j].max():4.0%} in scipy.{MODULES[np.argmax(shares[j])]}: {titles[j]}")

figure, ax = plt.subplots(figsize=(9, 5.5), layout="constrained")
picture = ax.imshow(shares[order], cmap="GnBu", aspect="auto", vmin=0, vmax=1)
ax.set_yticks(range(14), [titles[j] for j in order])
ax.set_xticks(range(len(MODULES)), MODULES, rotation=40)
ax.set_title("where in SciPy each topic is found")
ax.spines[:].set_visible(False)
figure.colorbar(picture, format="{x:.0%}", label="share of the topic")
plt.show()
