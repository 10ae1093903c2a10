/* The option table. An option has the same name, letter and meaning in every verb that takes it. What the
 * library's registry tells of an algorithm has no row here. */
#include "commands.h"
#include "options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const option_group_names[GROUP_COUNT] = {"Model", "Data", "Device", "Output"};

#define BIT(verb) VERB_BIT(verb)
#define CLASSIFIES (BIT(LOGREG) | BIT(SVM))
#define TRAINS (BIT(LINREG) | BIT(GLM) | CLASSIFIES)
#define JUDGES (BIT(PREDICT) | BIT(EVALUATE) | BIT(VERIFY))
#define OTHERS BIT(ALGORITHM)
#define SOLVES (TRAINS | OTHERS)
#define SHAPED (BIT(EXPLAIN) | BIT(TUNE))
#define ON_MODEL (JUDGES | BIT(STATISTICS))
#define LABELLED (TRAINS | ON_MODEL | BIT(INFO) | BIT(CONVERT) | BIT(EXPLAIN))
#define TABLES (TRAINS | BIT(INFO) | BIT(CONVERT) | BIT(EXPLAIN))
#define WEIGHTED (TRAINS | BIT(WEIGHS) | ON_MODEL)
#define OFFSETS (BIT(GLM) | ON_MODEL)
#define READS (LABELLED | OTHERS | BIT(RECOMMEND))
#define ENTRIES (READS | BIT(PRODUCTS))
#define LISTS (BIT(LINKS) | BIT(RECOMMEND))
#define COMPUTES (EVERY & ~(SPEAKS | BIT(KERNELS)))
#define TYPED (COMPUTES & ~(BIT(DEVICES) | BIT(DOCTOR) | BIT(COEFFICIENTS)))
#define ON_CPU (BIT(INFO) | BIT(CONVERT) | BIT(PRODUCTS))
#define PREDICTS (BIT(PREDICT) | BIT(EVALUATE))
#define SUMS (COMPUTES & ~(BIT(INFO) | BIT(COEFFICIENTS) | BIT(CONVERT) | BIT(DOCTOR)))
#define SHARED (SOLVES | JUDGES)
#define DRAWS (TRAINS | BIT(RANDOM) | BIT(TUNE))
#define EVERY EVERY_VERB
#define AT(field) .offset = offsetof(struct settings, field)
#define OUTPUTS "auto|libsvm|mtx|csv|npy|npz|packed"
#define WAYS "error|drop|mean|indicator"
#define OF_MISSING                                                                                           \
    "CSV: what becomes of missing values. drop leaves the row out; mean takes the column's mean, which "     \
    "the model remembers, in each fold of --cv that of the rows that train; indicator adds a feature "       \
    "\"COLUMN missing\" to that. Missing text is a level of its own, or an error where error is given."
#define OF_DEVICE                                                                                            \
    "auto (where the work is expected to end first; says which), cpu, cuda, cuda:1, opencl, or device D "    \
    "of platform P as opencl:P.D. Several, which share the rows: cuda:all, cuda:0,1 or cpu,cuda:0. Only "    \
    "auto falls back."
#define OF_TYPE "Numbers of 32 or 64 bits. f32 halves memory and time, f64 gives twice the digits."
#define AS_NAMED ", as its name says: SVG, or PNG in .png. - is standard output."
#define BY_METRIC "The metric by which --cv and a path choose; auc is for two classes."

/* Options of the registry of which a path can be given: the registry's text comes first. */
/* clang-format off */
const struct option tool_paths[] = {
    {.name = "l2", .kind = OPTION_RANGE, .group = GROUP_MODEL, .verbs = TRAINS, .value = "NUMBER",
     .standard = "0", .least = 0, .most = INFINITY, AT(l2),
     .help = "FROM:TO:COUNT is a path of values, each the same factor from the next, and A,B,C one of "
             "these values."},
    {.name = "l1", .kind = OPTION_RANGE, .group = GROUP_MODEL, .verbs = BIT(LOGREG) | BIT(GLM),
     .value = "NUMBER", .standard = "0", .least = 0, .most = INFINITY, AT(l1),
     .help = "FROM:TO:COUNT and A,B,C are paths, as with --l2."},
};
/* clang-format on */
const int tool_path_count = sizeof tool_paths / sizeof *tool_paths;

/* clang-format off */
const struct option tool_options[] = {
    {.name = "C", .kind = OPTION_RANGE, .group = GROUP_MODEL, .verbs = CLASSIFIES, .value = "NUMBER",
     .least = 0, .most = INFINITY, AT(C),
     .help = "The penalty as LIBLINEAR and scikit-learn give it, the weight of the losses: l2 is 1/C for "
             "logreg, 1/(2C) for svm."},
    {.name = "class-weight", .kind = OPTION_TEXT, .group = GROUP_MODEL, .verbs = CLASSIFIES,
     .value = "WEIGHTS", .choices = "balanced", AT(class_weight),
     .help = "Multiply the rows of a class by a weight: LABEL=WEIGHT,LABEL=WEIGHT, or balanced, which "
             "gives all classes the same total."},
    {.name = "max-classes", .kind = OPTION_INTEGER, .group = GROUP_MODEL, .verbs = CLASSIFIES, .value = "N",
     .standard = SPELT(CLASSES_MOST), .least = 2, .most = 65536, AT(max_classes),
     .help = "More classes of a target that is numbers are an error, as it is probably a measurement."},
    {.name = "metric", .kind = OPTION_CHOICE, .group = GROUP_MODEL, .verbs = BIT(LINREG), .value = "METRIC",
     .choices = "rmse|mae|r2", .standard = "rmse", AT(metric),
     .help = BY_METRIC},
    {.name = "metric", .kind = OPTION_CHOICE, .group = GROUP_MODEL, .verbs = BIT(LOGREG), .value = "METRIC",
     .choices = "log_loss|brier|accuracy|auc", .standard = "log_loss", AT(metric),
     .help = BY_METRIC},
    {.name = "metric", .kind = OPTION_CHOICE, .group = GROUP_MODEL, .verbs = BIT(GLM), .value = "METRIC",
     .choices = "mean_deviance|deviance|rmse|mae|r2|log_loss|brier|accuracy|auc", .standard = "mean_deviance",
     AT(metric),
     .help = BY_METRIC " The last four are of --family binomial."},
    {.name = "metric", .kind = OPTION_CHOICE, .group = GROUP_MODEL, .verbs = BIT(SVM), .value = "METRIC",
     .choices = "accuracy|auc|rmse|mae|r2", .standard = "accuracy, of --regression rmse", AT(metric),
     .help = BY_METRIC},
    {.name = "cv", .kind = OPTION_INTEGER, .group = GROUP_MODEL, .verbs = TRAINS, .value = "K", .least = 2,
     .most = 1000000, AT(folds),
     .help = "K-fold cross-validation, for each value of a path; the model is then fitted to all rows with "
             "the value that --select says. Folds are random (--seed) and have their share of each class, "
             "or of low and high targets."},
    {.name = "groups", .kind = OPTION_TEXT, .group = GROUP_MODEL, .value = "COLUMN",
     .verbs = TRAINS | BIT(STATISTICS) | BIT(CONVERT), AT(groups),
     .help = "With --cv: rows with the same text in this column of a CSV file are in one fold, and the "
             "column is no feature. kiln statistics --errors cluster: they are a cluster."},
    {.name = "groups-file", .kind = OPTION_PATH, .group = GROUP_MODEL, .verbs = TRAINS | BIT(STATISTICS),
     .value = "FILE", AT(groups_file),
     .help = "With --cv, and kiln statistics --errors cluster: a file with the groups, one number for each "
             "row of the data."},
    {.name = "held-out", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .verbs = TRAINS, .value = "FILE",
     AT(held_out),
     .help = "With --cv: write for each row its fold, target and what was predicted while it was held out, "
             "with the value that --select says, as CSV."},
    {.name = "select", .kind = OPTION_CHOICE, .group = GROUP_MODEL, .verbs = TRAINS, .value = "RULE",
     .choices = "best|one-se", .standard = "best", AT(select),
     .help = "With --cv: the value with the best mean, or the strongest penalty within one standard error "
             "of it."},
    {.name = "warm-start", .kind = OPTION_PATH, .group = GROUP_MODEL, .verbs = TRAINS, .value = "MODEL",
     AT(warm_start),
     .help = "Start from this model instead of from zero; the data are encoded as its training data were. "
             "The model is only a start: the same optimum to the tolerance, not the same digits."},
    {.name = "warm-start", .kind = OPTION_PATH, .group = GROUP_MODEL, .verbs = BIT(STARTS), .value = "MODEL",
     AT(warm_start),
     .help = "Start from this model of the same algorithm, whose data had the same rows and columns."},
    {.name = "checkpoint", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .verbs = SOLVES, .value = "FILE",
     AT(checkpoint),
     .help = "Keep the run's state in FILE every so often, and when it is interrupted, so that --resume "
             "can go on from it. The file is replaced as a whole."},
    {.name = "checkpoint-every", .kind = OPTION_POSITIVE, .group = GROUP_OUTPUT, .verbs = SOLVES,
     .value = "SECONDS", .standard = "600", .least = 0, .most = 1e9, AT(checkpoint_every),
     .help = "With --checkpoint: the time between two writes."},
    {.name = "resume", .kind = OPTION_PATH, .group = GROUP_MODEL, .verbs = SOLVES, .value = "FILE",
     AT(resume),
     .help = "Go on from a checkpoint, with the same data and options; with --deterministic, to the same "
             "bits as without the stop."},
    {.name = "probabilities", .kind = OPTION_FLAG, .group = GROUP_OUTPUT, .verbs = BIT(PREDICT),
     AT(probabilities),
     .help = "Print the probability of each class (logreg) instead of the label."},
    {.name = "decision", .kind = OPTION_FLAG, .group = GROUP_OUTPUT, .verbs = BIT(PREDICT), AT(decision),
     .help = "Print the linear predictor x.w + b, for glm with the offset, instead of labels or means."},

    {.name = "target", .kind = OPTION_TEXT, .group = GROUP_DATA, .verbs = LABELLED, .value = "COLUMN",
     AT(target),
     .help = "CSV: the name of the column to predict; several are separated by commas. For columns without "
             "names, as in npy, give the number, from 1 on, or -1 for the last."},
    {.name = "target", .kind = OPTION_TEXT, .group = GROUP_DATA, .verbs = LISTS, .value = "COLUMN",
     AT(target),
     .help = "Lists of links or ratings: the column with the vertex that a link leads to, or with the item."},
    {.name = "source", .kind = OPTION_TEXT, .group = GROUP_DATA,
     .verbs = LISTS | BIT(VERIFY) | BIT(INFO) | BIT(CONVERT) | BIT(EXPLAIN), .value = "COLUMN", AT(source),
     .help = "Lists of links or ratings: the column with the vertex that a link comes from, or with the "
             "user: its name in the header, or its number, from 1 on, or -1 for the last. --target is "
             "where a link leads, or the item."},
    {.name = "weight", .kind = OPTION_TEXT, .group = GROUP_DATA,
     .verbs = LISTS | BIT(VERIFY) | BIT(INFO) | BIT(CONVERT) | BIT(EXPLAIN), .value = "COLUMN", AT(weight),
     .help = "Lists of links or ratings: the column with the weight of a link, or with the rating, as "
             "--source."},
    {.name = "undirected", .kind = OPTION_FLAG, .group = GROUP_DATA,
     .verbs = BIT(LEADS) | BIT(INFO) | BIT(CONVERT) | BIT(EXPLAIN), AT(undirected),
     .help = "Lists of links: each leads both ways."},
    {.name = "target-file", .kind = OPTION_PATH, .group = GROUP_DATA, .verbs = LABELLED, .value = "FILE",
     AT(target_file),
     .help = "Matrix Market, npy, npz: a file with the targets, one row for each row of the data."},
    {.name = "weights", .kind = OPTION_TEXT, .group = GROUP_DATA, .value = "COLUMN",
     .verbs = WEIGHTED | BIT(CONVERT), AT(weights),
     .help = "CSV, npy: the column with the weight of each row, not negative."},
    {.name = "weights-file", .kind = OPTION_PATH, .group = GROUP_DATA, .verbs = WEIGHTED, .value = "FILE",
     AT(weights_file),
     .help = "A file with the weights, one number for each row of the data."},
    {.name = "offset", .kind = OPTION_TEXT, .group = GROUP_DATA, .value = "COLUMN",
     .verbs = OFFSETS | BIT(CONVERT), AT(offset),
     .help = "CSV, npy: the column with a known part of each row's linear predictor (glm)."},
    {.name = "offset-file", .kind = OPTION_PATH, .group = GROUP_DATA, .verbs = OFFSETS, .value = "FILE",
     AT(offset_file),
     .help = "A file with the offsets, one number for each row of the data."},
    {.name = "features", .kind = OPTION_TEXT, .group = GROUP_DATA, .verbs = TABLES | BIT(ROWS),
     .value = "COLUMNS", AT(features),
     .help = "CSV: only these columns are features; names are separated by commas, here and in the next "
             "four."},
    {.name = "ignore", .kind = OPTION_TEXT, .group = GROUP_DATA, .verbs = TABLES | BIT(ROWS),
     .value = "COLUMNS", AT(ignore),
     .help = "CSV: these columns are not features: names of rows, dates, values that are not known when "
             "predicting."},
    {.name = "categorical", .kind = OPTION_TEXT, .group = GROUP_DATA, .verbs = TABLES | BIT(ROWS),
     .value = "COLUMNS", AT(categorical),
     .help = "CSV: these columns are text, each value a level, though they look like numbers or like "
             "missing values."},
    {.name = "numeric", .kind = OPTION_TEXT, .group = GROUP_DATA, .verbs = TABLES | BIT(ROWS),
     .value = "COLUMNS", AT(numeric),
     .help = "CSV: these columns are numbers; other values are errors."},
    {.name = "reference", .kind = OPTION_TEXT, .group = GROUP_DATA, .verbs = TABLES, .value = "COLUMN=LEVEL",
     AT(reference),
     .help = "CSV: the level of a text column that gets no coefficient, with which the others are "
             "compared; several are separated by commas."},
    {.name = "interact", .kind = OPTION_TEXT, .group = GROUP_DATA, .verbs = TABLES, .value = "COLUMN:COLUMN",
     AT(interact),
     .help = "CSV: each pair of levels of these two text columns that occurs is one more feature, but those "
             "with a --reference level; several pairs of columns are separated by commas."},
    {.name = "missing", .kind = OPTION_CHOICE, .group = GROUP_DATA,
     .verbs = (TABLES & ~BIT(INFO)) | BIT(ROWS), .value = "WAY", .choices = WAYS,
     .standard = "error, text a level", AT(missing),
     .help = OF_MISSING},
    {.name = "missing", .kind = OPTION_CHOICE, .group = GROUP_DATA, .verbs = BIT(INFO), .value = "WAY",
     .choices = WAYS, .standard = "mean", AT(missing),
     .help = OF_MISSING},
    {.name = "missing-words", .kind = OPTION_TEXT, .group = GROUP_DATA, .verbs = TABLES | BIT(ROWS),
     .value = "WORDS", AT(missing_words),
     .help = "CSV: words that mean \"missing\", separated by commas, beside the empty field, NA, NaN, null "
             "and None."},
    {.name = "decimal-comma", .kind = OPTION_FLAG, .group = GROUP_DATA, .verbs = LABELLED | BIT(ROWS),
     AT(decimal_comma),
     .help = "CSV: 1,5 is one and a half."},
    {.name = "unseen", .kind = OPTION_CHOICE, .group = GROUP_DATA, .verbs = JUDGES, .value = "WAY",
     .choices = "error|zero|reference", .standard = "zero", AT(unseen),
     .help = "CSV: what a level that training has not seen is: an error, no level, or the reference level."},
    {.name = "extra-columns", .kind = OPTION_CHOICE, .group = GROUP_DATA, .verbs = JUDGES | BIT(RECOMMEND),
     .value = "WAY", .choices = "ignore|error", .standard = "ignored with a warning", AT(extra_columns),
     .help = "What columns that the model does not know are."},
    {.name = "max-columns", .kind = OPTION_INTEGER, .group = GROUP_DATA, .verbs = LABELLED | BIT(ROWS),
     .value = "N", .standard = "100000", .least = 1, .most = 536870911, AT(max_columns),
     .help = "CSV: more columns are an error, as memory is many times that of a line of commas."},
    {.name = "max-levels", .kind = OPTION_INTEGER, .group = GROUP_DATA, .verbs = LABELLED | BIT(ROWS),
     .value = "N", .standard = "1000000", .least = 1, .most = 2147483646, AT(max_levels),
     .help = "CSV: more levels of a text column are an error."},
    {.name = "max-name", .kind = OPTION_INTEGER, .group = GROUP_DATA, .verbs = LABELLED | BIT(ROWS),
     .value = "BYTES", .standard = "4096", .least = 1, .most = 67108864, AT(max_name),
     .help = "CSV: longer names of columns and levels are an error."},
    {.name = "format", .kind = OPTION_CHOICE, .group = GROUP_DATA, .verbs = ENTRIES, .value = "FORMAT",
     .choices = formats_read, .standard = "auto", AT(format),
     .help = "Format of the input; auto detects it from content and name. All formats are also read "
             "through gzip and zstd."},
    {.name = "parts", .kind = OPTION_TEXT, .group = GROUP_DATA, .verbs = SHARED, .value = "PATTERN",
     AT(parts),
     .help = "Data in several files, read as one: those that the pattern names, in quotes as --parts "
             "'part-*.npz', in the order of their names."},
    {.name = "to", .kind = OPTION_CHOICE, .group = GROUP_DATA, .verbs = BIT(CONVERT) | BIT(PRODUCTS),
     .value = "FORMAT", .choices = OUTPUTS, .standard = "auto", AT(to),
     .help = "Format of the output; auto detects it from its name."},
    {.name = "targets-to", .kind = OPTION_OUTPUT, .group = GROUP_DATA, .verbs = BIT(CONVERT), .value = "FILE",
     AT(targets_to),
     .help = "Write the targets to a file of their own: npz, npy and mtx have no place for them."},
    {.name = "zero-based", .kind = OPTION_FLAG, .group = GROUP_DATA, .verbs = ENTRIES, AT(zero_based),
     .help = "LIBSVM: feature indices count from 0, as LightGBM writes them. Without it they count from 1."},
    {.name = "vocabulary", .kind = OPTION_PATH, .group = GROUP_DATA, .verbs = READS, .value = "FILE",
     AT(vocabulary),
     .help = "Names of the columns, a line each, for data without names. Beside docword.NAME.txt "
             "vocab.NAME.txt is found."},
    {.name = "map", .kind = OPTION_FLAG, .group = GROUP_DATA,
     .verbs = TRAINS | BIT(PREDICT) | BIT(EVALUATE) | BIT(PASSES) | BIT(CONVERT) | BIT(VERIFY), AT(map),
     .help = "Leave the data in their file and read them at each pass, so that they need not fit into "
             "memory: packed files, uncompressed .npy by rows, or .npz in CSR. Text, and what is compressed "
             "or wider than --type, go to a temporary file in TMPDIR, else in /var/tmp."},
    {.name = "allow-nonfinite", .kind = OPTION_FLAG, .group = GROUP_DATA, .verbs = ENTRIES,
     AT(allow_nonfinite),
     .help = "Accept NaN and infinity in the data. Without it they are errors."},
    {.name = "strict", .kind = OPTION_FLAG, .group = GROUP_DATA, .verbs = ENTRIES & ~SOLVES, AT(strict),
     .help = "Treat duplicate entries, which would be merged, as errors."},
    {.name = "strict", .kind = OPTION_FLAG, .group = GROUP_DATA, .verbs = SOLVES, AT(strict),
     .help = "Treat duplicate entries, which would be merged, as errors; and end with exit code 4 if "
             "training does not converge, with 6 if more than 5 % over --memory was held."},

    {.name = "rows", .kind = OPTION_INTEGER, .group = GROUP_DATA, .verbs = SHAPED, .value = "N", .least = 1,
     .most = 9e18, AT(rows),
     .help = "Rows of X."},
    {.name = "columns", .kind = OPTION_INTEGER, .group = GROUP_DATA, .verbs = SHAPED, .value = "N",
     .least = 1, .most = 2147483647, AT(columns),
     .help = "Columns of X."},
    {.name = "nnz", .kind = OPTION_INTEGER, .group = GROUP_DATA, .verbs = SHAPED, .value = "N",
     .standard = "dense", .least = 1, .most = 9e18, AT(nnz),
     .help = "Entries of X, which is sparse then."},
    {.name = "k", .kind = OPTION_INTEGER, .group = GROUP_DATA, .verbs = SHAPED, .value = "N", .standard = "1",
     .least = 1, .most = 65536, AT(k),
     .help = "Columns of y; of sddmm those of A and B."},
    {.name = "gpus", .kind = OPTION_INTEGER, .group = GROUP_DATA, .verbs = BIT(EXPLAIN), .value = "N",
     .least = 1, .most = 4096, AT(gpus),
     .help = "Of an algorithm: what it would take on 1 to N H200s of a machine; with --rows and --columns, "
             "without DATA."},
    {.name = "nodes", .kind = OPTION_INTEGER, .group = GROUP_DATA, .verbs = BIT(EXPLAIN), .value = "N",
     .least = 1, .most = 65536, AT(nodes),
     .help = "Of an algorithm: and on up to N such machines."},
    {.name = "skew", .kind = OPTION_CHOICE, .group = GROUP_DATA, .verbs = BIT(TUNE), .value = "SKEW",
     .choices = "uniform|zipf", .standard = "uniform", AT(skew),
     .help = "Columns of a sparse X equally likely, or popular in inverse proportion to their number."},
    {.name = "exhaustive", .kind = OPTION_FLAG, .group = GROUP_DATA, .verbs = BIT(TUNE), AT(exhaustive),
     .help = "Measure every plan, not only those that are predicted to be the fastest."},

    {.name = "start", .kind = OPTION_FLAG, .group = GROUP_DEVICE, .verbs = BIT(DEVICES), AT(start),
     .help = "Start the device, run a pass over a small matrix there, and say how long that took."},
    {.name = "time-limit", .kind = OPTION_POSITIVE, .group = GROUP_DEVICE,
     .verbs = BIT(DEVICES) | BIT(DOCTOR), .value = "SECONDS", .standard = SPELT(DRIVER_SECONDS), .least = 0,
     .most = 1e9, AT(time_limit),
     .help = "How long a driver may take for an answer, or for one problem of doctor, the building of "
             "kernels included; and how long doctor goes on with problems whose kernels have to be built, "
             "which without it is 7 seconds."},
    {.name = "device", .kind = OPTION_TEXT, .group = GROUP_DEVICE, .verbs = COMPUTES & ~ON_CPU,
     .value = "DEVICE", .choices = "auto|cpu|cuda|opencl", .standard = "auto", AT(device),
     .help = OF_DEVICE},
    {.name = "device", .kind = OPTION_TEXT, .group = GROUP_DEVICE, .verbs = ON_CPU,
     .value = "DEVICE", .choices = "auto|cpu|cuda|opencl", .standard = "cpu", AT(device),
     .help = OF_DEVICE},
    {.name = "type", .kind = OPTION_CHOICE, .group = GROUP_DEVICE, .verbs = TYPED & ~PREDICTS,
     .value = "TYPE", .choices = "f32|f64", .standard = "f64", AT(type),
     .help = OF_TYPE},
    {.name = "type", .kind = OPTION_CHOICE, .group = GROUP_DEVICE, .verbs = PREDICTS,
     .value = "TYPE", .choices = "f32|f64", .standard = "the model's", AT(type),
     .help = OF_TYPE},
    {.name = "threads", .letter = 't', .kind = OPTION_INTEGER, .group = GROUP_DEVICE,
     .verbs = COMPUTES | BIT(KERNELS), .value = "N", .standard = "what this process may use", .least = 1,
     .most = 4096, AT(threads),
     .help = "CPU threads, for reading and for the device cpu."},
    {.name = "deterministic", .kind = OPTION_FLAG, .group = GROUP_DEVICE, .verbs = SUMS, AT(deterministic),
     .help = "The same bits from run to run, and on the CPU with any number of threads."},
    {.name = "mpi", .kind = OPTION_FLAG, .group = GROUP_DEVICE, .verbs = SHARED | BIT(PRODUCTS), AT(mpi),
     .help = "The processes that mpirun has started compute together, each on its part of the rows: mpirun "
             "-n 4 kiln ... --mpi. Devices are cpu, opencl, or cuda: a GPU each."},
    {.name = "memory", .kind = OPTION_BYTES, .group = GROUP_DEVICE, .verbs = COMPUTES, .value = "BYTES",
     .standard = "what the device has", .least = 1, .most = 9e18, AT(memory),
     .help = "Budget of device memory, on the CPU of the process; K, M, G and T stand for powers of 1024."},
    {.name = "seed", .kind = OPTION_INTEGER, .group = GROUP_DEVICE, .verbs = DRAWS, .value = "N",
     .standard = "0", .least = 0, .most = 9e18, AT(seed),
     .help = "Seed of random numbers, of the folds of --cv for instance."},

    {.name = "output", .letter = 'o', .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .verbs = SOLVES,
     .value = "FILE", AT(output),
     .help = "Write the model to FILE, as a whole or not at all. - is standard output."},
    {.name = "output", .letter = 'o', .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .verbs = BIT(PREDICT),
     .value = "FILE", AT(output),
     .help = "Write the predictions to FILE instead of standard output, as a whole or not at all."},
    {.name = "output", .letter = 'o', .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT,
     .verbs = BIT(COEFFICIENTS) | BIT(RECOMMEND), .value = "FILE", AT(output),
     .help = "Write the table to FILE instead of standard output, as a whole or not at all."},
    {.name = "output", .letter = 'o', .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .verbs = BIT(PRODUCTS),
     .value = "FILE", AT(output),
     .help = "Write the result to FILE, in the format that its name says, as a whole or not at all."},
    {.name = "output", .letter = 'o', .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .verbs = BIT(KERNELS),
     .value = "FILE", AT(output),
     .help = "build: the pack; list: the list, instead of standard output. As a whole or not at all."},
    {.name = "plot", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .verbs = TRAINS, .value = "FILE", AT(plot),
     .help = "Draw the scores of --cv, or the coefficients of a path, to FILE" AS_NAMED},
    {.name = "plot", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .verbs = BIT(EVALUATE), .value = "FILE",
     AT(plot),
     .help = "Draw ROC and calibration, or calibration and residuals, to FILE" AS_NAMED},
    {.name = "plot", .kind = OPTION_OUTPUT, .group = GROUP_OUTPUT, .verbs = BIT(TUNE), .value = "FILE",
     AT(plot),
     .help = "Draw measured and predicted times of the plans to FILE" AS_NAMED},
    {.name = "json", .kind = OPTION_FLAG, .group = GROUP_OUTPUT, .verbs = EVERY, AT(json),
     .help = "Print one JSON object on standard output, for errors too."},
    {.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .group = GROUP_OUTPUT, .verbs = EVERY, AT(quiet),
     .help = "Print only warnings and errors on standard error, no progress and no messages."},
    {.name = "verbose", .letter = 'v', .kind = OPTION_FLAG, .group = GROUP_OUTPUT, .verbs = EVERY,
     AT(verbose),
     .help = "Say more: every iteration, memory, transfers, kernels."},
    {.name = "help", .letter = 'h', .kind = OPTION_FLAG, .group = GROUP_OUTPUT, .verbs = EVERY, AT(help),
     .help = "Show this help."},
    {.name = "version", .letter = 'V', .kind = OPTION_FLAG, .group = GROUP_OUTPUT, .verbs = EVERY,
     AT(version),
     .help = "Show the version."},
};
/* clang-format on */
const int tool_option_count = sizeof tool_options / sizeof *tool_options;

/* "1e-5" for 0.00001, "1000" for 1000. */
static const char *short_number(char text[32], double value) {
    snprintf(text, 32, value < 1e-3 ? "%.0e" : "%g", value);
    char *zero = strstr(text, "e-0");
    if (zero) memmove(zero + 2, zero + 3, strlen(zero + 2));
    return text;
}

void option_choice(char text[STANDARD_ROOM], const char *choices, int64_t n) {
    while (--n > 0) choices += strcspn(choices, "|") + 1;
    snprintf(text, STANDARD_ROOM, "%.*s", (int)strcspn(choices, "|"), choices);
}

/* As the library's registry has it: "1e-12, of f32 1e-5". */
static bool registry_standard(char text[STANDARD_ROOM], const struct option *option,
                              const struct verb *verb) {
    const kiln_option *told = verb ? algorithm_option(verb->name, option->name) : NULL;
    if (!told || told->standard == 0) return false;
    if (told->kind == KILN_OPTION_CHOICE) {
        option_choice(text, told->choices, (int64_t)told->standard);
        return true;
    }
    char number[32];
    const int length = snprintf(text, STANDARD_ROOM, "%s", short_number(number, told->standard));
    if (told->standard_f32 != told->standard)
        snprintf(text + length, STANDARD_ROOM - (size_t)length, ", of f32 %s",
                 short_number(number, told->standard_f32));
    return true;
}

const char *option_standard(char text[STANDARD_ROOM], const struct option *option, const struct verb *verb) {
    if (registry_standard(text, option, verb)) return text;
    snprintf(text, STANDARD_ROOM, "%s", option->standard ? option->standard : "");
    return text;
}
