"""Least squares and lassos over coefficients from 0 on, and the path of one."""
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import ElasticNet, LinearRegression, Ridge, lasso_path

random = np.random.RandomState(42)
X = random.randn(200, 20)
true = 3 * random.randn(20)
true[true < 0] = 0
y = X @ true + 5 * random.normal(size=200)
free, least = LinearRegression().fit(X, y), LinearRegression(positive=True).fit(X, y)
plt.plot(free.coef_, least.coef_, ".")
plt.plot(Ridge(10.0, positive=True, tol=1e-10).fit(X, y).coef_)
plt.plot(ElasticNet(0.5, l1_ratio=0.7, positive=True, tol=1e-10).fit(X, y).coef_)
plt.title(f"R2 {least.score(X, y):.6f}, {np.count_nonzero(least.coef_)} above 0")
plt.figure()
alphas, coefs, _ = lasso_path(X, y, eps=5e-3, alphas=20, positive=True, tol=1e-10)
plt.plot(-np.log10(alphas), coefs.T)
