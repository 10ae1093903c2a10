"""Probabilities of three classes over two measurements."""
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.linear_model import LogisticRegression

X, y = load_iris(return_X_y=True)
model = LogisticRegression(C=10.0, solver="lbfgs", tol=1e-8, max_iter=1000).fit(X[:, :2], y)
grid = np.stack(np.meshgrid(np.linspace(4, 8, 30), np.linspace(2, 5, 30)), axis=-1).reshape(-1, 2)
plt.imshow(model.predict_proba(grid)[:, 1].reshape(30, 30))
plt.figure()
DecisionBoundaryDisplay.from_estimator(model, X[:, :2], response_method="predict", grid_resolution=40,
                                       ax=plt.gca())
