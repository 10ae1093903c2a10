"""Coefficients of an ill-posed problem against the penalty."""
import matplotlib.pyplot as plt
import numpy as np
from sklearn import linear_model

X = 1.0 / (np.arange(1, 11) + np.arange(0, 10)[:, np.newaxis])
alphas = np.logspace(-10, -2, 40)
coefs = [linear_model.Ridge(alpha=alpha, fit_intercept=False, solver="svd",
                            random_state=0).fit(X, np.ones(10)).coef_ for alpha in alphas]
plt.semilogx(alphas, coefs)
