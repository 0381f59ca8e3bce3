"""Estimators: learning as scikit-learn has it."""

from smalto.estimators.dictionary_learning import DictionaryLearning
from smalto.estimators.sparse_cca import SparseCCA

__all__ = ["DictionaryLearning", "SparseCCA"]
