"""The margin of a linear support vector machine without an intercept, and a robust line."""
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_regression
from sklearn.svm import LinearSVC, LinearSVR

X, y = make_blobs(200, centers=[[-1, -1], [1, 1]], random_state=0)
model = LinearSVC(C=1, loss="squared_hinge", dual=False, fit_intercept=False, random_state=0,
                  tol=1e-8).fit(X, y)
xs, ys = np.meshgrid(np.linspace(-3, 3, 25), np.linspace(-3, 3, 25))
plt.imshow(model.decision_function(np.c_[xs.ravel(), ys.ravel()]).reshape(25, 25))
X, y = make_regression(100, 1, noise=10, random_state=0)
plt.figure()
plt.plot(X[:, 0], LinearSVR(loss="squared_epsilon_insensitive", dual=False, fit_intercept=False, epsilon=1.0,
                            tol=1e-8).fit(X, y).predict(X))
