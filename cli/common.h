/* This header has what the verbs share: the device, reading data with progress, times. */
#ifndef CLI_COMMON_H
#define CLI_COMMON_H

#include <kiln.h>
#include <kiln/tune.h>

#include "errors.h"
#include "held.h"
#include "json.h"
#include "options.h"
#include "result.h"
#include "talk.h"
#include "text.h"

struct seconds {
    double read, transfer, build, solve, measure, write; /* measure: metrics of a model on its data */
    double other, total; /* other: starting a device, choosing one, plots; all parts add up to total */
};

struct run {
    const struct verb *verb;
    const struct settings *settings;
    const char *const *arguments;
    int count;
    double started;
    kiln_processes *processes; /* of --mpi, of which this is the first; NULL without */
    kiln_device *device;       /* NULL until run_open_device; closed by main */
    kiln_device_info device_info;
    kiln_checkpoint *checkpoint; /* NULL without one; closed by main */
    bool checkpoint_stays;       /* what comes from here on is not for it */
    bool bounded;                /* --memory is about it: run_say_memory was called */
    struct held memory;          /* of the process, since the device was opened */
    int64_t held;                /* the most that was held, as it is told; 0 until then */
    struct seconds seconds;
    kiln_sharing sharing;           /* after the work that was timed last */
    const kiln_range *target_range; /* what run_read wants of targets; NULL: numbers */
    bool text_targets;              /* they may be text, whatever the verb */
    const struct verb
        *data_of;      /* whose kind of data run_read reads, where it is not the verb's own; or NULL */
    const char *alike; /* the option whose file, with the data's columns, run_read reads: "--init"; or NULL */
};

double clock_seconds(void);

/* Each returns 0 or the exit code of an error that it has reported. */
int run_open_device(struct run *run, const char *standard); /* --device, else `standard`; says which */
int run_read(struct run *run, kiln_data **data, const char *path, kiln_type type, const kiln_model *model);
int run_load_model(kiln_model **model, const char *path);
/* The rows' weights and offset, from columns of the data or from files of their own, on the run's device;
 * NULL if there are none. model: the one that is used on the data, or NULL. weights, offset: NULL if the verb
 * has no use for them; a warning says so of what the data have. */
int run_read_columns(struct run *run, const kiln_data *data, const kiln_model *model, kiln_matrix **weights,
                     kiln_matrix **offset);
bool run_has_option(const struct run *run, const char *name); /* of its verb: "weights" */
/* One number for each row of the table, from a file that has one for those that were left out, too; what:
 * "weights", for messages. */
int run_read_column_file(struct run *run, kiln_matrix **column, const char *path, kiln_type type,
                         const char *what, const kiln_data *table);
/* The rows' groups, 0 ... *count - 1, from a column of the data or a file; NULL without --groups. */
int run_read_groups(struct run *run, const kiln_data *data, int64_t **groups, int64_t *count);
kiln_type type_of(const char *name); /* of "f32", "f64"; NULL: KILN_TYPE_DEFAULT */
const char *type_name(kiln_type type);
kiln_file_format file_format_of(const char *name);

/* The options that a model was trained with, as JSON; NULL if it does not say. */
json_t *model_options(const kiln_model *model);

/* Type and shape of a model's tensor; false if it has none of that name. */
bool model_tensor_shape(const kiln_model *model, const char *name, kiln_type *type, int64_t *rows,
                        int64_t *cols);

/* Splits what the device did between two moments off from `wall` seconds: transfer and build go to their own
 * figures, the rest is returned. */
double run_account(struct run *run, const kiln_device_statistics *before, double wall);

void run_put(struct result *result, const struct run *run,
             const char *schema);                                  /* schema, kiln_version, verb */
void run_put_device(struct result *result, const struct run *run); /* device, device_description */
void run_put_shape(struct result *result, const kiln_matrix *X);   /* type, rows, columns, nnz */
/* seconds{}, total up to now, a line of text where that is `shown`; and memory{} */
void run_put_seconds(struct result *result, struct run *run, bool shown);

/* Prints it as JSON, or as text where tables go; 0 or an exit code. */
int run_tell(const struct run *run, const struct result *result);
/* Says what of X is held, and how it goes by, where a budget is given or X stays in its file. */
void run_say_memory(struct run *run, const kiln_matrix *X);
/* After the run: 0, or with --strict the exit code of having held more than 5 % over the budget; which is
 * told, without --strict as a warning. */
int run_check_memory(struct run *run);

#endif
