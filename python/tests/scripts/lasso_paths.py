"""Coefficients of lasso and elastic net along their paths."""
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import enet_path, lasso_path

X, y = load_diabetes(return_X_y=True)
X = X / X.std(axis=0)
for path, how in ((lasso_path, {}), (enet_path, {"l1_ratio": 0.8})):
    alphas, coefs, _ = path(X, y - y.mean(), eps=5e-3, alphas=30, **how)
    plt.plot(-np.log10(alphas), coefs.T)
