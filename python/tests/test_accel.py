"""scikit-learn's classes and networkx's rankings on Kiln: the same numbers, the same classes, and a table
that says what ran where."""
import json
import re
import subprocess
import sys
import threading

import kiln
import networkx
import numpy as np
import pytest
import scipy.sparse
import sklearn.cluster
import sklearn.decomposition
import sklearn.linear_model
import sklearn.manifold
import sklearn.svm
from conftest import ROOT
from kiln import accel
from scikit_gaps import pairs
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.preprocessing import StandardScaler

linear, svm, cluster, factors = sklearn.linear_model, sklearn.svm, sklearn.cluster, sklearn.decomposition
PROGRESS = load_diabetes().target
X = StandardScaler().fit_transform(load_diabetes().data)
DIGITS = load_digits().data[:300]
TAKEN = [linear.LinearRegression(), linear.Ridge(2.0), linear.Lasso(0.5), linear.Lasso(0.5, positive=True),
         linear.LassoCV(cv=3),
         linear.ElasticNet(0.1), linear.ElasticNetCV(cv=3, l1_ratio=[0.3, 0.7]), linear.PoissonRegressor(),
         linear.GammaRegressor(), linear.TweedieRegressor(power=1.5), linear.RidgeCV(cv=4), linear.RidgeCV(),
         svm.LinearSVR(loss="squared_epsilon_insensitive", C=0.1, intercept_scaling=3.0),
         linear.LogisticRegression(C=0.7), linear.LogisticRegression(solver="liblinear"),
         linear.LogisticRegression(solver="liblinear", l1_ratio=1, C=0.3),
         linear.RidgeClassifier(class_weight="balanced"), linear.RidgeClassifierCV(class_weight="balanced"),
         svm.LinearSVC(), svm.LinearSVC(loss="hinge", C=0.1), svm.LinearSVR(C=0.1, epsilon=5.0),
         svm.LinearSVC(fit_intercept=False)]
if hasattr(linear.LogisticRegressionCV(), "use_legacy_attributes"):
    TAKEN.append(linear.LogisticRegressionCV(cv=3, use_legacy_attributes=False, Cs=2, l1_ratios=(0,),
                                             scoring="accuracy"))


@pytest.fixture
def verified():
    """Kiln in scikit-learn's place, both compared."""
    accel.calls.clear()
    accel.install(verify=True)
    yield accel.calls
    accel.uninstall()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("model", TAKEN, ids=lambda model: str(model)[:40])
def test_predictions_are_within_the_bound(verified, model, sparse):
    weights = np.random.default_rng(0).uniform(1, 2, len(PROGRESS))
    classes = sklearn.base.is_classifier(model)
    operand = scipy.sparse.csr_matrix(X) if sparse else X
    y = (PROGRESS if not classes else PROGRESS > 120 if "liblinear" in str(model) or "CV" in str(model)
         else PROGRESS // 120)
    model = clone(model).fit(operand, y, weights)
    call, = verified
    assert call.where == "kiln" and call.apart < 1e-4 and not call.differs, call
    accel.uninstall()
    theirs = clone(model).fit(operand, y, weights)
    for name in ("coef_", "intercept_"):
        assert np.shape(getattr(model, name)) == np.shape(getattr(theirs, name)), name
    assert model.n_features_in_ == 10 and model.score(operand, model.predict(operand)) == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [cluster.KMeans(10, random_state=0),
                                   cluster.KMeans(10, random_state=0, algorithm="elkan", n_init=2),
                                   cluster.BisectingKMeans(4, random_state=0),
                                   sklearn.manifold.MDS(n_init=1, init="random", random_state=1),
                                   factors.NMF(5, beta_loss="kullback-leibler", solver="mu", random_state=0,
                                               init="random")], ids=str)
def test_iterations_from_scikit_learns_starts(verified, model):
    ours = clone(model).fit(DIGITS)
    assert {call.where for call in verified} == {"kiln"} and max(call.apart for call in verified) < 1e-3
    accel.uninstall()
    theirs = clone(model).fit(DIGITS)
    if hasattr(theirs, "labels_"):
        np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    elif hasattr(theirs, "components_"):
        np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-6, atol=1e-9)
    else:
        assert ours.stress_ <= theirs.stress_


@pytest.mark.parametrize("operand", [DIGITS, scipy.sparse.csr_matrix(DIGITS), DIGITS.astype(np.float32)],
                         ids=["dense", "sparse", "single"])
@pytest.mark.parametrize("model, method", [
    (factors.PCA(5), "fit"), (factors.PCA(5, whiten=True), "fit_transform"),
    (factors.TruncatedSVD(5, algorithm="arpack"), "fit"),
    (factors.TruncatedSVD(5, algorithm="arpack"), "fit_transform"),
    (factors.IncrementalPCA(5, batch_size=400), "fit")], ids=str)
def test_axes(verified, model, method, operand):
    ours = clone(model)
    coordinates = getattr(ours, method)(operand)
    call, = verified
    assert call.where == "kiln" and call.apart < (1e-8 if operand.dtype == float else 1e-5), call
    assert call.shape == operand.shape
    accel.uninstall()
    theirs = clone(model)
    expected = getattr(theirs, method)(operand)
    digits = 1e-5 if operand.dtype == float else 1e-2
    for name in ("components_", "singular_values_", "explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=digits, atol=digits)
    if method == "fit_transform":
        np.testing.assert_allclose(coordinates, expected, atol=digits * np.abs(expected).max())
    np.testing.assert_allclose(ours.transform(operand), theirs.transform(operand),
                               atol=digits * np.abs(theirs.transform(operand)).max())


def test_axes_that_stay(verified):
    wide = np.random.default_rng(0).standard_normal((600, 700))
    for model in (factors.PCA(5), factors.PCA(0.9), factors.PCA(300, svd_solver="full"),
                  factors.TruncatedSVD(5), factors.IncrementalPCA()):
        clone(model).fit(wide)
    assert [call.where for call in verified] == ["scikit-learn"] * 5
    assert [part in call.why for part, call in zip(("random", "0.9", "300", "random", "None"), verified)] == (
        [True] * 5)


@pytest.mark.filterwarnings("ignore")
def test_functions(verified):
    Z = DIGITS[:60]
    cluster.k_means(Z, 3, random_state=0, n_init=1)
    sklearn.manifold.smacof(np.abs(Z[:, 20:21] - Z[:, 20:21].T), n_init=2, random_state=3,
                            normalized_stress=True)
    factors.non_negative_factorization(Z, n_components=3, beta_loss="kullback-leibler", solver="mu",
                                       random_state=0)
    linear.lasso_path(X, PROGRESS - PROGRESS.mean(), alphas=10)
    linear.enet_path(X, PROGRESS - PROGRESS.mean(), l1_ratio=0.5, alphas=10)
    graph = networkx.gn_graph(50, seed=1)
    networkx.pagerank(graph, personalization={3: 1.0})
    networkx.hits(networkx.barabasi_albert_graph(200, 3, seed=1))
    assert [call.name for call in verified] == ["KMeans, a start", "MDS, a start", "MDS, a start",
                                                "NMF, updates", "lasso_path", "enet_path",
                                                "networkx.pagerank", "networkx.hits"]
    assert {call.where for call in verified} == {"kiln"} and not any(call.differs for call in verified)


def test_a_result_that_differs_is_said(verified, monkeypatch):
    from kiln import _accel_rules

    rule = next(rule for rule in _accel_rules.rules() if rule.name == "lasso_path")
    wrong = rule._replace(ours=lambda original, X, y, **options: (None, np.zeros((10, 3)), None))
    accel._replaced(wrong,
                    sklearn.linear_model._coordinate_descent.lasso_path.__wrapped__)(X, PROGRESS, alphas=3)
    assert verified[-1].differs and "DIFFERS" in accel.table()


def test_every_class_of_both_has_a_rule():
    """Which takes it, or says why not: those with kernels of their own stand by these."""
    from kiln import _accel_rules

    names = {rule.name.partition(".")[0].partition(",")[0] for rule in _accel_rules.rules()}
    assert {name for name, *_ in pairs()} <= names
    never = ("MiniBatchKMeans", "MiniBatchNMF", "LatentDirichletAllocation", "implicit", "kmeans_plusplus")
    taken = {rule.name for rule in _accel_rules.rules() if rule.bound > 0}
    als = next(rule for rule in _accel_rules.rules() if rule.name.startswith("implicit"))
    with pytest.raises(_accel_rules.NotHere, match="^its starts are random$"):  # ALS has its objective
        als.ours(None)
    assert len(taken) >= 27 and not any(name.startswith(never) for name in taken)
    # docs/python.md names each of them, and what trains them
    page = (ROOT / "docs" / "python.md").read_text().partition("| what Kiln takes |")[2].partition("\n\n")[0]
    told = {name for line in page.splitlines() for name in re.findall(r"`([\w.]+)`", line.split("|")[1])}
    short = {re.sub(r"^statsmodels\.|\.fit(_transform)?$|, .*", "", name) for name in taken}
    assert short <= told and len(told) >= 40


@pytest.mark.filterwarnings("ignore")
def test_what_kiln_has_not_falls_back(verified):
    svm.LinearSVC(multi_class="crammer_singer").fit(X, PROGRESS > 100)
    svm.LinearSVC(penalty="l1").fit(X, PROGRESS > 100)
    cluster.MiniBatchKMeans(2).fit(X)
    factors.NMF(2).fit(np.abs(X))
    networkx.hits(networkx.barabasi_albert_graph(20, 3, seed=1), normalized=False)
    with pytest.raises(ValueError, match="NaN"):
        linear.Ridge().fit(np.full_like(X, np.nan), PROGRESS)
    assert [call.where for call in verified] == ["scikit-learn"] * 3 + ["networkx"]
    assert [part in call.why for part, call in zip(("multi_class", "penalty='l1'", "random", "normalized"),
                                                   verified)] == [True] * 4


@pytest.mark.filterwarnings("ignore")
def test_what_falls_back_draws_the_callers_numbers(verified):
    """Each start of a non-metric layout is another one, and a generator goes on where scikit-learn's own
    calls leave it."""
    apart = np.abs(DIGITS[:15, 20:21] - DIGITS[:15, 20:21].T)

    def draw():
        numbers = np.random.RandomState(0)
        return [sklearn.manifold.smacof(apart, metric=False, n_init=2, init=None, random_state=numbers)[1]
                for _ in range(3)], numbers.uniform()

    ours = draw()
    assert {call.where for call in verified} == {"scikit-learn"} and len(set(ours[0])) > 1
    accel.uninstall()
    assert ours == draw()


REFUSED = [linear.LogisticRegression(solver="liblinear"), linear.LogisticRegression(l1_ratio=0.5),
           linear.LogisticRegression(l1_ratio=1, solver="newton-cholesky"),
           linear.LogisticRegression(dual=True), linear.LogisticRegression(solver="liblinear", l1_ratio=0.5),
           linear.LogisticRegression(solver="liblinear", l1_ratio=1, dual=True),
           linear.LogisticRegression(solver="liblinear", C=np.inf), linear.Ridge(solver="lbfgs"),
           linear.RidgeClassifier(solver="lbfgs")]
if hasattr(linear.LogisticRegressionCV(), "use_legacy_attributes"):
    REFUSED.append(linear.LogisticRegressionCV(l1_ratios=(0.0, 1.0), use_legacy_attributes=False,
                                               scoring="accuracy"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", REFUSED, ids=lambda model: str(model)[:60])
def test_what_scikit_learn_refuses_stays_refused(verified, model):
    flowers, kinds = load_iris(return_X_y=True)
    accel.install()  # without a comparison, which would run into the refusal
    several = kinds if str(model) == "LogisticRegression(solver='liblinear')" else kinds > 0
    with pytest.raises(ValueError) as ours:
        clone(model).fit(flowers, several)
    accel.uninstall()
    with pytest.raises(ValueError) as theirs:
        clone(model).fit(flowers, several)
    assert str(ours.value) == str(theirs.value)


def test_two_classes_of_a_ridge(verified):
    """Whose coef_ has no axis of classes."""
    for intercept in (True, False):
        ours = linear.RidgeClassifier(fit_intercept=intercept).fit(X, PROGRESS > 120)
        theirs = linear.RidgeClassifier.fit.__wrapped__(clone(ours), X, PROGRESS > 120)
        assert (np.shape(ours.coef_) == np.shape(theirs.coef_) and np.shape(ours.intercept_)
                == np.shape(theirs.intercept_))
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_a_class_of_the_same_name_is_another_one(verified):
    class Ridge(linear.Ridge):
        pass

    Ridge().fit(X, PROGRESS)
    assert verified[-1].where == "scikit-learn" and "subclass" in verified[-1].why


def test_a_comparison_is_of_one_thread(verified, monkeypatch):
    """A call of another thread meanwhile runs on Kiln as ever."""
    from kiln import _accel_rules

    def meanwhile(original, model, *arguments):
        other = threading.Thread(target=lambda: linear.Lasso().fit(X, PROGRESS))
        accel._how["verify"] = False
        other.start()
        other.join()
        accel._how["verify"] = True
        return original(clone(model), *arguments)

    rule = next(rule for rule in _accel_rules.rules() if rule.name == "Ridge.fit")
    accel._replaced(rule._replace(also=meanwhile), linear.Ridge.fit.__wrapped__)(linear.Ridge(), X, PROGRESS)
    assert [(call.name, call.where) for call in verified] == [("Lasso.fit", "kiln"), ("Ridge.fit", "kiln")]


@pytest.mark.parametrize("name", ["pagerank", "hits"])
def test_graphs_without_nodes(verified, name):
    ours = getattr(networkx, name)(networkx.DiGraph())
    accel.uninstall()
    assert ours == getattr(networkx, name)(networkx.DiGraph())
    assert [call.where for call in verified] == ["kiln"]


@pytest.mark.parametrize("code, status", [(0, 1), (None, 1), (3, 3)])
def test_results_that_differ_are_a_status(tmp_path, code, status):
    """Also of a script that says at its end that all went well."""
    wrong = ("import sys\nfrom kiln import accel\naccel.calls.append(accel.Call('Ridge.fit', (2, 1), 'kiln', "
             "0.0, '', 1.0, True))\n"
             f"sys.exit({code})\n")
    (tmp_path / "script.py").write_text(wrong)
    done = subprocess.run([sys.executable, "-m", "kiln.accel", "--verify", "script.py"], capture_output=True,
                          text=True, cwd=tmp_path)
    assert done.returncode == status and "DIFFERS" in done.stderr, done.stderr


SCRIPT = ("import sys\nfrom sklearn.datasets import load_iris\n"
          "from sklearn.linear_model import LogisticRegression, Ridge\n"
          "print(LogisticRegression().fit(*load_iris(return_X_y=True)).score(*load_iris(return_X_y=True)), "
          "sys.argv[1])\n"
          "print(Ridge().fit(*load_iris(return_X_y=True)).n_features_in_)\n")
WORKERS = ("from joblib import Parallel, delayed\nfrom sklearn.linear_model import Ridge\n"
           "print(Parallel(n_jobs=2)(delayed(Ridge(alpha).fit)([[0.0], [1.0], [2.0]], [0, 1, 4]) for alpha "
           "in (1.0, 2.0)))\n")


@pytest.mark.parametrize("how", [["script.py", "word"], ["-m", "script", "word"]])
def test_a_script_runs_unchanged(tmp_path, how):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "kiln.accel", "--log", "--verify", *how],
                          capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) > 0.95 and done.stdout.split()[1] == "word"
    table = done.stderr[done.stderr.index("\ncall "):]
    assert "LogisticRegression.fit" in table and table.count(" kiln ") == 2
    assert "kiln.accel: LogisticRegression.fit 150 x 4 kiln" in done.stderr


def test_workers_of_joblib(tmp_path):
    (tmp_path / "script.py").write_text(WORKERS)
    done = subprocess.run([sys.executable, "-m", "kiln.accel", "script.py"], capture_output=True, text=True,
                          cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == "[Ridge(), Ridge(alpha=2.0)]\n", done.stderr
    assert [line.split()[:3] for line in done.stderr.splitlines()
            if "Ridge" in line] == [["Ridge.fit", "3", "kiln"]] * 2


def test_a_notebook_loads_it():
    before = linear.Ridge.fit, networkx.pagerank
    accel.load_ipython_extension(None)
    assert hasattr(linear.Ridge.fit, "__wrapped__") and linear.Ridge().fit(X, PROGRESS).coef_.shape == (10,)
    accel.unload_ipython_extension(None)
    assert (linear.Ridge.fit, networkx.pagerank) == before and accel.calls[-1].where == "kiln"


def test_a_backend_of_networkx(tmp_path):
    """By its entry points, as an installed package has them."""
    meta = tmp_path / "kiln_test-1.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: kiln_test\nVersion: 1\n")
    project = (ROOT / "pyproject.toml").read_text()
    lines = {
        group: project.partition(f'[project.entry-points."{group}"]\n')[2].splitlines()[0].replace('"', "")
        for group in ("networkx.backends", "networkx.backend_info")
    }
    (meta / "entry_points.txt").write_text("".join(f"[{group}]\n{line}\n" for group, line in lines.items()))
    script = ("import json, sys; sys.path.insert(0, sys.argv[1])\nimport networkx as nx\n"
              "G = nx.gn_graph(50, seed=1)\n"
              "ours, theirs = nx.pagerank(G, backend='kiln'), nx.pagerank(G, tol=1e-12, max_iter=1000)\n"
              "hubs, _ = nx.hits(G.to_undirected(), backend='kiln')\n"
              "print(json.dumps([sum(abs(ours[n] - theirs[n]) for n in G), sum(hubs.values())]))\n")
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    apart, total = json.loads(done.stdout)
    assert apart < 1e-6 and total == pytest.approx(1.0)
    assert kiln.__version__


@pytest.mark.filterwarnings("ignore")
def test_statsmodels_begins_where_kiln_ends(verified):
    """Its own results, of each family, with weights and offsets, after one or two iterations."""
    import statsmodels.api as sm

    design, weights = sm.add_constant(X[:, :4]), np.random.default_rng(0).uniform(1, 2, len(X))
    high, counts = (PROGRESS > 140).astype(float), (PROGRESS // 30).astype(int)
    families = sm.families
    for family, y in ((families.Gaussian(), PROGRESS), (families.Poisson(), counts), (families.Gamma(
            families.links.Log()), PROGRESS), (families.Binomial(families.links.Probit()), high),
            (families.Tweedie(families.links.Log(), var_power=1.5), PROGRESS),
            (families.NegativeBinomial(alpha=0.5), counts)):
        found = sm.GLM(y, design, family=family, var_weights=weights, offset=weights / 10).fit()
        assert found.converged and found.fit_history["iteration"] <= 3, family
    sm.GLM(np.column_stack([counts, 20 - counts]).astype(float), design, family=families.Binomial()).fit()
    sm.Logit(high, design).fit(disp=0)
    sm.Poisson(counts, design, offset=weights).fit(disp=0)
    assert len(verified) == 9 and {call.where for call in verified} == {"kiln"}, verified
    assert not any(call.differs for call in verified), verified
    assert {call.shape for call in verified} == {design.shape}
    sm.Logit(high, np.column_stack([design, high])).fit(disp=0, maxiter=5)
    sm.GLM(PROGRESS, design).fit(start_params=np.zeros(5))
    assert [call.where for call in verified[9:]] == ["statsmodels"] * 2, verified[9:]


@pytest.mark.filterwarnings("ignore")
def test_more_of_scikit_learn(verified):
    linear.ridge_regression(X, np.column_stack([PROGRESS, X[:, 0]]), 2.0)
    linear.Lasso(0.1).fit(X, np.column_stack([PROGRESS, X[:, 0]]))
    factors.sparse_encode(X[:5], X[5:25], algorithm="lasso_cd", alpha=0.1)
    assert len(verified) == 3 and {call.where for call in verified} == {"kiln"}, verified
    assert not any(call.differs for call in verified), verified
    cluster.kmeans_plusplus(X, 3, random_state=0)
    linear.RidgeClassifierCV(cv=3).fit(X, PROGRESS > 120)
    assert verified[3].where == verified[-1].where == "scikit-learn"


def test_statsmodels_is_found_when_it_is_imported(tmp_path):
    """A script that has not imported a package pays nothing for it."""
    script = ("import sys\nassert 'statsmodels' not in sys.modules and 'networkx' not in sys.modules\n"
              "import networkx as nx, numpy as np, statsmodels.api as sm\n"
              "nx.pagerank(nx.gn_graph(9, seed=1))\n"
              "sm.GLM(np.arange(9.0), np.ones((9, 1))).fit()\n")
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "-m", "kiln.accel", "--verify", "script.py"], capture_output=True,
                          text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stderr.splitlines() if " kiln " in line] == ["networkx.pagerank",
                                                                                        "statsmodels.GLM.fit"]


def test_a_plugin_of_pytest(tmp_path):
    """Tests run on Kiln, and with --accel-verify fail where it differs."""
    (tmp_path / "test_it.py").write_text(
        "from sklearn.linear_model import Ridge\n\n\n"
        "def test_fits():\n    Ridge().fit([[0.0], [1.0], [2.0]], [0, 1, 4])\n\n\n"
        "def test_differs():\n    from kiln import accel\n"
        "    accel.calls.append(accel.Call('Ridge.fit', (2, 1), 'kiln', 0.0, '', 1.0, True))\n")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "kiln.accel", "--accel-verify",
                           tmp_path], capture_output=True, text=True, cwd=tmp_path)
    assert "1 failed, 1 passed" in done.stdout and "DIFFERS by 1.0e+00" in done.stdout, done.stdout
    assert sum(line.startswith("Ridge.fit") and " kiln " in line for line in done.stdout.splitlines()) == 2
