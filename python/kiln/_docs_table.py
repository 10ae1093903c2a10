"""What parameters, attributes and results are, and an example of each class and function."""

_NOTHING = "Taken and changes nothing, so that scripts for scikit-learn run."

PARAMETERS = f"""
device | str or Device | Where to run: "auto", "cpu", "cuda", "cuda:1", "opencl" or an open Device. "auto"
    takes the device on which the work is expected to end first.
verbose | int | 1 shows progress: the phase, the iterations, the objective and the residual, as a bar
    where tqdm is installed.
tol | float or None | When to stop: a bound of the scaled gradient. None: the library's default for the
    type.
max_iter | int or None | The most iterations. None: the library's default.
n_jobs | int or None | Threads of the CPU: -1 is all cores, -2 all but one, None all.
random_state | int, RandomState or None | Where random numbers come from; an int gives the same result
    again. Where nothing is random it is taken and changes nothing.
fit_intercept | bool | Whether the model has an intercept, which is never penalised.
standardize | bool | Whether the penalty is of the coefficients of columns scaled to unit variance.
warm_start | bool | Whether a fit begins where the last one ended.
positive | bool | Whether coefficients are kept from 0 on.
copy_X, copy_x, precompute, selection, intercept_scaling, dual, gcv_mode, shuffle, evaluate_every,
    perp_tol, mean_change_tol, max_doc_update_iter, init_size, reassignment_ratio |
    any | {_NOTHING}
solver | str | "auto" takes what suits X. Names of scikit-learn's solvers mean "auto".
LinearRegression.solver, RidgeCV.solver | str | "cholesky" of X^T X, preconditioned conjugate gradient
    "cg", or "auto". Names of scikit-learn's solvers mean "auto".
_Logistic.solver, LinearSVC.solver, LinearSVR.solver | str | "newton", "dual" (coordinate descent, for
    sparse X of more columns than rows), or "auto". Names of scikit-learn's solvers mean "auto".
ALS.solver | str or None | "cg", "cholesky" or "ccd" (CCD++). None: "cg", or "cholesky" where its products
    would leave the type.
hits.solver | str | "power", "lobpcg" or "auto".
NMF.solver | str | "mu", the one there is.
LinearRegression.tol | float or None | A bound of the relative residual of the normal equations. None:
    1e-12 for float64, 1e-5 for float32.
MiniBatchKMeans.max_no_improvement | int or None | When to stop, as in scikit-learn: after so many batches in
    turn that have not lowered the smoothed inertia. None: when they no longer move the centres.
KMeans.tol | float | When to stop: a bound of the squared moves of the centres, of the columns' mean
    variance.
ALS.tol, SFA.tol, NMF.tol, LatentDirichletAllocation.tol | float | When to stop: an iteration lowers the
    objective by at most this share.
alpha | float | The strength of the penalty.
Ridge.alpha | float or array of shape (n_targets,) | The strength of the penalty, one for each target or
    for all.
ALS.alpha | float or None | How much an entry adds to the confidence, with implicit=True. None: 1.
ALS.confidence | str | With implicit=True: "linear" is 1 + alpha r, "proportional" alpha r, as in the package
    implicit, "log" 1 + alpha log(1 + r / epsilon).
ALS.epsilon | float or None | Of confidence="log": what counts are divided by. None: 1.
AlternatingLeastSquares.alpha | float | What a count is multiplied with to be its confidence.
factors | int | The number of factors of a row and of a column.
regularization | float | The strength of the penalty.
AlternatingLeastSquares.dtype | dtype | The type of the factors: float32 or float64.
use_native | bool | Taken and changes nothing: there is no other code.
use_cg | bool | Whether rows are solved by three steps of conjugate gradient, else by Cholesky's
    factorisation.
use_gpu | bool or None | True is device="cuda", False "cpu"; None: as device says.
iterations | int | How many iterations are made.
calculate_training_loss | bool | Whether fit's callback is told the loss.
AlternatingLeastSquares.num_threads | int | Threads of the CPU; 0: all.
user_names, item_names | list or None | What the rows and columns are called.
ratings | sparse matrix of shape (n_users, n_items) | What is shared out.
train_percentage | float | The probability that an entry goes to train, between 0 and 1.
alphas | array, or int | The strengths of the penalty to try, or how many.
RidgeCV.alphas | array of shape (n_alphas,) | The strengths of the penalty to try, above 0 for cv=None.
l1_ratio | float | The share of the L1 penalty: 0 is L2 alone, 1 is L1 alone.
ElasticNetCV.l1_ratio, GeneralizedLinearRegressorCV.l1_ratio | float or list of floats | The share of the
    L1 penalty, or those to try.
NMF.l1_ratio | float | {_NOTHING}
C | float | The inverse of the penalty's strength, above 0; numpy.inf is no penalty.
Cs | array, or int | The values of C to try, or how many between 1e-4 and 1e4.
l1_ratios | array | The shares of the L1 penalty to try.
penalty | str or None | "l2", "l1" and "elasticnet" say l1_ratio, None is C=numpy.inf.
LinearSVC.penalty | str | "l2", or "l1" of the squared hinge.
class_weight | dict, "balanced" or None | A weight for each class; "balanced" makes classes count the
    same.
LinearSVC.loss | str | "squared_hinge" or "hinge".
LinearSVR.loss | str | "squared_epsilon_insensitive" or "epsilon_insensitive".
multi_class | str | "ovr", one class against the rest, the one there is.
epsilon | float | How far a prediction may be from its target at no loss.
cv | int, splitter or list of pairs | The folds: how many, scikit-learn's splitters, or the rows that
    train and test. None: 5.
RidgeCV.cv | int, splitter, list of pairs or None | The folds; None leaves out one row at a time.
scoring | str, callable or None | What is best: one of scikit-learn's names, or a function. None: the
    score of the model.
refit | bool | Whether the best is trained on all rows.
eps | float | The smallest alpha over the largest, where the list is made.
MDS.eps | float or None | When to stop: an iteration lowers the stress by at most this share. None: the
    library's default.
affinity | str or callable | What the graph is made of: "nearest_neighbors", "rbf", "precomputed",
    "precomputed_nearest_neighbors", or a function of X.
gamma | float or None | Of "rbf": exp(-gamma d^2) of a distance d. None: 1 over the columns.
n_neighbors | int or None | Of "nearest_neighbors": how many. None: a tenth of the rows.
eigen_solver | str or None | Taken and changes nothing, so that scripts for scikit-learn run.
eigen_tol | float or "auto" | When to stop: a bound of ||A v - s v||. "auto": 1e-8 of float64, 1e-5 of
    float32.
SpectralEmbedding.n_components | int | How many coordinates a vertex has.
TruncatedSVD.tol, PCA.tol | float | When to stop: the largest of ||X v - s u|| and ||X^T u - s v|| over the
    largest s. 0: 1e-8 of float64, 1e-5 of float32.
TruncatedSVD.n_components | int | How many singular values and vectors.
PCA.n_components | int, float, "mle" or None | How many components, or what share of the variance they have to
    explain; None: all.
IncrementalPCA.n_components | int or None | How many components. None: as many as the first batch allows.
IncrementalPCA.batch_size | int or None | The rows of a batch. None: 5 times the columns.
TruncatedSVD.standardize, PCA.standardize | bool | Whether columns are divided by their standard deviations.
TruncatedSVD.algorithm | str | "randomized" or "arpack": taken and changes nothing.
svd_solver | str | "covariance_eigh" goes by the Gram matrix first; scikit-learn's other names mean "auto".
whiten | bool | Whether coordinates are divided by their standard deviations.
n_iter, n_oversamples, power_iteration_normalizer, iterated_power, PCA.copy, IncrementalPCA.copy | any | Taken
    and changes nothing, so that scripts for scikit-learn run.
store_cv_results | bool | Whether cv_results_ is kept, with cv=None.
alpha_per_target | bool | Whether each target has an alpha of its own.
use_legacy_attributes | bool | False, the one there is.
family | str | "gaussian", "poisson", "gamma", "inverse-gaussian", "binomial", "tweedie",
    "negative-binomial" or "beta".
link | str | "default", "identity", "log", "logit", "probit", "cloglog", "cauchit", "sqrt", "inverse",
    "inverse-squared" or "power".
TweedieRegressor.link | str | "identity", "log", or "auto", which is "identity" for power 0 and below.
parameter | float or "estimate" | What the family has beside its mean: Tweedie's power, the negative
    binomial's alpha, beta's precision; "estimate": the most likely one.
GeneralizedLinearRegressorCV.parameter | float | What the family has beside its mean: Tweedie's power, the
    negative binomial's alpha, beta's precision.
link_power | float | The exponent of the link "power".
power | float | The power of the variance: 0 is Gaussian, 1 Poisson, 2 gamma, 3 inverse Gaussian, between
    1 and 2 amounts with many zeros.
standard_errors | bool | Whether to compute the coefficients' standard errors; alpha must be 0.
n_clusters | int | The number of centres.
init | str, array or callable | Where to begin; Notes say what there is.
n_init | int or "auto" | The number of starts, of which the best is kept.
algorithm | str | "lloyd", "bounds", "elkan" (another name of "bounds") or "auto": how, not what.
spherical | bool | Whether directions count: rows and centres are scaled to length 1.
batch_size | int | The rows of a batch.
compute_labels | bool | Whether labels_ is kept.
n_components | int | The number of factors, topics or dimensions.
NMF.n_components | int, "auto" or None | The number of parts; "auto" and None: as many as columns.
metric | str or bool | "ratio", "interval" or "ordinal": what distances are to be near; or a distance of
    scikit-learn's, or True and False, as scikit-learn has them.
metric_mds | bool | False is metric="ordinal".
metric_params | dict or None | Arguments of a distance of scikit-learn's.
dissimilarity | str | "euclidean": X holds points; "precomputed": X is the matrix of dissimilarities.
normalized_stress | bool or "auto" | Whether stress_ is Stress-1; "auto": of metric="ordinal".
ties | str | Of metric="ordinal": "primary" lets equal dissimilarities have different distances,
    "secondary" does not.
implicit | bool | Whether entries say how often something was seen, in place of ratings.
l2 | float or None | The strength of the penalty. None: by the spread and the number of the entries.
biases | bool or None | Whether rows and columns have a bias. None: of ratings.
counted | bool | Whether the penalty counts once for each entry of a row.
steps | int or None | Steps of "cg" a row, or of "ccd" a factor. None: 3.
damping | float or None | What is added to the counts that biases are means of.
pagerank.layout | str | Of the links: "csr", "hybrid" (ELLPACK and CSR), "balanced" or "auto".
pagerank.damping | float | The share of the scores that follows links.
pagerank.alpha | float or None | damping, by networkx's name.
pagerank.personalization | dict, array, Series or None | personalize, by networkx's name.
pagerank.nstart | dict, array, Series or None | start, by networkx's name.
prior | str or None | "gamma" (GaP), or None.
shape, rate | float or None | Of the gamma prior. None: 1.1 and 1.
explain.shape | tuple of two ints | Rows and columns of X.
beta_loss | str | "kullback-leibler", the one there is.
alpha_W, alpha_H | float or str | 0 or "same", the values there are.
doc_topic_prior, topic_word_prior | float or None | The prior of the documents' topics, of the topics'
    words. None: 1 / n_components.
learning_method | str | "batch", or "online" by batches.
learning_decay, learning_offset | float | Batch t moves the topics by (learning_offset +
    t)^-learning_decay of the way.
total_samples | float | The documents in all, for partial_fit.
learn_alpha | bool | Whether each topic has a prior of its own, which is fitted.
X | array or sparse matrix of shape (n_samples, n_features), or Matrix | The matrix.
y | array of shape (n_features,) or (n_features, k) | What X is multiplied with.
enet_path.y, lasso_path.y | array of shape (n_samples,) | The targets.
v, z | array or None | A weight for each row of X; what is added, in the shape of the result.
mmchain.alpha, sddmm.alpha | float | A factor of the result.
beta | float | A factor of z.
A | array or sparse matrix of shape (m, n), or Matrix | The left operand.
G | graph, sparse matrix of shape (n, n), Matrix, or frame of links | The graph; of a matrix row i links
    to column j.
source | str or None | The column of a frame of links where they begin.
target | str or None | The column of a frame of links where they end.
weight | str or None | The column of a frame of links, or the attribute of a graph's links, that weighs
    them; "auto": the one called weight, where there is one; None: each link counts 1.
undirected | bool | Whether links lead both ways.
pagerank.tol, hits.tol | float or None | When to stop: a bound of the error that is left. None: the
    library's default for the type.
sddmm.A | array of shape (m, k), or Half | The factors of the rows.
B | array of shape (n, k) | The right operand; of a vector the result is one.
sddmm.B | array of shape (n, k), or Half | The factors of the columns.
S | sparse matrix of shape (m, n) | The sparse operand.
transposed | bool | Whether A is to be transposed.
sddmm.kind | str | What becomes of d = a_i . b_j and the entry s: "product" d, "times" s d, "quotient" s /
    d, "residual" s - d.
batch_reduce.kind | str | "sum", "squares", "l1", "l2", "max", "min", "argmax", "argmin", "mean" or
    "variance".
Half.kind | str | "float16" or "bfloat16".
offsets | array of shape (count + 1,) or None | Where the pieces of a vector X begin and end. None: rows
    of X.
scale | array of shape (n_samples,) | A factor for each row.
array | array, sparse matrix, DLPack or path | The values.
dtype | dtype or None | float32 or float64. None: as the values are.
where | str or Device | The device.
personalize | array of shape (n,) or (n, k), dict, Series, or None | Where jumps lead, one ranking for
    each column. None: to all alike.
unweighted | bool | Whether every link counts 1.
dangling | str or array of shape (n,) | Where vertices without links lead: "personalized", "uniform", or
    these shares.
iterations | int or None | Just so many iterations.
start | array or None | Scores to begin with.
callback | callable or None | Called with the progress as a dictionary; what is true stops the run.
norm | int | 1: scores add up to 1, 2: their squares do.
path | str or path-like | The file's name.
name | str | The device's name.
threads | int | Threads; 0: all.
memory | int | A budget in bytes; 0: what there is.
Device.strict | bool | Whether a fit that held more than 5 % over the budget is an error.
deterministic | bool | Whether results have the same bits from run to run.
nnz | int or None | Entries of a sparse matrix. None: it is dense.
passes | int | Passes over X.
columns | int | Columns of what X is multiplied with.
thorough | bool | Whether to measure the devices first.
operation | str | "mmchain", "sddmm" or "batch_reduce".
most, repeats | int | Plans that are measured, and how often.
backend | str | "cuda" or "opencl".
architectures | str, list or None | "sm_90" and the like. None: all that NVRTC knows.
programs | list of str or None | Lines as kiln.kernels returns them, and "usual". None: the usual ones.
communicator | mpi4py communicator or None | The processes. None: all.
options | keywords | As enet_path's, but for l1_ratio.
every | float | Seconds between two writes.
resume | str, path-like, bool or None | The file to go on from; True: path, where that exists.
read.path | str, path-like, list or table | A file, several by a list or pattern, or a table in memory.
enet_path.tol | float or None | As ElasticNet's, of each fit.
n_alphas | int or None | Another name for how many alphas.
enet_path.alphas | array, or int | The penalties, or how many: then the largest is the least that makes
    all coefficients 0, and the smallest eps times that.
coef_init | array of shape (n_features,) or None | Where the first fit begins.
return_n_iter | bool | Whether to return n_iters, too.
Xy, check_input | any | {_NOTHING}
Inference.model | estimator | A fitted linear model.
Inference.X, Inference.y, Inference.sample_weight, Inference.offset | arrays | As fit() had them.
ratings | sparse matrix of shape (n_users, n_items) | Entries to share out.
train_percentage | float | The probability with which an entry goes to train.
read_ratings.path | str, path-like or frame | A file or a frame of users, items and perhaps ratings.
read_ratings.source, read_ratings.target, read_ratings.weight | str, int or None | The column of users, of
    items, and of ratings, by name or index.
read_ratings.dtype | str | "float32" or "float64".
stream.batches | iterable | The batches, which are asked for once.
stream.dtype | dtype or None | float32 or float64. None: float32 where the first batch has that, else
    float64. Later batches of a wider type than float32 are then refused: with a dtype they are rounded to it.
stream.device | str or Device | Where passes over the matrix run, with the device's memory as the budget.
read.source, read.weight | str, int or None | The column that links come from, or of users, and that of
    their weights, or ratings, by name or index.
user_names, item_names | list | What rows and columns are called.
coherence.X | sparse matrix of shape (n_documents, n_words) | The documents' counts of words.
cov_type | str | "nonrobust", "HC0" to "HC3" or "cluster": how the covariance is estimated.
Inference.groups | array of shape (n_samples,) or None | The cluster of each row, for "cluster".
handle_unknown | str | "warn", "ignore", "error" or "reference": what a level that fit has not seen
    becomes.
sparse_output | bool or "auto" | Whether the features are sparse; "auto": where most entries are 0.
TableEncoder.missing | str or None | "error", "mean", "indicator" or "nan".
read.target | str, int or None | The column of y, by name or index.
read.dtype | str | "float32" or "float64".
features, ignore, categorical, numeric | str, list or None | Columns by name.
read.target_file | path or None | A file of y.
read.model | path or None | A model whose columns a table's are encoded as.
ranking_metrics_at_k.model | recommender | A fitted model of Kiln's, or anything with implicit's recommend().
train_user_items | sparse matrix of shape (n_users, n_items) | The known ratings, which are not recommended.
test_user_items | sparse matrix of shape (n_users, n_items) | The ratings that are looked for.
K | int | How many items each user is recommended.
show_progress | bool | Taken and changes nothing.
num_threads | int | Taken and changes nothing.
topics | list of lists, or fitted topic model | The words of each topic, best first.
measure | str | "u_mass" or "c_npmi".
feature_names | array of shape (n_words,) or None | The words, where topics has words and not columns.
weights, offset, groups | str or None | The column of the rows' weights, offset, groups.
missing | str or None | "error", "drop", "mean", "indicator" or "nan".
missing_words | str or None | Further words for a missing value.
reference | dict, str or None | The level of a column that gets no feature.
interact | list, str or None | Pairs of text columns, as "colour:floor", whose pairs of levels are features.
read.columns | list or None | The only columns that are looked at.
read.mapped | bool | Whether X stays in its file, or in a temporary one, and passes read it there.
format | str or None | The file's format. None: its name and content say it.
part | (int, int) or None | (i, n): the i-th of n parts, from 0.
parts | bool | Whether to read this process's share (kiln.distributed.join).
"""

# fitted attributes by the class that brings them
HAS = """
TableEncoder | - | n_features_in_, feature_names_in_, levels_, means_, schema_
Estimator | - | n_features_in_, feature_names_in_, n_iter_, converged_, objective_, optimality_gap_,
    report_, device_
_Linear | - | coef_, intercept_
LinearRegression | - | rank_, singular_
Ridge | - | solver_
GeneralizedLinearRegressor | - | standard_errors_, intercept_error_, parameter_
TweedieRegressor | - | power_
ElasticNet | - | dual_gap_, sparse_coef_
_Classifier | - | classes_
RidgeCV | - | alpha_, best_score_, scores_, cv_results_
LogisticRegressionCV | - | C_, l1_ratio_, Cs_, l1_ratios_, best_score_, scores_
_Generalized | - | alpha_, l1_ratio_, alphas_, best_score_
GeneralizedLinearRegressorCV | - | scores_
ElasticNetCV | - | mse_path_
KMeans | - | cluster_centers_, labels_, inertia_
MiniBatchKMeans | - | n_steps_
SpectralEmbedding | - | embedding_, eigenvalues_, affinity_matrix_, n_neighbors_, gamma_
MDS | - | embedding_, stress_, stress_1_, point_stress_, dissimilarity_matrix_
_Axes | - | components_, singular_values_, explained_variance_, explained_variance_ratio_, scale_
_Principal | - | mean_, noise_variance_, n_components_
PCA | - | n_samples_
IncrementalPCA | - | var_, n_samples_seen_, batch_size_
_Recommender | - | row_factors_, column_factors_, row_biases_, column_biases_, mean_, l2_, user_names_,
    item_names_
_Topics | - | components_
NMF | - | n_components_, reconstruction_err_
LatentDirichletAllocation | - | doc_topic_prior_, topic_word_prior_, exp_dirichlet_component_, bound_,
    n_batch_iter_, random_state_
"""

ATTRIBUTES = """
n_features_in_ | int | The columns of X.
feature_names_in_ | array of shape (n_features_in_,) | Their names, where X had text for names.
n_iter_ | int | The iterations.
LogisticRegression.n_iter_ | array of shape (1,) | The iterations.
converged_ | bool | Whether the result is known to be as near to the optimum as tol asks.
objective_ | float | What was minimised, at the result.
optimality_gap_ | float | How far the objective is above its least value at most; inf where nothing says
    so.
report_ | Report | What the run did: residual, figures, solver, warnings, and `history`, an array for each
    column of its trace.
device_ | str | Where the fit ran.
eigenvalues_ | array of shape (n_components + 1,) | The normalised Laplacian's, ascending, with the first.
affinity_matrix_ | array or sparse matrix of shape (n_samples, n_samples) | The weights of the graph.
n_neighbors_ | int | How many neighbours were taken, of affinity="nearest_neighbors".
gamma_ | float | The gamma of affinity="rbf".
coef_ | array of shape (n_features,), or (n_targets, n_features) | The coefficients; predictions follow
    them as they are now.
_Classifier.coef_ | array of shape (1, n_features) or (n_classes, n_features) | The coefficients;
    predictions follow them as they are now.
intercept_ | float, or array of shape (n_targets,) | The intercept; 0 without one.
_Classifier.intercept_ | array of shape (1,) or (n_classes,) | The intercepts; 0 without one.
rank_ | int or None | The rank of X, centred under an intercept; None where it was not determined.
singular_ | array of shape (min(n_samples, n_features),) | The singular values of X, where
    LinearRegression has them.
solver_ | str | The solver that ran.
standard_errors_ | array of shape (n_features,) | The coefficients' standard errors, with
    standard_errors=True.
intercept_error_ | float | The intercept's standard error.
power_ | float | The power that was found, with power="estimate".
parameter_ | float | The parameter of the family that was found, with parameter="estimate".
dual_gap_ | float, or array of shape (n_targets,) | optimality_gap_ over the weight of the rows.
sparse_coef_ | sparse matrix of shape (n_targets, n_features) | coef_ as a sparse matrix.
classes_ | array of shape (n_classes,) | The classes in ascending order.
alpha_ | float | The alpha that was best.
RidgeCV.alpha_ | float, or array of shape (n_targets,) | The alpha that was best; with alpha_per_target one
    for each target.
C_ | float | The C that was best.
l1_ratio_ | float | The l1_ratio that was best.
Cs_ | array of shape (n_cs,) | The values of C tried.
l1_ratios_ | array of shape (n_l1_ratios,) | The values of l1_ratio tried.
alphas_ | array of shape (n_alphas,) or (n_l1_ratio, n_alphas) | The values of alpha tried, from the
    largest.
best_score_ | float | The mean score of the best, over the folds.
scores_ | array of shape (n_folds, n_l1_ratio, n_alphas) | The scores of the rows held out.
RidgeCV.scores_ | array of shape (n_folds, n_alphas), without folds (1, n_alphas) | The scores of the rows
    held out.
LogisticRegressionCV.scores_ | array of shape (n_folds, n_l1_ratios, n_cs) | The scores of the rows held
    out.
cv_results_ | array of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas) | The errors or
    predictions of the rows left out, with store_cv_results.
levels_ | dict | The levels of each text column.
means_ | dict | What missing numbers are filled with.
schema_ | str | The columns as a model file has them.
mse_path_ | array of shape (n_alphas, n_folds) or (n_l1_ratio, n_alphas, n_folds) | The mean squared
    errors of the rows held out.
cluster_centers_ | array of shape (n_clusters, n_features) | The centres.
labels_ | array of shape (n_samples,) | The nearest centre of each row.
inertia_ | float | The sum of squared distances of the rows from their nearest centres.
n_steps_ | int | Batches so far.
MiniBatchKMeans.n_iter_ | int | The passes over X that its batches are, rounded up.
embedding_ | array of shape (n_samples, n_components) | The layout.
_Axes.components_ | array of shape (n_components, n_features) | The right singular vectors, or axes; the
    largest entry of each is positive.
singular_values_ | array of shape (n_components,) | The singular values, from the largest.
explained_variance_ | array of shape (n_components,) | The variance of the rows' coordinates.
explained_variance_ratio_ | array of shape (n_components,) | The same over the variance of all columns.
scale_ | array of shape (n_features,), or None | What columns are divided by, with standardize=True.
_Axes.mean_ | array of shape (n_features,) | The columns' means.
noise_variance_ | float | The mean of the variances that the components leave out.
_Axes.n_components_ | int | How many components.
n_samples_ | int | The rows of X.
var_ | array of shape (n_features,) | The columns' variances.
n_samples_seen_ | int | The rows so far.
batch_size_ | int | The rows of a batch.
stress_ | float | The sum of squared differences over the pairs, or Stress-1 (normalized_stress).
stress_1_ | float | Stress-1.
point_stress_ | array of shape (n_samples,) | The stress of each point.
dissimilarity_matrix_ | array of shape (n_samples, n_samples) | What was laid out, where X held no points.
user_names_, item_names_ | array of objects, or None | The names of the rows and columns.
row_factors_ | array of shape (n_rows, n_components) | The factors of the rows (users).
column_factors_ | array of shape (n_columns, n_components) | The factors of the columns (items).
row_biases_ | array of shape (n_rows,) | The biases of the rows.
column_biases_ | array of shape (n_columns,) | The biases of the columns.
mean_ | float | The mean of the entries; 0 without biases.
l2_ | float | The penalty that held.
components_ | array of shape (n_components, n_features) | The parts, or topics.
n_components_ | int | How many.
reconstruction_err_ | float | The root of twice the divergence, without a prior.
doc_topic_prior_ | float, or array of shape (n_components,) | The prior of the documents' topics that
    held.
topic_word_prior_ | float | The prior of the topics' words that held.
exp_dirichlet_component_ | array of shape (n_components, n_features) | exp(E log phi) of the topics.
bound_ | float | The perplexity by the bound, of the documents of fit.
n_batch_iter_ | int | Batches so far.
random_state_ | RandomState | Where random numbers came from.
"""

RETURNS = """
mmchain.returns | array of shape (n_features,) or (n_features, k) | alpha X^T (v * (X y)) + beta z.
multiply.returns | array of shape (m,) or (m, k) | A B; with transposed A^T B, of n rows.
stream.returns | Matrix, or (Matrix, array of shape (n_samples,)) | The rows, and of pairs their targets.
spmm.returns | array of shape (m,) or (m, k) | S B; with transposed S^T B, of n rows.
sddmm.returns | sparse matrix of shape (m, n) | With entries where S has them.
batch_reduce.returns | array of shape (count,) | A number for each row or piece.
batch_scale.returns | array or sparse matrix, as X | The scaled rows or pieces.
pagerank.returns | Ranking | `scores`, by node as the graph was given or an array of shape (n,) or (n, k), and
    `report`.
hits.returns | HubsAndAuthorities | `hubs` of shape (m,), `authorities` of shape (n,), or by node, and
    `report`.
enet_path.returns | tuple of three or four | alphas (n_alphas,) from the largest, coefs (n_features,
    n_alphas), or (n_targets, n_features, n_alphas), dual_gaps, by how much each objective is above its
    least value at most, and n_iters with return_n_iter.
lasso_path.returns | tuple of three arrays | alphas (n_alphas,), coefs (n_features, n_alphas), dual_gaps
    (n_alphas,).
read.returns | Data | `X`, `y`, `feature_names`, `warnings`, `weights`, `offset`, `groups`; None what is
    not there.
devices.returns | list of dict | A row for each device: name, description, memory, whether it is usable.
doctor.returns | list of dict | A row for each thing that was looked for.
explain.returns | list of dict | A row for each device: its estimated seconds, and which is chosen.
tune.returns | list of dict | A row for each plan, fastest first.
kernels.returns | list of str | Programs as "FILE TYPE DEFINES".
build_kernels.returns | int | The kernels in the pack.
device.returns | Device | The device, opened once in a process.
matrix.returns | Matrix | The matrix; one that lies on the device already is itself.
processes.returns | context manager | Gives the Device to the first process, None to the others.
results_on_device.returns | context manager | Arrays are Matrix objects within it.
"""
