/* The command line: one table of options and one of verbs. Parsing, --help, the man pages and the shell
 * completion all read these two tables, so none of them can disagree with another. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the options set; NULL, 0 and false mean "not given" unless the table names a default. */
struct range {
    double from, to;
    int64_t count; /* 0: not given; 1: the value `from`; else a path of so many values, equal factors apart */
};

struct settings {
    struct range l2, C, l1;
    double tolerance, link_power, variance_power, alpha, epsilon;
    bool no_intercept, standardize, no_preconditioner, regression, standard_errors, unweighted;
    int64_t max_iterations, folds, norm, top;
    const char *weights, *weights_file, *offset, *offset_file; /* columns of a CSV file; files */
    const char *class_weight, *warm_start, *family, *link, *select;
    bool probabilities, decision;
    const char *format, *target, *target_file, *to, *targets_to;
    bool zero_based, allow_nonfinite, strict, map;
    const char *device, *type;
    bool deterministic;
    int64_t threads, memory, seed;
    const char *output, *plot, *scores;
    int64_t rows, columns, nnz, k; /* explain, tune: a shape */
    const char *skew;
    bool exhaustive, start;
    bool json, quiet, verbose, help, version;
};

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_TEXT,     /* const char * */
    OPTION_PATH,     /* const char *, completed as a file name */
    OPTION_CHOICE,   /* const char *, one of `choices` */
    OPTION_INTEGER,  /* int64_t in [least, most] */
    OPTION_REAL,     /* double in [least, most] */
    OPTION_POSITIVE, /* double in (0, most] */
    OPTION_RANGE,    /* struct range, NUMBER or FROM:TO:COUNT, in [least, most] */
    OPTION_BYTES     /* int64_t with an optional suffix K, M, G or T (powers of 1024) */
};

enum option_group { GROUP_MODEL, GROUP_DATA, GROUP_DEVICE, GROUP_OUTPUT, GROUP_COUNT };
extern const char *const option_group_names[GROUP_COUNT];

enum verb_id {
    VERB_LINREG,
    VERB_LOGREG,
    VERB_GLM,
    VERB_SVM,
    VERB_HITS,
    VERB_PREDICT,
    VERB_VERIFY,
    VERB_INFO,
    VERB_CONVERT,
    VERB_DEVICES,
    VERB_DOCTOR,
    VERB_EXPLAIN,
    VERB_TUNE,
    VERB_COMPLETION,
    VERB_MAN,
    VERB_HELP,
    VERB_VERSION,
    VERB_COUNT
};

struct option {
    const char *name;
    char letter; /* '\0' = none */
    enum option_kind kind;
    enum option_group group;
    unsigned verbs;      /* bit 1 << verb_id */
    const char *value;   /* what help calls its value */
    const char *choices; /* OPTION_CHOICE: separated by '|'; also offered by completion for OPTION_TEXT */
    const char *
        standard; /* the default, as help shows it, and where verbs have others these: "0; logreg 1"; NULL: none */
    double least, most;
    const char *help;
    size_t offset; /* in struct settings */
};
extern const struct option option_table[];
extern const int option_count;

struct run;
struct verb {
    const char *name, *arguments;
    int least, most;         /* number of arguments */
    const char *choices;     /* what completion offers for the first argument; NULL = file names */
    const char *summary;     /* one line */
    const char *description; /* paragraphs, separated by an empty line */
    const char *examples;    /* lines */
    int (*run)(struct run *run);
};
extern const struct verb verb_table[VERB_COUNT];

/* What happens at an exit code; for the help and the man pages. */
struct exit_meaning {
    int code;
    const char *meaning;
};
extern const struct exit_meaning exit_meanings[];
extern const int exit_meaning_count;

enum { MAX_ARGUMENTS = 2, MAX_OPTIONS = 128 };
struct command {
    const struct verb *verb; /* NULL: none was named */
    const char *arguments[MAX_ARGUMENTS];
    int count;
    struct settings settings;
};

/* What stands for an option that is not given: the verb's, or without a verb all of them; "" if there is nothing to say. */
enum { STANDARD_ROOM = 160 };
const char *option_standard(char text[STANDARD_ROOM], const struct option *option, const struct verb *verb);

struct usage_problem {
    char message[300], hint[300];
};

/* Options may stand anywhere, also before the verb; "--" ends them. False: *problem says what is wrong. */
bool parse_command(struct command *command, int argc, char **argv, struct usage_problem *problem);

static inline bool option_applies(const struct option *option, const struct verb *verb) {
    return !verb || (option->verbs >> (verb - verb_table) & 1u);
}

#endif
