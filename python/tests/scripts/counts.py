"""Counts by Poisson regression, and by gamma and Tweedie where they are positive."""
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (300, 3))
y = rng.poisson(np.exp(1 + X @ [1.0, -0.5, 0.2]))
for model, target in ((PoissonRegressor(alpha=1e-3, solver="newton-cholesky", tol=1e-8), y),
                      (GammaRegressor(alpha=0.1, tol=1e-8), y + 0.5),
                      (TweedieRegressor(power=1.9, alpha=0.1, link="log", tol=1e-8), y)):
    model.fit(X, target, sample_weight=np.linspace(1, 2, 300))
    plt.plot(np.sort(model.predict(X)))
    plt.text(0, 0, f"{model.score(X, target):.4f}")
