/* This file says what is to be measured: checked, and where the host can read it. */
#include "bodies/bodies.h"
#include "core/memory.h"
#include "core/seams.h"
#include "core/sized.h"
#include "core/status.h"
#include "metrics/metrics.h"
#include "ops/linear/families.h"

static void name(struct ki_home *home, const kiln_matrix *matrix) {
    home->matrix = matrix;
    home->single = matrix && matrix->type == KILN_F32;
}

static kiln_status bring(struct ki_home *home) {
    const kiln_matrix *matrix = home->matrix;
    kiln_status status = KILN_OK;
    if (!matrix) return KILN_OK;
    if (ki_on_cpu(matrix->device) && !matrix->here) {
        TRY(ki_operands_hold(matrix->device, &(struct ki_operand){matrix, false}, 1));
        home->values = ki_host(&matrix->values);
    } else {
        home->copy = ki_alloc((size_t)(matrix->nnz * ki_type_bytes(matrix->type)));
        if (!home->copy)
            return ki_fail_nomem((size_t)(matrix->nnz * ki_type_bytes(matrix->type)), "predictions");
        TRY(kiln_matrix_get(home->copy, matrix));
        home->values = home->copy;
    }
done:
    return status;
}

static void let_go(const struct ki_home *home) {
    if (home->values && !home->copy)
        ki_operands_release(home->matrix->device, &(struct ki_operand){home->matrix, false}, 1);
    ki_free(home->copy);
}

/* ------------------------------------------------------------------------------------- on a device */

enum { OPERANDS = 4, CELLS_MOST = 1 << 24 };

static void list(struct ki_operand operands[OPERANDS], const struct ki_measured *of) {
    const struct ki_home *const homes[OPERANDS] = {&of->eta, &of->y, &of->weights, &of->means};
    for (int i = 0; i < OPERANDS; i++) operands[i] = (struct ki_operand){homes[i]->matrix, false};
}

/* Returns whether it may be measured where Eta lies: a GPU that knows doubles and has all operands, in room
 * for them and the ranks. */
static bool stays(const struct ki_measured *of) {
    kiln_device *device = of->eta.matrix->device;
    struct ki_operand operands[OPERANDS];
    int64_t bytes = ki_is_ranked(of) ? of->rows * KI_RANKED_BYTES : 0;
    if (ki_on_cpu(device) || !device->properties.has_f64 || of->options.curves) return false;
    if ((of->classes + 1) * of->classes > CELLS_MOST) return false;
    list(operands, of);
    for (int i = 0; i < OPERANDS; i++) {
        const kiln_matrix *matrix = operands[i].matrix;
        if (matrix && (matrix->device != device || matrix->here)) return false;
        if (matrix) bytes += matrix->nnz * ki_type_bytes(matrix->type);
    }
    return bytes <= ki_memory_room(device);
}

static kiln_status hold(struct ki_measured *of) {
    struct ki_operand operands[OPERANDS];
    list(operands, of);
    const kiln_status status = ki_operands_hold(of->eta.matrix->device, operands, OPERANDS);
    if (status == KILN_OK) of->on = of->eta.matrix->device;
    return status;
}

static void release(const struct ki_measured *of) {
    struct ki_operand operands[OPERANDS];
    list(operands, of);
    ki_operands_release(of->on, operands, OPERANDS);
}

static const char call[] = "kiln_metrics_of";

static kiln_status check(const char *name, const kiln_matrix *A, int64_t rows, int64_t cols) {
    if (!A) return KILN_OK;
    if (A->format == KILN_DENSE && A->rows == rows && A->cols == cols) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "%s: %s is %s%lld x %lld, but must be dense, %lld x %lld", call, name,
                   A->format == KILN_DENSE ? "" : "sparse, ", (long long)A->rows, (long long)A->cols,
                   (long long)rows, (long long)cols);
}

/* Returns how many classes a loss with predictors of k columns tells apart; 0: it predicts numbers. */
static int64_t classes_of(const kiln_loss *loss, int64_t k) {
    if (loss->kind == KILN_LOSS_SOFTMAX) return k;
    const bool classifier = loss->kind == KILN_LOSS_LOGISTIC || loss->kind == KILN_LOSS_SQUARED_HINGE;
    return !classifier ? 0 : k == 1 ? 2 : k;
}

/* The columns that are measured: all of Eta, or those asked for. */
static kiln_status take_columns(struct ki_measured *of) {
    const int64_t first = of->options.first, columns = of->options.columns;
    of->first = first;
    of->columns = columns ? columns : of->wide;
    if (first >= 0 && columns >= 0 && first <= of->wide - of->columns) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "%s: Eta has %lld columns, and not %lld from number %lld on", call,
                   (long long)of->wide, (long long)columns, (long long)first);
}

static kiln_status check_classes(const struct ki_measured *of) {
    const kiln_metrics_options *options = &of->options;
    if (of->loss.kind == KILN_LOSS_SOFTMAX && of->columns < 2)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: Eta has %lld columns, but softmax has a column for each class",
                       call, (long long)of->columns);
    if ((of->loss.kind == KILN_LOSS_LOGISTIC || of->loss.kind == KILN_LOSS_GLM) && of->columns != 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: Eta has %lld columns, but this loss has one", call,
                       (long long)of->columns);
    if (options->classes && options->class_count != of->classes)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: class_count is %lld, but Eta tells %lld classes apart", call,
                       (long long)options->class_count, (long long)of->classes);
    for (int64_t i = 1; options->classes && i < of->classes; i++)
        if (!(options->classes[i] > options->classes[i - 1]))
            return ki_fail(KILN_ERR_ARGUMENT, "%s: the classes do not ascend", call);
    return KILN_OK;
}

kiln_status ki_measured_take(struct ki_measured *of, const kiln_loss *loss, const kiln_matrix *Eta,
                             const kiln_metrics_options *options) {
    kiln_status status;
    TRY(KI_TAKE(kiln_metrics_options, &of->options, options));
    TRY(ki_loss_resolve(call, &of->loss, loss));
    if (Eta->format != KILN_DENSE) return ki_fail(KILN_ERR_ARGUMENT, "%s: Eta must be dense", call);
    if (Eta->cols == 0) return ki_fail(KILN_ERR_ARGUMENT, "%s: Eta has no columns", call);
    of->rows = Eta->rows;
    of->wide = Eta->cols;
    TRY(take_columns(of));
    of->classes = classes_of(&of->loss, of->columns);
    of->threads = Eta->device->threads;
    of->bodies = ki_bodies_for(Eta->device, KILN_F64);
    TRY(check_classes(of));
    if (!of->loss.y) return ki_fail(KILN_ERR_ARGUMENT, "%s: the loss has no y", call);
    TRY(check("the loss's y", of->loss.y, of->rows, of->classes ? 1 : of->columns));
    TRY(check("the loss's weights", of->loss.weights, of->rows, 1));
    TRY(check("the loss's offset", of->loss.offset, of->rows, 1));
    TRY(check("means", of->options.means, of->rows, of->columns));
    name(&of->eta, Eta);
    name(&of->y, of->loss.y);
    name(&of->weights, of->loss.weights);
    name(&of->means, of->options.means);
    if (!of->at_home && stays(of)) {
        status = hold(of);
        if (status != KILN_ERR_DEVICE_NOMEM) return status; /* others may have taken the room meanwhile */
    }
    TRY(bring(&of->eta));
    TRY(bring(&of->y));
    TRY(bring(&of->weights));
    TRY(bring(&of->means));
done:
    return status;
}

void ki_measured_free(struct ki_measured *of) {
    if (of->on) release(of);
    let_go(&of->eta);
    let_go(&of->y);
    let_go(&of->weights);
    let_go(&of->means);
}
