"""The penalty of a ridge regression, each row left out in turn, as the defaults have it."""
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV

X, y = load_diabetes(return_X_y=True)
model = RidgeCV(np.logspace(-4, 3, 20), store_cv_results=True).fit(X, y)
plt.semilogx(model.alphas, model.cv_results_.mean(axis=0))
plt.title(f"alpha {model.alpha_:.6g}, error {model.best_score_:.6f}")
plt.figure()
plt.plot(model.coef_, RidgeCV(scoring="neg_mean_absolute_error").fit(X, y).coef_, ".")
each = RidgeCV(np.logspace(-4, 3, 20), alpha_per_target=True).fit(X, np.column_stack([y, X[:, 0] + y / 100]))
plt.plot(each.coef_.T)
plt.title(str(np.round(each.alpha_, 6)))
