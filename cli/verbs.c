/* The verbs that are no algorithms. A new one is a row here, a bit in the options that it takes, and its
 * file; an algorithm has its row in its own file, in cli/algorithms. */
#include "verbs.h"

#include "options.h"
#include "recommend.h"

const struct verb tool_verbs[] = {
    {"predict", "MODEL DATA...", 2, MAX_ARGUMENTS, NULL, "Predict with a model",
     "Writes the model's prediction for each row of DATA, one row a line: numbers (linreg, "
     "glm, svm --regression; "
     "several targets are separated by spaces), or the label of the class (logreg, svm), or "
     "what --probabilities "
     "and --decision ask for. Numbers are the shortest decimals that read back to the same "
     "bits. With -o to a name in .csv there are a header and commas, to one in .npy an array of "
     "numbers.\n\n" DATA_FORMATS "\n\nColumns of a CSV file are found by name and encoded as in "
     "training. Where DATA has targets, the metrics follow on standard error: R2, RSS and RMSE, the deviance "
     "of glm, or accuracy, log loss, AUC and the table of true and predicted classes. With --json and no -o "
     "the object holds the predictions.",
     "kiln predict flights.kiln data/flights.csv.gz -o delays.txt\n"
     "kiln predict a9a.kiln test.svm --probabilities | head",
     verb_predict, .kinds = VERB_BIT(PREDICT)},
    {"evaluate", "MODEL DATA...", 2, MAX_ARGUMENTS, NULL, "Judge a model on data whose targets are known",
     "Predicts as kiln predict does and compares with the targets, weighted with --weights. Numbers are "
     "judged by R2, RMSE, MAE and the mean error, a glm also by the deviance and D2, the share of it that "
     "the model explains. Classes are judged by accuracy, its mean over the classes (balanced), F1, log "
     "loss, Brier's score, AUC (for several classes the mean of each against the rest), precision and recall "
     "of each class, and the table of true and predicted classes. The calibration puts rows into ten bins by "
     "their prediction, and says what was observed there.\n\nOf a topic model (lda, gap) it tells the "
     "perplexity of the documents, whose mixtures are found first, and how well each topic's ten best words "
     "go together in them: UMass and NPMI, whose windows are whole documents.\n\n--plot draws ROC and "
     "calibration, or calibration and residuals.\n\n" DATA_FORMATS,
     "kiln evaluate origin.kiln data/flights_test.csv.gz --plot origin.svg\n"
     "kiln evaluate claims.kiln next.csv --weights exposure --json",
     verb_evaluate, .kinds = VERB_BIT(EVALUATE)},
    {"statistics", "MODEL DATA...", 2, MAX_ARGUMENTS, NULL, "Say what is known of a model's coefficients",
     "On the data that a model of linreg, glm or logreg (of two classes) was trained on without a penalty: "
     "each coefficient with its standard error, t (z where the dispersion is known), p and an interval of "
     "--level; log-likelihood, AIC, BIC, deviances, dispersion and degrees of freedom. --errors hc0 to hc3 "
     "are robust against variances of any kind, --errors cluster --groups COLUMN also where rows belong "
     "together. --against tests a smaller model of the same data (F where the dispersion is estimated, else "
     "chi square), --residuals writes what each row is judged by. docs/statistics.md has the "
     "formulas.\n\n" DATA_FORMATS,
     "kiln statistics claims.kiln claims.csv --errors hc3\n"
     "kiln statistics claims.kiln claims.csv --errors cluster --groups region --level 0.9\n"
     "kiln statistics claims.kiln claims.csv --against small.kiln --residuals rows.csv --json",
     verb_statistics, .kinds = VERB_BIT(STATISTICS), .own = statistics_options,
     .own_count = STATISTICS_OPTIONS},
    {"verify", "MODEL DATA...", 2, MAX_ARGUMENTS, NULL,
     "Check the claims of a model against its training data",
     "Computes again what the model file claims, by slow reference code that shares nothing with training, "
     "and "
     "compares the two: the objective and the gradient's norm as the tolerance measures it; what the "
     "optimality gap must not be below; for svm the duality gap; for hits the eigenvalue and the change that "
     "one more iteration would make; for kmeans the inertia and how far the centres are from their rows' "
     "means. DATA are what the model was trained on, with the same --weights-file and "
     "--offset-file.\n\n" DATA_FORMATS "\n\nThe exit code is 0 if all claims hold, else 4.",
     "kiln verify flights.kiln data/flights.csv.gz\n"
     "kiln verify a9a.kiln a9a.svm.gz --json",
     verb_verify, .kinds = VERB_BIT(VERIFY)},
    {"info", "FILE...", 1, MAX_ARGUMENTS, NULL, "Describe a data file or a model",
     "For data: format, shape, stored entries, density, a histogram of row lengths, statistics of the "
     "targets, and how fast the file was read. For a model: algorithm, options, metrics, tensors, and the "
     "largest coefficients with the names of their columns. Standard input is taken for data.",
     "kiln info data/flights.csv.gz --target arr_delay\n"
     "kiln info flights.kiln --json",
     verb_info, .kinds = VERB_BIT(INFO)},
    {"recommend", "MODEL [RATINGS...]", 1, MAX_ARGUMENTS, NULL, "Recommend items by a factor model",
     "For --user, whom the model knows, lists the items with the highest predictions that the user has not "
     "rated. RATINGS is a file of users whom the model need not know: their factors are computed from these "
     "ratings (fold-in), and the best items that they have not rated are shown for each of them, or for "
     "--user. With --item the items are shown that are most like it, by the cosine of their factors.\n\n"
     "RATINGS are as for training: lines of user, item and rating. Items that the model does not know are "
     "left out with a warning. With -o a table goes to FILE, its fields separated by tabs: user (or like), "
     "item, score.",
     "kiln recommend ratings.kiln --user 196\n"
     "kiln recommend ratings.kiln --item 50 --top 5\n"
     "kiln recommend ratings.kiln new.csv -o best.tsv",
     verb_recommend, .kinds = VERB_BIT(RECOMMEND), .own = recommend_options, .own_count = RECOMMEND_OPTIONS,
     .tables = KILN_FILE_RATINGS},
    {"coefficients", "MODEL", 1, 1, NULL, "List all coefficients of a model",
     "Writes the coefficients of a linear model, one a line and separated by tabs: column of the data, "
     "level, class or target, coefficient, and, where the model was trained with --standard-errors, standard "
     "error, z, p and a 95 % interval. Reference levels have a line, whose coefficient is 0. With --json and "
     "without -o it prints one object.",
     "kiln coefficients origin.kiln | sort -t$'\\t' -k4 -g | tail\n"
     "kiln coefficients claims.kiln -o coefficients.tsv",
     verb_coefficients, .kinds = VERB_BIT(COEFFICIENTS)},
    {"convert", "IN OUT", 2, 2, NULL, "Convert data between formats",
     "Reads IN and writes OUT in the format that its name says (.svm .mtx .csv .npy .npz .kiln-data, with "
     ".gz "
     "compressed), as a whole or not at all. A - for OUT is standard output and needs --to. With --type f32 "
     "the numbers are rounded to 32 bits.\n\n.kiln-data is Kiln's own packed file: X in the fewest bytes "
     "that hold it, with targets, weights, groups, names and levels, and checksums. It is read many times "
     "faster than text, with --map where it lies.",
     "kiln convert train.svm.gz X.npz --targets-to y.npy\n"
     "kiln convert big.csv.gz big.kiln-data --target y --map --memory 1G\n"
     "kiln convert matrix.mtx - --to csv | head",
     verb_convert, .kinds = VERB_BIT(CONVERT)},
    {"mmchain", "X Y", 2, 2, NULL, "Compute alpha X^T (v .* (X y)) + beta z with one pass over X",
     "The product that linear models consist of, from files: X is m x n, sparse or dense; Y holds y, n x k; "
     "the result is n x k. X is read from memory once. Without -o it is computed and timed, and not "
     "kept.\n\nFiles are LIBSVM, Matrix Market, CSV, npy or npz, plain or through gzip or zstd; --format and "
     "--zero-based are about X.",
     "kiln mmchain X.npz y.npy -o w.npy\n"
     "kiln mmchain X.npz y.npy --v v.npy --z z.npy --alpha 2 --beta 0.5 --device cuda -o w.npy",
     verb_mmchain, .kinds = VERB_BIT(PRODUCTS), .own = mmchain_options, .own_count = MMCHAIN_OPTIONS},
    {"sddmm", "S A B", 3, 3, NULL, "Compute products of two dense matrices at the entries of a sparse one",
     "The sampled product that factor models consist of, from files: S is m x n and sparse, A m x k and B n "
     "x k are dense; the result has S's places and, of row i and column j, --kind of S's entry and the "
     "product of row i of A with row j of B. No m x n matrix is made. Without -o it is computed and timed, "
     "the sum is told, and the result is not kept.\n\nFiles are as for kiln mmchain; --format and "
     "--zero-based are about S.",
     "kiln sddmm S.mtx A.npy B.npy -o P.npz\n"
     "kiln sddmm ratings.npz users.npy items.npy --kind residual --type f32 --device cuda",
     verb_sddmm, .kinds = VERB_BIT(PRODUCTS), .own = sddmm_options, .own_count = SDDMM_OPTIONS},
    {"devices", "", 0, 0, NULL, "List the devices of this machine",
     "Prints a row for each device, usable or not, best first. Drivers are asked in processes of their own: "
     "one that crashes or does not answer is a row that says so. --device auto takes the device on which the "
     "work is expected to end first, but never a processor that is offered through OpenCL. A device that is "
     "not usable has the reason, and what to do. --start starts one of them and prints how long that took.",
     "kiln devices\nkiln devices --json\nkiln devices --start --device cuda", verb_devices,
     .kinds = VERB_BIT(DEVICES)},
    {"doctor", "", 0, 0, NULL, "Check what this machine has and lacks",
     "Says what was found of drivers, compilers and libraries that are looked for at run time, and for "
     "what is missing the command that installs it. Then each usable device computes small problems, one for "
     "each kind of kernel in f32 and f64, that are checked against plain loops, and its memory bandwidth is "
     "measured. Kernels are built for 7 seconds, or --time-limit, and the next run goes on; --device "
     "restricts this to one. A driver that crashes or does not answer is reported, and "
     "other devices are examined all the same. --verbose prints each problem. Exit code 0, or 1 if a usable "
     "device or a driver fails.",
     "kiln doctor\nkiln doctor --device cpu --json", verb_doctor, .kinds = VERB_BIT(DOCTOR)},
    {"kernels", "build|list", 1, 1, "build|list", "Build kernels for NVIDIA GPUs ahead of time",
     "build writes a pack: kernels for each architecture of --arch, which start at once where they would be "
     "built at first use. No GPU is needed, but NVRTC (pip install nvidia-cuda-nvrtc). The library takes a "
     "pack that KILN_KERNEL_PACK names, and kiln-kernels.pack beside the library or in the cache folder; it "
     "must be of the same version, belong to you or root, and nobody else may write to it. What it lacks is "
     "built as without it, and where it lacks nothing no NVRTC is needed.\n\n"
     "list writes the programs that this machine has built so far, one a line: run the commands that shall "
     "be fast on a machine with such a GPU, and build from that list. Kernels depend on the data's shape, on "
     "its type and on the kind of GPU.",
     "kiln kernels list -o mine.txt\n"
     "kiln kernels build --programs mine.txt --arch sm_90 -o kiln-kernels.pack\n"
     "KILN_KERNEL_PACK=$PWD/kiln-kernels.pack kiln logreg X.npy --target-file y.npy --device cuda",
     verb_kernels, .kinds = VERB_BIT(KERNELS), .own = kernels_options, .own_count = KERNELS_OPTIONS},
    {"explain", "WHAT [DATA...]", 1, MAX_ARGUMENTS, NULL /* commands.c */, "Say why Kiln does what it does",
     "kiln explain mmchain: the plans for a pass over an X of the given shape, which need not exist: kernel "
     "variant, threads that share a row (VS) and in a work-group (BS), work-groups that share a row (CL), "
     "tiles of X under way (ST), rows that a vector goes through (C), elements a thread holds (TL), rows a "
     "step, columns of y (K), occupancy, bytes, atomics and predicted time, and which one is taken.\n\n"
     "kiln explain sddmm: the plans for products of two factors of --k columns each, sampled at a sparse "
     "matrix of the given shape: whether rows of the first factor are kept or loaded ahead, threads that "
     "share a row (VS), entries a step (ROWS), numbers of each row taken in one pass (K).\n\n"
     "kiln explain batch: the ways to reduce --rows vectors of --columns elements each: a vector a thread, a "
     "few threads, a block or a looped block, in pieces (CL of them), or by tiles of ROWS vectors through "
     "on-chip memory.\n\n"
     "kiln explain linreg DATA (or another algorithm): what training on DATA is expected to take on each "
     "device: start, transfer, and the passes over X with what goes on beside them; --device auto takes the "
     "fastest. It takes all options of the algorithm, as --cv and paths make passes. The figures are "
     "measured and kept for a month (an hour, if the machine was busy with other things) in its profile in "
     "the cache folder. Iterations are as many as most data take, of the algorithm's standard solver. --gpus "
     "and --nodes add what groups of H200s would take, whether they are there or not.",
     "kiln explain mmchain --rows 500000 --columns 1024 --nnz 5000000\n"
     "kiln explain mmchain --rows 11000000 --columns 28 --device cuda --type f32\n"
     "kiln explain sddmm --rows 138000 --columns 27000 --nnz 15000000 --k 64 --device cuda --type f32\n"
     "kiln explain batch --rows 30000000 --columns 33 --device cuda --type f32\n"
     "kiln explain linreg data/flights.csv.gz --target arr_delay\n"
     "kiln explain logreg --rows 1000000000 --columns 28 --type f32 --gpus 8 --nodes 128",
     verb_explain, .kinds = VERB_BIT(EXPLAIN)},
    {"tune", "WHAT", 1, 1, "mmchain|sddmm|batch", "Measure the plans that Kiln chooses from",
     "Makes a random X of the given shape (places drawn twice are one entry) on the device, runs mmchain, "
     "sddmm, or the sums of a batch, with each of the plans that kiln explain lists, and prints measured "
     "beside predicted times, the rank of the model's choice, and what it loses to the best. Changes "
     "nothing. Of the plans those predicted fastest are measured, or with --exhaustive all.",
     "kiln tune mmchain --rows 500000 --columns 1024 --nnz 5000000 --skew zipf\n"
     "kiln tune mmchain --rows 11000000 --columns 28 --device cuda --exhaustive --plot plans.svg\n"
     "kiln tune sddmm --rows 138000 --columns 27000 --nnz 15000000 --k 64 --device cuda --exhaustive\n"
     "kiln tune batch --rows 30000000 --columns 33 --device cuda --exhaustive",
     verb_tune, .kinds = VERB_BIT(TUNE)},
    {"completion", "SHELL", 1, 1, "bash|zsh|fish", "Print completion for bash, zsh or fish",
     "Prints a completion script for SHELL: bash, zsh or fish.",
     "source <(kiln completion bash)\n"
     "kiln completion zsh > \"${fpath[1]}/_kiln\"\n"
     "kiln completion fish > ~/.config/fish/completions/kiln.fish",
     verb_completion, .kinds = VERB_BIT(COMPLETION)},
    {"man", "[VERB]", 0, 1, NULL /* commands.c */, "Print a man page",
     "Prints the man page of kiln or of one of its verbs, in roff for man(1).", "kiln man linreg | man -l -",
     verb_man, .kinds = VERB_BIT(MAN)},
    {"help", "[VERB]", 0, 1, NULL /* commands.c */, "Show help",
     "The same as kiln --help and kiln VERB --help.", "kiln help linreg", verb_help, .kinds = VERB_BIT(HELP)},
    {"version", "", 0, 0, NULL, "Show the version", "Prints the version of kiln.", "kiln version --json",
     verb_version, .kinds = VERB_BIT(VERSION)},
};

const int tool_verb_count = sizeof tool_verbs / sizeof *tool_verbs;

#define LINEAR (VERB_BIT(LINREG) | VERB_BIT(LOGREG) | VERB_BIT(GLM) | VERB_BIT(SVM))
#define TRAINED (LINEAR | VERB_BIT(ALGORITHM))
#define GIVEN_MODEL                                                                                          \
    (TRAINED | VERB_BIT(PREDICT) | VERB_BIT(EVALUATE) | VERB_BIT(RECOMMEND) | VERB_BIT(VERIFY) |             \
     VERB_BIT(STATISTICS) | VERB_BIT(INFO) | VERB_BIT(COEFFICIENTS))
#define GIVEN_DATA (GIVEN_MODEL | VERB_BIT(CONVERT) | VERB_BIT(EXPLAIN) | VERB_BIT(PRODUCTS))

const struct exit_meaning exit_meanings[] = {
    {0, "done", 0},
    {1, "internal error, or output that could not be written", 0},
    {2, "usage: unknown verb or option, bad value", 0},
    {3, "bad data: malformed, unusable or unreadable input", GIVEN_DATA},
    {4, "not converged with --strict (else 0 and a warning), or a claim does not hold",
     TRAINED | VERB_BIT(VERIFY)},
    {5, "the device that was asked for is not available, or was lost", ~SPEAKS},
    {6, "out of memory, of the host or of the device, or with --strict over --memory", ~SPEAKS},
    {7, "the model is unusable: missing, damaged, or not for these data", GIVEN_MODEL},
    {130, "interrupted; a model that was being trained is written as far as it is", ~SPEAKS},
};
const int exit_meaning_count = sizeof exit_meanings / sizeof *exit_meanings;
