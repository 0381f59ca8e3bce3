"""scikit-learn's test_sparse_pca.py with our names."""

from sklearn_tests import borrowed

globals().update(borrowed("test_sparse_pca"))
