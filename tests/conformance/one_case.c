/* One problem against its reference: run, compare every result, look after the operands, run again.
 *
 * Results start as NaN, so that an element which was not written shows; what is only read must keep its bits,
 * and nothing may be written past the last result. */
#include "suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double CANARY = 4711;

static void fail(struct outcome *outcome, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct outcome *outcome, const char *format, ...) {
    va_list args;
    if (!outcome->passed) return;
    outcome->passed = false;
    va_start(args, format);
    vsnprintf(outcome->why, sizeof outcome->why, format, args);
    va_end(args);
}

static bool succeeded(struct outcome *outcome, kiln_status status, const char *what) {
    if (status != KILN_OK)
        fail(outcome, "%s: %s: %s", what, kiln_status_name(status), kiln_last_error()->message);
    return status == KILN_OK;
}

static size_t value_bytes(const struct host_matrix *h) {
    return (size_t)h->nnz * (h->type == KILN_F32 ? 4 : 8);
}

/* The values of every result of one run, in the type of its matrix, or double for the scalars. */
struct results {
    void *values[RESULTS];
    size_t bytes[RESULTS]; /* 0 = no such result */
};

static void results_new(struct results *results, struct work *work, const struct expected *expected) {
    for (int r = 0; r < RESULTS; r++) {
        const struct operand *A = work_result(work, (enum result)r);
        results->bytes[r] = A && A->matrix                ? value_bytes(&A->host)
                            : !A && expected[r].count > 0 ? sizeof work->scalars
                                                          : 0;
        results->values[r] = calloc(1, results->bytes[r] + 1);
    }
}

static void results_free(struct results *results) {
    for (int r = 0; r < RESULTS; r++) free(results->values[r]);
}

/* Runs the operation once from the same start and hands out what it computed. */
static bool run_once(struct outcome *outcome, const struct operation *operation, struct work *work,
                     struct results *results) {
    for (int c = 0; c <= MOST_COLUMNS; c++) work->scalars[c] = CANARY;
    for (int r = 0; r < RESULTS; r++) {
        const struct operand *A = work_result(work, (enum result)r);
        if (A && A->matrix && !succeeded(outcome, kiln_matrix_set(A->matrix, A->host.values), "reset"))
            return false;
    }
    if (!succeeded(outcome, operation->run(work), "run")) return false;
    if (!succeeded(outcome, kiln_device_sync(work->device), "sync")) return false;
    for (int r = 0; r < RESULTS; r++) {
        const struct operand *A = work_result(work, (enum result)r);
        if (A && A->matrix && !succeeded(outcome, kiln_matrix_get(results->values[r], A->matrix), "get"))
            return false;
        if (!A && results->bytes[r]) memcpy(results->values[r], work->scalars, sizeof work->scalars);
    }
    return true;
}

/* One result against what was expected of it; the worst of several stays in the outcome. */
static void compare(struct outcome *outcome, const struct expected *expected, enum result result,
                    kiln_type type, const void *got) {
    static const char *const names[RESULTS] = {"", "sums: ", "curvature: ", "number: "};
    struct host_matrix values = {.type = type, .values = (void *)(uintptr_t)got};
    int64_t worst;
    double ratio = error_ratio(&worst, expected, type, got);
    if (!(ratio <= expected->gate))
        fail(outcome, "%selement %lld is %.17g, not %.17g: error ratio %.4g, allowed %.4g", names[result],
             (long long)worst, host_get(&values, worst), (double)expected->value[worst], ratio,
             expected->gate);
    if (outcome->gate == 0 || ratio * outcome->gate > outcome->ratio * expected->gate) {
        outcome->ratio = ratio;
        outcome->gate = expected->gate;
    }
    for (int64_t c = expected->count; result == RESULT_SCALARS && c <= MOST_COLUMNS; c++)
        if (((const double *)got)[c] != CANARY)
            fail(outcome, "wrote past the last result, at %lld", (long long)c);
}

static void compare_results(struct outcome *outcome, const struct expected *expected, struct work *work,
                            const struct results *got) {
    for (int r = 0; r < RESULTS; r++) {
        if ((got->bytes[r] > 0) != (expected[r].count > 0))
            fail(outcome, "the case expects %lld elements of a result of %zu bytes",
                 (long long)expected[r].count, got->bytes[r]);
        else if (got->bytes[r] > 0)
            compare(outcome, &expected[r], (enum result)r, r == RESULT_SCALARS ? KILN_F64 : work->type,
                    got->values[r]);
    }
}

static void compare_operand(struct outcome *outcome, const struct operand *A, const char *name) {
    if (!A->matrix || A->alias || !A->host.values) return;
    size_t bytes = value_bytes(&A->host);
    void *now = calloc(1, bytes + 1);
    kiln_status status =
        A->host.row_start ? kiln_matrix_get_csr(NULL, NULL, now, A->matrix) : kiln_matrix_get(now, A->matrix);
    if (succeeded(outcome, status, name) && memcmp(now, A->host.values, bytes) != 0)
        fail(outcome, "the operand %s was changed", name);
    free(now);
}

static void repeat(struct outcome *outcome, const struct operation *operation, struct work *work,
                   const struct expected *expected, const struct results *first) {
    struct results second;
    results_new(&second, work, expected);
    if (run_once(outcome, operation, work, &second))
        for (int r = 0; r < RESULTS; r++)
            if (memcmp(first->values[r], second.values[r], first->bytes[r]) != 0)
                fail(outcome, "a second run gave other bits");
    results_free(&second);
}

struct outcome run_case(const struct operation *operation, const struct problem *problem, kiln_device *device,
                        kiln_type type, bool atomics) {
    struct work work = {.problem = problem, .device = device, .type = type};
    struct outcome outcome = {.passed = true};
    struct expected expected[RESULTS] = {{0}};
    struct results got = {{NULL}, {0}};
    if (!succeeded(&outcome, operation->prepare(&work), "prepare")) goto done;
    if (!succeeded(&outcome, work_fetch(&work), "fetch")) goto done;
    operation->expect(expected, &work);
    results_new(&got, &work, expected);
    if (!run_once(&outcome, operation, &work, &got)) goto done;
    compare_results(&outcome, expected, &work, &got);
    const struct {
        const struct operand *A;
        const char *name;
    } read[] = {{&work.X, "X"},           {&work.v, "v"},           {&work.y, "y"},
                {&work.z, "z"},           {&work.target, "target"}, {&work.weights, "weights"},
                {&work.offset, "offset"}, {&work.shift, "shift"}};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        compare_operand(&outcome, read[i].A, read[i].name);
    if (!(atomics && problem->format == KILN_CSR)) repeat(&outcome, operation, &work, expected, &got);
done:
    for (int r = 0; r < RESULTS; r++) expected_free(&expected[r]);
    results_free(&got);
    work_free(&work);
    return outcome;
}
