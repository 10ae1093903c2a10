/* This file says of every operation that its results have the same bits whether a CPU keeps the values of its
 * dense operands wide or narrow, written ones and those that it has for itself among them: whoever takes
 * narrow values as they are adds them up as wide ones, and whoever does not has them widened. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "core/codes/codes.h"
#include "core/device.h"

enum { ENTRIES = 60000 }; /* several windows of a pass, too */

/* Values with a mantissa of 8 bits, which bf16 has: whole numbers and signs stay what they are. */
static void round_values(kiln_matrix *A) {
    const int64_t size = ki_type_bytes(A->type);
    for (int64_t i = 0; ki_matrix_resident(A) && i < A->nnz; i++) {
        char *at = (char *)ki_host(&A->values) + i * size;
        uint64_t wide = 0;
        memcpy(&wide, at, (size_t)size);
        wide &= size == 4 ? 0xffff0000u : ~(uint64_t)0 << 45;
        memcpy(at, &wide, (size_t)size);
    }
}

/* Whether it is a part of a matrix that keeps categories as codes. */
static bool is_hidden(const kiln_matrix *A) {
    const kiln_matrix *X = A->device->memory.oldest;
    while (X && !(X->codes && (X->codes->numbers == A || X->codes->words == A))) X = X->newer;
    return X;
}

/* To every dense matrix of the device. Returns how many have become narrow. */
static int each_dense(kiln_device *device, bool narrow) {
    int count = 0;
    for (kiln_matrix *A = device->memory.oldest; A; A = A->newer) {
        int narrowed = 0;
        if (A->format != KILN_DENSE || is_hidden(A)) continue;
        if (!narrow) round_values(A);
        if (narrow && kiln_matrix_narrow(A, KILN_ELEMENT_TYPE, &narrowed) == KILN_OK) count += narrowed;
    }
    return count;
}

struct side {
    kiln_device *device;
    struct work work;
    kiln_status status;
};

static void run_side(struct side *side, const struct operation *operation, int *narrowed) {
    side->status = operation->prepare(&side->work);
    if (side->status != KILN_OK) return;
    each_dense(side->device, false);
    if (narrowed) *narrowed += each_dense(side->device, true);
    side->status = operation->run(&side->work);
}

static bool same_result(struct side sides[2], enum result result) {
    const struct operand *a = work_result(&sides[0].work, result), *b = work_result(&sides[1].work, result);
    if (!a) return !memcmp(sides[0].work.scalars, sides[1].work.scalars, sizeof sides[0].work.scalars);
    if (!a->matrix) return true;
    const size_t bytes = (size_t)(kiln_matrix_nnz(a->matrix) * ki_type_bytes(a->matrix->type));
    void *wide = malloc(bytes + 1), *narrow = malloc(bytes + 1);
    const bool same = kiln_matrix_get(wide, a->matrix) == KILN_OK &&
                      kiln_matrix_get(narrow, b->matrix) == KILN_OK && !memcmp(wide, narrow, bytes);
    free(wide);
    free(narrow);
    return same;
}

static void compare(struct check_context *context, const struct operation *operation,
                    const struct problem *problem, int *narrowed) {
    char text[200];
    struct side sides[2];
    bool same = true;
    problem_describe(text, sizeof text, problem);
    for (int i = 0; i < 2; i++) {
        sides[i] = (struct side){.work = {.problem = problem, .type = context->type}};
        const kiln_device_options options = {.threads = context->device->options.threads};
        sides[i].status = kiln_device_open(&sides[i].device, "cpu", &options);
        sides[i].work.device = sides[i].device;
        if (sides[i].status == KILN_OK) run_side(&sides[i], operation, i ? narrowed : NULL);
    }
    same = sides[0].status == sides[1].status;
    for (int r = 0; r < RESULTS && same && sides[0].status == KILN_OK; r++)
        same = same_result(sides, (enum result)r);
    check_report(context, same, "narrow: %s: %s: other bits than wide (%s)", operation->name, text,
                 kiln_status_name(sides[1].status));
    for (int i = 0; i < 2; i++) {
        work_free(&sides[i].work);
        kiln_device_close(sides[i].device);
    }
}

static void run(struct check_context *context) {
    for (int i = 0; operations[i]; i++) {
        struct problem_list list = {.entries_max = ENTRIES, .thin = true, .sampled = true};
        int narrowed = 0;
        operations[i]->list(&list);
        list.sampled = false; /* of few problems the sample has none */
        if (list.count == 0) operations[i]->list(&list);
        for (int64_t p = 0; p < list.count; p++)
            compare(context, operations[i], &list.problems[p], &narrowed);
        check_report(context, narrowed > 0, "narrow: %s: no operand has been narrow", operations[i]->name);
        free(list.problems);
    }
}

const struct check check_narrow = {
    .name = "narrow", .run = run, .only_cpu = "it alone keeps narrow values", .single = true};
