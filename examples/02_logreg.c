/* Logistic regression on a file whose target is a name: train, ask for probabilities, say what became of the
 * classes.
 *
 *   02_logreg flowers.csv species
 *
 * kiln_classes says what the columns of the probabilities stand for; kiln_data_class_name how the file calls
 * them. */
#include <kiln.h>
#include <stdio.h>
#include <stdlib.h>

static int64_t largest(const double *row, int64_t count) {
    int64_t best = 0;
    for (int64_t c = 1; c < count; c++)
        if (row[c] > row[best]) best = c;
    return best;
}

/* A model in memory predicts like one from a file. */
static kiln_status probabilities(kiln_matrix **P, kiln_device *device, const kiln_matrix *X,
                                 const kiln_matrix *W, const kiln_matrix *b, const double *values,
                                 int64_t count) {
    kiln_model *model = NULL;
    kiln_matrix *classes = NULL;
    kiln_status status = kiln_model_create(&model, "logreg");
    if (!status) status = kiln_matrix_dense(&classes, device, KILN_F64, count, 1, values);
    if (!status) status = kiln_model_set_tensor(model, "classes", classes);
    if (!status) status = kiln_model_set_tensor(model, "W", W);
    if (!status) status = kiln_model_set_tensor(model, "b", b);
    if (!status) status = kiln_predict(P, model, X);
    kiln_matrix_free(classes);
    kiln_model_free(model);
    return status;
}

/* Counts how many rows of each class are taken for it. */
static kiln_status count_right(const kiln_data *data, const kiln_matrix *P, int64_t count) {
    const int64_t rows = kiln_matrix_rows(P);
    double *p = malloc((size_t)(rows * count) * sizeof *p), *y = malloc((size_t)rows * sizeof *y);
    kiln_status status = p && y ? kiln_matrix_get(p, P) : KILN_ERR_NOMEM;
    if (!status) status = kiln_matrix_get(y, kiln_data_y(data));
    for (int64_t c = 0; !status && c < count; c++) {
        int64_t all = 0, right = 0;
        for (int64_t i = 0; i < rows; i++) {
            if (y[i] != (double)c) continue;
            all++;
            right += largest(p + i * count, count) == c;
        }
        printf("%s: %lld of %lld\n", kiln_data_class_name(data, 0, c), (long long)right, (long long)all);
    }
    free(p);
    free(y);
    return status;
}

static kiln_status fit(kiln_device *device, const char *path, const char *target) {
    const kiln_read_options reading = {.target = target, .text_targets = 1};
    const kiln_logreg_options options = {.l2 = 0.1};
    kiln_data *data = NULL;
    kiln_matrix *W = NULL, *b = NULL, *P = NULL;
    kiln_report report = {.size = sizeof report};
    double *values = NULL;
    int64_t count = 0;
    kiln_status status = kiln_data_read(&data, device, path, &reading);
    if (status) goto done;
    const kiln_matrix *X = kiln_data_X(data);
    if ((status = kiln_classes(&values, &count, kiln_data_y(data), 0))) goto done;
    const int64_t columns = count == 2 ? 1 : count; /* two classes need one column of coefficients */
    if ((status = kiln_matrix_dense(&W, device, KILN_F64, kiln_matrix_cols(X), columns, NULL))) goto done;
    if ((status = kiln_matrix_dense(&b, device, KILN_F64, 1, columns, NULL))) goto done;
    if ((status = kiln_logreg(W, b, X, kiln_data_y(data), &options, &report))) goto done;
    printf("%s after %lld steps, objective %.4f\n", report.converged ? "converged" : "stopped",
           (long long)report.iterations, report.objective);
    if ((status = probabilities(&P, device, X, W, b, values, count))) goto done;
    status = count_right(data, P, count);
done:
    kiln_report_free(&report);
    kiln_free(values);
    kiln_matrix_free(W);
    kiln_matrix_free(b);
    kiln_matrix_free(P);
    kiln_data_free(data);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s DATA TARGET\n", argv[0]);
        return 2;
    }
    kiln_device *device = NULL;
    kiln_status status = kiln_device_open(&device, "cpu", NULL);
    if (!status) status = fit(device, argv[1], argv[2]);
    if (status) fprintf(stderr, "%s\n%s\n", kiln_last_error()->message, kiln_last_error()->hint);
    kiln_device_close(device);
    return status != KILN_OK;
}
