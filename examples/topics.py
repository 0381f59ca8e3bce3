"""Topics in a term matrix, found by non-negative matrix factorization.

The documents are the docstrings of SciPy: their weighted word counts make a sparse matrix of which
three entries in a hundred are nonzero, and it stays sparse. Each topic is a non-negative combination of
words, each document a non-negative combination of topics.

Run it with ``python examples/topics.py``.
"""

import importlib
import inspect

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

model = NMF(14, random_state=0, sparse_output=True)
codes = model.fit_transform(X)
words = vectorizer.get_feature_names_out()
weights = codes.toarray()
for topic, atom in enumerate(model.components_):
    leading = ", ".join(words[np.argsort(-atom)[:7]])
    top = np.argsort(-weights[:, topic])[:20]
    home, share = max(((name, np.mean([homes[i] == name for i in top])) for name in MODULES),
                      key=lambda pair: pair[1])  # fmt: skip
