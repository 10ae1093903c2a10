"""A pipeline's penalty by grid search, and its learning curve."""
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y = load_breast_cancer(return_X_y=True)
pipe = make_pipeline(StandardScaler(), LogisticRegression(random_state=0, tol=1e-8, max_iter=1000))
search = GridSearchCV(pipe, {"logisticregression__C": np.logspace(-2, 1, 3)}, cv=3,
                      scoring="neg_log_loss").fit(X, y)
plt.plot(np.log10(search.cv_results_["param_logisticregression__C"].astype(float)),
         search.cv_results_["mean_test_score"])
plt.title(f"C {search.best_params_['logisticregression__C']}")
sizes, _, scores = learning_curve(search.best_estimator_, X, y, cv=3, scoring="neg_log_loss", shuffle=True,
                                  random_state=0)
plt.figure()
plt.plot(sizes, scores)
