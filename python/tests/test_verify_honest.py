"""Models whose figures are at the edge of rounding: kiln verify must accept them as they are."""
import json
import subprocess

import numpy as np
import pytest

FAR = 1e12  # beside it the other rows of a column are rounding


def column(rows, seed=0, far=True):
    values = np.random.default_rng(seed).normal(size=(rows, 1))
    if far:
        values[rows // 2] = FAR
    return values


def outcomes(rows):
    return np.arange(rows) * 7 % 11 > 3


YEARS = [[2015, 4, 0.15], [2019, 1, -0.01], [2021, 2, 0.59], [2018, 2, -0.30], [2016, 1, FAR],
         [2022, 1, -0.71], [2020, 2, 0.68], [2017, 3, 0.33]]
NEAR_ONE_LEVEL = 1e5 + np.array([-0.5, 0.8, 6.1, -1.6, -2.1, -2.1, -1.6, -1.0]) * 1e-7

# name: the rows, the targets, and how they are trained
HONEST = {
    "a loss next to 0": ([[-0.41827, -3.0, 1952.0], [1.25, 0.5, 21.0]], [0, 1], ["logreg", "--l2", "0.001"]),
    "losses of three classes next to 0": (np.eye(3) * 2000, [0, 1, 2], ["logreg", "--l2", "0.001"]),
    "a saturated binomial": ([[0.0], [2000.0]], [0, 1], ["glm", "--family", "binomial", "--l2", "0.001"]),
    "a gap beside a column of large numbers": (YEARS, NEAR_ONE_LEVEL, ["linreg", "--l2", "0.001"]),
    "a gap without an intercept": ([[1, 1716997055.0], [0, 1719558088.0], [1, 1714911651.0],
                                    [1, 1729635995.0]], NEAR_ONE_LEVEL[:4],
                                   ["linreg", "--l2", "0.001", "--no-intercept"]),
    "a gradient that is rounding": (np.ones((56, 1)), np.exp(column(56, far=False)[:, 0] / 2),
                                    ["glm", "--family", "inverse-gaussian", "--link", "log", "--l2", "0.1"]),
    "scores of f32 that are equal": (column(40), outcomes(40), ["logreg", "--l2", "1", "--type", "f32"]),
    "scores of a machine that are equal": (column(40, 1), outcomes(40),
                                           ["svm", "--l2", "1", "--type", "f32"]),
    "scores of a glm that are equal": (column(40, 2), outcomes(40),
                                       ["glm", "--family", "binomial", "--l2", "1", "--type", "f32"]),
    "scores of f64 that are as good as equal": (np.hstack([column(24), column(24)]) * [1, 1 / 3],
                                                outcomes(24), ["logreg", "--l2", "1", "--no-intercept"]),
    "R2 of a fit in f32": (np.full((55, 1), 3.0), 99999 + np.random.default_rng(3).uniform(0.5, 0.95, 55),
                           ["linreg", "--l2", "100", "--type", "f32"]),
    "a perfect fit": ([[3, 0], [3, 5], [3, 2], [3, 2], [3, 0]],
                      1e5 + np.array([3.18, 4.156, 3.57, 3.57, 3.18]) * 1e-8,
                      ["linreg", "--standardize", "--l2", "0.001"]),
    "a perfect Gaussian": ([[1951.0, -1.39, 1958.0], [1909.0, -0.79, 2014.0]], [1.1621, -0.2271],
                           ["glm", "--family", "gaussian", "--l2", "1"]),
    "a perfect Gaussian of f32": ([[3, 1908.0], [3, 1994.0]], [0.6088, -0.2579],
                                  ["glm", "--family", "gaussian", "--l2", "0.1", "--type", "f32"]),
    "a perfect gamma": ([[-1.375, 1715074491500.0], [-0.0487, 1717893769579.0]], [1.518, 9.305],
                        ["glm", "--family", "gamma", "--l2", "0.1"]),
    "a perfect gamma of f32": ([[1, 1709064092204.0], [1, 1706041883269.0]], [87.74, 0.0941],
                               ["glm", "--family", "gamma", "--l2", "0.1", "--type", "f32"]),
    "a perfect inverse Gaussian": ([[1959.0], [1913.0]], [0.6825, 7.4436],
                                   ["glm", "--family", "inverse-gaussian", "--link", "log", "--l2", "0.001",
                                    "--type", "f32"]),
    "means of f32 far from the start": ([[0, 2460664.5], [1, 2461192.5], [0, 2461050.5], [1, 2462470.5],
                                         [1, 2462933.5], [1, 2461961.5]],
                                        [0.0071, 0.0884, 0.0103, 0.2939, 124.09, 0.1404],
                                        ["glm", "--family", "gamma", "--l2", "0.001", "--type", "f32"]),
    "counts that are all 0": (column(12, far=False), np.zeros(12), ["glm", "--family", "negative-binomial",
                                                                    "--alpha", "0.1", "--l2", "0.001"]),
    "counts that are all 0, with means below the range of f32": ([[0.463], [1.014]], [0, 0],
                                                                 ["glm", "--family", "negative-binomial",
                                                                  "--alpha", "5", "--l2", "0.1", "--type",
                                                                  "f32"]),
    "a Tweedie deviance next to 0": ([[-9.110823318355707e18], [5.682458375950557e18]],
                                     [4.750066128126133, 0],
                                     ["glm", "--family", "tweedie", "--variance-power", "1.5", "--l2", "300",
                                      "--l1", "300"]),
    "a Tweedie mean of 0": (np.c_[[FAR, *np.linspace(-1, 1, 11)]], [0, *np.linspace(3, 0, 11)],
                            ["glm", "--family", "tweedie", "--variance-power", "1.2", "--l2", "1e-6",
                             "--no-intercept"]),
    "three rows under an intercept": ([[2461965.5, 0, 1], [2462069.5, 1, 0], [2463006.5, 0, 0]],
                                      [0.6, 0.4, 0.9], ["linreg", "--l2", "0", "--type", "f32"]),
    "a logit whose mean is 0": (np.c_[[FAR, 0.66, -0.01, 0.15, 0.24, 1.58, 0.51, 2.25, 1.1, -0.88, -0.67,
                                       -0.11, -1.83, -0.89, -2.12, 0.21],
                                      [1.66, -1.64, -0.62, -1.61, 0.24, 0.32, -1.49, -1.92, -0.33, -0.66,
                                       0.38, 1.48, 0, 0.78, -0.34, -1.48]],
                                [0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0],
                                ["glm", "--family", "binomial", "--l2", "100", "--no-intercept"]),
    "outcomes that are all 1": (column(12, far=False), np.ones(12),
                                ["glm", "--family", "binomial", "--l2", "0.001"]),
    "targets that are a probit's mean": (column(30, far=False), np.full(30, 0.5),
                                         ["glm", "--family", "gaussian", "--link", "probit", "--l2", "0"]),
}


@pytest.mark.parametrize("shape, centre, options", [
    ((300, 8), 1e10, ["pca", "-k", "3"]), ((300, 8), 1e6, ["pca", "-k", "3", "--type", "f32"]),
    ((300, 8), 1e9, ["pca", "-k", "3", "--scale"]),
    ((20, 300), 0, ["svd", "-k", "3", "--max-iterations", "1"]),
    ((50, 200), 0, ["pca", "-k", "3", "--max-iterations", "2"])])
def test_a_decomposition_holds(shape, centre, options, tool, tmp_path):
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=shape) + centre)
    path = tmp_path / "m.kiln"
    subprocess.run([tool, options[0], tmp_path / "X.npy", *options[1:], "-o", path, "--device", "cpu", "-q"],
                   check=False, capture_output=True)
    judged = subprocess.run([tool, "verify", path, tmp_path / "X.npy", "--json", "-q"], capture_output=True,
                            text=True)
    assert judged.returncode == 0, judged.stdout


@pytest.mark.parametrize("kind", list(HONEST))
def test_it_holds(kind, tool, tmp_path):
    X, y, arguments = HONEST[kind]
    np.save(tmp_path / "X.npy", np.asarray(X, float))
    np.save(tmp_path / "y.npy", np.asarray(y, float))
    data, path = [tmp_path / "X.npy", "--target-file", tmp_path / "y.npy"], tmp_path / "m.kiln"
    subprocess.run([tool, arguments[0], *data, *arguments[1:], "-o", path, "--device", "cpu", "-q"],
                   check=False, capture_output=True)
    judged = subprocess.run([tool, "verify", path, *data, "--json", "-q"], capture_output=True, text=True)
    claims = json.loads(judged.stdout)["claims"]
    assert judged.returncode == 0, [claim for claim in claims if claim["holds"] is False]


def test_levels_of_many_rows_are_counted(tool, tmp_path):
    """Sums of 100,000 equal terms in long double were off by more than what tells a column that depends on
    others: the rank was found to be 4."""
    rng = np.random.default_rng(0)
    level = rng.choice(4, 100_000, p=[0.6, 0.3, 0.0999, 0.0001])
    np.save(tmp_path / "X.npy", np.eye(4)[level])
    np.save(tmp_path / "y.npy", level + rng.normal(size=len(level)))
    data, path = [tmp_path / "X.npy", "--target-file", tmp_path / "y.npy"], tmp_path / "m.kiln"
    subprocess.run([tool, "linreg", *data, "--l2", "0", "-o", path, "--device", "cpu", "-q"], check=True,
                   capture_output=True)
    judged = subprocess.run([tool, "verify", path, *data, "--json", "-q"], capture_output=True, text=True)
    rank = [claim for claim in json.loads(judged.stdout)["claims"] if claim["name"] == "rank"][0]
    assert rank["claimed"] == rank["found"] == 3 and rank["holds"]


@pytest.mark.parametrize("arguments", [["sfa", "--factors", "2", "--l2", "10"],
                                       ["als", "--factors", "2", "--l2", "1e-3", "--seed", "1"],
                                       ["als", "--factors", "2", "--implicit", "--seed", "1"],
                                       ["kmeans", "-k", "2", "--seed", "3"]],
                         ids=["sfa", "als", "implicit als", "kmeans"])
@pytest.mark.parametrize("type_name", ["f32", "f64"])
@pytest.mark.parametrize("size", [1e-158, 1e-18, 1])
def test_objectives_without_digits(arguments, type_name, size, tool, tmp_path):
    """Squares below the range of doubles, and of floats, which a factor model of ratings refuses. Of f32 als
    takes what squares still have digits of: 1e-36 is a float."""
    scipy = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(11)
    values = rng.normal(size=(14, 6)) * (rng.uniform(size=(14, 6)) < 0.6)
    if arguments[0] != "kmeans":
        values = abs(values)
    if size < 1e-30 and type_name == "f32":
        pytest.skip("floats have no such numbers")
    path = tmp_path / "m.kiln"
    scipy.save_npz(tmp_path / "X.npz", scipy.csr_matrix(values * size))
    made = subprocess.run([tool, arguments[0], tmp_path / "X.npz", *arguments[1:], "-o", path, "--device",
                           "cpu", "--type", type_name, "-q"], capture_output=True, text=True)
    least = {"sfa": {"f32": 1e-10, "f64": 1e-100}, "als": {"f32": 1e-19, "f64": 1e-100}}.get(arguments[0])
    if least and "--implicit" not in arguments and size < least[type_name]:
        assert made.returncode == 3 and f"leave {type_name}" in made.stderr
        return
    judged = subprocess.run([tool, "verify", path, tmp_path / "X.npz", "--json", "-q"], capture_output=True,
                            text=True)
    assert judged.returncode == 0, judged.stdout


def test_ranks_of_f32_that_hardly_move(tool, tmp_path):
    """Next to the fixed point an iteration changes ranks by what rounding makes of it, too."""
    links = "192 676 172 231 032 295 267 394 154 938 444 874 841 723 685 176"  # from, to, weight
    (tmp_path / "links.edges").write_text("".join("\t".join(link) + "\n" for link in links.split()))
    graph, model = tmp_path / "links.edges", tmp_path / "model.kiln"
    command = [tool, "pagerank", graph, "--damping", "0.99", "--type", "f32", "--quiet", "-o", model,
               "--scores", tmp_path / "ranks.tsv", "--device", "cpu"]
    trained = subprocess.run(command, check=False, capture_output=True, text=True)
    assert trained.returncode in (0, 4), trained.stderr
    judged = subprocess.run([tool, "verify", model, graph, "--json", "-q"], check=False, capture_output=True,
                            text=True)
    assert json.loads(judged.stdout)["holds"], judged.stdout


def claims_of(folder, tool, arguments, X, y, weights=None):
    """The claims of a model of these rows as verify judges them, by name."""
    data = [folder / "X.npy", "--target-file", folder / "y.npy"]
    np.save(data[0], X)
    np.save(data[2], y)
    if weights is not None:
        np.save(folder / "s.npy", weights)
        data += ["--weights-file", folder / "s.npy"]
    subprocess.run([tool, arguments[0], *data, *arguments[1:], "-o", folder / "m.kiln", "--device", "cpu",
                    "-q"], check=False, capture_output=True)
    judged = subprocess.run([tool, "verify", folder / "m.kiln", *data, "--json", "-q"], capture_output=True,
                            text=True)
    return {claim["name"]: claim for claim in json.loads(judged.stdout)["claims"]}


@pytest.mark.parametrize("family", [["gamma"], ["tweedie", "--variance-power", "1.5"],
                                    ["negative-binomial", "--alpha", "5"]], ids=lambda family: family[0])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_residual_by_the_curvature_of_the_loss(family, intercept, tool, tmp_path):
    """Under a log link Newton's method, and so its criterion, goes by the loss's own curvature."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3))
    y = np.round(np.exp(X[:, 0] + rng.normal(size=60))) + (family[0] == "gamma")
    arguments = ["glm", "--family", *family, "--l2", "0.1", "--max-iterations", "1",
                 *([] if intercept else ["--no-intercept"])]
    residual = claims_of(tmp_path, tool, arguments, X, y)["residual"]
    assert residual["claimed"] > 1e-6
    assert residual["claimed"] == pytest.approx(residual["found"], rel=1e-6)


def test_a_residual_without_the_rows_that_do_not_count(tool, tmp_path):
    """A far value in a row of weight 0 among the first, about whose means columns are measured."""
    rng = np.random.default_rng(6)
    X, weights = rng.normal(size=(58, 2)), np.ones(58)
    X[3], weights[3] = FAR, 0
    residual = claims_of(tmp_path, tool, ["glm", "--family", "gamma", "--no-intercept", "--l2", "0.1",
                                          "--max-iterations", "1"], X,
                         np.exp(rng.normal(size=58)), weights)["residual"]
    assert residual["claimed"] == pytest.approx(residual["found"], rel=1e-6)


def test_a_residual_beside_a_mean_beyond_the_range_of_numbers(tool, tmp_path):
    """The inverse Gaussian's loss has the limit 0 there, and no slope: the other rows and the penalty make
    the gradient."""
    rng = np.random.default_rng(8)
    X, weights = rng.normal(size=(12, 1)), np.full(12, 0.5)
    X[6], weights[6] = FAR, 0.002
    y = rng.wald(1, 2, 12)
    y[6] = 40
    arguments = ["glm", "--family", "inverse-gaussian", "--link", "log", "--no-intercept", "--l2", "0.1"]
    residual = claims_of(tmp_path, tool, arguments, X, y, weights)["residual"]
    assert residual["found"] > 0
    assert residual["claimed"] == pytest.approx(residual["found"], rel=1e-6)


@pytest.mark.parametrize("family", [["poisson"], ["negative-binomial", "--alpha", "5"]],
                         ids=lambda family: family[0])
def test_a_count_of_0_beside_a_mean_below_the_range_of_numbers(family, tool, tmp_path):
    """Its loss is 0 there, and has no slope."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(24, 2))
    X[12, 0] = FAR
    y = rng.poisson(1, 24).astype(float)
    y[12] = 0
    claims = claims_of(tmp_path, tool, ["glm", "--family", *family, "--no-intercept", "--l2", "1"], X, y)
    assert claims["residual"]["found"] == pytest.approx(claims["residual"]["claimed"], rel=1e-2)
    assert all(claim["holds"] is not False for claim in claims.values())


def test_aic_of_a_perfect_gamma(tool, tmp_path):
    """R's formula, with as many digits as its terms lose to each other: -2 sum log dgamma(y, shape k, mean
    mu) + 2 parameters, k = m / deviance."""
    mpmath = pytest.importorskip("mpmath")
    X, y, arguments = HONEST["a perfect gamma"]
    np.save(tmp_path / "X.npy", np.asarray(X, float))
    np.save(tmp_path / "y.npy", np.asarray(y, float))
    said = json.loads(subprocess.run([tool, *arguments[:1], tmp_path / "X.npy", "--target-file",
                                      tmp_path / "y.npy", *arguments[1:], "-o", tmp_path / "m.kiln",
                                      "--device", "cpu", "-q", "--json"], check=True, capture_output=True,
                                     text=True).stdout)["metrics"]
    with mpmath.workdps(60):
        m, deviance = len(y), mpmath.mpf(said["deviance"])
        k = m / deviance
        aic = (m - 2 * m * (k * mpmath.log(k) - k - mpmath.loggamma(k)) + 2
               * sum(mpmath.log(mpmath.mpf(v)) for v in y) + 2 * (said["parameters"] + 1))
    assert abs(said["aic"] - float(aic)) < 1e-9 * abs(float(aic))


def test_a_regression_that_ends_beside_its_hinges(tool, tmp_path):
    """The means' rounding takes rows over their hinge, where alone the loss has a slope."""
    X = [[1710952137, 0.7475398263785141, 0.29570258790807397, 1952, 1713593175, 1],
         [1713403036, -0.6657317417286829, 2.166910213771283, 1954, 1718627087, 0],
         [1707399817, 0.3376404621842253, 0, 1913, 1724018530, 3],
         [1725935478, 0.8998486946137206, 0, 2022, 1717206725, 3]]
    entries = [f"{i} {j} {x!r}" for i, row in enumerate(X, 1) for j, x in enumerate(row, 1) if x]
    (tmp_path / "X.mtx").write_text("\n".join(["%%MatrixMarket matrix coordinate real general",
                                               f"4 6 {len(entries)}", *entries, ""]))
    np.save(tmp_path / "y.npy", [-1.7899270916746923, -2.2584270363076575, -0.3557728642768918,
                                 -0.4547697244480592])
    np.save(tmp_path / "s.npy", [3.0, 0.0, 0.0, 3.0])
    data = [tmp_path / "X.mtx", "--target-file", tmp_path / "y.npy", "--weights-file", tmp_path / "s.npy"]
    path = tmp_path / "m.kiln"
    subprocess.run([tool, "svm", *data, "--regression", "--epsilon", "0.1", "--l2", "0.001", "-o", path,
                    "--device", "cpu", "--threads", "1", "-q"], check=True)
    subprocess.run([tool, "verify", path, *data, "-q"], check=True)
