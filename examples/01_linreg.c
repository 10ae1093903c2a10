/* Linear regression on a file, with progress, a report and a model:
 *
 *   01_linreg flights.csv.gz arr_delay flights.kiln [device]
 *
 * The shape of every program that uses Kiln: open a device, read data onto it, call an algorithm, use what it
 * returns. Each call says by its status whether it worked, and each thing that is freed may be NULL. */
#include <kiln.h>
#include <math.h>
#include <stdio.h>

/* Called once an iteration; a result other than 0 would stop the solver, which keeps what it has. */
static int show(void *user, const kiln_progress *now) {
    (void)user;
    if ((now->done & (now->done - 1)) == 0)
        fprintf(stderr, "%s %lld: residual %.2e\n", now->phase, (long long)now->done, now->residual);
    return 0;
}

static void tell(void *user, const char *text) {
    (void)user;
    fprintf(stderr, "%s\n", text);
}

/* Column names make a coefficient readable; not all formats have them. */
static void print_largest(const kiln_data *data, const double *w, int64_t n) {
    int64_t largest = 0;
    for (int64_t j = 1; j < n; j++)
        if (fabs(w[j]) > fabs(w[largest])) largest = j;
    const char *name = kiln_data_feature_name(data, largest);
    printf("largest coefficient: %s = %g\n", name ? name : "(unnamed)", w[largest]);
}

static kiln_status save(const kiln_data *data, const kiln_matrix *W, const kiln_matrix *b, const char *path) {
    kiln_model *model = NULL;
    kiln_status status = kiln_model_create(&model, "linreg");
    if (!status) status = kiln_model_set_text(model, "schema", kiln_data_schema(data));
    if (!status) status = kiln_model_set_tensor(model, "W", W);
    if (!status) status = kiln_model_set_tensor(model, "b", b);
    if (!status) status = kiln_model_save(model, path);
    kiln_model_free(model);
    return status;
}

static kiln_status fit(kiln_device *device, const char *path, const char *target, const char *model_path) {
    const kiln_read_options reading = {.target = target};
    const kiln_linreg_options options = {.l2 = 1, .control = {show, NULL}};
    kiln_data *data = NULL;
    kiln_matrix *W = NULL, *b = NULL;
    kiln_report report = {.size = sizeof report};
    kiln_status status = kiln_data_read(&data, device, path, &reading);
    if (status) goto done;
    const kiln_matrix *X = kiln_data_X(data), *y = kiln_data_y(data);
    const int64_t n = kiln_matrix_cols(X);
    double w[1024];
    printf("%lld rows, %lld columns\n", (long long)kiln_matrix_rows(X), (long long)n);
    if ((status = kiln_matrix_dense(&W, device, KILN_F64, n, kiln_matrix_cols(y), NULL))) goto done;
    if ((status = kiln_matrix_dense(&b, device, KILN_F64, 1, kiln_matrix_cols(y), NULL))) goto done;
    if ((status = kiln_linreg(W, b, X, y, &options, &report))) goto done;
    printf("%s after %lld iterations (%s), R2 = %.4f\n", report.converged ? "converged" : "stopped",
           (long long)report.iterations, kiln_stop_name(report.stopped_by),
           kiln_report_figure(&report, "r2"));
    if (n <= 1024 && kiln_matrix_cols(y) == 1 && !(status = kiln_matrix_get(w, W))) print_largest(data, w, n);
    if (!status) status = save(data, W, b, model_path);
done:
    kiln_report_free(&report);
    kiln_matrix_free(W);
    kiln_matrix_free(b);
    kiln_data_free(data);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s DATA TARGET MODEL [DEVICE]\n", argv[0]);
        return 2;
    }
    const kiln_device_options options = {.message = tell};
    kiln_device *device = NULL;
    kiln_status status = kiln_device_open(&device, argc > 4 ? argv[4] : "auto", &options);
    if (!status) status = fit(device, argv[1], argv[2], argv[3]);
    if (status) fprintf(stderr, "%s\n%s\n", kiln_last_error()->message, kiln_last_error()->hint);
    kiln_device_close(device);
    return status != KILN_OK;
}
