/* A run of an algorithm, the same for all: read the data, choose a device, solve, keep the model, write what
 * else was asked for, tell. What differs is a row of functions, struct solver. */
#ifndef CLI_SOLVE_H
#define CLI_SOLVE_H

#include <kiln/tune.h>

#include "common.h"
#include "report.h"

struct solving;

/* Each int is 0 or an exit code; each function but prepare, solve and keep may be NULL. */
struct solver {
    const char *schema;        /* of the JSON object: "kiln.ranking/1" */
    struct report_words words; /* what its report's figures are called */
    size_t bytes;              /* of its own state, which begins zeroed: solving.state */
    /* Options of its own that set others, in a copy of the settings which the run has. NULL: none. */
    int (*take)(struct run *run, struct settings *settings);
    int (*begin)(struct solving *s); /* before anything is read: the options */
    int (*check)(struct solving *s); /* the data, once they are read and before a device is chosen */
    kiln_work (*work)(const struct solving *s); /* what is to be done; NULL: the verb's passes and width */
    /* On the device that was chosen: its matrices, from s->warm if there is one. May end the run: s->done. */
    int (*prepare)(struct solving *s);
    kiln_status (*solve)(struct solving *s, const kiln_control *control); /* fills s->report */
    int (*fail)(const struct solving *s); /* reports solve's error, in the data's words */
    int (*finish)(struct solving *s);     /* brings to the host what is told */
    kiln_status (*keep)(kiln_model *model, const struct solving *s); /* tensors and texts of its own */
    int (*write)(const struct solving *s);                           /* files that its own options name */
    void (*head)(struct result *result, const struct solving *s);    /* its first line */
    void (*metrics)(struct result *result, const struct solving *s); /* how good it is; the model keeps it */
    void (*options)(struct result *result, const struct solving *s); /* NULL: those of the registry */
    void (*put)(struct result *result, const struct solving *s);     /* rows of its own, which come last */
    void (*free)(struct solving *s);
    bool any_start; /* --warm-start may be a model of another algorithm: prepare judges it */
};

struct solving {
    struct run *run;
    const struct solver *solver;
    kiln_data *data;
    kiln_model *warm;      /* NULL without --warm-start */
    bool done;             /* there is nothing left to solve */
    bool noted;            /* something has been found already that an interruption must not lose */
    char unconverged[400]; /* which models before the one that is kept did not converge; "": none */
    kiln_report report;
    struct result result;
    void *state;         /* the solver's own */
    const void *options; /* the algorithm's options struct, as given; 0 where it was not */
    const void *own;     /* what the verb's own options set */
};

int solve_run(struct run *run); /* by the solver of its verb */
/* Its beginning, for explain: takes the options, reads and checks the data. solve_end in any case. */
int solve_begin(struct solving *s, struct run *run, const struct solver *solver);
kiln_work solve_work(const struct solving *s);
void solve_end(struct solving *s);

static inline const kiln_matrix *solving_X(const struct solving *s) {
    return kiln_data_X(s->data);
}

/* A dense matrix on the run's device, of the type of the data. */
int solve_allocate(kiln_matrix **A, const struct solving *s, int64_t rows, int64_t cols);
/* The same, from a tensor of --warm-start. */
int solve_take(kiln_matrix **A, const struct solving *s, const char *tensor);

/* Keeps all tensors of a model that the library has made but those that `model` has. */
kiln_status solve_keep_tensors(kiln_model *model, const struct solving *s, const kiln_model *made);
/* Keeps `count` names of the data as a model's text `key`, unless they have none or are too long for a
 * model, which is said. */
kiln_status solve_keep_names(kiln_model *model, const char *key, const struct solving *s, int64_t count,
                             const char *(*name)(const kiln_data *data, int64_t i));

/* Takes value over; null: nothing. */
kiln_status solve_set_json(kiln_model *model, const char *key, json_t *value);

/* Writes all that the solver keeps in a model but training data to `path` for numpy.load; path NULL:
 * nothing. */
int solve_write_npz(const struct solving *s, const char *path);

/* Numbers of the `top` largest values, largest first, ties by number; how many there are. By insertion: top
 * is small. */
int64_t solve_find_top(int64_t *found, const double *values, int64_t count, int64_t top);

#endif
