/* Reading data as the options say, and as the model remembers. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "commands.h"
#include "common.h"
#include "wording.h"

static void say_what_was_read(const kiln_data *data, const char *path, int64_t more, double seconds) {
    const kiln_matrix *X = kiln_data_X(data);
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    double bytes = (double)kiln_data_bytes(data);
    bool sparse = kiln_matrix_format(X) == KILN_CSR;
    char others[48] = "";
    if (more) snprintf(others, sizeof others, " and %s", text_plural(more, "further file"));
    say("read %s%s: %s x %s, %s%s %s; %s in %s, %s/s", name, others, text_plural(kiln_matrix_rows(X), "row"),
        text_plural(kiln_matrix_cols(X), "column"), sparse ? text_count(kiln_matrix_nnz(X)) : "",
        sparse ? " entries, sparse" : "dense", type_name(kiln_matrix_type(X)), text_bytes(bytes),
        text_seconds(seconds), text_bytes(bytes / fmax(seconds, 1e-6)));
}

/* Tells which columns are text, each value of which is a feature: nothing is taken for text in silence. */
static void say_text_columns(const kiln_data *data) {
    enum { SHOWN = 6 };
    const kiln_column *column;
    char words[600] = "";
    int64_t count = 0;
    for (int64_t i = 0; (column = kiln_data_column(data, i)); i++) {
        const size_t used = strlen(words);
        if (!column->text || column->role != KILN_COLUMN_FEATURE || count++ >= SHOWN) continue;
        snprintf(words + used, sizeof words - used, "%s %.40s (%s)", count > 1 ? "," : "", column->name,
                 text_plural(column->levels, "level"));
    }
    if (count > 0) say("text columns:%s%s", words, count > SHOWN ? ", ..." : "");
}

/* Finds what a target may be: labels for those who tell classes apart, numbers for those who learn or judge
 * such, text for all others. */
static int targets_of(const struct run *run, const kiln_model *model) {
    const unsigned kinds = run->verb->kinds;
    const char *name = run->verb->name;
    kiln_type type;
    int64_t rows, cols;
    if (model && model_tensor_shape(model, "classes", &type, &rows, &cols)) return KILN_TARGETS_LABELS;
    if (run->text_targets) return KILN_TARGETS_TEXT;
    if (kinds & VERB_BIT(GLM)) {
        const int family = (int)algorithm_value(name, run->settings, "family");
        return kiln_family_describe((kiln_family)family)->outcomes ? KILN_TARGETS_TEXT : 0;
    }
    if (kinds & VERB_BIT(SVM))
        return algorithm_value(name, run->settings, "regression") ? 0 : KILN_TARGETS_LABELS;
    if (kinds & VERB_BIT(LOGREG)) return KILN_TARGETS_LABELS;
    const bool numbers = model && model_tensor_shape(model, "W", &type, &rows, &cols);
    return numbers || (kinds & (VERB_BIT(LINREG) | VERB_BIT(CONVERT))) ? 0 : KILN_TARGETS_TEXT;
}

/* 1, 2, ... for the words of a choice, 0 for NULL: the numbers of the library's enumerations. */
static int word_number(const char *word, const char *words) {
    const size_t size = word ? strlen(word) : 0;
    for (int number = 1; word; number++) {
        const size_t length = strcspn(words, "|");
        if (length == size && strncmp(words, word, size) == 0) return number;
        if (!words[length]) break;
        words += length + 1;
    }
    return 0;
}

/* kiln info looks at files as they are, and counts what is missing. */
static kiln_missing missing_of(const struct run *run) {
    const char *way = run->settings->missing;
    if (!way && (run->verb->kinds & VERB_BIT(INFO))) return KILN_MISSING_MEAN;
    return (kiln_missing)word_number(way, "error|drop|mean|indicator");
}

/* The arguments behind `path` are further files of the same data. */
static void add_more_files(kiln_read_options *options, const struct run *run, const char *path) {
    if (run->verb->kinds & (VERB_BIT(CONVERT) | VERB_BIT(PRODUCTS))) return; /* each stands for itself */
    for (int i = 0; i < run->count; i++) {
        if (run->arguments[i] != path) continue;
        options->more = run->arguments + i + 1;
        options->more_count = run->count - i - 1;
        return;
    }
}

static void say_warnings(const kiln_data *data) {
    const char *text, *hint;
    char words[2048];
    for (int64_t i = 0; (text = kiln_data_warning(data, i, &hint)); i++) {
        say_error("kiln: warning: %s", wording(words, sizeof words, text));
        if (*hint) say_error("hint: %s", wording(words, sizeof words, hint));
    }
}

static void default_text(const char **option, const json_t *used, const char *name) {
    if (!*option) *option = json_string_value(json_object_get(used, name));
}

/* An option that is not given is what training used, as with the columns of the features. */
static void default_columns(const struct run *run, kiln_read_options *options, const json_t *used) {
    const struct settings *settings = run->settings;
    const unsigned kinds = run->verb->kinds, trained = VERB_BIT(VERIFY) | VERB_BIT(STATISTICS);
    if (!settings->offset_file && (kinds & (VERB_BIT(PREDICT) | VERB_BIT(EVALUATE) | trained)))
        default_text(&options->offset, used, "offset");
    if (!settings->weights_file && (kinds & trained)) default_text(&options->weights, used, "weights");
    if (options->tables == KILN_FILE_EDGES || options->tables == KILN_FILE_RATINGS) {
        default_text(&options->source, used, "source");
        default_text(&options->target, used, "target");
        default_text(&options->weight, used, "weight");
        options->undirected |= json_is_true(json_object_get(used, "undirected"));
    }
    const char *missing = json_string_value(json_object_get(used, "missing"));
    if ((kinds & trained) && missing && strcmp(missing, "drop") == 0) options->missing = KILN_MISSING_DROP;
}

static int check_width(const kiln_data *data, const char *path, const kiln_model *model) {
    const int64_t cols = kiln_matrix_cols(kiln_data_X(data));
    kiln_type type;
    int64_t trained, targets;
    if (!model_tensor_shape(model, "W", &type, &trained, &targets) || trained == cols) return 0;
    return fail_with(
        KILN_ERR_MODEL, USING_MODEL, "use the data's own model, or name the target column or file",
        "the model was trained on %s, %s has %s", text_plural(trained, "column"), path, text_count(cols));
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* The names that run_read took for a model's were the columns of the data. */
static int fail_alike(const char *option, const char *path) {
    static const char lacks[] = "the model needs ";
    const char *message = kiln_last_error()->message;
    if (begins(message, lacks))
        return fail_with(KILN_ERR_DATA, READING, "columns are matched by name", "%s %s needs %s", option,
                         path, message + strlen(lacks));
    return fail_with(KILN_ERR_DATA, READING, "give it CSV with the columns of the data",
                     "%s %s: its columns are not those of the data", option, path);
}

/* A column that nobody named but the model, which was trained with it, makes the data unfit for the model. */
static int fail_reading(const struct run *run, const kiln_read_options *options, const char *path) {
    const kiln_error *error = kiln_last_error();
    const struct settings *settings = run->settings;
    if (run->alike && error->status == KILN_ERR_MODEL) return fail_alike(run->alike, path);
    const bool offset = options->offset != settings->offset && begins(error->message, "offset '");
    const bool weights = options->weights != settings->weights && begins(error->message, "weights '");
    if (error->status != KILN_ERR_ARGUMENT || !(offset || weights)) return fail_library(READING);
    return fail_with(KILN_ERR_MODEL, USING_MODEL,
                     offset ? "--offset names another column, --offset-file a file"
                            : "--weights names another column, --weights-file a file",
                     "%s: %s, and the model was trained with it", error->file, error->message);
}

/* Verbs that take rows guess no list of links; those that take any data go by what the file looks like. */
static kiln_file_format tables_of(const struct run *run) {
    const struct verb *verb = run->data_of ? run->data_of : run->verb;
    if (verb->tables) return verb->tables;
    return verb->kinds & (VERB_BIT(INFO) | VERB_BIT(CONVERT) | VERB_BIT(EXPLAIN) | VERB_BIT(TUNE))
               ? KILN_FILE_AUTO
               : KILN_FILE_CSV;
}

int run_read(struct run *run, kiln_data **data, const char *path, kiln_type type, const kiln_model *model) {
    const struct settings *settings = run->settings;
    json_t *used = model ? model_options(model) : NULL;
    kiln_read_options options = {.size = sizeof options,
                                 .format = file_format_of(settings->format),
                                 .type = type,
                                 .zero_based = settings->zero_based,
                                 .target = settings->target,
                                 .target_range = run->target_range,
                                 .text_targets = targets_of(run, model),
                                 .target_file = settings->target_file,
                                 .source = settings->source,
                                 .weight = settings->weight,
                                 .undirected = settings->undirected,
                                 .weights = settings->weights,
                                 .offset = settings->offset,
                                 .groups = settings->groups,
                                 .allow_nonfinite = settings->allow_nonfinite,
                                 .map = settings->map,
                                 .strict = settings->strict,
                                 .model = model,
                                 .features = settings->features,
                                 .ignore = settings->ignore,
                                 .categorical = settings->categorical,
                                 .numeric = settings->numeric,
                                 .reference = settings->reference,
                                 .interact = settings->interact,
                                 .missing = missing_of(run),
                                 .missing_words = settings->missing_words,
                                 .decimal_comma = settings->decimal_comma,
                                 .unseen = (kiln_unseen)word_number(settings->unseen, "error|zero|reference"),
                                 .extra_columns =
                                     (kiln_extra)word_number(settings->extra_columns, "ignore|error"),
                                 .max_columns = settings->max_columns,
                                 .max_levels = settings->max_levels,
                                 .max_name = settings->max_name,
                                 .vocabulary = settings->vocabulary,
                                 .threads = (int)settings->threads,
                                 .tables = tables_of(run),
                                 .control = talk_control("read", 0)};
    add_more_files(&options, run, path);
    default_columns(run, &options, used);
    kiln_device_statistics before = {0};
    kiln_device_get_statistics(run->device, &before);
    double start = clock_seconds();
    const kiln_status status = kiln_data_read(data, run->device, path, &options);
    const int code = status == KILN_OK ? 0 : fail_reading(run, &options, path);
    json_decref(used);
    if (code) return code;
    talk_doing(run->verb->name);
    double seconds = run_account(run, &before, clock_seconds() - start);
    run->seconds.read += seconds;
    say_warnings(*data);
    say_what_was_read(*data, path, options.more_count, seconds);
    if (!model && !(run->verb->kinds & VERB_BIT(INFO))) say_text_columns(*data);
    if (settings->zero_based && kiln_data_format(*data) != KILN_FILE_LIBSVM)
        return fail_with(KILN_ERR_ARGUMENT, READING, "leave it out", "--zero-based: %s is no LIBSVM file",
                         path);
    return model ? check_width(*data, path, model) : 0;
}
