"""Non-negative factors of images from a given start, and what they give back."""
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

X = load_digits().data[:100] + 0.1
model = NMF(n_components=4, init="custom", beta_loss="kullback-leibler", solver="mu", tol=0, max_iter=400)
rng = np.random.default_rng(0)
W = model.fit_transform(X, W=rng.uniform(1, 2, (100, 4)), H=rng.uniform(1, 2, (4, 64)))
plt.imshow(model.inverse_transform(W))
plt.title(f"{model.reconstruction_err_:.2f}")
