"""
A pipeline and its grid search
==============================

Codes can be the features of a classifier. How many atoms, and which penalty? Ask the classifier: a
dictionary in a scikit-learn pipeline has parameters like any other step, and a grid search tries
them.
"""

# %%
# Digits, codes, classes
# ----------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from smalto import DictionaryLearning
from smalto.coders import Lasso

X, y = load_digits(return_X_y=True)
X /= np.linalg.norm(X, axis=1, keepdims=True)
X, X_test, y, y_test = train_test_split(X, y, train_size=800, random_state=0)

pipeline = make_pipeline(
    DictionaryLearning(10, coder=Lasso(lam=0.1), max_epochs=3, random_state=0),
    SVC(C=10),
)

# %%
# Two questions at once
# ---------------------
#
# ``coder__lam`` is the ``lam`` of the coder of the dictionary.

atoms, lams = [10, 30, 90], [0.05, 0.1, 0.2, 0.4]
grid = {
    "dictionarylearning__n_components": atoms,
    "dictionarylearning__coder__lam": lams,
}
search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
print(search.best_params_)
print(
    f"right for {search.best_score_:.1%} in the search, {search.score(X_test, y_test):.1%} of new"
)

# %%
# Few atoms, or a large penalty, lose what tells digits apart.

results = search.cv_results_
scores = np.zeros((3, 4))
for setting, score in zip(results["params"], results["mean_test_score"], strict=True):
    lam, k = setting.values()
    scores[atoms.index(k), lams.index(lam)] = score

figure, ax = plt.subplots(figsize=(9, 4.6), layout="constrained")
picture = ax.imshow(scores, cmap="GnBu", origin="lower", aspect="auto")
for (row, column), score in np.ndenumerate(scores):
    dark = score > 0.3 * scores.min() + 0.7 * scores.max()
    ax.text(column, row, f"{score:.1%}", ha="center", va="center", color="w" if dark else "k")
row, column = np.unravel_index(scores.argmax(), scores.shape)
ax.add_patch(plt.Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, fill=False, ec="C2", lw=3))
ax.set_xticks(range(4), [str(lam) for lam in lams])
ax.set_yticks(range(3), [str(k) for k in atoms])
ax.set(xlabel="lam", ylabel="atoms", title="digits that are recognized")
ax.spines[:].set_visible(False)
plt.show()
