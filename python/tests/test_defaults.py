"""The tool and the package begin with the same options: `kiln VERB --help` against the signatures. What
differs is listed with its reason."""
import inspect
import re
import os
import subprocess

import kiln
import pytest
from scikit_gaps import listed

TOOL = os.environ.get("KILN_TOOL", "kiln")
VERBS = {"linreg": ["LinearRegression", "Ridge", "RidgeCV"], "spectral": ["SpectralEmbedding"],
         "logreg": ["LogisticRegression", "LogisticRegressionCV"],
         "glm": ["GeneralizedLinearRegressor", "GeneralizedLinearRegressorCV"],
         "svm": ["LinearSVC", "LinearSVR"], "kmeans": ["KMeans", "MiniBatchKMeans"], "mds": ["MDS"],
         "gap": ["NMF"], "lda": ["LatentDirichletAllocation"], "als": ["ALS"], "sfa": ["SFA"],
         "pagerank": ["pagerank"], "hits": ["hits"]}
# Options that Python calls otherwise, in general or in a class.
NAMES = {"tolerance": "tol", "max-iterations": "max_iter", "restarts": "n_init", "seed": "random_state",
         "batch": "batch_size", "patience": "max_no_improvement", "metric": "scoring",
         "clusters": "n_clusters", "topics": "n_components",
         "factors": "n_components", "dimensions": "n_components", "no-intercept": "fit_intercept", "C": "C",
         "eta": "topic_word_prior", "decay": "learning_decay", "delay": "learning_offset", "warm-start": None,
         "l2": None, "l1": None}
OF_CLASS = {("mds", "tolerance"): "eps", ("mds", "metric"): "metric", ("lda", "alpha"): "doc_topic_prior",
            ("spectral", "tolerance"): "eigen_tol",
            ("als", "l2"): "l2", ("sfa", "l2"): "l2", ("linreg", "l2"): "alpha", ("glm", "l2"): "alpha",
            ("glm", "alpha"): None, ("logreg", "l2"): "C", ("svm", "l2"): "C", ("logreg", "l1"): "l1_ratio",
            ("glm", "l1"): "l1_ratio", ("logreg", "C"): None, ("svm", "C"): None, ("gap", "factors"): None,
            # which draw folds alone
            ("lda", "factors"): None, **{(verb, "seed"): None for verb in ("linreg", "logreg", "glm", "svm")}}
# of learning_method="online", as --online has it: the test below
APART = {("LatentDirichletAllocation", "batch_size")}
# Values that one says in other words than the other.
SAME = {("init", "torgerson"): "classical_mds", ("fit_intercept", False): True, ("n_init", "1"): "auto",
        ("link", False): "default"}


def options(verb):
    """The options of a model, and the seed, with the default in brackets; False: a flag, or nothing by
    default."""
    said = subprocess.run([TOOL, verb, "--help"], capture_output=True, text=True, check=True).stdout
    model = re.search(r"Model options\n(.*?)\n\n", said, re.S)[1]
    seed = re.search(r"\n      --seed N .*?\n\n", said, re.S)
    for text in re.split(r"\n(?=      --|  -\w, )", model + (seed[0].rstrip() if seed else "")):
        name = re.match(r"\s*(?:-\w, )?--([\w-]+)", text)[1]
        default = re.search(r"\[([^\]]*)\]\s*$", re.sub(r"\s+", " ", text))
        yield name, default[1].split(",")[0] if default else False


def number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def differences():
    for verb, names in VERBS.items():
        said = dict(options(verb))
        for name in names:
            signature = {one: it.default
                         for one, it in inspect.signature(getattr(kiln, name)).parameters.items()}
            for option, default in said.items():
                parameter = OF_CLASS.get((verb, option), NAMES.get(option, option.replace("-", "_")))
                if parameter not in signature or (name, parameter) in APART:
                    continue
                ours = signature[parameter]
                if parameter == "C":  # the weight of the losses: 1/C, of a support vector machine 1/(2C)
                    default = str(1 / float(default) / (2 if verb == "svm" else 1))
                if not ((ours is None and parameter not in ("random_state", "scoring", "prior"))
                        or ours == "auto" and default is False
                        or number(ours) == number(default) or SAME.get((parameter, default), default)
                        == ours):
                    yield verb, option, name, parameter


def test_differences_are_listed_with_their_reason():
    known = {(option, name, parameter)
             for option, names, parameter, _ in listed("Defaults that differ between the tool and Python")
             for name in names.replace("kiln.", "").split(", ")}
    assert {(f"kiln {verb} --{option}", name, parameter)
            for verb, option, name, parameter in differences()} == known


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_looked_at(verb):
    """The test reads the page that a user reads: no option is lost between its lines."""
    found = dict(options(verb))
    assert {"tolerance", "max-iterations",
            *(() if verb in ("pagerank", "hits") else ("seed",))} <= found.keys()
    assert found["max-iterations"] in {"100", "200", "300", "1000"}


def test_batches_of_documents():
    said = subprocess.run([TOOL, "lda", "--help"], capture_output=True, text=True, check=True).stdout
    assert f"every {kiln.LatentDirichletAllocation().batch_size} documents" in re.sub(r"\s+", " ", said)
