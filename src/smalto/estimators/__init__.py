"""scikit-learn estimators for dictionary learning, NMF, sparse PCA and sparse CCA."""

from smalto.estimators.dictionary_learning import DictionaryLearning
from smalto.estimators.nmf import NMF
from smalto.estimators.sparse_cca import SparseCCA
from smalto.estimators.sparse_pca import SparsePCA

__all__ = ["NMF", "DictionaryLearning", "SparseCCA", "SparsePCA"]
