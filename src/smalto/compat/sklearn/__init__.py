"""scikit-learn's dictionary learning, sparse PCA and NMF, computed by smalto.

Change the import, ``from smalto.compat.sklearn import MiniBatchDictionaryLearning``, and nothing
else: names, parameters, their order and defaults, attributes and warnings are those of
``sklearn.decomposition``. What a parameter means here is said with each; what smalto has no
equivalent of raises, and says what to use instead.

=============================  =====================================================================
name                           here
=============================  =====================================================================
sparse_encode, SparseCoder     `smalto.encode`, exact; "threshold" by its formula
DictionaryLearning,            `smalto.learn` with `Batch`
dict_learning
MiniBatchDictionaryLearning,   `smalto.DictionaryLearning` with `Online`
dict_learning_online
SparsePCA                      dictionary learning of the features, from singular vectors
MiniBatchSparsePCA             the same, in batches of features
NMF, MiniBatchNMF,             alternating descent with smalto's kernels; the squared error only
non_negative_factorization
=============================  =====================================================================

Examples
--------
>>> import numpy as np
>>> from smalto.compat.sklearn import MiniBatchDictionaryLearning
>>> X = np.random.default_rng(0).standard_normal((1000, 16))
>>> MiniBatchDictionaryLearning(32, batch_size=100, random_state=0).fit(X).components_.shape
(32, 16)
"""

from smalto.compat.sklearn.coding_estimators import SparseCoder
from smalto.compat.sklearn.dictionary_learning import DictionaryLearning, dict_learning
from smalto.compat.sklearn.mini_batch import MiniBatchDictionaryLearning, dict_learning_online
from smalto.compat.sklearn.mini_batch_nmf import MiniBatchNMF
from smalto.compat.sklearn.nmf import NMF, non_negative_factorization
from smalto.compat.sklearn.sparse_coding import sparse_encode
from smalto.compat.sklearn.sparse_pca import MiniBatchSparsePCA, SparsePCA

__all__ = [
    "NMF",
    "DictionaryLearning",
    "MiniBatchDictionaryLearning",
    "MiniBatchNMF",
    "MiniBatchSparsePCA",
    "SparseCoder",
    "SparsePCA",
    "dict_learning",
    "dict_learning_online",
    "non_negative_factorization",
    "sparse_encode",
]
