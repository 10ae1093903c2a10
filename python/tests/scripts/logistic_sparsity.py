"""Counts the coefficients that each penalty leaves, by C."""
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

X, y = load_digits(return_X_y=True)
X, y = StandardScaler().fit_transform(X)[:150], (y > 4)[:150]
figure, axes = plt.subplots(2, 3)
for row, C in zip(axes, (0.1, 0.02)):
    for axis, ratio in zip(row, (0.0, 0.5, 1.0)):
        model = LogisticRegression(C=C, l1_ratio=ratio, solver="saga", tol=1e-6, max_iter=20000).fit(X, y)
        axis.imshow(np.abs(model.coef_.reshape(8, 8)))
        axis.set_title(f"{model.score(X, y):.2f}")
