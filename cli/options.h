/* The command line: one table of options and one of verbs. Parsing, --help, the man pages and the shell
 * completion all read these two tables, so none of them can disagree with another. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <jansson.h>
#include <kiln.h>
#include <kiln/tune.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Says what the options set; NULL, 0 and false mean "not given" unless the table names a default. */
enum { LIST_MOST = 100 };
struct range {
    double from, to; /* of a list the least and the largest */
    int64_t count; /* 0: not given; 1: the value `from`; else a path of so many values, equal factors apart */
    double list[LIST_MOST]; /* the values themselves, where they were given one by one */
    bool listed;
};

struct settings {
    struct range l2, C, l1;
    int64_t folds;
    const char *weights, *weights_file, *offset, *offset_file; /* columns of a CSV file; files */
    const char *groups, *groups_file, *held_out;               /* of cross-validation */
    const char *class_weight, *warm_start, *select, *checkpoint, *resume;
    double checkpoint_every, time_limit;
    bool probabilities, decision;
    const char *format, *parts, *target, *target_file, *vocabulary, *to, *targets_to;
    const char *source, *weight; /* columns of a list, beside target */
    bool undirected;
    const char *features, *ignore, *categorical, *numeric, *reference, *interact; /* columns of a CSV file */
    const char *missing, *missing_words, *unseen, *extra_columns;
    bool decimal_comma;
    int64_t max_columns, max_levels, max_name, max_classes;
    const char *metric;
    bool zero_based, allow_nonfinite, strict, map;
    const char *device, *type;
    bool deterministic, mpi;
    int64_t threads, memory, seed;
    const char *output, *plot;
    int64_t rows, columns, nnz, k; /* explain, tune: a shape */
    int64_t gpus, nodes;           /* explain: a group that need not exist */
    const char *skew;
    bool exhaustive, start;
    bool json, quiet, verbose, help, version;
    /* The options struct of the verb's algorithm as the registry describes it, and what the verb's own
     * options set. */
    union {
        max_align_t aligned;
        char bytes[512];
    } algorithm, own;
};

/* Defaults that help says and code goes by. */
#define CLASSES_MOST 100
#define DRIVER_SECONDS 120 /* of a step that asks a driver */
#define SPELL(number) #number
#define SPELT(number) SPELL(number) /* "100" */

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_TEXT,     /* const char * */
    OPTION_PATH,     /* const char *, completed as a file name */
    OPTION_OUTPUT,   /* the same, of a file that is written */
    OPTION_CHOICE,   /* const char *, one of `choices` */
    OPTION_INTEGER,  /* int64_t in [least, most] */
    OPTION_REAL,     /* double in [least, most] */
    OPTION_POSITIVE, /* double in (0, most] */
    OPTION_RANGE,    /* struct range, NUMBER, FROM:TO:COUNT or A,B,C, in [least, most] */
    OPTION_BYTES     /* int64_t with an optional suffix K, M, G or T (powers of 1024) */
};

enum option_group { GROUP_MODEL, GROUP_DATA, GROUP_DEVICE, GROUP_OUTPUT, GROUP_COUNT };
extern const char *const option_group_names[GROUP_COUNT];

enum verb_id {
    VERB_LINREG,
    VERB_LOGREG,
    VERB_GLM,
    VERB_SVM,
    VERB_PREDICT,
    VERB_EVALUATE,
    VERB_VERIFY,
    VERB_INFO,
    VERB_COEFFICIENTS,
    VERB_CONVERT,
    VERB_DEVICES,
    VERB_DOCTOR,
    VERB_KERNELS,
    VERB_EXPLAIN,
    VERB_TUNE,
    VERB_COMPLETION,
    VERB_MAN,
    VERB_HELP,
    VERB_VERSION,
    VERB_RECOMMEND,
    VERB_STATISTICS,
    VERB_PRODUCTS,  /* mmchain, sddmm */
    VERB_ALGORITHM, /* an algorithm that is no linear model */
    VERB_ROWS,      /* and takes rows of a table */
    VERB_WEIGHS,    /* with weights */
    VERB_STARTS,    /* and starts from a model of its own */
    VERB_RANDOM,    /* and draws random numbers */
    VERB_PASSES,    /* and only passes over the data, which may stay in their file */
    VERB_LINKS,     /* and takes a list of links or ratings */
    VERB_LEADS,     /* and minds where a link leads */
    VERB_KINDS
};
#define VERB_BIT(verb) (1u << VERB_##verb)
#define EVERY_VERB (~0u)
/* Verbs that only print what the tool knows of itself. */
#define SPEAKS (VERB_BIT(COMPLETION) | VERB_BIT(MAN) | VERB_BIT(HELP) | VERB_BIT(VERSION))

enum option_place {
    IN_SETTINGS,
    IN_ALGORITHM, /* settings.algorithm: a field of the algorithm's options struct; a flag is an int */
    IN_OWN        /* settings.own: a field of a struct of the verb's */
};

struct verb;

enum { FORMATS_ROOM = 120 };

/* An option's default is the number of components that the registry tells of the verb's algorithm. */
extern const char standard_components[];
/* The names of the library's formats as choices, which commands_begin fills in. */
extern char formats_read[FORMATS_ROOM];

struct option {
    const char *name;
    char letter; /* '\0' = none */
    enum option_kind kind;
    enum option_group group;
    unsigned verbs;       /* VERB_BITs */
    const char *value;    /* what help calls its value */
    const char *choices;  /* OPTION_CHOICE: separated by '|'; also offered by completion for OPTION_TEXT */
    const char *standard; /* the default, as help shows it; verbs with another have a row; NULL: none */
    double least, most;
    const char *help;
    size_t offset; /* in its place */
    enum option_place place;
    const struct verb
        *only;   /* the verb that it belongs to, by its own row or by the registry's; NULL: `verbs` says */
    bool narrow; /* IN_ALGORITHM: the field is an int */
};

/* All options and all verbs, once commands_begin has collected them: those of the tool (options.c, verbs.c),
 * those of the algorithms' files (cli/algorithms), and those that the library's registry tells
 * (kiln/registry.h). */
enum { OPTIONS_MOST = 320, VERBS_MOST = 48 };
extern struct option option_table[OPTIONS_MOST];
extern int option_count;
void commands_begin(void);
extern const struct option tool_options[], tool_paths[];
extern const int tool_option_count, tool_path_count;

struct run;
struct solver;
struct verifying;
struct result;
/* The kinds of exchange between several GPUs in a pass, for kiln explain --gpus (scaling.c). */
enum sharing {
    SHARES_SUMS = 0, /* sums over their rows of X, of a vector as long as X has columns */
    SHARES_RANKS,    /* the ranks that each has made, and nothing is added up */
    SHARES_FACTORS,  /* half a pass for each side: the other side's factors, a row of which belongs to an
                      * entry */
    SHARES_PAIRS,    /* sums over pairs of rows, of a vector as long as X has rows */
    SHARES_NEAREST   /* as sums, of rows that look for the nearest of k centres before */
};

struct verb {
    const char *name, *arguments;
    int least, most;         /* number of arguments */
    const char *choices;     /* what completion offers for the first argument; NULL = file names */
    const char *summary;     /* one line */
    const char *description; /* paragraphs, separated by an empty line */
    const char *examples;    /* lines */
    int (*run)(struct run *run);
    const struct solver *solver; /* of a verb whose run is solve_run */
    unsigned kinds;              /* VERB_BITs: the options that it takes */
    /* For a verb that is an algorithm. own: its options besides the tool's and the registry's. verify:
     * recomputes what a model claims. */
    const struct option *own;
    int own_count;
    /* More of them, by a table of the library: number 0, 1, ... until it is false; a name of NULL: none. */
    bool (*own_told)(struct option *option, int number);
    int (*verify)(struct run *run, struct verifying *v);
    /* Columns that a pass takes at once: factors, topics, clusters; NULL: 1. */
    int64_t (*width)(const struct settings *settings);
    const char *otherwise; /* options of the registry that it sets in another way: "init|seed"; NULL: none */
    kiln_file_format
        tables; /* what its CSV files and edge lists are read as where no --format says; 0: as that */
    const char *predict_instead; /* where its models predict nothing: what else there is */
    /* Makes of work on X what several GPUs share in a pass; NULL: X. */
    void (*work)(kiln_work *work);
    enum sharing sharing;
    /* Finds what kiln explain says beside the choice of a device, on which X is. NULL: nothing. Returns 0 or
     * an exit code. */
    int (*explain)(struct result *result, const struct run *run, const kiln_matrix *X);
};
extern struct verb verb_table[VERBS_MOST];
extern int verb_count;
extern const struct verb tool_verbs[];
extern const int tool_verb_count;

/* Holds what happens at an exit code; for the help and the man pages. */
struct exit_meaning {
    int code;
    const char *meaning;
    unsigned verbs; /* VERB_BITs; 0: every verb */
};
extern const struct exit_meaning exit_meanings[];
extern const int exit_meaning_count;
static inline bool exit_applies(const struct exit_meaning *exit, const struct verb *verb) {
    return !verb || !exit->verbs || (exit->verbs & verb->kinds);
}

enum { MAX_ARGUMENTS = 4096 };
struct command {
    const struct verb *verb; /* NULL: none was named */
    const char *arguments[MAX_ARGUMENTS];
    int count;
    struct settings settings;
};

/* Says what stands for an option that is not given: the verb's, or without a verb all of them; "" if there is
 * nothing to say. */
enum { STANDARD_ROOM = 160 };
/* The n-th name of "a|b|c", from 1. */
void option_choice(char text[STANDARD_ROOM], const char *choices, int64_t n);
const char *option_standard(char text[STANDARD_ROOM], const struct option *option, const struct verb *verb);

struct usage_problem {
    char message[300], hint[300];
};

/* Options may stand anywhere, also before the verb; "--" ends them. False: *problem says what is wrong. */
bool parse_command(struct command *command, int argc, char **argv, struct usage_problem *problem);

/* The option of that name which the command's verb takes: its own, or the registry's, where several verbs
 * have one. NULL: none. */
const struct option *option_for(const struct command *command, const char *name);

static inline bool file_option(const struct option *option) {
    return option->kind == OPTION_PATH || option->kind == OPTION_OUTPUT;
}

static inline bool option_applies(const struct option *option, const struct verb *verb) {
    return !verb || (option->only ? option->only == verb : (option->verbs & verb->kinds) != 0);
}

#endif
