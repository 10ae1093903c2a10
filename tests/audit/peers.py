"""Peers that answer the same question: statsmodels of generalised linear models, networkx of rankings.

Both have to be there.

What two right answers may differ by follows from what each promises. A model that has converged is above its
optimum by at most what problems.judge_fit allows, fall: its coefficient j is then off by at most
sqrt(2 fall (H^-1)_jj), H the Hessian, and its linear predictor of a row x by sqrt(2 fall x^T H^-1 x). Ranks
are off by error_bound, networkx's by what its own stop leaves; the first singular vectors by the change of an
iteration over the gap to the second.

SPDX-License-Identifier: Apache-2.0
"""

import warnings

import numpy as np

import draw
from problems import EPS, SHARE, Problem, Scaled, constant_objective, refused
from runs import Tool

SETTLED = ("poisson", "binomial", "negative-binomial")  # families whose dispersion is 1


def family_of(sm, arguments: list[object]):
    """statsmodels' family of these arguments, with the link that Kiln has for it."""
    options = dict(zip(arguments, arguments[1:]))
    log = sm.families.links.Log()
    return {
        "gaussian": lambda: sm.families.Gaussian(),
        "poisson": lambda: sm.families.Poisson(),
        "gamma": lambda: sm.families.Gamma(log),
        "inverse-gaussian": lambda: sm.families.InverseGaussian(log),
        "binomial": lambda: sm.families.Binomial(),
        "tweedie": lambda: sm.families.Tweedie(log, var_power=options["--variance-power"]),
        "negative-binomial": lambda: sm.families.NegativeBinomial(log, alpha=options["--alpha"]),
    }[str(options["--family"])]()


def without_penalty(arguments: list[object]) -> list[object]:
    dropped = ("--l2", "--l1", "--max-iterations")
    kept = [
        a
        for at, a in enumerate(arguments)
        if a not in dropped and (at == 0 or arguments[at - 1] not in dropped)
    ]
    return [a for a in kept if a != "--standardize"] + ["--l2", 0, "--standard-errors"]


def answer_of(peer, start: np.ndarray):
    """statsmodels' fit from these coefficients, or None where it has none: its steps have their whole lengths
    and may leave the range of numbers, which it refuses, or go to and fro above where they began, which it
    calls no convergence; and under a log link it takes means below epsilon for epsilon in its weights."""
    refusals = ("estimation infeasible", "deviance function returned a nan")
    try:
        fit = peer.fit(start_params=start, tol=1e-13, maxiter=200)
    except np.linalg.LinAlgError:
        return None
    except ValueError as error:
        if not any(words in str(error) for words in refusals):
            raise
        return None
    began = peer.family.fitted(peer.exog @ start + peer._offset_exposure)
    if type(peer.family.link).__name__ == "Log" and began.min() < np.finfo(float).eps:
        return None
    before = peer.family.deviance(peer.endog, began, peer.var_weights, peer.freq_weights)
    return fit if fit.converged or fit.deviance <= before * (1 + 1e-9) else None


def statsmodels_glm(problem: Problem, tool: Tool, family: str, loss, y: np.ndarray) -> list[str]:
    """Coefficients, standard errors and AIC of the problem without a penalty, where its columns are well
    apart."""
    counts = problem.s > 0
    X = problem.kept[counts].astype(float)
    s, target = problem.s[counts].astype(float), y[counts].astype(float)
    design = np.c_[X, np.ones(len(X))] if problem.intercept else X
    size = np.linalg.norm(design, axis=0)
    if (
        not all(kind in draw.TAME for kind in problem.columns)
        or not size.all()
        or len(X) < design.shape[1] + 3
    ):
        return []
    values = np.linalg.svd(design / size, compute_uv=False)
    condition = values[0] / values[-1]
    if not condition < 300:
        return []
    found: list[str] = []
    arguments = without_penalty(problem.arguments)
    run = tool.run("glm", problem.file, *arguments, "-o", "peer.kiln")
    if refused(run, found) or not run.out["converged"] or run.out.get("warnings") or "warning" in run.err:
        return found  # optima at infinity are judged elsewhere
    import statsmodels.api as sm

    model = tool.model("peer.kiln")
    own = np.append(model.tensors["W"][:, 0], model.tensors["b"][0] if problem.intercept else []).astype(
        float
    )
    settled = family in SETTLED
    weights = {"freq_weights": s} if settled else {"var_weights": s}
    offset = None if problem.offset is None else problem.offset[counts].astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = sm.GLM(target, design, family=family_of(sm, arguments), offset=offset, **weights)
        fit = answer_of(peer, own)
    if fit is None:
        return found
    unpenalised = without(problem)
    scaled = Scaled(unpenalised, loss, model.tensors["W"][:, 0], own[-1] if problem.intercept else 0, y)
    gain = max(float(constant_objective(unpenalised, loss, y) - scaled.objective), 0)
    eps = EPS[problem.kind]
    fall = (
        SHARE[problem.kind] * gain
        + float(scaled.rounding)
        + 1e-13 * abs(float(scaled.objective)) * eps / 2e-16
    )
    inverse = np.asarray(fit.normalized_cov_params)
    reach = np.sqrt(2 * fall * np.diag(inverse)) + 64 * eps * condition * np.abs(own)
    for j in np.nonzero(np.abs(own - fit.params) > reach + 1e-12)[0]:
        found.append(
            f"glm {family}: coefficient {j + 1} is {own[j]:.9g}, statsmodels' {fit.params[j]:.9g} (allowed "
            f"{reach[j]:.3g})"
        )
    # what the rows' linear predictors may be off by changes curvatures by as large a part, and twice that
    apart = np.sqrt(2 * fall * np.einsum("ij,jk,ik->i", design, inverse, design)).max()
    digits = 4 * float(apart) + 64 * eps * condition**2
    if "standard_errors" in model.tensors:
        for j, (a, b) in enumerate(zip(model.tensors["standard_errors"][:, 0].astype(float), fit.bse)):
            if abs(a - b) > digits * b:
                found.append(
                    f"glm {family}: standard error {j + 1} is {a:.9g}, statsmodels' {b:.9g} (digits "
                    f"{digits:.3g})"
                )
    aic = run.out["metrics"].get("aic")
    if aic is not None and (settled or problem.weights is None) and family != "tweedie":
        found += akaike(family, peer, fit, aic, s, fall)
    return found


def akaike(family: str, peer, fit, aic: float, s: np.ndarray, fall: float) -> list[str]:
    """-2 log-likelihood + 2 parameters; a dispersion is deviance / weights here, and counts as a
    parameter."""
    own = family in SETTLED
    scale = 1.0 if own else fit.deviance / s.sum()
    likelihood = s @ peer.family.loglike_obs(peer.endog, fit.mu, scale=scale)
    true = -2 * likelihood + 2 * (len(fit.params) + (not own))
    allowed = 2 * fall / scale + 1e-10 * float(
        s @ np.abs(peer.family.loglike_obs(peer.endog, fit.mu, scale=scale))
    )
    if abs(aic - true) <= allowed * (1 if own else 2) + 1e-9:
        return []
    return [
        f"glm {family}: AIC is {aic:.9g}, statsmodels' likelihood gives {true:.9g} (allowed {allowed:.3g})"
    ]


def without(problem: Problem) -> Problem:
    """The problem without its penalties."""
    made = Problem.__new__(Problem)
    made.__dict__.update(problem.__dict__, l1=0.0, l2=0.0, standardize=False)
    return made


# -------------------------------------------------------------------------------------------------- rankings
def graph_of(W: np.ndarray):
    import networkx

    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(W)))
    graph.add_weighted_edges_from((int(i), int(j), float(W[i, j])) for i, j in zip(*np.nonzero(W)))
    return graph


def networkx_pagerank(W, damping: float, teleport, dangling, ranks, bound: float) -> list[str]:
    """networkx ends where an iteration changes the ranks by less than n tol: by damping / (1 - damping) times
    that they are off."""
    import networkx

    n, tol = len(W), 1e-13
    peer = networkx.pagerank(
        graph_of(W),
        alpha=damping,
        personalization=dict(enumerate(map(float, teleport))),
        dangling=dict(enumerate(map(float, dangling))),
        tol=tol,
        max_iter=100000,
    )
    error = float(np.abs(ranks - [peer[i] for i in range(n)]).sum())
    allowed = bound + n * (tol + 1e-15) * damping / (1 - damping)
    return (
        []
        if error <= allowed
        else [f"pagerank: the ranks are {error:.3g} off networkx's, allowed {allowed:.3g}"]
    )


def networkx_hits(W, hubs, authorities, change: float, digits: float) -> list[str]:
    """Whether the second singular value is apart: else the first vectors are a matter of the start."""
    import networkx

    values = np.linalg.svd(W.astype(float), compute_uv=False)
    if len(W) < 2:
        return []  # one vertex, whose scores are 1
    gap = 1 - (values[1] / values[0]) ** 2
    if gap < 0.01:
        return []
    tol, found = 1e-13, []
    # by singular vectors, or by a power iteration that ends where a step changes the hubs by less than tol
    try:
        peers = networkx.hits(graph_of(W), max_iter=100000, tol=tol)
    except networkx.PowerIterationFailedConvergence:
        return []  # rounding keeps its steps above that: it has no answer
    for name, own, peer in zip(("hubs", "authorities"), (hubs, authorities), peers):
        off = float(np.abs(own / own.sum() - [peer[i] for i in range(len(W))]).sum())
        allowed = len(W) * (2 * change + digits + 2 * tol) / gap
        if off > allowed:
            found.append(f"hits: {name} are {off:.3g} off networkx's, allowed {allowed:.3g}")
    return found
