"""scikit-learn's test_nmf.py with our names."""

from sklearn_tests import borrowed

globals().update(borrowed("test_nmf"))
