/* Predictions on files: lines of text, or, as the name says, CSV with a header, or an .npy array.
 *
 * A label may hold anything: in CSV it is quoted where it must be, in plain lines only where it would be two
 * of them. */
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "predict.h"

static bool ends_in(const char *path, const char *ending) {
    const size_t length = path ? strlen(path) : 0, size = strlen(ending);
    return length > size && strcmp(path + length - size, ending) == 0;
}

int predict_check_output(const char *path, const struct prediction *p, bool labels) {
    static const char *const others[] = {".gz", ".zst", ".npz", ".mtx", ".svm", ".libsvm"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ends_in(path, others[i]))
            return fail_with(KILN_ERR_ARGUMENT, WORKING, "a name in .csv, .npy, or any other for plain text",
                             "-o %s: predictions are not written as %s", path, others[i]);
    if (!labels || !p->classes.names || !ends_in(path, ".npy")) return 0;
    return fail_with(KILN_ERR_ARGUMENT, WORKING, "a name in .csv, or --probabilities or --decision",
                     "-o %s: the labels are text, .npy holds numbers", path);
}

int64_t predicted_class(const struct prediction *p, int64_t row) {
    const int64_t columns = p->classes.count == 2 ? 1 : p->classes.count;
    return class_of_scores(p->scores + row * columns, columns);
}

/* ------------------------------------------------------------------------------------------- text */

static void write_row(const struct prediction *p, int64_t i, bool csv, const struct output *output) {
    char text[SHORTEST_ROOM + 1];
    if (!p->shown) {
        output_text(output, classes_name(&p->classes, predicted_class(p, i), text), csv ? ",\"\r\n" : "\r\n");
        fputc('\n', output->file);
        return;
    }
    for (int64_t j = 0; j < p->columns; j++) {
        int length = text_shortest(text, p->shown[i * p->columns + j], p->single);
        text[length++] = j + 1 < p->columns ? (csv ? ',' : ' ') : '\n';
        fwrite(text, 1, (size_t)length, output->file);
    }
}

/* A score or a probability belongs to a class, the only one of two classes to the second; all else to a
 * target. */
static void write_header(const struct prediction *p, const struct output *output) {
    const char *known = kiln_model_text(p->model, "targets");
    json_t *targets = known ? json_loads(known, 0, NULL) : NULL;
    char text[SHORTEST_ROOM];
    for (int64_t j = 0; j < (p->shown ? p->columns : 1); j++) {
        const char *name = json_string_value(json_array_get(targets, (size_t)j));
        if (p->shown && p->classes.count) {
            name = classes_name(&p->classes, p->columns == 1 ? 1 : j, text);
        } else if (!name) {
            snprintf(text, sizeof text, "y%lld", (long long)j + 1);
            name = text;
        }
        if (j > 0) fputc(',', output->file);
        output_text(output, name, ",\"\r\n");
    }
    fputc('\n', output->file);
    json_decref(targets);
}

static int write_lines(const struct prediction *p, const char *path) {
    const bool csv = ends_in(path, ".csv");
    struct output output;
    int code = output_open(&output, path);
    if (code) return code;
    if (csv) write_header(p, &output);
    for (int64_t i = 0; i < p->rows && !ferror(output.file) && !talk_interrupted(); i++)
        write_row(p, i, csv, &output);
    if (!talk_interrupted()) return output_commit(&output);
    output_abandon(&output);
    return fail_with(KILN_ERR_CANCELLED, WRITING, "", "interrupted; no predictions were written");
}

/* ------------------------------------------------------------------------------------------ array */

static int write_array(struct run *run, const struct prediction *p, const char *path) {
    const int64_t columns = p->shown ? p->columns : 1;
    const kiln_control control = talk_control("write", 0);
    kiln_matrix *wide = NULL, *X = NULL;
    kiln_data *data = NULL;
    double *values = NULL;
    kiln_status status = KILN_OK;
    if (!p->shown) {
        values = malloc((size_t)p->rows * sizeof *values + 1);
        if (!values) return fail_with(KILN_ERR_NOMEM, WORKING, "", "out of memory for the labels");
        for (int64_t i = 0; i < p->rows; i++) values[i] = p->classes.values[predicted_class(p, i)];
    }
    status = kiln_matrix_dense(&wide, run->device, KILN_F64, p->rows, columns, values ? values : p->shown);
    if (status == KILN_OK) status = kiln_matrix_copy(&X, run->device, p->single ? KILN_F32 : KILN_F64, wide);
    if (status == KILN_OK) status = kiln_data_create(&data, X, NULL);
    if (status == KILN_OK) status = kiln_data_write(data, path, KILN_FILE_NPY, &control);
    int code = status == KILN_OK ? 0 : fail_library(WRITING);
    if (!data) kiln_matrix_free(X);
    kiln_data_free(data);
    kiln_matrix_free(wide);
    free(values);
    return code;
}

int predict_write(struct run *run, const struct prediction *p, const char *path) {
    return ends_in(path, ".npy") ? write_array(run, p, path) : write_lines(p, path);
}
