"""Distances of a layout of digits, from the classical one on."""
import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from sklearn.manifold import MDS

X = load_digits().data[:60]
model = MDS(n_components=2, n_init=1, init="classical_mds", max_iter=20000, eps=1e-13, random_state=0)
layout = model.fit_transform(X)
plt.scatter(pdist(X), pdist(layout))
plt.title(f"{model.stress_ / np.square(pdist(X)).sum():.4f}")
