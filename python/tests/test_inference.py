"""Statistics of linear models, against statsmodels and, where that has none (robust errors of other links,
which are R's sandwich with the expected information), against the formulas."""
import json
import re
import subprocess

import numpy as np
import pytest
from scipy import optimize, sparse, special, stats
from sklearn.exceptions import ConvergenceWarning

import kiln
from kiln._library import lib

sm = pytest.importorskip("statsmodels.api")
F, L = sm.families, sm.families.links
M = 300
rng = np.random.default_rng(38)
X = np.c_[rng.normal(size=M), rng.normal(2000, 5, M), rng.integers(0, 2, M), rng.exponential(size=M)]
E = np.c_[X, np.ones(M)]
ETA = 0.3 * X[:, 0] - 0.04 * (X[:, 1] - 2000) + 0.1 * X[:, 3] + 0.5
MU = np.exp(ETA)
WEIGHTS = rng.uniform(0.5, 3, M)
GROUPS = rng.integers(0, 7, M)
SUCCESS = rng.binomial(1, special.expit(ETA)).astype(float)
CASES = {
    "poisson": ("log", F.Poisson(), rng.poisson(MU).astype(float)),
    "gaussian": ("identity", F.Gaussian(), ETA + rng.normal(size=M)),
    "gamma": ("log", F.Gamma(L.Log()), rng.gamma(3, MU / 3)),
    "inverse-gaussian": ("log", F.InverseGaussian(L.Log()), rng.wald(MU, 4)),
    "binomial": ("probit", F.Binomial(L.Probit()), SUCCESS),
    "negative-binomial": ("log", F.NegativeBinomial(alpha=0.5),
                          rng.poisson(MU * rng.gamma(2, 0.5, M)).astype(float)),
}


def near(found, wanted, digits=1e-8):
    np.testing.assert_allclose(found, wanted, rtol=digits, atol=0)


def fitted(family, weights=None, X=X, y=None, **more):
    link, peer, target = CASES[family]
    y = target if y is None else y
    parameter = 0.5 if family == "negative-binomial" else 0.0
    model = kiln.GeneralizedLinearRegressor(family, link=link, parameter=parameter, tol=1e-13, device="cpu",
                                            **more)
    return model.fit(X, y, sample_weight=weights), sm.GLM(y, E, family=peer, var_weights=weights), y


def akaike(family, y, their, w):
    """R's, of no parameters but the dispersion."""
    deviance, mu, total = their.deviance, their.fittedvalues, w.sum()
    phi = deviance / total
    if family == "gaussian":
        return M * (np.log(2 * np.pi * deviance / M) + 1) + 2 - np.log(w).sum()
    if family == "gamma":
        return 2 - 2 * (w * stats.gamma.logpdf(y, 1 / phi, scale=mu * phi)).sum()
    if family == "inverse-gaussian":
        return total * (np.log(2 * np.pi * phi) + 1) + 3 * (w * np.log(y)).sum() + 2
    return -2 * their.llf


@pytest.mark.parametrize("family", CASES)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
def test_figures_of_every_family(family, weights):
    model, peer, y = fitted(family, weights)
    known = family in ("poisson", "binomial", "negative-binomial")
    their = peer.fit(tol=1e-14, maxiter=100, use_t=not known)
    ours = model.inference(X, y, weights)
    assert ours.use_t != known and ours.df_resid == M - 5 and ours.df_model == 4
    near([ours.params, ours.bse, ours.tvalues, ours.pvalues],
         [their.params, their.bse, their.tvalues, their.pvalues])
    # An end of an interval may be next to 0: the rounding of estimate and error is what counts.
    apart = np.abs(ours.conf_int(0.1) - their.conf_int(0.1)).max(axis=1)
    np.testing.assert_array_less(apart, 1e-8 * (np.abs(their.params) + their.bse))
    near(ours.cov_params(), their.cov_params(), 1e-7)
    near([ours.scale, ours.deviance, ours.null_deviance, ours.pearson_chi2, ours.figures["bic_of_deviance"]],
         [their.scale, their.deviance, their.null_deviance, their.pearson_chi2, their.bic_deviance])
    if family != "binomial" or weights is None:  # statsmodels' proportions leave out coefficients of trials
        near([ours.llf, ours.figures["aic_of_means"], ours.figures["bic_of_means"]],
             [their.llf, their.aic, their.bic_llf])
        aic = akaike(family, y, their, np.ones(M) if weights is None else weights) + 10
        near([ours.aic, ours.bic], [aic, aic + (np.log(M) - 2) * (5 + (not known))])
    near(ours.exp_coef()[:, 0], np.exp(their.params))
    fit = [ours.rsquared, ours.rsquared_adj, ours.fvalue, ours.f_pvalue]
    if family == "gaussian":
        squares = sm.WLS(y, E, 1 if weights is None else weights).fit()
        near(fit, [squares.rsquared, squares.rsquared_adj, squares.fvalue, squares.f_pvalue])
        assert "Adjusted R2" in ours.summary().as_text()
    else:
        assert np.isnan(fit).all()


@pytest.mark.parametrize("family", CASES)
def test_rows_and_robust_errors(family):
    model, peer, y = fitted(family, WEIGHTS)
    their = peer.fit(tol=1e-14, maxiter=100, use_t=not family == "poisson")
    influence = their.get_influence(observed=False)
    ours = model.inference(X, y, WEIGHTS)
    rows = ours.residuals()
    near(rows["pearson"], their.resid_pearson, 1e-6)
    near(rows["deviance"], their.resid_deviance, 1e-6)
    near(rows["leverage"], influence.hat_matrix_diag)
    near(rows["cooks_distance"], influence.cooks_distance[0], 1e-6)
    near(rows["standardized"], influence.resid_studentized, 1e-6)
    near(rows["response"], y - rows["mean"], 1e-12)
    bread = np.linalg.inv(-peer.hessian(their.params, scale=1, observed=False))
    scores, left = peer.score_obs(their.params, scale=1), 1 - influence.hat_matrix_diag
    for kind, factor in (("HC0", 1), ("HC1", M / (M - 5)), ("HC2", 1 / left), ("HC3", left**-2)):
        meat = scores.T @ (scores * np.broadcast_to(factor, M)[:, None])
        near(model.inference(X, y, WEIGHTS, cov_type=kind).bse, np.sqrt(np.diag(bread @ meat @ bread)))
    sums = np.array([scores[GROUPS == g].sum(axis=0) for g in range(7)])
    meat = sums.T @ sums * 7 / 6 * (M - 1) / (M - 5)
    clustered = model.inference(X, y, WEIGHTS, cov_type="cluster", groups=GROUPS.astype(str))
    near(clustered.bse, np.sqrt(np.diag(bread @ meat @ bread)))
    assert clustered.figures["groups"] == 7 and clustered.figures["test_degrees"] in (6, np.inf)
    new = their.get_prediction(E[:9])
    found = ours.get_prediction(X[:9])
    near(found.mean, new.predicted_mean)
    near(found.se_mean, new.se_mean if hasattr(new, "se_mean") else new.se_obs)
    near(found.se_linear, np.sqrt(np.einsum("ij,jk,ik->i", E[:9], their.cov_params(), E[:9])), 1e-6)
    robust = clustered.get_prediction(X[:9]).se_linear
    near(robust, np.sqrt(np.einsum("ij,jk,ik->i", E[:9], clustered.cov_params(), E[:9])), 1e-6)


def test_least_squares_and_logistic_regression():
    y = CASES["gaussian"][2]
    for weights in (None, WEIGHTS):
        model = kiln.LinearRegression(device="cpu").fit(X, y, weights)
        their = (sm.OLS(y, E) if weights is None else sm.WLS(y, E, weights=weights)).fit()
        ours = model.inference(X, y, weights)
        near(ours.pvalues, their.pvalues)
        near(ours.llf, their.llf)
        for kind in ("HC0", "HC1", "HC2", "HC3"):
            near(model.inference(X, y, weights, cov_type=kind).bse, getattr(their, kind + "_se"))
        near(model.inference(X, y, weights, cov_type="cluster", groups=GROUPS).bse,
             their.get_robustcov_results("cluster", groups=GROUPS).bse)
    named = np.where(SUCCESS > 0, "yes", "no")
    model = kiln.LogisticRegression(C=np.inf, tol=1e-13, device="cpu").fit(X, named)
    their = sm.Logit(SUCCESS, E).fit(disp=0, tol=1e-14)
    ours = model.inference(X, named)
    near([*ours.bse, ours.llf, ours.aic, ours.bic], [*their.bse, their.llf, their.aic, their.bic])
    assert "Logistic regression: yes against no" in str(ours.summary())


def test_same_on_every_entrance():
    """Sparse X, two devices as one, no intercept, an offset, rows of weight 0, columns that depend on
    others."""
    model, _, y = fitted("poisson")
    wanted = model.inference(X, y, cov_type="HC3")
    for where in (sparse.csr_array(X), kiln.matrix(X, kiln.Device("cpu*2"))):
        near(model.inference(where, y, cov_type="HC3").bse, wanted.bse)
    offset = np.linspace(-1, 1, M)
    plain = kiln.PoissonRegressor(alpha=0, fit_intercept=False, tol=1e-13, device="cpu")
    small = X[:, :1]
    plain.fit(small, y, offset=offset)
    their = sm.GLM(y, small, family=F.Poisson(), offset=offset).fit(tol=1e-14)
    ours = plain.inference(small, y, offset=offset)
    near([*ours.bse, ours.llf, ours.deviance], [*their.bse, their.llf, their.deviance])
    near(ours.get_prediction(small[:3], offset[:3]).mean, their.predict(small[:3], offset=offset[:3]))
    none = np.r_[WEIGHTS[:-50], np.zeros(50)]
    for kind in ("nonrobust", "HC1", "cluster"):
        groups = GROUPS if kind == "cluster" else None
        with_zeros = fitted("gamma", none)[0].inference(X, CASES["gamma"][2], none, cov_type=kind,
                                                        groups=groups)
        link, _, y2 = CASES["gamma"]
        short = kiln.GeneralizedLinearRegressor("gamma", link=link, tol=1e-13, device="cpu")
        short.fit(X[:-50], y2[:-50], WEIGHTS[:-50])
        fewer = short.inference(X[:-50], y2[:-50], WEIGHTS[:-50], cov_type=kind,
                                groups=None if groups is None else groups[:-50])
        near(with_zeros.bse, fewer.bse)
        near([with_zeros.bic, with_zeros.llf], [fewer.bic, fewer.llf])
    twice = np.c_[X, X[:, 0] + X[:, 2]]
    for model in (kiln.LinearRegression(device="cpu"), kiln.GeneralizedLinearRegressor(device="cpu")):
        y = CASES["gaussian"][2]
        found = model.fit(twice, y).inference(twice, y, cov_type="HC2")
        plain = sm.OLS(y, E).fit()
        near(np.delete(found.bse, 4), plain.HC2_se)
        near(np.delete(found.params, 4), plain.params, 1e-7)
        assert np.isnan(found.bse[4]) and found.params[4] == 0 and found.df_resid == M - 5
        assert "depends on" in str(found.summary())


def test_comparison_and_summary():
    y = CASES["gaussian"][2]
    large, small = (kiln.LinearRegression(device="cpu").fit(x, y).inference(x, y) for x in (X, X[:, :2]))
    found = large.compare(small)
    full, part = sm.OLS(y, E).fit(), sm.OLS(y, E[:, [0, 1, 4]]).fit()
    near([found.statistic, found.p, found.degrees], full.compare_f_test(part))
    near([found.likelihood_ratio, found.likelihood_ratio_p, found.degrees], full.compare_lr_test(part))
    counts = CASES["poisson"][2]
    large, small = (kiln.PoissonRegressor(alpha=0, tol=1e-12,
                                          device="cpu").fit(x, counts).inference(x, counts)
                    for x in (X, X[:, :2]))
    near(large.compare(small).p, stats.chi2.sf(small.deviance - large.deviance, 2))
    with pytest.raises(kiln.ArgumentError, match="not within"):
        small.compare(large)
    for one, more, says in (("negative-binomial", {"parameter": 0.5}, "family poisson, and one of negative"),
                            ("poisson", {"link": "sqrt"}, "link log, and one of sqrt")):
        other = kiln.GeneralizedLinearRegressor(one, device="cpu", **more).fit(X, counts).inference(X, counts)
        with pytest.raises(kiln.ArgumentError, match=says):
            other.compare(small)
    for name, values in (("parameter", {"family": "negative-binomial"}), ("link_power", {
            "family": "poisson", "link": "power"})):
        pair = []
        for x, value in ((X, 0.4), (X[:, :2], 0.5)):
            model = kiln.GeneralizedLinearRegressor(device="cpu", **values, **{name: value})
            pair.append(model.fit(x, counts).inference(x, counts))
        with pytest.raises(kiln.ArgumentError, match="0.5, and one of 0.4"):
            pair[0].compare(pair[1])
    lines = str(large.summary(0.1)).splitlines()
    assert len({len(line) for line in lines if line.startswith(("=", "-"))}) == 1
    assert "[0.05" in lines[9] and lines[-2].startswith("(intercept)")
    assert large._repr_html_().count("<tr>") == 6 + 6
    pandas = pytest.importorskip("pandas")
    frame = large.summary().frame
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns)[2:4] == ["z", "P>|z|"]
    near(frame["[0.025"].to_numpy(), large.conf_int()[:, 0])


def test_models_of_files(tmp_path):
    y = CASES["gamma"][2]
    model = fitted("gamma")[0]
    model.save(tmp_path / "m.kiln")
    again = kiln.load(tmp_path / "m.kiln").inference(X, y)
    near(again.bse, model.inference(X, y).bse)


def test_refusals():
    y = CASES["gaussian"][2]
    ridge = kiln.Ridge(alpha=1).fit(X, y)
    with pytest.raises(kiln.ArgumentError, match="without a penalty"):
        ridge.inference(X, y)
    plain = kiln.LinearRegression().fit(X, y)
    with pytest.raises(kiln.ArgumentError, match="any sign"):
        kiln.LinearRegression(positive=True).fit(X, y).inference(X, y)
    with pytest.raises(kiln.ArgumentError, match="cov_type"):
        plain.inference(X, y, cov_type="HC4")
    with pytest.raises(kiln.ArgumentError, match="groups"):
        plain.inference(X, y, cov_type="cluster")
    with pytest.raises(kiln.DataError, match="two or more"):
        plain.inference(X, y, cov_type="cluster", groups=np.zeros(M))
    with pytest.raises(kiln.DataError, match=r"group of row 3 \(from 0\) is missing"):
        plain.inference(X, y, cov_type="cluster", groups=np.where(np.arange(M) == 3, np.nan, GROUPS))
    with pytest.raises(kiln.DataError, match=r"group of row 3 \(from 0\) is missing"):
        plain.inference(X, y, cov_type="cluster", groups=["u", "v", "u", None, *["v"] * (M - 4)])


def test_data_are_those_of_the_fit():
    """A model with an offset or weights has its optimum with these alone."""
    y, offset = CASES["poisson"][2], np.linspace(-1, 1, M)
    model = kiln.PoissonRegressor(alpha=0, tol=1e-13, device="cpu").fit(X, y, WEIGHTS, offset)
    with pytest.raises(kiln.ArgumentError, match="with an offset"):
        model.inference(X, y, WEIGHTS)
    with pytest.raises(kiln.ArgumentError, match="with sample_weight"):
        model.inference(X, y, offset=offset)
    their = sm.GLM(y, E, family=F.Poisson(), offset=offset, var_weights=WEIGHTS).fit(tol=1e-14)
    ours = model.inference(X, y, WEIGHTS, offset)
    near([*ours.bse, ours.llf], [*their.bse, their.llf])
    with pytest.raises(kiln.ArgumentError, match="with an offset"):
        ours.get_prediction(X[:3])
    near(ours.get_prediction(X[:3], offset[:3]).mean, model.predict(X[:3], offset[:3]))
    with pytest.raises(kiln.ArgumentError, match="without an offset"):
        fitted("poisson")[0].inference(X, y, offset=offset)


def test_penalties_of_cross_validation():
    y = CASES["gaussian"][2]
    for model in (kiln.GeneralizedLinearRegressorCV(alphas=[1.0], device="cpu"), kiln.LassoCV(alphas=[0.1]),
                  kiln.ElasticNetCV(alphas=[0.1])):
        with pytest.raises(kiln.ArgumentError, match="without a penalty"):
            model.fit(X, y).inference(X, y)
    none = kiln.GeneralizedLinearRegressorCV(alphas=[0.0], tol=1e-12, device="cpu").fit(X, y)
    near(none.inference(X, y).bse, sm.OLS(y, E).fit().bse)


@pytest.mark.parametrize("size", [1, 1e5, 1e10, 1e12])
def test_a_row_that_hides_the_others(size):
    """A row of 1e10 makes all columns look like one to their Gram matrix: errors that went by it were those
    of fewer parameters. There are errors of all, or none."""
    own = np.random.default_rng(5)
    A = own.normal(size=(40, 3))
    A[7] *= size
    y = own.poisson(np.exp(np.clip(A @ [0.3, -0.2, 0.1], -3, 3))).astype(float)
    y[7] = 2
    models = [kiln.GeneralizedLinearRegressor(family, standard_errors=True, device="cpu")
              for family in ("gaussian", "poisson")]
    for model in (kiln.LinearRegression(device="cpu"), *models):
        model.fit(A, y)
        if size >= 1e10:
            with pytest.raises(kiln.DataError, match="seem to depend on others"):
                model.inference(A, y)
            assert np.isnan(getattr(model, "standard_errors_", np.nan)).all()
        else:
            found = model.inference(A, y)
            assert found.df_resid == 36 and np.isfinite(found.bse).all()


@pytest.mark.parametrize("far", [300, 2e4, 1e5])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("device", ["cpu", "cpu*2"])
def test_float32_of_columns_far_from_zero(far, kind, device):
    """Errors of numbers as float32 has them are computed in float64: right to float32's own digits, as the
    coefficients that they are of are."""
    own = np.random.default_rng(9)
    A = np.c_[own.normal(far, 1, M), own.normal(-far, 1, M), own.normal(size=M)].astype(np.float32)
    E = np.c_[A.astype(float), np.ones(M)]
    y = (A - A.mean(0)) @ np.array([0.3, 0.1, -0.2], np.float32) + own.normal(size=M).astype(np.float32)
    given = kiln.matrix(sparse.csr_array(A) if kind == "sparse" else A, kiln.Device(device))
    digits = max(1e-4, 1e-7 * far)  # of coefficients whose columns' multiples are rounded
    for model, peer in ((kiln.LinearRegression(), sm.OLS(y.astype(float), E)),
                        (kiln.GeneralizedLinearRegressor("gaussian", standard_errors=True),
                         sm.OLS(y.astype(float), E))):
        their, ours = peer.fit(), model.fit(given, y).inference(given, y)
        near(ours.bse, their.bse, digits)
        near(ours.residuals()["leverage"], their.get_influence().hat_matrix_diag, digits)
        near(ours.get_prediction(A[:5]).se_linear, their.get_prediction(E[:5]).se_mean, digits)
        near(model.inference(given, y, cov_type="HC3").bse, their.HC3_se, 10 * digits)
        near(model.inference(given, y, cov_type="cluster", groups=GROUPS).bse,
             their.get_robustcov_results("cluster", groups=GROUPS).bse, 10 * digits)
        near(getattr(model, "standard_errors_", their.bse[:3]), their.bse[:3], digits)


@pytest.mark.parametrize("far", [0, 30, 1000])
def test_float32_of_columns_that_are_sums_but_for_rounding(far):
    """The last digits of a sum are no column of their own; columns that do differ in float32's digits are."""
    own = np.random.default_rng(10)
    two = own.normal(far, 1, (M, 2)).astype(np.float32)
    y = (two - two.mean(0)).sum(1) + own.normal(size=M).astype(np.float32)
    made = (two.astype(float) @ [0.7, 0.4]).astype(np.float32)
    apart = made + (np.float32(3e-4) * max(far, 1) * own.normal(size=M)).astype(np.float32)
    for column, counted in ((made, 2), (apart, 3)):
        A = np.c_[two, column]
        with np.errstate(all="ignore"):
            ours = kiln.LinearRegression(device="cpu").fit(A, y).inference(A, y)
        assert ours.df_model == counted
        near(ours.bse[[0, 1, 2] if counted == 3 else [0, 1]],
             sm.OLS(y.astype(float), np.c_[A.astype(float), np.ones(M)][:, [*range(counted), 3]]).fit()
             .bse[:counted], 2e-3)


def test_data_of_another_fit_are_noticed():
    """The distance from the optimum is Newton's step in standard errors: 0 on the data of the fit."""
    for family in CASES:
        for dtype in (np.float32, np.float64):
            model, peer, y = fitted(family, WEIGHTS, X.astype(dtype))
            same = model.inference(X.astype(dtype), y, WEIGHTS)
            assert same.distance < 0.05, (family, dtype, same.distance)
            with pytest.warns(UserWarning, match="standard errors from the best ones"):
                other = model.inference(X.astype(dtype)[::-1].copy(), y, WEIGHTS)
            assert other.distance > 0.5
        assert same.distance < 1e-3
    near(model.fit(X, y).inference(X, y, WEIGHTS[::-1].copy() ** 2).distance,
         step_in_errors(model, y, WEIGHTS[::-1] ** 2), 1e-5)


def step_in_errors(model, y, weights):
    """The model is a negative binomial of alpha 0.5 and the logarithm, dispersion 1."""
    mu = np.exp(E @ [*model.coef_, model.intercept_])
    g = E.T @ (weights * (y - mu) / (1 + 0.5 * mu))
    H = E.T @ (E * (weights * mu / (1 + 0.5 * mu))[:, None])
    return np.sqrt(g @ np.linalg.solve(H, g))


def test_comparisons_are_of_the_same_rows():
    y = CASES["gaussian"][2]

    def of(rows, columns, y, weights=None):
        model = kiln.LinearRegression(device="cpu").fit(X[rows][:, columns], y[rows], weights)
        return model.inference(X[rows][:, columns], y[rows], weights)

    everything, order = np.arange(M), np.random.default_rng(1).permutation(M)
    large = of(everything, [0, 1, 2, 3], y)
    near(large.compare(of(order, [0, 1], y)).p, large.compare(of(everything, [0, 1], y)).p, 1e-8)
    other = y.copy()
    other[7] += 1e-3
    for small in (of(everything, [0, 1], other), of(everything, [0, 1], y, WEIGHTS)):
        with pytest.raises(kiln.ArgumentError, match="other targets or weights"):
            large.compare(small)


def test_a_kind_of_errors_in_any_case():
    y = CASES["gaussian"][2]
    model = kiln.LinearRegression(device="cpu").fit(X, y)
    assert model.inference(X, y, cov_type="hc3").cov_type == "HC3"
    near(model.inference(X, y, cov_type="hc3").bse, model.inference(X, y, cov_type="HC3").bse)


def test_as_many_parameters_as_rows():
    few, y = X[:4, [0, 1, 3]], CASES["gaussian"][2][:4]
    lines = str(kiln.LinearRegression(device="cpu").fit(few, y).inference(few, y).summary())
    assert "nan" in lines and "depends on" not in lines


def test_distributions():
    for degrees in (1, 2.5, 7, 40, 1e3, 1e6, 1e9, 1e12, np.inf):
        t = np.array([1e-3, 0.5, 1.7, 1.74, 4, 20.0])
        wanted = 2 * (stats.norm.sf(t) if np.isinf(degrees) else stats.t.sf(t, degrees))
        near([lib.kiln_student_tails(x, degrees) for x in t], wanted, 1e-12)
        quantile = stats.norm.ppf(0.95) if np.isinf(degrees) else stats.t.ppf(0.95, degrees)
        near(lib.kiln_student_quantile(0.9, degrees), quantile, 1e-10)
    for over in (1, 3, 50, 2000):
        x = over * np.array([0.3, 0.9, 1.0, 1.2, 3.0])
        near([lib.kiln_chi_square_tail(value, over) for value in x], stats.chi2.sf(x, over), 1e-10)
        for under in (1, 4, 300, 1e5):
            near([lib.kiln_f_tail(value / over, over, under) for value in x],
                 stats.f.sf(x / over, over, under), 1e-11)
    # by mpmath's quadrature of the density in 30 digits, as SciPy has 8 of these
    for over, under, x, wanted in ((50, 1e9, 1.2, 0.15724203490569208), (50, 1e9, 3, 6.315239826474593e-12),
                                   (2000, 1e9, 1.2, 1.2882138718711591e-9),
                                   (1e9, 1e9, 1.0001, 0.056932185168149383)):
        near(lib.kiln_f_tail(x, over, under), wanted, 2e-12)


def test_estimated_parameters():
    from statsmodels.othermod.betareg import BetaModel

    y = CASES["negative-binomial"][2]
    model = kiln.GeneralizedLinearRegressor("negative-binomial", parameter="estimate", tol=1e-12,
                                            device="cpu")
    their = sm.NegativeBinomial(y, E).fit(disp=0, maxiter=500, method="newton",
                                          start_params=[*sm.GLM(y, E, family=F.Poisson()).fit().params, 0.5])
    near([*model.fit(X, y).coef_, model.parameter_], [*their.params[:4], their.params[-1]], 1e-6)
    near(model.inference(X, y).llf, their.llf)
    assert (f"negative-binomial (alpha {model.parameter_:.6g}), link log"
            in str(model.inference(X, y).summary()))
    shares = np.clip(rng.beta(4 * special.expit(ETA), 4 * special.expit(-ETA)), 1e-6, 1 - 1e-6)
    model = kiln.GeneralizedLinearRegressor("beta", parameter="estimate", tol=1e-12,
                                            device="cpu").fit(X, shares)
    Z = np.c_[(X - X.mean(axis=0)) / X.std(axis=0), np.ones(M)]
    their = BetaModel(shares, Z).fit(disp=0, maxiter=500, method="newton")
    near(model.parameter_, np.exp(their.params[-1]), 1e-6)
    near(model.inference(X, shares).llf, their.llf)
    even = kiln.GeneralizedLinearRegressor("negative-binomial", parameter="estimate", device="cpu").fit(X, y)
    known = even.parameter_
    with pytest.raises(kiln.DataError, match="vary no more"):
        even.fit(X, np.full(M, 3.0) + np.arange(M) % 2)
    assert even.parameter_ == known


def tweedie_density(y, mu, phi, power):
    """The logarithm, by the series' terms one by one."""
    one, two = power - 1, 2 - power
    found = -(y / (one * mu**one) + mu**two / two) / phi
    for i in np.flatnonzero(y > 0):
        a, phi_i = two / one, phi[i]
        most = y[i]**two / (two * phi_i)
        j = np.arange(1, 3 * most + 400 * (1 + 1 / a))
        terms = (j * (a * np.log(y[i] / (one * phi_i)) - np.log(two * phi_i)) - special.gammaln(j + 1)
                 - special.gammaln(a * j))
        found[i] += special.logsumexp(terms) - np.log(y[i])
    return found


@pytest.mark.parametrize("power, phi, weights", [(1.5, 1.0, None), (1.2, 0.7, WEIGHTS), (1.7, 0.8, WEIGHTS),
                                                 (1.6, 0.005, None)])
def test_tweedie(power, phi, weights):
    """Likelihoods, R's criterion and the most likely power, for sums of few and of many amounts."""
    w, draw = np.ones(M) if weights is None else weights, np.random.default_rng(7)
    counts = draw.poisson(MU**(2 - power) / (phi / w * (2 - power)))
    y = np.where(counts > 0, draw.gamma(np.maximum(counts, 1) * (2 - power) / (power - 1),
                                        phi / w * (power - 1) * MU**(power - 1)), 0.0)
    model = kiln.GeneralizedLinearRegressor("tweedie", parameter="estimate", tol=1e-13, device="cpu")
    result, found = model.fit(X, y, weights).inference(X, y, weights), model.parameter_
    their = sm.GLM(y, E, family=F.Tweedie(var_power=found), var_weights=weights).fit(tol=1e-14, maxiter=300)
    near(result.bse, their.bse)
    near(result.llf, tweedie_density(y, their.mu, their.scale / w, found).sum())
    spread = np.full(M, their.deviance / w.sum())
    near(result.aic, 12 - 2 * (w * tweedie_density(y, their.mu, spread, found)).sum())
    near(result.bic, result.aic + (np.log(M) - 2) * 6)

    def profile(at):
        mu = kiln.GeneralizedLinearRegressor("tweedie", parameter=at, tol=1e-13,
                                             device="cpu").fit(X, y, weights).predict(X)
        return -optimize.minimize_scalar(lambda t: -tweedie_density(y, mu, np.exp(t) / w, at).sum(),
                                         bounds=np.log(their.scale) + np.array([-1, 1]), method="bounded",
                                         options={"xatol": 1e-9}).fun

    step = 1e-3 * (found - 1) * (2 - found)
    low, here, high = profile(found - step), profile(found), profile(found + step)
    assert low < here > high
    assert abs(high - low) / 2 < 0.01 * (2 * here - low - high)  # the vertex is within 0.01 steps


def test_tweedie_regressor_finds_its_power(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = np.exp(X @ [0.3, 0.2]) * rng.gamma(1, 1, 300) * (rng.random(300) > 0.3)
    model = kiln.TweedieRegressor(power="estimate", alpha=0, device="cpu")
    with pytest.raises(kiln.UnsupportedError, match="fit this model first"):
        model.to_sklearn()
    wanted = kiln.GeneralizedLinearRegressor("tweedie", parameter="estimate", device="cpu").fit(X, y)
    assert model.fit(X, y).power_ == wanted.parameter_ and np.array_equal(model.coef_, wanted.coef_)
    model.save(tmp_path / "m.kiln")
    loaded = kiln.load(tmp_path / "m.kiln")
    assert loaded.power_ == model.power_ and np.array_equal(loaded.predict(X), model.predict(X))
    theirs = model.to_sklearn()
    assert theirs.power == model.power_
    near(theirs.score(X, y), model.score(X, y))
    for other in (kiln.TweedieRegressor(power="estimat"),
                  kiln.GeneralizedLinearRegressor("tweedie", parameter="estimat")):
        with pytest.raises(ValueError, match="must be a number or 'estimate'. Got 'estimat'"):
            other.fit(X, y)


def test_tweedie_powers_that_are_none():
    model = kiln.GeneralizedLinearRegressor("tweedie", parameter="estimate", device="cpu")
    with pytest.raises(kiln.DataError, match="rises as far as the parameter goes, to 1.99"):
        model.fit(X, CASES["gamma"][2])
    with pytest.raises(kiln.DataError):
        model.fit(X, np.zeros(M))
    with pytest.raises(kiln.ArgumentError, match="'tweedie' needs parameter=, which is its variance-power"):
        kiln.GeneralizedLinearRegressor("tweedie").fit(X, CASES["gamma"][2])


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_robust_errors_of_beta(weights):
    """Whose score is no multiple of y - mu: s P mu' (log(y / nu) - psi(P mu) + psi(P nu))."""
    P, s = 6.0, np.ones(M) if weights is None else weights
    y = np.random.default_rng(5).beta(4 * special.expit(ETA), 4 * special.expit(-ETA)).clip(1e-6, 1 - 1e-6)
    model = kiln.GeneralizedLinearRegressor("beta", parameter=P, tol=1e-13, device="cpu").fit(X, y, weights)
    mu = model.predict(X)
    a, b, slope = P * mu, P * (1 - mu), mu * (1 - mu)
    h = s * (P * slope)**2 * (special.polygamma(1, a) + special.polygamma(1, b))
    u = s * P * slope * (special.logit(y) - special.digamma(a) + special.digamma(b))
    centred = E - np.r_[[0, 2000, 0, 0], 0]  # for digits: the errors of slopes are the same
    inverse = np.linalg.inv(centred.T @ (h[:, None] * centred))
    leverage = h * np.einsum("ij,jk,ik->i", centred, inverse, centred)
    sums = np.array([u[GROUPS == g] @ centred[GROUPS == g] for g in range(7)])
    for kind, meat in (("HC0", centred.T @ (u[:, None]**2 * centred)),
                       ("HC3", centred.T @ ((u / (1 - leverage))[:, None]**2 * centred)),
                       ("cluster", 7 / 6 * (M - 1) / (M - 5) * sums.T @ sums)):
        found = model.inference(X, y, weights, cov_type=kind, groups=GROUPS if kind == "cluster" else None)
        near(found.bse[:4], np.sqrt(np.diag(inverse @ meat @ inverse))[:4], 1e-7)


def stable_density(y, mu, phi, power):
    """log f of powers above 2, from the cumulants: Laplace's integral along a parabola around their cut,
    through the saddle point."""
    a, x = (power - 2) / (power - 1), np.arange(-8, 8, 0.005)

    def cumulant(theta):
        return -((1 - power) * theta)**a / ((power - 2) * phi)

    theta, saddle = (at**(1 - power) / (1 - power) + 0j for at in (mu, y))
    spread = np.sqrt(phi * y**power)
    s = (saddle - theta) / phi + (1j * x + x**2 * spread / y) / spread
    along = (1j + 2 * x * spread / y) / spread
    values = np.exp(cumulant(theta + s * phi) - cumulant(theta) - s * y) * along
    return np.log((values.sum() * 0.005 / (2j * np.pi)).real)


@pytest.mark.parametrize("power, weights", [(2.2, None), (2.5, WEIGHTS), (3.0, None), (4.5, WEIGHTS)])
def test_tweedie_powers_above_two(power, weights):
    """Likelihoods and R's criterion; of the power 3 they are the inverse Gaussian's."""
    y, w = CASES["gamma"][2], np.ones(M) if weights is None else weights
    model = kiln.GeneralizedLinearRegressor("tweedie", parameter=power, tol=1e-13, device="cpu")
    result, mu = model.fit(X, y, weights).inference(X, y, weights), model.predict(X)
    phi = result.scale
    assert np.isfinite([result.llf, result.aic]).all()
    if power == 3:
        same = kiln.GeneralizedLinearRegressor("inverse-gaussian", tol=1e-13,
                                               device="cpu").fit(X, y).inference(X, y)
        near([result.llf, result.aic, result.bic], [same.llf, same.aic, same.bic], 1e-11)
        return
    near(result.llf, sum(stable_density(*one, power) for one in zip(y, mu, phi / w)), 1e-9)


def test_estimates_are_of_the_problem_that_is_fitted():
    """With a penalty of scaled columns, too: the derivative at the fit's own means is 0 there."""
    y = CASES["negative-binomial"][2]
    model = kiln.GeneralizedLinearRegressor("negative-binomial", parameter="estimate", alpha=0.3,
                                            standardize=True,
                                            tol=1e-12, device="cpu").fit(X, y)

    def likelihood(alpha):
        return stats.nbinom.logpmf(y, 1 / alpha, 1 / (1 + alpha * mu)).sum()

    mu, alpha, step = model.predict(X), model.parameter_, 1e-3
    slope, curve = (likelihood(alpha + step) - likelihood(alpha - step)) / (2 * step), (
        likelihood(alpha + step) - 2 * likelihood(alpha) + likelihood(alpha - step)) / step**2
    assert abs(slope / curve) < 1e-4 * alpha
    seen = []
    model.callback = lambda now: bool(seen.append(now)) or len(seen) > 2
    with pytest.raises(kiln.KilnError, match="cancelled"):
        model.fit(X, y)
    assert model.parameter_ == alpha
    model = kiln.GeneralizedLinearRegressor("negative-binomial", parameter="estimate", max_iter=1,
                                            device="cpu")
    with pytest.warns(ConvergenceWarning):  # of the last fit alone
        found = model.fit(X, y).parameter_
    near(found, model.set_params(max_iter=None).fit(X, y).parameter_, 1e-8)


def test_formulas():
    pytest.importorskip("formulaic")
    pandas = pytest.importorskip("pandas")
    y = CASES["poisson"][2]
    frame = pandas.DataFrame({"y": y, "a": X[:, 0], "b": rng.choice(list("uvw"), M),
                              "o": np.linspace(-1, 1, M)})
    model = kiln.PoissonRegressor.from_formula("y ~ a + C(b) + np.exp(a / 9)", frame, alpha=0, tol=1e-13,
                                               offset=frame["o"], device="cpu")
    assert list(model.feature_names_in_) == ["a", "C(b)[T.v]", "C(b)[T.w]", "np.exp(a / 9)"]
    their = sm.GLM.from_formula("y ~ a + C(b) + np.exp(a / 9)", frame, family=F.Poisson(),
                                offset=frame["o"]).fit(tol=1e-14)
    order = model.inference(frame, y, offset=frame["o"])
    named = dict(zip(order.names, order.bse))
    near([named["a"], named["C(b)[T.w]"], named["(intercept)"]],
         [their.bse["a"], their.bse["C(b)[T.w]"], their.bse["Intercept"]])
    near(model.inference(frame, offset=frame["o"]).bse, order.bse)  # y is in the frame
    assert repr(order).startswith("Inference(Generalised linear model: poisson, link log: 300 rows, 5 coeff")
    near(model.predict(frame[5:9], offset=frame["o"][5:9]), their.predict(frame[5:9], offset=frame["o"][5:9]))
    plain = kiln.LinearRegression.from_formula("np.log1p(y) ~ a - 1", frame)
    assert plain.intercept_ == 0 and len(plain.fit(X, y).coef_) == 4 and plain._formula is None
    frame["two"] = np.where(SUCCESS > 0, "yes", "no")
    classes = kiln.LogisticRegression.from_formula("two ~ a", frame, C=np.inf)
    assert list(classes.classes_) == ["no", "yes"] and len(classes.predict(frame)) == M
    with pytest.raises(ValueError, match="no target"):
        kiln.LinearRegression.from_formula("a + b", frame)
    with pytest.raises(ValueError, match="columns, not one"):
        kiln.LinearRegression.from_formula("C(b) ~ a", frame)


def test_tool_says_the_same(tool, tmp_path):
    """kiln statistics of a model of the tool's, with clusters, a smaller model and residuals."""
    y = CASES["gamma"][2]
    lines = [",".join(map(repr, map(float, (*row, y[i], WEIGHTS[i])))) + f",g{GROUPS[i]}"
             for i, row in enumerate(X)]
    data = tmp_path / "d.csv"
    data.write_text("a,b,c,d,y,w,g\n" + "\n".join(lines) + "\n")

    def run(*words):
        done = subprocess.run([tool, *map(str, words), "--device", "cpu", "--json"], check=True, text=True,
                              capture_output=True, cwd=tmp_path)
        return json.loads(done.stdout)

    train = ("glm", data, "--target", "y", "--weights", "w", "--family", "gamma", "--tolerance", "1e-13")
    run(*train, "--ignore", "g", "-o", "m.kiln")
    run(*train, "--ignore", "g,c,d", "-o", "s.kiln")
    told = run("statistics", "m.kiln", data, "--errors", "cluster", "--groups", "g", "--level", "0.9",
               "--against", "s.kiln", "--residuals", "rows.csv")
    model = kiln.load(tmp_path / "m.kiln")
    ours = model.inference(X, y, WEIGHTS, cov_type="cluster", groups=GROUPS)
    rows = {name: [row[name] for row in told["coefficients"]] for name in told["coefficients"][0]}
    near([rows["value"], rows["standard_error"], rows["statistic"], rows["p"], rows["exp"]],
         [ours.params, ours.bse, ours.tvalues, ours.pvalues, np.exp(ours.params)])
    near(np.transpose([rows["low"], rows["high"]]), ours.conf_int(0.1))
    assert {name: value for name, value in told["figures"].items()} == pytest.approx(ours.figures, rel=1e-9,
                                                                                        abs=1e-6)
    small = kiln.load(tmp_path / "s.kiln").inference(X[:, :2], y, WEIGHTS)
    near([told["comparison"]["statistic"], told["comparison"]["p"]],
         [ours.compare(small).statistic, ours.compare(small).p])
    written = np.genfromtxt(tmp_path / "rows.csv", delimiter=",", names=True)
    near(written["cooks_distance"], ours.residuals()["cooks_distance"])
    refused = subprocess.run([tool, "statistics", "m.kiln", "d.csv", "--errors", "cluster"], cwd=tmp_path,
                             capture_output=True, text=True)
    assert refused.returncode == 2 and "no column says what the clusters are" in refused.stderr
    assert told["warnings"] == [] and told["figures"]["distance"] < 1e-3
    some = tmp_path / "some.csv"
    some.write_text("".join(data.read_text().splitlines(keepends=True)[:100]))
    done = subprocess.run([tool, "statistics", "m.kiln", some, "--device", "cpu", "--json"], cwd=tmp_path,
                          capture_output=True, text=True, check=True)
    assert "standard errors from the best ones" in done.stderr
    assert [row["name"] for row in json.loads(done.stdout)["warnings"]] == ["distance"]
    with open(data) as rows:
        done = subprocess.run([tool, "statistics", "m.kiln", "-", "--against", "s.kiln"], cwd=tmp_path,
                              capture_output=True, text=True, stdin=rows)
    assert done.returncode == 2 and "standard input cannot give" in done.stderr


def test_an_estimated_parameter_is_told(tool, tmp_path):
    np.savetxt(tmp_path / "n.csv", np.c_[X, CASES["negative-binomial"][2]], delimiter=",",
               header="a,b,c,d,y", comments="")
    done = subprocess.run([tool, "glm", "n.csv", "--target", "y", "--family", "negative-binomial", "--device",
                           "cpu", "--quiet"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert re.search(r"^alpha [0-9.]+, by maximum likelihood$", done.stdout, re.M), done.stdout
    y = np.where(SUCCESS > 0, CASES["gamma"][2], 0)
    np.savetxt(tmp_path / "t.csv", np.c_[X, y], delimiter=",", header="a,b,c,d,y", comments="")
    done = subprocess.run([tool, "glm", "t.csv", "--target", "y", "--family", "tweedie", "--device", "cpu",
                           "--quiet", "-o", "t.kiln"], cwd=tmp_path, capture_output=True, text=True,
                          check=True)
    told = re.search(r"^variance-power ([0-9.]+), by maximum likelihood$", done.stdout, re.M)
    model = kiln.GeneralizedLinearRegressor("tweedie", parameter="estimate", device="cpu").fit(X, y)
    near(float(told[1]), model.parameter_, 1e-5)
    near(kiln.load(tmp_path / "t.kiln").parameter, model.parameter_, 1e-6)


def test_tool_refuses_what_a_file_does_not_say(tool, tmp_path):
    """Files of models with a penalty have no options where another package trained them."""
    y = CASES["gaussian"][2]
    np.savetxt(tmp_path / "d.csv", np.c_[X, y], delimiter=",", header="a,b,c,d,y", comments="")
    np.savetxt(tmp_path / "w.txt", WEIGHTS)
    from sklearn.linear_model import Ridge

    offset = kiln.PoissonRegressor(alpha=0).fit(X, np.round(np.exp(y / 9)), offset=np.zeros(M))
    for model, says in ((kiln.LinearRegression(positive=True).fit(X, y), "are from 0 on"),
                        (kiln.Lasso(positive=True).fit(X, y), "are from 0 on"),
                        (kiln.from_sklearn(Ridge(10).fit(X, y)), "does not say how it was trained"),
                        (kiln.Ridge(alpha=10).fit(X, y), "with a penalty"), (offset, "with an offset"),
                        (kiln.LinearRegression().fit(X, y, WEIGHTS), "with weights")):
        model.save(tmp_path / "m.kiln")
        words = [tool, "statistics", "m.kiln", "d.csv", "--target", "y", "--device", "cpu", "--json"]
        refused = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert refused.returncode != 0 and says in refused.stderr, refused.stderr
    given = subprocess.run([*words, "--weights-file", "w.txt"], cwd=tmp_path, capture_output=True, text=True)
    near([row["standard_error"] for row in json.loads(given.stdout)["coefficients"]],
         sm.WLS(y, E, weights=WEIGHTS).fit().bse)
