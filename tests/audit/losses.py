"""Losses by their formulas, in long double: the value, its slope and the expected curvature in eta, a row
each.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

L = np.longdouble


def logistic(eta):
    """1 / (1 + exp(-eta)) and its complement, each with all of its digits."""
    e = np.exp(-np.abs(eta))
    big, small = 1 / (1 + e), e / (1 + e)
    return np.where(eta >= 0, big, small), np.where(eta >= 0, small, big)


def logistic_loss(y, eta):
    p, q = logistic(eta)
    value = np.log1p(np.exp(-np.abs(eta))) + np.where(y > 0.5, np.maximum(-eta, 0), np.maximum(eta, 0))
    # p - y without cancelling where y is 0 or 1
    slope = np.where(y == 1, -q, np.where(y == 0, p, p - y))
    inner = (y > 0) & (y < 1)
    value = np.where(inner, np.log1p(np.exp(-np.abs(eta))) + np.maximum(eta, 0) - y * eta, value)
    return value, slope, p * q


def squared_loss(y, eta):
    return (eta - y) ** 2 / 2, eta - y, np.ones_like(eta)


def hinge_loss(y, eta):
    sign = np.where(y > 0.5, 1, -1)
    short = np.maximum(0, 1 - sign * eta)
    return short**2 / 2, -sign * short, (short > 0).astype(L)


def tube_loss(epsilon):
    def loss(y, eta):
        over = np.sign(eta - y) * np.maximum(0, np.abs(eta - y) - L(epsilon))
        return over**2 / 2, over, (over != 0).astype(L)

    return loss


def poisson_loss(y, eta):
    mu = np.exp(eta)
    return mu - y * eta, mu - y, mu


def gamma_loss(y, eta):
    ratio = y * np.exp(-eta)
    return ratio + eta, 1 - ratio, np.ones_like(eta)


def inverse_gaussian_loss(y, eta):
    inverse = np.exp(-eta)
    return inverse * (y * inverse / 2 - 1), inverse * (1 - y * inverse), inverse


def negative_binomial_loss(alpha):
    a = L(alpha)

    def loss(y, eta):
        share, rest = logistic(eta + np.log(a))  # alpha mu / (1 + alpha mu), which no mean overflows
        up, down = np.logaddexp(L(0), eta + np.log(a)), np.logaddexp(L(0), -eta - np.log(a))
        return up / a + y * down, share / a - y * rest, share / a

    return loss


def tweedie_loss(power):
    p = L(power)

    def loss(y, eta):
        share = np.exp((2 - p) * eta)
        # a target of 0 has no such term, though the mean be so small that its power is infinite
        over = np.where(y > 0, y * np.exp((1 - p) * eta), 0)
        return share / (2 - p) + over / (p - 1), share - over, share

    return loss


def psi(x):
    """digamma, trigamma and log gamma of x > 0: by their recurrences up to 24, and there by their series."""
    first, second, log = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    x = x.copy()
    for _ in range(24):
        low = x < 24
        at = np.where(low, x, 1)
        first -= np.where(low, 1 / at, 0)
        second += np.where(low, 1 / at**2, 0)
        log -= np.where(low, np.log(at), 0)
        x = np.where(low, x + 1, x)
    z = 1 / (x * x)
    bernoulli = [L(1) / 6, L(-1) / 30, L(1) / 42, L(-1) / 30, L(5) / 66, L(-691) / 2730, L(7) / 6]
    first += np.log(x) - 1 / (2 * x) - sum(b / (2 * k) * z**k for k, b in enumerate(bernoulli, 1))
    second += 1 / x + z / 2 + sum(b * z**k for k, b in enumerate(bernoulli, 1)) / x
    log += (x - L(1) / 2) * np.log(x) - x + np.log(2 * L("3.14159265358979323846264338327950288")) / 2
    return first, second, log + sum(b / (2 * k * (2 * k - 1)) * z ** (k - 1)
                                    for k, b in enumerate(bernoulli, 1)) / x


def beta_loss(precision):
    p = L(precision)

    def loss(y, eta):
        """A mean near 0 has log gamma(a) = log gamma(a + 1) - log a."""
        mu, nu = logistic(eta)
        softplus = np.logaddexp(L(0), -np.abs(eta))
        log_mu, log_nu = np.minimum(eta, 0) - softplus, np.minimum(-eta, 0) - softplus
        up, down, whole = psi(p * mu + 1), psi(p * nu + 1), psi(np.array([p]))[2]
        won, lost = np.log(y), np.log1p(-y)
        value = (up[2] - np.log(p) - log_mu + down[2] - np.log(p) - log_nu - whole - p * mu * won - p * nu
                 * lost)
        slope = nu * (p * mu * (up[0] - won) - 1) - mu * (p * nu * (down[0] - lost) - 1)
        curve = nu**2 * ((p * mu) ** 2 * up[1] + 1) + mu**2 * ((p * nu) ** 2 * down[1] + 1)
        return value, slope, curve

    return loss


def best_of(loss, y):
    """The least loss of each target that is convex near it, by bisection of eta."""
    low, high = np.full_like(y, -11000), np.full_like(y, 11000)
    for _ in range(80):
        middle = (low + high) / 2
        rises = loss(y, middle)[1] > 0
        low, high = np.where(rises, low, middle), np.where(rises, middle, high)
    return loss(y, low)[0]


def softmax_loss(y, eta):
    """y holds numbers of classes; a slope for each class, a curvature for each pair of them."""
    low = eta - eta.max(axis=1, keepdims=True)
    p = np.exp(low) / np.exp(low).sum(axis=1, keepdims=True)
    own = np.eye(eta.shape[1], dtype=L)[y.astype(int)]
    value = np.log(np.exp(low).sum(axis=1)) - (low * own).sum(axis=1)
    others = np.where(own > 0, 0, p).sum(
        axis=1, keepdims=True
    )  # 1 - p of the row's class, with all of its digits
    curve = -p[:, :, None] * p[:, None, :]
    each = np.arange(eta.shape[1])  # 1 - p of each class is the sum of the others, with its digits next to 1
    curve[:, each, each] = 0
    curve[:, each, each] = -curve.sum(axis=2)
    return value, np.where(own > 0, -others, p), curve


def in_columns(loss):
    """A loss of one number a row as one of a matrix of one column."""

    def column(y, eta):
        value, slope, curve = loss(y, eta[:, 0])
        return value, slope[:, None], curve[:, None, None]

    return column
