"""optimality_gap_ against the truth: the optimum by Newton's method and coordinate descent of our own,
objectives in long double."""
from __future__ import annotations

import json
import os
import subprocess
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import kiln
from kiln._library import check, ffi, lib, text

LONG = np.longdouble
SEEDS, VERBOSE = os.environ.get("KILN_BOUNDS_SEEDS", "6"), "KILN_BOUNDS_VERBOSE" in os.environ


def softplus(eta):
    return np.maximum(eta, 0) + np.log1p(np.exp(-np.abs(eta)))


def sigmoid(eta):
    return np.where(eta > 0, 1 / (1 + np.exp(-np.abs(eta))),
                    np.exp(-np.abs(eta)) / (1 + np.exp(-np.abs(eta))))


# of a row: its loss, and the first two derivatives with respect to eta (m x K, of softmax one column a class)
LOSSES = {
    "squared": lambda eta, y: ((eta - y) ** 2 / 2, eta - y, np.ones_like(eta)),
    "logistic": lambda eta, y: (softplus(eta) - y * eta, sigmoid(eta) - y, sigmoid(eta) * sigmoid(-eta)),
    "poisson": lambda eta, y: (np.exp(eta) - y * eta, np.exp(eta) - y, np.exp(eta)),
    "gamma": lambda eta, y: (y * np.exp(-eta) + eta, 1 - y * np.exp(-eta), y * np.exp(-eta)),
    "tweedie": lambda eta, y: (y * np.exp(-eta / 2) * 2 + np.exp(eta / 2) * 2,
                               np.exp(eta / 2) - y * np.exp(-eta / 2),
                               (np.exp(eta / 2) + y * np.exp(-eta / 2)) / 2),
    "negative-binomial": lambda eta, y: ((y + 1) * softplus(eta) - y * eta, (y + 1) * sigmoid(eta) - y,
                                         (y + 1) * sigmoid(eta) * sigmoid(-eta)),
    "hinge": lambda eta, y: (np.maximum(1 - y * eta, 0) ** 2 / 2, -y * np.maximum(1 - y * eta, 0),
                             (y * eta < 1).astype(eta.dtype)),
    "epsilon": lambda eta, y: (np.maximum(np.abs(eta - y) - 0.1, 0) ** 2 / 2,
                               np.sign(eta - y) * np.maximum(np.abs(eta - y) - 0.1, 0),
                               (np.abs(eta - y) > 0.1).astype(eta.dtype)),
}


class Problem:
    """sum_i s_i loss_i + sum_j L_j w_j^2 / 2 + a_j |w_j|, the intercept behind w."""

    def __init__(self, kind, X, y, s=None, l2=0.0, l1=0.0, intercept=True, standardize=False):
        X = np.asarray(X.todense() if sp.issparse(X) else X).astype(LONG)
        self.kind, self.y, self.s = (kind, y.astype(LONG), np.ones(len(y), LONG) if s is None
                                     else s.astype(LONG))
        mean = self.s @ X / self.s.sum()
        spread = np.sqrt(self.s @ (X - mean) ** 2
                         / self.s.sum()) if standardize else np.ones(X.shape[1], LONG)
        self.A = np.hstack([X, np.ones((len(X), 1), LONG)]) if intercept else X
        self.L, self.a = np.zeros(self.A.shape[1], LONG), np.zeros(self.A.shape[1], LONG)
        self.L[:X.shape[1]], self.a[:X.shape[1]] = l2 * spread ** 2, l1 * spread
        self.intercept = intercept

    def objective(self, w):
        w = w.astype(LONG)
        return ((self.s * LOSSES[self.kind](self.A @ w, self.y)[0]).sum() + (self.L * w * w).sum() / 2
                + (self.a * np.abs(w)).sum())

    def model(self, w):
        _, slope, curvature = LOSSES[self.kind](self.A @ w, self.y)
        g = self.A.T @ (self.s * slope) + self.L * w
        H = (self.A * (self.s * curvature)[:, None]).T @ self.A + np.diag(self.L)
        return g, H

    def optimum(self):
        w = np.zeros(self.A.shape[1], LONG)
        for _ in range(200):
            g, H = self.model(w)
            step = self.step(w, g, H)
            t, here = LONG(1), self.objective(w)
            while not self.objective(w + t * step) <= here + abs(here) * 1e-18 and t > 1e-9:
                t /= 2
            w = w + t * step
            if np.abs(step).max() <= 1e-15 * (1 + np.abs(w).max()):
                break
        return self.objective(w)

    def step(self, w, g, H):
        if not self.a.any():
            return -np.linalg.lstsq(H.astype(float), g.astype(float), rcond=None)[0].astype(LONG)
        z, r = w.copy(), g.copy()  # coordinate descent on the quadratic model
        for _ in range(2000):
            largest = LONG(0)
            for j in range(len(z)):
                if H[j, j] == 0:
                    continue
                u = z[j] - r[j] / H[j, j]
                new = np.sign(u) * max(abs(u) - self.a[j] / H[j, j], 0)
                if new != z[j]:
                    r += H[:, j] * (new - z[j])
                    largest = max(largest, abs(new - z[j]))
                    z[j] = new
            if largest <= 1e-17 * (1 + np.abs(z).max()):
                break
        return z - w


def point(model, problem):
    w = np.atleast_2d(model.coef_)[0].astype(LONG)
    return np.append(w, LONG(np.ravel(model.intercept_)[0])) if problem.intercept else w


def fit(model, *args, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args, **more)


def data(kind, seed, dtype, sparse, rows=400, columns=12):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) * rng.choice([0.1, 1, 3],
                                                          columns) + rng.choice([0, 0, 5],
                                                                                columns) * (not sparse)
    if sparse:
        X *= rng.random(X.shape) < 0.2
    X = X.astype(dtype)
    w = rng.standard_normal(columns) / np.sqrt(columns) / np.maximum(np.abs(X).max(0), 1e-3)
    eta = X @ w + 0.3
    y = {
        "logistic": lambda: rng.random(rows) < sigmoid(3 * eta),
        "hinge": lambda: np.where(rng.random(rows) < sigmoid(3 * eta), 1, -1),
        "poisson": lambda: rng.poisson(np.exp(eta)),
        "gamma": lambda: rng.gamma(2, np.exp(eta) / 2),
        "tweedie": lambda: rng.gamma(2, np.exp(eta) / 2) * (rng.random(rows) < 0.6),
        "negative-binomial": lambda: rng.poisson(rng.gamma(1, np.exp(eta))),
    }.get(kind, lambda: eta + rng.standard_normal(rows))()
    return (sp.csr_matrix(X) if sparse else X), y.astype(dtype), rng.integers(0, 4, rows).astype(dtype)


FAMILIES = {"squared": "gaussian", "poisson": "poisson", "gamma": "gamma", "tweedie": "tweedie",
            "negative-binomial": "negative-binomial"}


def make(kind, total, l2, l1, **more):
    if kind == "ridge":
        return kiln.Ridge(l2, device="cpu", **more)
    if kind == "logistic":
        ratio = l1 / (l1 + l2)
        return kiln.LogisticRegression(C=1 / (l1 + l2), l1_ratio=ratio, device="cpu", **more)
    if kind == "hinge":
        return kiln.LinearSVC(C=0.5 / l2, device="cpu", **more)
    if kind == "epsilon":
        return kiln.LinearSVR(C=0.5 / l2, epsilon=0.1, device="cpu", **more)
    parameter = {"tweedie": 1.5, "negative-binomial": 1.0}.get(kind, 0.0)
    return kiln.GeneralizedLinearRegressor(FAMILIES[kind], link="identity" if kind == "squared" else "log",
                                           parameter=parameter, alpha=(l1 + l2) / total,
                                           l1_ratio=l1 / (l1 + l2), device="cpu", **more)


KINDS = ["ridge", "squared", "logistic", "poisson", "gamma", "tweedie", "negative-binomial", "hinge",
         "epsilon"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_bounds_the_distance_from_the_optimum(kind, dtype):
    for seed in range(int(SEEDS)):
        rng = np.random.default_rng(1000 + seed)
        loss = "squared" if kind == "ridge" else kind
        sparse, weighted, intercept, standardize = rng.random(4) < 0.5
        penalties = [(1.0, 0.0), (30.0, 0.0), (0.01, 0.0), (0.0, 5.0), (0.5, 3.0)]
        l2, l1 = penalties[rng.integers(3 if kind in ("ridge", "hinge", "epsilon") else 5)]
        X, y, s = data(loss, seed, dtype, sparse)
        if not weighted:
            s = None
        total = len(y) if s is None else s.sum(dtype=float)
        problem = Problem(loss, X, y, s, l2, l1, intercept, standardize)
        best = problem.optimum()
        for most in (1, 2, 3, 10, None):
            model = fit(make(kind, total, l2, l1, fit_intercept=bool(intercept),
                             standardize=bool(standardize), max_iter=most), X, y,
                        sample_weight=s)
            there, gap = problem.objective(point(model, problem)), model.optimality_gap_
            case = (kind, dtype.__name__, seed, most, bool(sparse), s is not None, bool(intercept),
                    bool(standardize), l2, l1)
            assert np.isfinite(gap), case
            assert there - best <= gap, (case, float(there - best), gap)
            assert model.objective_ - best <= gap, (case, float(model.objective_ - best), gap)
            if model.converged_:
                # a gap is of second order in the tolerance, but of first where t must be scaled
                # f32 knows a gradient to some 1e-6 of what it is made of, and a small l2 makes much of that
                digits = 0.05 * max(1,
                                    0.1 / max(l2, 0.01)) if dtype == np.float32 else 1e-9 if l2 > 0 else 1e-5
                assert gap <= digits * max(abs(best), len(y)), (case, float(there - best), gap)
            if VERBOSE:
                print(case, f"{float(best):.6g} {float(there - best):.3g} {gap:.3g}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_least_squares_without_a_penalty(dtype):
    """By the factor; conjugate gradient, and columns that depend on each other, leave no bound."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = (rng.standard_normal((300, 8)) @ (np.eye(8) + rng.standard_normal((8, 8)) * (seed % 3) / 8) + seed
             % 4).astype(dtype)
        Y = (X @ rng.standard_normal((8, 3)) + rng.standard_normal((300, 3))).astype(dtype)
        s = rng.random(300).astype(dtype) + dtype(0.5) if seed % 2 else None
        for most in (1, None):
            model = fit(kiln.LinearRegression(fit_intercept=seed % 4 > 0, max_iter=most, device="cpu"), X, Y,
                        sample_weight=s)
            there = best = LONG(0)
            for j in range(3):
                problem = Problem("squared", X, Y[:, j], s, intercept=seed % 4 > 0)
                w = np.append(model.coef_[j], model.intercept_[j]) if problem.intercept else model.coef_[j]
                there, best = there + problem.objective(w), best + problem.optimum()
            assert there - best <= model.optimality_gap_, (seed, most, float(there - best),
                                                           model.optimality_gap_)
            assert model.objective_ - best <= model.optimality_gap_, (seed, most)
            assert model.optimality_gap_ <= (1e-2 if dtype == np.float32 else 1e-9) * best
            assert model.report_.certificate == "normal equations"
        none = fit(kiln.LinearRegression(solver="cg", device="cpu"), X, Y).report_
        assert none.optimality_gap == np.inf and none.certificate == ""
        none = fit(kiln.LinearRegression(device="cpu"), np.hstack([X, X[:, :1]]), Y).report_
        assert none.optimality_gap == np.inf and none.certificate == ""


class Softmax(Problem):
    """K classes in y; w is n + 1 rows of K."""

    def objective(self, w):
        eta = self.A @ w
        top = eta.max(1)
        losses = (np.log(np.exp(eta - top[:, None]).sum(1)) + top - eta[np.arange(len(eta)),
                                                                        self.y.astype(int)])
        return (self.s * losses).sum() + (self.L[:, None] * w * w).sum() / 2

    def optimum(self):
        m, k = len(self.y), int(self.y.max()) + 1
        w = np.zeros((self.A.shape[1], k), LONG)
        for _ in range(60):
            p = np.exp(self.A @ w - (self.A @ w).max(1)[:, None])
            p /= p.sum(1)[:, None]
            g = self.A.T @ (self.s[:, None] * (p - np.eye(k)[self.y.astype(int)])) + self.L[:, None] * w
            H = np.zeros((self.A.shape[1], k) * 2)
            for a in range(k):
                for b in range(k):
                    H[:, a, :, b] = ((self.A * (self.s * p[:, a] * ((a == b) - p[:, b]))[:, None]).T
                                     @ self.A).astype(float)
                H[:, a, :, a] += np.diag(self.L.astype(float))
            step = -np.linalg.lstsq(H.reshape(w.size, w.size), g.astype(float).ravel(),
                                    rcond=1e-13)[0].reshape(w.shape)
            t = LONG(1)
            while self.objective(w + t * step) > self.objective(w) * (1 + LONG(1e-18)) and t > 1e-6:
                t /= 2
            w = w + t * step
            if np.abs(step).max() < 1e-13:
                break
        return self.objective(w)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_classes(dtype):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = (rng.standard_normal((200, 5)) + seed).astype(dtype)
        y = (X @ rng.standard_normal((5, 3)) + 2 * rng.standard_normal((200, 3))).argmax(1)
        s = rng.integers(1, 4, 200).astype(dtype) if seed % 2 else None
        options = {"fit_intercept": seed != 2, "device": "cpu"}
        problem = Softmax("softmax", X, y, s, 0.5, 0, seed != 2)
        best = problem.optimum()
        for most in (1, 2, 3, None):
            model = fit(kiln.LogisticRegression(C=2, max_iter=most, **options), X, y, sample_weight=s)
            w = np.vstack([model.coef_.T, model.intercept_]) if problem.intercept else model.coef_.T
            there, gap = problem.objective(w.astype(LONG)), model.optimality_gap_
            assert (there - best <= gap and model.objective_ - best <= gap), (seed, most, float(there - best),
                                                                              gap)
            assert not model.converged_ or gap <= (1e-9 if dtype == np.float64
                                                   else 0.05) * best, (seed, float(there - best), gap)
        each = [Problem("hinge", X, np.where(y == c, 1, -1), s, 0.5, 0, seed != 2).optimum()
                for c in range(3)]
        for most in (1, 3, None):
            model = fit(kiln.LinearSVC(C=1, max_iter=most, **options), X, y, sample_weight=s)
            assert model.objective_ - sum(each) <= model.optimality_gap_
            assert (not model.converged_ or model.optimality_gap_ <= (1e-9 if dtype == np.float64 else 0.05)
                    * sum(each))


@pytest.mark.parametrize("make",
                         [lambda: kiln.LogisticRegression(solver="dual", fit_intercept=False, device="cpu"),
                          lambda: kiln.LogisticRegression(solver="dual", device="cpu"),
                          lambda: kiln.LinearSVC(solver="dual", fit_intercept=False, device="cpu"),
                          lambda: kiln.LinearSVC(solver="dual", device="cpu")])
def test_from_the_dual(make):
    rng = np.random.default_rng(0)
    X = sp.random(120, 60, 0.1, "csr", random_state=1)
    y = np.asarray(X @ rng.standard_normal(60) + 0.3 * rng.standard_normal(120) > 0)
    model = fit(make(), X, y)
    hinge = isinstance(model, kiln.LinearSVC)
    problem = Problem("hinge" if hinge else "logistic", X, np.where(y, 1, -1) if hinge else y, None,
                      0.5 if hinge else 1.0, 0, model.fit_intercept)
    best = problem.optimum()
    there = problem.objective(point(model, problem))
    assert there - best <= model.optimality_gap_ <= 1e-8 * best and model.report_.solver == "dual"


def test_offsets_and_what_has_no_bound():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    offset = rng.standard_normal(300)
    y = rng.poisson(np.exp(X @ [0.3, -0.2, 0, 0.1] + offset)).astype(float)
    model = kiln.GeneralizedLinearRegressor("poisson", alpha=0.01, device="cpu").fit(X, y, offset=offset)
    problem = Problem("poisson", X, y, None, 3.0)
    problem.A = np.hstack([problem.A, offset[:, None].astype(LONG)])
    problem.L, problem.a = np.append(problem.L, 0), np.append(problem.a, 0)
    there = problem.objective(np.concatenate([model.coef_, [model.intercept_, 1]]))
    assert 0 <= model.optimality_gap_ <= 1e-8 and abs(there - LONG(model.objective_)) <= model.optimality_gap_
    for none in (kiln.LogisticRegression(C=np.inf, device="cpu").fit(X, y > 1),
                 kiln.GeneralizedLinearRegressor("gamma", device="cpu").fit(X, y + 1),
                 kiln.GeneralizedLinearRegressor("poisson", device="cpu").fit(np.hstack([X, X]), y),
                 kiln.GeneralizedLinearRegressor("gamma", link="inverse", alpha=0.1,
                                                 device="cpu").fit(X, y + 1)):
        assert none.optimality_gap_ == np.inf and none.report_.certificate == ""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["gaussian", "binomial", "poisson"])
def test_generalised_linear_models_without_a_penalty(kind, dtype):
    """By the information that counts the parameters; early in a run nothing may follow from it."""
    loss, known = {"gaussian": "squared", "binomial": "logistic"}.get(kind, kind), 0
    for seed in range(8):
        X, y, s = data(loss, seed, dtype, seed % 2 == 1, columns=6)
        intercept = seed % 4 > 0
        problem = Problem(loss, X, y, s, intercept=intercept)
        best = problem.optimum()
        for most in (1, 2, 3, None):
            model = fit(kiln.GeneralizedLinearRegressor(kind, fit_intercept=intercept, max_iter=most,
                                                        device="cpu"), X, y, sample_weight=s)
            there, gap = problem.objective(point(model, problem)), model.optimality_gap_
            known += np.isfinite(gap)
            assert (there - best <= gap and model.objective_ - best <= gap), (seed, most, float(there - best),
                                                                              gap)
            # f32 cannot tell columns of 5 +- 0.1 well enough from dependent ones
            assert (not model.converged_ or dtype == np.float32 or gap <= 1e-9 * max(abs(best),
                                                                                     len(y))), (seed, gap)
            assert not np.isfinite(gap) or model.report_.certificate == "curvature"
    assert known >= 8


def test_verify_finds_a_gap_that_is_too_small(tool, tmp_path):
    """The tool's model with another claim in its report."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", (X[:, 0] + rng.standard_normal(200) > 0).astype(float))
    model, data = str(tmp_path / "m.kiln"), [str(tmp_path / "X.npy"), "--target-file",
                                             str(tmp_path / "y.npy")]
    subprocess.run([tool, "logreg", *data, "--l1", "2", "--l2", "1", "--max-iterations", "1", "-o", model,
                    "-q"], check=True)

    def verify():
        return json.loads(subprocess.run([tool, "verify", model, *data, "--json", "-q"],
                                         stdout=subprocess.PIPE, check=False).stdout)

    assert verify()["holds"]
    read = ffi.new("kiln_model **")
    check(lib.kiln_model_load(read, model.encode()))
    report = json.loads(text(lib.kiln_model_text(read[0], b"report")))
    assert report["optimality_gap"] > 0 and report["certificate"] == "duality gap"
    check(lib.kiln_model_set_text(read[0], b"report",
                                  json.dumps(report | {"optimality_gap": report["optimality_gap"]
                                                       / 100}).encode()))
    check(lib.kiln_model_save(read[0], model.encode()))
    lib.kiln_model_free(read[0])
    assert [claim["name"] for claim in verify()["claims"] if claim["holds"] is False] == ["optimality_gap"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_eigenvalue_of_hits(dtype):
    for seed in range(6):
        A = sp.random(40, 30, 0.1, "csr", dtype=dtype, random_state=seed)
        if A.nnz == 0:
            continue
        eigenvalues = np.linalg.eigvalsh((A.T @ A).toarray().astype(float))
        for most in (1, 2, 5, 1000):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                report = kiln.hits(A, norm=1 + seed % 2, max_iter=most, device="cpu").report
            error = np.abs(eigenvalues - report.objective).min()
            assert error <= report.figures["eigenvalue_error"], (seed, most)
        assert report.figures["eigenvalue_error"] <= (1e-2 if dtype == np.float32
                                                      else 1e-8) * report.objective
