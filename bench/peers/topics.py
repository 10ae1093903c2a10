"""Topic models against scikit-learn and gensim (PyPI): the same steps, the same start, and time to equal
quality.

Steps: from the same start scikit-learn's KL-NMF (mu) must agree with kiln gap --prior none, which is given
the start as a model (--warm-start), and scikit-learn's bound and perplexity of what kiln lda has found with
those that it says.
Same start: scikit-learn's LDA and kiln lda begin with one lambda; in each round the documents begin anew and
take up to a hundred steps. Bounds and perplexities of what both have found then are compared.
Time: a peer runs for so many iterations; its training bound or divergence is computed here in f64 by one
formula for all, and kiln's time is the one at which its trace reaches that. Runs take turns; the least time
counts.

    python3 bench/peers/topics.py --kiln build/kiln ../shared/data/bow/docword.kos.txt.gz --json FILE
"""
import argparse
import datetime
import gzip
import json
import os
import struct
import subprocess
import tempfile
import time
import warnings

import joblib
import numpy
import scipy.sparse
import scipy.special
import sklearn
from sklearn.decomposition import NMF, LatentDirichletAllocation

warnings.filterwarnings("ignore")


def read(path):
    with gzip.open(path, "rt") as file:
        rows, cols, _ = (int(file.readline()) for _ in range(3))
        entries = numpy.loadtxt(file, dtype=numpy.int64)
    return scipy.sparse.csr_matrix((entries[:, 2].astype(float), (entries[:, 0] - 1, entries[:, 1] - 1)),
                                   (rows, cols))


def divergence(X, W, H):
    rows, cols = X.nonzero()
    means = numpy.einsum("ek,ek->e", W[rows], H.T[cols])
    x = X.data
    return numpy.sum(x * numpy.log(x / means) - x) + W.sum(0) @ H.sum(1)


def expected_log(A):
    return scipy.special.psi(A) - scipy.special.psi(A.sum(1, keepdims=True))


def dirichlet_bound(prior, A, E):
    k, size = A.shape
    return (numpy.sum((prior - A) * E + scipy.special.gammaln(A)) - numpy.sum(scipy.special.gammaln(A.sum(1)))
            + k * (scipy.special.gammaln(size * prior) - size * scipy.special.gammaln(prior)))


def bound(X, gamma, components, alpha, eta):
    theta, phi = expected_log(gamma), expected_log(components)
    rows, cols = X.nonzero()
    logs = scipy.special.logsumexp(theta[rows] + phi.T[cols], axis=1)
    return numpy.sum(X.data * logs) + dirichlet_bound(alpha, gamma,
                                                      theta) + dirichlet_bound(eta, components, phi)


def documents(X, components, alpha, steps=60):
    """gamma given the topics, from scratch, for a peer that keeps none."""
    U = numpy.exp(expected_log(components))
    gamma = numpy.full((X.shape[0], len(components)), alpha) + X.sum(1).A1[:, None] / len(components)
    rows, cols = X.nonzero()
    for _ in range(steps):
        T = numpy.exp(expected_log(gamma))
        Q = scipy.sparse.csr_matrix((X.data / numpy.einsum("ek,ek->e", T[rows], U.T[cols]), (rows, cols)),
                                    X.shape)
        gamma = alpha + T * (Q @ U.T)
    return gamma


def load_tensors(path):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        head, body = json.loads(file.read(size)), file.read()
    return {name: numpy.frombuffer(body[about["data_offsets"][0]:about["data_offsets"][1]],
                                   {"F64": "<f8", "F32": "<f4"}[about["dtype"]]).reshape(about["shape"])
            for name, about in head.items() if name != "__metadata__"}


def lda_rounds(arguments, X, topics, alpha):
    """kiln_lda through the C API: topics after so many rounds from these, documents that know nothing at the
    start of each."""
    os.environ.setdefault("KILN_LIBRARY", os.path.join(os.path.dirname(os.path.abspath(arguments.kiln)),
                                                       "libkiln.so"))
    import kiln_c as kiln
    device, k = kiln.Device("cpu", threads=arguments.threads), len(topics)
    counts, B = device.csr(X), device.dense(X.shape[1], k, X.dtype, topics.T)
    for _ in range(arguments.rounds):
        A = device.dense(X.shape[0], k, X.dtype, numpy.repeat(alpha + X.sum(1).A1[:, None] / k, k, 1))
        kiln.fit("lda", A, B, counts, alpha=alpha, eta=alpha, steps=100, max_iterations=1, tolerance=1e-12,
                 warm_start=1)
        A.free()
    return B.numpy().T


def run_kiln(arguments, *words):
    command = [arguments.kiln, *words, "--device", "cpu", "--threads", arguments.threads, "--json", "--quiet"]
    process = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=True)
    return json.loads(process.stdout)


def timed(work):
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def reached(result, goal, rising):
    for row in result["trace"]:
        if row["objective"] >= goal if rising else row["objective"] <= goal:
            return row["seconds"], row["iteration"]
    return None, None


def begin(arguments, folder, *words):
    """The model after one iteration, from which both go on."""
    path = os.path.join(folder, "start.kiln")
    run_kiln(arguments, words[0], arguments.data, *words[1:], "-k", arguments.topics, "--max-iterations", 1,
             "-o", path)
    return path, load_tensors(path)


def nmf_steps(arguments, X, folder):
    start, model = begin(arguments, folder, "gap", "--prior", "none")
    end = os.path.join(folder, "end.kiln")
    run_kiln(arguments, "gap", arguments.data, "--prior", "none", "-k", arguments.topics, "--warm-start",
             start, "--max-iterations", 10, "--tolerance", 1e-14, "-o", end)
    theirs = NMF(arguments.topics, init="custom", solver="mu", beta_loss="kullback-leibler", max_iter=10,
                 tol=0)
    W = theirs.fit_transform(X, W=model["A"].copy(), H=model["B"].T.copy())
    ours = load_tensors(end)
    return max(numpy.max(numpy.abs(ours["A"] - W) / (W + 1e-3)),
               numpy.max(numpy.abs(ours["B"].T - theirs.components_) / (theirs.components_ + 1e-3)))


def lda_steps(arguments, X, folder):
    """scikit-learn's bound and perplexity of the gamma and lambda that kiln has found, against what kiln says
    of them."""
    k, alpha = arguments.topics, 1 / arguments.topics
    end = os.path.join(folder, "end.kiln")
    result = run_kiln(arguments, "lda", arguments.data, "-k", k, "--max-iterations", 10, "-o", end)
    ours = load_tensors(end)
    theirs = LatentDirichletAllocation(k, doc_topic_prior=alpha, topic_word_prior=alpha,
                                       total_samples=X.shape[0])
    theirs._init_latent_vars(X.shape[1], X.dtype)
    theirs.components_ = ours["B"].T.copy()
    theirs.exp_dirichlet_component_ = numpy.exp(expected_log(theirs.components_))
    their_bound = theirs._approx_bound(X, ours["A"], False)
    perplexity = theirs._perplexity_precomp_distr(X, ours["A"])
    return abs(their_bound / result["bound"] - 1), abs(perplexity / result["perplexity_bound"] - 1)


def lda_same_start(arguments, X, folder):
    """Rounds of both from one lambda, in each of which the documents begin anew and take up to a hundred
    steps."""
    k, alpha, rounds = arguments.topics, 1 / arguments.topics, arguments.rounds
    _, model = begin(arguments, folder, "lda")
    theirs = LatentDirichletAllocation(k, doc_topic_prior=alpha, topic_word_prior=alpha,
                                       total_samples=X.shape[0], random_state=0, max_doc_update_iter=100,
                                       mean_change_tol=1e-5, n_jobs=arguments.threads)
    theirs._init_latent_vars(X.shape[1], X.dtype)
    theirs.components_ = model["B"].T.copy()
    theirs.exp_dirichlet_component_ = numpy.exp(expected_log(theirs.components_))
    with joblib.Parallel(n_jobs=arguments.threads) as parallel:
        for _ in range(rounds):
            theirs._em_step(X, total_samples=X.shape[0], batch_update=True, parallel=parallel)
    row, ours = {"rounds": rounds}, lda_rounds(arguments, X, model["B"].T, alpha)
    for name, components in ("peer", theirs.components_), ("kiln", ours):
        theirs.components_, theirs.exp_dirichlet_component_ = components, numpy.exp(expected_log(components))
        gamma = documents(X, components, alpha, 100)
        row[name + "_bound"] = bound(X, gamma, components, alpha, alpha)
        row[name + "_perplexity"] = theirs._perplexity_precomp_distr(X, gamma)
    row["bound_difference"] = abs(row["kiln_bound"] / row["peer_bound"] - 1)
    row["perplexity_difference"] = abs(row["kiln_perplexity"] / row["peer_perplexity"] - 1)
    return row


def by_gensim(arguments, X, alpha):
    import gensim.matutils
    import gensim.models
    corpus = gensim.matutils.Sparse2Corpus(X, documents_columns=False)
    model = gensim.models.LdaModel(corpus, num_topics=arguments.topics, alpha=[alpha] * arguments.topics,
                                   eta=alpha, passes=arguments.passes, chunksize=2000, eval_every=None,
                                   random_state=1, dtype=numpy.float64)
    return model.state.get_lambda()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--kiln", required=True)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=50, help="of scikit-learn")
    parser.add_argument("--rounds", type=int, default=10, help="from the same start; 0: without them")
    parser.add_argument("--passes", type=int, default=20, help="of gensim; 0: without it")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json")
    parser.add_argument("--commit", default="unknown")
    arguments = parser.parse_args()
    X, k, alpha = read(arguments.data), arguments.topics, 1 / arguments.topics
    report = {"date": datetime.date.today().isoformat(), "commit": arguments.commit,
              "data": os.path.basename(arguments.data), "shape": X.shape, "nnz": X.nnz, "topics": k,
              "threads": arguments.threads, "scikit_learn": sklearn.__version__,
              "iterations": arguments.iterations}
    with tempfile.TemporaryDirectory() as folder:
        report["kl_nmf_step_difference"] = nmf_steps(arguments, X, folder)
        report["lda_bound_difference"], report["lda_perplexity_difference"] = lda_steps(arguments, X, folder)
        if arguments.rounds:
            report["lda scikit-learn, same start"] = lda_same_start(arguments, X, folder)
    rows = {"kl_nmf scikit-learn": [], "lda scikit-learn": [], "lda gensim": []}
    for turn in range(arguments.repeat):
        nmf = NMF(k, init="random", solver="mu", beta_loss="kullback-leibler", max_iter=arguments.iterations,
                  tol=0, random_state=turn)
        W, seconds = timed(lambda: nmf.fit_transform(X))
        ours = run_kiln(arguments, "gap", arguments.data, "--prior", "none", "-k", k, "--tolerance", 1e-9,
                        "--max-iterations", 400, "--seed", turn)
        rows["kl_nmf scikit-learn"].append((seconds, *reached(ours, divergence(X, W, nmf.components_),
                                                              False)))
        peers = {"lda scikit-learn": lambda: LatentDirichletAllocation(k, max_iter=arguments.iterations,
                                                                       n_jobs=arguments.threads,
                                                                       learning_method="batch",
                                                                      doc_topic_prior=alpha,
                                                                       topic_word_prior=alpha,
                                                                       random_state=turn).fit(X).components_}
        if arguments.passes:
            peers["lda gensim"] = lambda: by_gensim(arguments, X, alpha)
        ours = run_kiln(arguments, "lda", arguments.data, "-k", k, "--tolerance", 1e-9, "--max-iterations",
                        400, "--seed", turn)
        for name, work in peers.items():
            components, seconds = timed(work)
            rows[name].append((seconds, *reached(ours, bound(X, documents(X, components, alpha), components,
                                                             alpha, alpha), True)))
    for name, runs in rows.items():
        done = [run for run in runs if run[1] is not None]
        if not done:
            continue
        theirs, mine = min(run[0] for run in runs), min(run[1] for run in done)
        report[name] = {"peer_seconds": theirs, "kiln_seconds": mine, "ratio": theirs / mine,
                        "kiln_iterations": [run[2] for run in runs],
                        "kiln_reached": f"{len(done)} of {len(runs)}"}
    text = json.dumps(report, indent=1)
    print(text)
    if arguments.json:
        with open(arguments.json, "w") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
