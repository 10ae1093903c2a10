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
#define SUMS (COMPUTES & ~(BIT(INFO) | BIT(COEFFICIENTS) | BIT(CONVERT) | BIT(DOCTOR)))
#define SHARED (SOLVES | JUDGES)
#define DRAWS (TRAINS | BIT(RANDOM) | BIT(TUNE))
#define EVERY EVERY_VERB
#define AT(field) .offset = offsetof(struct settings, field)
#define FORMATS "auto|libsvm|mtx|csv|npy|npz|edges|docword|ratings"
#define OUTPUTS "auto|libsvm|mtx|csv|npy|npz"
#define ANY -INFINITY, INFINITY
#define AS_NAMED ", as its name says: SVG, or PNG in .png. - is standard output."
#define BY_METRIC "The metric by which --cv and a path choose; auc is for two classes."

/* Options of the registry of which a path can be given: the registry's text comes first. */
const struct option tool_paths[] = {
    {"l2", 0, OPTION_RANGE, GROUP_MODEL, TRAINS, "NUMBER", NULL, "0", 0, INFINITY,
     "FROM:TO:COUNT is a path of values, each the same factor from the next, and A,B,C one of these values.",
     AT(l2)},
    {"l1", 0, OPTION_RANGE, GROUP_MODEL, BIT(LOGREG) | BIT(GLM), "NUMBER", NULL, "0", 0, INFINITY,
     "FROM:TO:COUNT and A,B,C are paths, as with --l2.", AT(l1)},
};
const int tool_path_count = sizeof tool_paths / sizeof *tool_paths;

const struct option tool_options[] = {
    {"C", 0, OPTION_RANGE, GROUP_MODEL, CLASSIFIES, "NUMBER", NULL, NULL, 0, INFINITY,
     "The penalty as LIBLINEAR and scikit-learn give it, the weight of the losses: l2 is 1/C for logreg, "
     "1/(2C) for "
     "svm.",
     AT(C)},
    {"class-weight", 0, OPTION_TEXT, GROUP_MODEL, CLASSIFIES, "WEIGHTS", "balanced", NULL, ANY,
     "Multiply the rows of a class by a weight: LABEL=WEIGHT,LABEL=WEIGHT, or balanced, which gives all "
     "classes "
     "the same total.",
     AT(class_weight)},
    {"max-classes", 0, OPTION_INTEGER, GROUP_MODEL, CLASSIFIES, "N", NULL, SPELT(CLASSES_MOST), 2, 65536,
     "More classes of a target that is numbers are an error, as it is probably a measurement.",
     AT(max_classes)},
    {"metric", 0, OPTION_CHOICE, GROUP_MODEL, BIT(LINREG), "METRIC", "rmse|mae|r2", "rmse", ANY, BY_METRIC,
     AT(metric)},
    {"metric", 0, OPTION_CHOICE, GROUP_MODEL, BIT(LOGREG), "METRIC", "log_loss|brier|accuracy|auc",
     "log_loss", ANY, BY_METRIC, AT(metric)},
    {"metric", 0, OPTION_CHOICE, GROUP_MODEL, BIT(GLM), "METRIC",
     "mean_deviance|deviance|rmse|mae|r2|log_loss|brier|accuracy|auc", "mean_deviance", ANY,
     BY_METRIC " The last four are of --family binomial.", AT(metric)},
    {"metric", 0, OPTION_CHOICE, GROUP_MODEL, BIT(SVM), "METRIC", "accuracy|auc|rmse|mae|r2",
     "accuracy, of --regression rmse", ANY, BY_METRIC, AT(metric)},
    {"cv", 0, OPTION_INTEGER, GROUP_MODEL, TRAINS, "K", NULL, NULL, 2, 1000000,
     "K-fold cross-validation, for each value of a path; the model is then fitted to all rows with the value "
     "that "
     "--select says. Folds are random (--seed) and have their share of each class, or of low and high "
     "targets.",
     AT(folds)},
    {"groups", 0, OPTION_TEXT, GROUP_MODEL, TRAINS | BIT(STATISTICS), "COLUMN", NULL, NULL, ANY,
     "With --cv: rows with the same text in this column of a CSV file are in one fold, and the column is no "
     "feature. kiln statistics --errors cluster: they are a cluster.",
     AT(groups)},
    {"groups-file", 0, OPTION_PATH, GROUP_MODEL, TRAINS | BIT(STATISTICS), "FILE", NULL, NULL, ANY,
     "With --cv, and kiln statistics --errors cluster: a file with the groups, one number for each row of "
     "the data.",
     AT(groups_file)},
    {"held-out", 0, OPTION_OUTPUT, GROUP_OUTPUT, TRAINS, "FILE", NULL, NULL, ANY,
     "With --cv: write for each row its fold, target and what was predicted while it was held out, with the "
     "value that --select "
     "says, as CSV.",
     AT(held_out)},
    {"select", 0, OPTION_CHOICE, GROUP_MODEL, TRAINS, "RULE", "best|one-se", "best", ANY,
     "With --cv: the value with the best mean, or the strongest penalty within one standard error of it.",
     AT(select)},
    {"warm-start", 0, OPTION_PATH, GROUP_MODEL, TRAINS, "MODEL", NULL, NULL, ANY,
     "Start from this model instead of from zero; the data are encoded as its training data were. The model "
     "is only a start: the same optimum to the tolerance, not the same digits.",
     AT(warm_start)},
    {"warm-start", 0, OPTION_PATH, GROUP_MODEL, BIT(STARTS), "MODEL", NULL, NULL, ANY,
     "Start from this model of the same algorithm, whose data had the same rows and columns.",
     AT(warm_start)},
    {"checkpoint", 0, OPTION_OUTPUT, GROUP_OUTPUT, SOLVES, "FILE", NULL, NULL, ANY,
     "Keep the run's state in FILE every so often, and when it is interrupted, so that --resume can go on "
     "from it. The "
     "file is replaced as a whole.",
     AT(checkpoint)},
    {"checkpoint-every", 0, OPTION_POSITIVE, GROUP_OUTPUT, SOLVES, "SECONDS", NULL, "600", 0, 1e9,
     "With --checkpoint: the time between two writes.", AT(checkpoint_every)},
    {"resume", 0, OPTION_PATH, GROUP_MODEL, SOLVES, "FILE", NULL, NULL, ANY,
     "Go on from a checkpoint, with the same data and options; with --deterministic, to the same bits as "
     "without the "
     "stop.",
     AT(resume)},
    {"probabilities", 0, OPTION_FLAG, GROUP_OUTPUT, BIT(PREDICT), NULL, NULL, NULL, ANY,
     "Print the probability of each class (logreg) instead of the label.", AT(probabilities)},
    {"decision", 0, OPTION_FLAG, GROUP_OUTPUT, BIT(PREDICT), NULL, NULL, NULL, ANY,
     "Print the linear predictor x.w + b, for glm with the offset, instead of labels or means.",
     AT(decision)},

    {"target", 0, OPTION_TEXT, GROUP_DATA, LABELLED, "COLUMN", NULL, NULL, ANY,
     "CSV: the name of the column to predict; several are separated by commas. For columns without names, as "
     "in npy, give the number, from 1 on, or -1 for the last.",
     AT(target)},
    {"target", 0, OPTION_TEXT, GROUP_DATA, LISTS, "COLUMN", NULL, NULL, ANY,
     "Lists of links or ratings: the column with the vertex that a link leads to, or with the item.",
     AT(target)},
    {"source", 0, OPTION_TEXT, GROUP_DATA, LISTS | BIT(VERIFY) | BIT(INFO) | BIT(CONVERT) | BIT(EXPLAIN),
     "COLUMN", NULL, NULL, ANY,
     "Lists of links or ratings: the column with the vertex that a link comes from, or with the user: its "
     "name "
     "in the header, or its number, from 1 on, or -1 for the last. --target is where a link leads, or the "
     "item.",
     AT(source)},
    {"weight", 0, OPTION_TEXT, GROUP_DATA, LISTS | BIT(VERIFY) | BIT(INFO) | BIT(CONVERT) | BIT(EXPLAIN),
     "COLUMN", NULL, NULL, ANY,
     "Lists of links or ratings: the column with the weight of a link, or with the rating, as --source.",
     AT(weight)},
    {"target-file", 0, OPTION_PATH, GROUP_DATA, LABELLED, "FILE", NULL, NULL, ANY,
     "Matrix Market, npy, npz: a file with the targets, one row for each row of the data.", AT(target_file)},
    {"weights", 0, OPTION_TEXT, GROUP_DATA, WEIGHTED, "COLUMN", NULL, NULL, ANY,
     "CSV, npy: the column with the weight of each row, not negative.", AT(weights)},
    {"weights-file", 0, OPTION_PATH, GROUP_DATA, WEIGHTED, "FILE", NULL, NULL, ANY,
     "A file with the weights, one number for each row of the data.", AT(weights_file)},
    {"offset", 0, OPTION_TEXT, GROUP_DATA, OFFSETS, "COLUMN", NULL, NULL, ANY,
     "CSV, npy: the column with a known part of each row's linear predictor (glm).", AT(offset)},
    {"offset-file", 0, OPTION_PATH, GROUP_DATA, OFFSETS, "FILE", NULL, NULL, ANY,
     "A file with the offsets, one number for each row of the data.", AT(offset_file)},
    {"features", 0, OPTION_TEXT, GROUP_DATA, TABLES | BIT(ROWS), "COLUMNS", NULL, NULL, ANY,
     "CSV: only these columns are features; names are separated by commas, here and in the next four.",
     AT(features)},
    {"ignore", 0, OPTION_TEXT, GROUP_DATA, TABLES | BIT(ROWS), "COLUMNS", NULL, NULL, ANY,
     "CSV: these columns are not features: names of rows, dates, values that are not known when predicting.",
     AT(ignore)},
    {"categorical", 0, OPTION_TEXT, GROUP_DATA, TABLES | BIT(ROWS), "COLUMNS", NULL, NULL, ANY,
     "CSV: these columns are text, each value a level, though they look like numbers or like missing values.",
     AT(categorical)},
    {"numeric", 0, OPTION_TEXT, GROUP_DATA, TABLES | BIT(ROWS), "COLUMNS", NULL, NULL, ANY,
     "CSV: these columns are numbers; other values are errors.", AT(numeric)},
    {"reference", 0, OPTION_TEXT, GROUP_DATA, TABLES, "COLUMN=LEVEL", NULL, NULL, ANY,
     "CSV: the level of a text column that gets no coefficient, with which the others are compared; several "
     "are "
     "separated by commas.",
     AT(reference)},
    {"missing", 0, OPTION_CHOICE, GROUP_DATA, TABLES | BIT(ROWS), "WAY", "error|drop|mean|indicator",
     "error, text a level; info mean", ANY,
     "CSV: what becomes of missing values. drop leaves the row out; mean takes the column's mean, which the "
     "model "
     "remembers, in each fold of --cv that of the rows that train; indicator adds a feature \"COLUMN "
     "missing\" to that. Missing text is a level of its own, or an error where error is given.",
     AT(missing)},
    {"missing-words", 0, OPTION_TEXT, GROUP_DATA, TABLES | BIT(ROWS), "WORDS", NULL, NULL, ANY,
     "CSV: words that mean \"missing\", separated by commas, beside the empty field, NA, NaN, null and None.",
     AT(missing_words)},
    {"decimal-comma", 0, OPTION_FLAG, GROUP_DATA, LABELLED | BIT(ROWS), NULL, NULL, NULL, ANY,
     "CSV: 1,5 is one and a half.", AT(decimal_comma)},
    {"unseen", 0, OPTION_CHOICE, GROUP_DATA, JUDGES, "WAY", "error|zero|reference", "zero", ANY,
     "CSV: what a level that training has not seen is: an error, no level, or the reference level.",
     AT(unseen)},
    {"extra-columns", 0, OPTION_CHOICE, GROUP_DATA, JUDGES | BIT(RECOMMEND), "WAY", "ignore|error",
     "ignored with a warning", ANY, "What columns that the model does not know are.", AT(extra_columns)},
    {"max-columns", 0, OPTION_INTEGER, GROUP_DATA, LABELLED | BIT(ROWS), "N", NULL, "100000", 1, 536870911,
     "CSV: more columns are an error, as memory is many times that of a line of commas.", AT(max_columns)},
    {"max-levels", 0, OPTION_INTEGER, GROUP_DATA, LABELLED | BIT(ROWS), "N", NULL, "1000000", 1, 2147483646,
     "CSV: more levels of a text column are an error.", AT(max_levels)},
    {"max-name", 0, OPTION_INTEGER, GROUP_DATA, LABELLED | BIT(ROWS), "BYTES", NULL, "4096", 1, 67108864,
     "CSV: longer names of columns and levels are an error.", AT(max_name)},
    {"format", 0, OPTION_CHOICE, GROUP_DATA, ENTRIES, "FORMAT", FORMATS, "auto", ANY,
     "Format of the input; auto detects it from content and name. All formats are also read through gzip and "
     "zstd.",
     AT(format)},
    {"parts", 0, OPTION_TEXT, GROUP_DATA, SHARED, "PATTERN", NULL, NULL, ANY,
     "Data in several files, read as one: those that the pattern names, in quotes as --parts 'part-*.npz', "
     "in the order of their names.",
     AT(parts)},
    {"to", 0, OPTION_CHOICE, GROUP_DATA, BIT(CONVERT) | BIT(PRODUCTS), "FORMAT", OUTPUTS, "auto", ANY,
     "Format of the output; auto detects it from its name.", AT(to)},
    {"targets-to", 0, OPTION_OUTPUT, GROUP_DATA, BIT(CONVERT), "FILE", NULL, NULL, ANY,
     "Write the targets to a file of their own: npz, npy and mtx have no place for them.", AT(targets_to)},
    {"zero-based", 0, OPTION_FLAG, GROUP_DATA, ENTRIES, NULL, NULL, NULL, ANY,
     "LIBSVM: feature indices count from 0, as LightGBM writes them. Without it they count from 1.",
     AT(zero_based)},
    {"vocabulary", 0, OPTION_PATH, GROUP_DATA, READS, "FILE", NULL, NULL, ANY,
     "Names of the columns, a line each, for data without names. Beside docword.NAME.txt vocab.NAME.txt is "
     "found.",
     AT(vocabulary)},
    {"map", 0, OPTION_FLAG, GROUP_DATA, TRAINS | BIT(PREDICT) | BIT(EVALUATE) | BIT(PASSES), NULL, NULL, NULL,
     ANY,
     "Leave the data in their file and read them at each pass, so that they need not fit into memory: "
     "uncompressed .npy by "
     "rows, or .npz in CSR.",
     AT(map)},
    {"allow-nonfinite", 0, OPTION_FLAG, GROUP_DATA, ENTRIES, NULL, NULL, NULL, ANY,
     "Accept NaN and infinity in the data. Without it they are errors.", AT(allow_nonfinite)},
    {"strict", 0, OPTION_FLAG, GROUP_DATA, ENTRIES & ~SOLVES, NULL, NULL, NULL, ANY,
     "Treat duplicate entries, which would be merged, as errors.", AT(strict)},
    {"strict", 0, OPTION_FLAG, GROUP_DATA, SOLVES, NULL, NULL, NULL, ANY,
     "Treat duplicate entries, which would be merged, as errors; and end with exit code 4 if training does "
     "not converge, with 6 if more than 5 % over --memory was held.",
     AT(strict)},

    {"rows", 0, OPTION_INTEGER, GROUP_DATA, SHAPED, "N", NULL, NULL, 1, 9e18, "Rows of X.", AT(rows)},
    {"columns", 0, OPTION_INTEGER, GROUP_DATA, SHAPED, "N", NULL, NULL, 1, 2147483647, "Columns of X.",
     AT(columns)},
    {"nnz", 0, OPTION_INTEGER, GROUP_DATA, SHAPED, "N", NULL, "dense", 1, 9e18,
     "Entries of X, which is sparse then.", AT(nnz)},
    {"k", 0, OPTION_INTEGER, GROUP_DATA, SHAPED, "N", NULL, "1", 1, 65536,
     "Columns of y; of sddmm those of A and B.", AT(k)},
    {"gpus", 0, OPTION_INTEGER, GROUP_DATA, BIT(EXPLAIN), "N", NULL, NULL, 1, 4096,
     "Of an algorithm: what it would take on 1 to N H200s of a machine; with --rows and --columns, without "
     "DATA.",
     AT(gpus)},
    {"nodes", 0, OPTION_INTEGER, GROUP_DATA, BIT(EXPLAIN), "N", NULL, NULL, 1, 65536,
     "Of an algorithm: and on up to N such machines.", AT(nodes)},
    {"skew", 0, OPTION_CHOICE, GROUP_DATA, BIT(TUNE), "SKEW", "uniform|zipf", "uniform", ANY,
     "Columns of a sparse X equally likely, or popular in inverse proportion to their number.", AT(skew)},
    {"exhaustive", 0, OPTION_FLAG, GROUP_DATA, BIT(TUNE), NULL, NULL, NULL, ANY,
     "Measure every plan, not only those that are predicted to be the fastest.", AT(exhaustive)},

    {"start", 0, OPTION_FLAG, GROUP_DEVICE, BIT(DEVICES), NULL, NULL, NULL, ANY,
     "Start the device, run a pass over a small matrix there, and say how long that took.", AT(start)},
    {"time-limit", 0, OPTION_POSITIVE, GROUP_DEVICE, BIT(DEVICES) | BIT(DOCTOR), "SECONDS", NULL,
     SPELT(DRIVER_SECONDS), 0, 1e9,
     "How long a driver may take for an answer, or for one problem of doctor, the building of kernels "
     "included.",
     AT(time_limit)},
    {"device", 0, OPTION_TEXT, GROUP_DEVICE, COMPUTES, "DEVICE", "auto|cpu|cuda|opencl",
     "auto; info cpu; convert cpu; mmchain cpu; sddmm cpu", ANY,
     "auto (where the work is expected to end first; says which), cpu, cuda, cuda:1, opencl, or device D of "
     "platform P as opencl:P.D. Several, which share the rows: cuda:all or cuda:0,1. "
     "Only auto falls back.",
     AT(device)},
    {"type", 0, OPTION_CHOICE, GROUP_DEVICE, TYPED, "TYPE", "f32|f64",
     "f64; predict the model's; evaluate the model's", ANY,
     "Numbers of 32 or 64 bits. f32 halves memory and time, f64 gives twice the digits.", AT(type)},
    {"threads", 't', OPTION_INTEGER, GROUP_DEVICE, COMPUTES | BIT(KERNELS), "N", NULL,
     "what this process may use", 1, 4096, "CPU threads, for reading and for the device cpu.", AT(threads)},
    {"deterministic", 0, OPTION_FLAG, GROUP_DEVICE, SUMS, NULL, NULL, NULL, ANY,
     "The same bits from run to run, and on the CPU with any number of threads.", AT(deterministic)},
    {"mpi", 0, OPTION_FLAG, GROUP_DEVICE, SHARED | BIT(PRODUCTS), NULL, NULL, NULL, ANY,
     "The processes that mpirun has started compute together, each on its part of the rows: mpirun -n 4 kiln "
     "... --mpi. Devices are cpu, or cuda: a GPU each.",
     AT(mpi)},
    {"memory", 0, OPTION_BYTES, GROUP_DEVICE, COMPUTES, "BYTES", NULL, "what the device has", 1, 9e18,
     "Budget of device memory, on the CPU of the process; K, M, G and T stand for powers of 1024.",
     AT(memory)},
    {"seed", 0, OPTION_INTEGER, GROUP_DEVICE, DRAWS, "N", NULL, "0", 0, 9e18,
     "Seed of random numbers, of the folds of --cv for instance.", AT(seed)},

    {"output", 'o', OPTION_OUTPUT, GROUP_OUTPUT, SOLVES, "FILE", NULL, NULL, ANY,
     "Write the model to FILE, as a whole or not at all. - is standard output.", AT(output)},
    {"output", 'o', OPTION_OUTPUT, GROUP_OUTPUT, BIT(PREDICT), "FILE", NULL, NULL, ANY,
     "Write the predictions to FILE instead of standard output, as a whole or not at all.", AT(output)},
    {"output", 'o', OPTION_OUTPUT, GROUP_OUTPUT, BIT(COEFFICIENTS) | BIT(RECOMMEND), "FILE", NULL, NULL, ANY,
     "Write the table to FILE instead of standard output, as a whole or not at all.", AT(output)},
    {"output", 'o', OPTION_OUTPUT, GROUP_OUTPUT, BIT(PRODUCTS), "FILE", NULL, NULL, ANY,
     "Write the result to FILE, in the format that its name says, as a whole or not at all.", AT(output)},
    {"output", 'o', OPTION_OUTPUT, GROUP_OUTPUT, BIT(KERNELS), "FILE", NULL, NULL, ANY,
     "build: the pack; list: the list, instead of standard output. As a whole or not at all.", AT(output)},
    {"plot", 0, OPTION_OUTPUT, GROUP_OUTPUT, TRAINS, "FILE", NULL, NULL, ANY,
     "Draw the scores of --cv, or the coefficients of a path, to FILE" AS_NAMED, AT(plot)},
    {"plot", 0, OPTION_OUTPUT, GROUP_OUTPUT, BIT(EVALUATE), "FILE", NULL, NULL, ANY,
     "Draw ROC and calibration, or calibration and residuals, to FILE" AS_NAMED, AT(plot)},
    {"plot", 0, OPTION_OUTPUT, GROUP_OUTPUT, BIT(TUNE), "FILE", NULL, NULL, ANY,
     "Draw measured and predicted times of the plans to FILE" AS_NAMED, AT(plot)},
    {"json", 0, OPTION_FLAG, GROUP_OUTPUT, EVERY, NULL, NULL, NULL, ANY,
     "Print one JSON object on standard output, for errors too.", AT(json)},
    {"quiet", 'q', OPTION_FLAG, GROUP_OUTPUT, EVERY, NULL, NULL, NULL, ANY,
     "Print only warnings and errors on standard error, no progress and no messages.", AT(quiet)},
    {"verbose", 'v', OPTION_FLAG, GROUP_OUTPUT, EVERY, NULL, NULL, NULL, ANY,
     "Say more: every iteration, memory, transfers, kernels.", AT(verbose)},
    {"help", 'h', OPTION_FLAG, GROUP_OUTPUT, EVERY, NULL, NULL, NULL, ANY, "Show this help.", AT(help)},
    {"version", 'V', OPTION_FLAG, GROUP_OUTPUT, EVERY, NULL, NULL, NULL, ANY, "Show the version.",
     AT(version)},
};
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
    const size_t name = verb ? strlen(verb->name) : 0, general = strcspn(text, ";");
    for (char *at = text + general; verb && *at; at += strcspn(at, ";")) {
        at += 2; /* "; " */
        if (strncmp(at, verb->name, name) != 0 || at[name] != ' ') continue;
        const size_t length = strcspn(at + name + 1, ";");
        memmove(text, at + name + 1, length);
        text[length] = '\0';
        return text;
    }
    if (verb) text[general] = '\0';
    return text;
}
