"""A line through points, and how well it fits."""
import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X[:, [2]], y, random_state=0)
model = LinearRegression(n_jobs=1).fit(X_train, y_train)
plt.scatter(X_test, y_test)
plt.plot(X_test, model.predict(X_test))
plt.title(f"R2 {r2_score(y_test, model.predict(X_test)):.3f}, slope {model.coef_[0]:.1f}")
