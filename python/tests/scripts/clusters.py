"""Clusters of blobs, by their centres in order, and inertia against their number."""
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_score

X, _ = make_blobs(200, centers=[[0, 0], [6, 0], [0, 6], [6, 6]], random_state=1)
inertias = []
for k in (2, 4):
    model = KMeans(n_clusters=k, n_init=5, random_state=0, copy_x=True, algorithm="lloyd").fit(X)
    inertias.append(model.inertia_)
plt.plot(inertias)
centres = model.cluster_centers_[np.lexsort(model.cluster_centers_.T)]
plt.scatter(centres[:, 0], centres[:, 1])
plt.title(f"{silhouette_score(X, model.labels_):.3f}")
plt.figure()
plt.plot(np.sort(model.transform(X).min(axis=1)))
