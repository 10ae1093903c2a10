/* A pass: its operands on the device, X with them or in panels, and the CPU body or GPU kernels. Before it,
 * the checks that all operations share. */
#include "pass/chain.h"
#include "pass/rows.h"

#include "bodies/bodies.h"
#include "core/group/group.h"
#include "core/narrow/narrow.h"
#include "core/processes.h"
#include "pass/combine.h"
#include "pass/group.h"
#include "pass/launch.h"
#include "pass/roles.h"

kiln_status ki_check_passed(const char *call, const char *name, const kiln_matrix *A,
                            const kiln_matrix *like) {
    if (!A) return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is NULL", call, name);
    if (A->device != like->device)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s lies on device %s, another operand on %s", call, name,
                       A->device->info.name, like->device->info.name);
    if (A->device->lost) return kiln_device_sync(A->device);
    if (A->type != like->type)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is %s, another operand is %s", call, name,
                       ki_type_name(A->type), ki_type_name(like->type));
    return KILN_OK;
}

static kiln_status check_operand(const char *call, const char *name, const kiln_matrix *A,
                                 const kiln_matrix *like) {
    const kiln_status status = ki_check_passed(call, name, A, like);
    if (status != KILN_OK) return status;
    if (ki_on_cpu(A->device) && A->streams) {
        ki_fail(KILN_ERR_UNSUPPORTED, "%s: %s lies in a file, and only passes over it are possible", call,
                name);
        return ki_hint("read the file without mapping it");
    }
    return ki_matrix_widen(A);
}

kiln_status ki_check_operand(const char *call, const char *name, const kiln_matrix *A,
                             const kiln_matrix *like) {
    const kiln_status status = check_operand(call, name, A, like);
    return status == KILN_OK ? ki_matrix_home(A) : status;
}

kiln_status ki_check_rows(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *like,
                          int64_t rows, int64_t cols) {
    kiln_status status = check_operand(call, name, A, like);
    if (status != KILN_OK) return status;
    if (A->here) return ki_matrix_fail_away(A); /* what is shared does not come here */
    if (A->format != KILN_DENSE) return ki_fail(KILN_ERR_ARGUMENT, "%s: %s must be dense", call, name);
    if (A->rows != rows || A->cols != cols)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is %lld x %lld, but must be %lld x %lld", call, name,
                       (long long)A->rows, (long long)A->cols, (long long)rows, (long long)cols);
    return KILN_OK;
}

kiln_status ki_check_dense(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *like,
                           int64_t rows, int64_t cols) {
    const kiln_status status = ki_check_rows(call, name, A, like, rows, cols);
    return status == KILN_OK ? ki_matrix_home(A) : status;
}

kiln_status ki_check_wide(const char *call, const char *name, const kiln_matrix *A, const kiln_matrix *like,
                          int64_t rows, int64_t cols) {
    const kiln_type widest = ki_wide_type(like->device);
    if (like->device->lost) return kiln_device_sync(like->device);
    const bool fits = rows < 0 ? A->rows >= -rows : A->rows == rows;
    if (A->device == like->device && A->type == widest && A->format == KILN_DENSE && fits && A->cols == cols)
        return ki_matrix_widen(A);
    return ki_fail(KILN_ERR_ARGUMENT, "%s: %s must be dense, %s, %lld%s x %lld, on device %s", call, name,
                   ki_type_name(widest), (long long)(rows < 0 ? -rows : rows), rows < 0 ? " or more" : "",
                   (long long)cols, like->device->info.name);
}

kiln_status ki_check_single(const char *call, const kiln_device *device) {
    if (!device || !ki_device_shares(device)) return KILN_OK;
    if (device->processes)
        return ki_fail(KILN_ERR_UNSUPPORTED, "%s: this operation cannot be split over processes", call);
    ki_fail(KILN_ERR_UNSUPPORTED, "%s: %s is a group of devices, over which this operation cannot be split",
            call, device->info.name);
    return ki_hint("--device %s: one of them", device->group->own.name);
}

kiln_status ki_check_columns(const char *call, const char *name, int64_t k) {
    if (k >= 1 && k <= KI_COLUMNS_MAX) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "%s: %s has %lld columns, but must have 1 to %d", call, name,
                   (long long)k, KI_COLUMNS_MAX);
}

kiln_status ki_mmchain_check(struct ki_chain *chain, const char *call, kiln_matrix *w, double alpha,
                             const kiln_matrix *X, const kiln_matrix *v, const kiln_matrix *y, double beta,
                             const kiln_matrix *z) {
    kiln_status status;
    if (!w || !X || !y) return ki_fail(KILN_ERR_ARGUMENT, "%s: w, X or y is NULL", call);
    TRY(ki_check_columns(call, "y", y->cols));
    TRY(ki_check_dense(call, "y", y, X, X->cols, y->cols));
    TRY(ki_check_dense(call, "w", w, X, X->cols, y->cols));
    if (v) TRY(ki_check_rows(call, "v", v, X, X->rows, v->cols == 1 ? 1 : y->cols));
    if (z) TRY(ki_check_dense(call, "z", z, X, X->cols, y->cols));
    if (w == y || w == v || w == X) return ki_fail(KILN_ERR_ARGUMENT, "%s: w must not be y, v or X", call);
    *chain = (struct ki_chain){.kind = KI_CHAIN_FUSED,
                               .out = w,
                               .alpha = alpha,
                               .beta = beta,
                               .X = X,
                               .v = v,
                               .y = y,
                               .z = beta != 0 ? z : NULL,
                               .k = (int)y->cols};
done:
    return status;
}

/* out = beta z where X has no entries at all. */
static kiln_status without_entries(const struct ki_chain *chain) {
    if (!chain->z) return ki_set_all(chain->out, 0.0);
    return ki_combine_all(chain->out, chain->beta, chain->z, 0, NULL);
}

static kiln_status run_here(const void *of) {
    const struct ki_chain *chain = of;
    const kiln_matrix *X = chain->X;
    const bool plain = chain->map == KI_ROW_SCALE && !chain->sums && !chain->products;
    if (X->nnz == 0 && plain) return without_entries(chain);
    return ki_on_cpu(X->device) ? ki_chain_bodies(chain)->chain(chain) : ki_chain_gpu(chain);
}

static void go_on(void *of) {
    struct ki_chain *slice = of;
    slice->z = slice->out;
    slice->beta = 1;
}

static kiln_status run_single(const void *of) {
    const struct ki_chain *chain = of;
    const kiln_matrix *X = chain->X;
    return ki_run_single(&(struct ki_single){.rules = &ki_chain_rules,
                                             .kind = (int)chain->kind,
                                             .whole = chain,
                                             .sums = chain->value != NULL,
                                             .codes = true,
                                             .narrow = ki_on_cpu(X->device) || X->format == KILN_CSR ||
                                                       !X->element || ki_dense_gains_narrow(chain),
                                             .walked = X->cols * chain->k * ki_type_bytes(X->type),
                                             .run = run_here,
                                             .go_on = go_on});
}

kiln_status ki_chain_run(const struct ki_chain *chain) {
    if (!ki_is_split(chain->X)) return run_single(chain);
    return ki_share(&(struct ki_shared){.rules = &ki_chain_rules,
                                        .kind = (int)chain->kind,
                                        .whole = chain,
                                        .sums = chain->value != NULL,
                                        .narrow = true,
                                        .run = run_single});
}
