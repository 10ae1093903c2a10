"""Which penalty cross-validation takes, and the errors of the folds."""
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_diabetes(return_X_y=True)
model = make_pipeline(StandardScaler(), LassoCV(cv=10, tol=1e-6, n_jobs=1, selection="cyclic",
                                                precompute="auto")).fit(X, y)
lasso = model[-1]
plt.semilogx(lasso.alphas_, lasso.mse_path_)
plt.semilogx(lasso.alphas_, lasso.mse_path_.mean(axis=-1))
plt.axvline(lasso.alpha_)
plt.title(f"{(lasso.coef_ != 0).sum()} coefficients")
