/* Held-out predictions: of each row by the model that was trained without its fold, with the penalty that was
 * chosen in the end. It is known at the end only, so those of all values are kept until then. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cv.h"
#include "output.h"

/* Two classes have one column, more have one for each of them; numbers have one for each target. */
static int64_t columns_of(const struct training *job) {
    return kiln_matrix_cols(job->W);
}

static bool has_probabilities(const struct training *job) {
    return job->loss.kind == KILN_LOSS_LOGISTIC || job->loss.kind == KILN_LOSS_SOFTMAX;
}

int cv_held_out_new(struct validation *validation, const struct training *job) {
    const int64_t rows = kiln_matrix_rows(kiln_data_X(job->data)), columns = columns_of(job);
    if (!job->settings->held_out) return 0;
    validation->held_out = calloc((size_t)(rows * columns), (size_t)validation->count * sizeof(double));
    if (validation->held_out) return 0;
    return fail_with(KILN_ERR_NOMEM, WORKING, "fewer values of the penalty, or no --held-out",
                     "out of memory for the held-out predictions of %s",
                     text_plural(validation->count, "value"));
}

void cv_held_out_keep(const struct validation *validation, const struct training *job, int64_t value,
                      const struct fitted *fitted, const int64_t *rows) {
    const int64_t all = kiln_matrix_rows(kiln_data_X(job->data)), columns = columns_of(job);
    const double *from =
        job->classes.count && job->loss.kind != KILN_LOSS_SOFTMAX ? fitted->scores : fitted->means;
    /* The score's sign tells two classes apart; softmax's probabilities do that, too. */
    double *to = validation->held_out ? validation->held_out + value * all * columns : NULL;
    for (int64_t i = 0; to && i < fitted->rows; i++)
        memcpy(to + rows[i] * columns, from + i * fitted->wide, (size_t)columns * sizeof *to);
}

/* ---------------------------------------------------------------------------------------- writing */

static void put_number(FILE *file, double number) {
    char text[SHORTEST_ROOM];
    text_shortest(text, number, 0);
    fprintf(file, ",%s", text);
}

/* A field of CSV, which begins with `before`. */
static void put_text(FILE *file, const char *before, const char *text) {
    const bool quoted = text[strcspn(text, ",\"\r\n")];
    fprintf(file, quoted ? ",\"%s" : ",%s", before);
    for (; *text; text++) fprintf(file, *text == '"' ? "\"\"" : "%c", *text);
    if (quoted) fputc('"', file);
}

/* The name of target c: the data's, or its number. */
static const char *target_name(const struct training *job, int64_t c, char buffer[SHORTEST_ROOM]) {
    const char *name = kiln_data_target_name(job->data, c);
    snprintf(buffer, SHORTEST_ROOM, "%lld", (long long)c + 1);
    return name ? name : buffer;
}

static void put_head(FILE *file, const struct training *job) {
    const int64_t columns = columns_of(job);
    char buffer[SHORTEST_ROOM];
    fputs(columns == 1 || job->classes.count ? "row,fold,target,predicted" : "row,fold", file);
    for (int64_t c = 0; c < columns && job->classes.count; c++)
        put_text(file, has_probabilities(job) ? "probability " : "decision ",
                 classes_name(&job->classes, columns == 1 ? 1 : c, buffer));
    for (int64_t c = 0; c < columns && columns > 1 && !job->classes.count; c++) {
        put_text(file, "target ", target_name(job, c, buffer));
        put_text(file, "predicted ", target_name(job, c, buffer));
    }
    fputc('\n', file);
}

static void put_row(FILE *file, const struct training *job, const double *kept, const double *truth) {
    const int64_t columns = columns_of(job);
    const bool logistic = job->loss.kind == KILN_LOSS_LOGISTIC;
    char buffer[SHORTEST_ROOM];
    if (job->classes.count) {
        put_text(file, "", classes_name(&job->classes, classes_find(&job->classes, truth[0]), buffer));
        put_text(file, "", classes_name(&job->classes, class_of_scores(kept, columns), buffer));
    }
    for (int64_t c = 0; c < columns; c++) {
        if (!job->classes.count) put_number(file, truth[c]);
        put_number(file, logistic ? 1 / (1 + exp(-kept[c])) : kept[c]);
    }
    fputc('\n', file);
}

int cv_held_out_write(const struct validation *validation, const struct training *job, int64_t value) {
    const char *path = job->settings->held_out;
    const int64_t rows = kiln_matrix_rows(kiln_data_X(job->data)), columns = columns_of(job);
    const int64_t targets = kiln_matrix_cols(kiln_data_y(job->data));
    struct output output;
    int code = 0;
    if (!path) return 0;
    double *truth = values_of(kiln_data_y(job->data), &code);
    if (!code) code = output_open(&output, path);
    if (!code) {
        put_head(output.file, job);
        for (int64_t i = 0; i < rows && !ferror(output.file); i++) {
            if (validation->fold[i] >= validation->finished) continue;
            fprintf(output.file, "%lld,%d", (long long)i + 1, validation->fold[i] + 1);
            put_row(output.file, job, validation->held_out + (value * rows + i) * columns,
                    truth + i * targets);
        }
        code = output_commit(&output);
    }
    free(truth);
    return code;
}
