/* kiln predict: one row of predictions a line, and how good they are where the data tell. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "output.h"
#include "progress.h"
#include "verbs.h"

struct prediction {
    kiln_model *model;
    kiln_data *data;
    kiln_matrix *P;
    double *values, *labels; /* rows x targets; labels NULL if the data have none */
    int64_t rows, targets;
    bool single; /* the values are of 32 bits */
    double rss, rmse, r2;
};

/* R2 = 1 - RSS / TSS over all targets, each about its own mean. */
static void measure(struct prediction *p) {
    double tss = 0;
    for (int64_t j = 0; j < p->targets; j++) {
        double mean = 0;
        for (int64_t i = 0; i < p->rows; i++) mean += p->labels[i * p->targets + j] / (double)p->rows;
        for (int64_t i = j; i < p->rows * p->targets; i += p->targets) {
            p->rss += (p->labels[i] - p->values[i]) * (p->labels[i] - p->values[i]);
            tss += (p->labels[i] - mean) * (p->labels[i] - mean);
        }
    }
    p->rmse = sqrt(p->rss / (double)(p->rows * p->targets));
    p->r2 = tss > 0 ? 1 - p->rss / tss : NAN;
}

static int predict(struct run *run, struct prediction *p) {
    kiln_type type = type_of(run->settings->type), stored;
    int64_t rows, cols;
    int code;
    if ((code = run_load_model(&p->model, run->arguments[0])) || (code = run_open_device(run, "auto")))
        return code;
    if (type == KILN_TYPE_DEFAULT && model_tensor_shape(p->model, "W", &stored, &rows, &cols)) type = stored;
    if ((code = run_read(run, &p->data, run->arguments[1], type, p->model))) return code;
    kiln_device_statistics before;
    kiln_device_get_statistics(run->device, &before);
    double start = clock_seconds();
    if (kiln_predict(&p->P, p->model, kiln_data_X(p->data)) != KILN_OK) return fail_library(USING_MODEL);
    p->rows = kiln_matrix_rows(p->P);
    p->targets = kiln_matrix_cols(p->P);
    p->single = kiln_matrix_type(p->P) == KILN_F32;
    if (!(p->values = values_of(p->P, &code))) return code;
    run->seconds.solve = run_account(run, &before, clock_seconds() - start);
    const kiln_matrix *y = kiln_data_y(p->data);
    if (!y || kiln_matrix_cols(y) != p->targets || !p->rows) return 0;
    if (!(p->labels = values_of(y, &code))) return code;
    measure(p);
    return 0;
}

static int write_lines(const struct prediction *p, const char *path) {
    struct output output;
    int code = output_open(&output, path);
    if (code) return code;
    char text[SHORTEST_ROOM + 1];
    for (int64_t i = 0; i < p->rows && !ferror(output.file) && !talk_interrupted(); i++)
        for (int64_t j = 0; j < p->targets; j++) {
            int length = text_shortest(text, p->values[i * p->targets + j], p->single);
            text[length++] = j + 1 < p->targets ? ' ' : '\n';
            fwrite(text, 1, (size_t)length, output.file);
        }
    if (!talk_interrupted()) return output_commit(&output);
    output_abandon(&output);
    return fail_with(KILN_ERR_CANCELLED, WRITING, "", "interrupted; no predictions were written");
}

static json_t *values_json(const struct prediction *p) {
    json_t *array = json_array();
    for (int64_t i = 0; i < p->rows; i++) {
        json_t *row = p->targets == 1 ? json_number_or_null(p->values[i]) : json_array();
        for (int64_t j = 0; p->targets != 1 && j < p->targets; j++)
            json_add(row, json_number_or_null(p->values[i * p->targets + j]));
        json_add(array, row);
    }
    return array;
}

static int tell_json(struct run *run, const struct prediction *p) {
    json_t *object = run_json(run, "kiln.prediction/1");
    json_put_text(object, "algorithm", kiln_model_text(p->model, "algorithm"));
    run_json_device(run, object);
    run_json_shape(object, kiln_data_X(p->data));
    json_put_count(object, "targets", p->targets);
    json_t *metrics = p->labels ? json_object() : json_null();
    if (p->labels) {
        json_put_number(metrics, "r2", p->r2);
        json_put_number(metrics, "rss", p->rss);
        json_put_number(metrics, "rmse", p->rmse);
    }
    json_put(object, "metrics", metrics);
    json_put_text(object, "output", run->settings->output);
    run_json_seconds(run, object);
    if (!run->settings->output) json_put(object, "predictions", values_json(p));
    return json_print(object);
}

int verb_predict(struct run *run) {
    struct prediction p = {0};
    const char *output = run->settings->output;
    int code = run_check_output(output);
    if (!code) code = predict(run, &p);
    double start = clock_seconds();
    progress_clear();
    if (!code && (output || !talk_json())) code = write_lines(&p, output);
    run->seconds.write = clock_seconds() - start;
    if (!code && p.labels)
        say("predicted %s: R2 %s, RMSE %s, RSS %s", text_plural(p.rows, "row"), text_number(p.r2),
            text_number(p.rmse), text_number(p.rss));
    else if (!code)
        say("predicted %s; the data have no targets to compare with", text_plural(p.rows, "row"));
    if (!code && talk_json()) code = tell_json(run, &p);
    free(p.values);
    free(p.labels);
    kiln_matrix_free(p.P);
    kiln_data_free(p.data);
    kiln_model_free(p.model);
    return code;
}
