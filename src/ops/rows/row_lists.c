/* Lists of few rows of the caller's memory: the checks of kiln_list_rows, and its rows one by one. Nothing
 * here allocates. */
#include "bodies/bodies.h"
#include "core/sized.h"
#include "core/size.h"
#include "ops/rows/few_rows.h"
#include "ops/sampled/top_products.h"

static kiln_status check_lists(const char *call, const kiln_row_lists *lists) {
    if (lists->type != KILN_F32 && lists->type != KILN_F64)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the type has the number %d", call, (int)lists->type);
    if (lists->rows < 0 || lists->columns < 0 || lists->factors < 1 || lists->top < 1)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: %lld x %lld of %lld factors, and %lld places", call,
                       (long long)lists->rows, (long long)lists->columns, (long long)lists->factors,
                       (long long)lists->top);
    if ((!lists->A && lists->rows > 0) || (!lists->B && lists->columns > 0))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: A or B is NULL", call);
    if (lists->cosines && lists->offsets)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: cosines have no offsets", call);
    return KILN_OK;
}

static kiln_status check_seen(const char *call, kiln_memory *seen, const kiln_row_lists *lists) {
    const kiln_status status = KI_TAKE(kiln_memory, seen, lists->seen);
    if (status != KILN_OK || !lists->seen) return status;
    if (!seen->row_start || seen->on_device || seen->rows != lists->rows || seen->cols != lists->columns)
        return ki_fail(KILN_ERR_ARGUMENT, "%s: seen must be sparse, in host memory and %lld x %lld", call,
                       (long long)lists->rows, (long long)lists->columns);
    return ki_rows_check_sparse(call, seen, true);
}

kiln_status kiln_list_rows(int64_t *columns, double *scores, const kiln_device *device,
                           const kiln_row_lists *lists) {
    static const char call[] = "kiln_list_rows";
    kiln_row_lists own;
    kiln_memory seen;
    kiln_status status;
    if (!columns || !scores || !lists) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(ki_rows_check_cpu(call, device));
    TRY(KI_TAKE(kiln_row_lists, &own, lists));
    TRY(check_lists(call, &own));
    TRY(check_seen(call, &seen, &own));
    for (int64_t i = 0, some; i < own.rows; i += some) {
        int64_t start[KI_TOP_ROWS + 1];
        some = ki_min(KI_TOP_ROWS, own.rows - i);
        for (int64_t row = 0; row <= some && own.seen; row++) start[row] = ki_memory_start(&seen, i + row);
        const struct ki_top_products of = {.start = own.seen ? start : NULL,
                                           .seen = seen.col,
                                           .allowed = own.allowed,
                                           .top = own.top,
                                           .columns = columns + i * own.top,
                                           .scores = scores + i * own.top};
        ki_top_few(&(struct ki_top_work){.of = &of,
                                         .type = own.type,
                                         .a = (const char *)own.A + i * own.factors * ki_type_bytes(own.type),
                                         .b = own.B,
                                         .m = some,
                                         .n = own.columns,
                                         .r = own.factors,
                                         .threads = device->threads,
                                         .offsets = own.offsets,
                                         .cosines = own.cosines != 0},
                   ki_bodies_for(device, own.type));
    }
done:
    return status;
}
