/* G = (X - 1 c)^T diag(v) (X - 1 c): checks, and the way where X has no body of its own for it.
 *
 * That is so for a sparse X on a GPU, on a processor behind OpenCL (core/limits.h says why), and where a
 * device's memory has no room for a walk's partial sums: columns [j, j + 64) of G are one fused pass with
 * unit vectors for y and -c for the shift: what it scatters is v_i (x_ij - c_j), free of cancellation
 * however far a column lies from zero, and -c g_j makes the other factor (x_il - c_l) too. The CPU's walk
 * over a sparse X has both factors about zero first: columns that this leaves few digits of are taken so,
 * too. */
#include "ops/linear/gram_gpu.h"
#include "pass/rows.h"

#include <math.h>
#include <string.h>

#include "core/each.h"
#include "core/file.h"
#include "core/limits.h"
#include "core/processes.h"
#include "core/seams.h"
#include "core/size.h"
#include "bodies/bodies.h"
#include "pass/group.h"

enum { BLOCK = 64 }; /* columns of G from one pass */

static double read_real(const kiln_matrix *like, const void *values, int64_t i) {
    return like->type == KILN_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static void write_real(const kiln_matrix *like, void *values, int64_t i, double value) {
    if (like->type == KILN_F64)
        ((double *)values)[i] = value;
    else
        ((float *)values)[i] = (float)value;
}

/* The host's side of the blocks, and a block on the device. */
struct blocks {
    const struct ki_gram *gram;
    int64_t n;
    double weight;                     /* see by_blocks */
    void *G, *g, *c, *block;           /* n x n, n, n, n x 64 */
    kiln_matrix *P, *Q, *shift, *sums; /* n x count, 1 x count */
};

static kiln_status blocks_new(struct blocks *of) {
    const int64_t element = ki_type_bytes(of->gram->X->type), n = of->n;
    int64_t square, wide;
    if (!ki_mul3(n, n, element, &square) || !ki_mul3(n, BLOCK, element, &wide))
        return ki_fail_nomem(SIZE_MAX, "a Gram matrix");
    of->G = ki_alloc((size_t)square);
    of->g = ki_alloc((size_t)(n * element));
    of->c = ki_calloc((size_t)(n * element));
    of->block = ki_alloc((size_t)wide);
    if (!of->G || !of->g || !of->c || !of->block) return ki_fail_nomem((size_t)square, "a Gram matrix");
    return of->gram->c ? kiln_matrix_get(of->c, of->gram->c) : KILN_OK;
}

static void block_free(struct blocks *of) {
    kiln_matrix *const all[] = {of->P, of->Q, of->shift, of->sums};
    for (int i = 0; i < 4; i++) kiln_matrix_free(all[i]);
    of->P = of->Q = of->shift = of->sums = NULL;
}

static void blocks_free(struct blocks *of) {
    block_free(of);
    ki_free(of->G);
    ki_free(of->g);
    ki_free(of->c);
    ki_free(of->block);
}

/* P = unit vectors of these columns, shift = -c. */
static kiln_status block_new(struct blocks *of, const int64_t *which, int64_t count) {
    kiln_status status;
    const kiln_matrix *X = of->gram->X;
    memset(of->block, 0, (size_t)(of->n * count * ki_type_bytes(X->type)));
    for (int64_t j = 0; j < count; j++) write_real(X, of->block, which[j] * count + j, 1);
    TRY(kiln_matrix_dense(&of->P, X->device, X->type, of->n, count, of->block));
    for (int64_t j = 0; j < count; j++) write_real(X, of->block, j, -read_real(X, of->c, which[j]));
    TRY(kiln_matrix_dense(&of->shift, X->device, X->type, 1, count, of->block));
    TRY(kiln_matrix_dense(&of->Q, X->device, X->type, of->n, count, NULL));
    TRY(kiln_matrix_dense(&of->sums, X->device, X->type, 1, count, NULL));
done:
    return status;
}

/* Columns which[0 .. count) of G and g, and what mirrors them. */
static kiln_status add_block(struct blocks *of, const int64_t *which, int64_t count) {
    kiln_status status;
    const kiln_matrix *X = of->gram->X;
    TRY(block_new(of, which, count));
    TRY(ki_chain_run(&(struct ki_chain){.kind = KI_CHAIN_FUSED,
                                        .out = of->Q,
                                        .alpha = 1,
                                        .X = X,
                                        .v = of->gram->v,
                                        .y = of->P,
                                        .k = (int)count,
                                        .shift = of->shift,
                                        .sums = of->sums}));
    TRY(kiln_matrix_get(of->block, of->sums));
    for (int64_t c = 0; c < count; c++) write_real(X, of->g, which[c], read_real(X, of->block, c));
    TRY(kiln_matrix_get(of->block, of->Q));
    for (int64_t c = 0; c < count; c++)
        for (int64_t i = 0, j = which[c]; i < of->n; i++) {
            const double about_zero = read_real(X, of->block, i * count + c);
            const double value = about_zero - read_real(X, of->c, i) * read_real(X, of->g, j);
            write_real(X, of->G, i * of->n + j, value);
            write_real(X, of->G, j * of->n + i, value);
        }
done:
    block_free(of);
    return status;
}

/* Whether column j is wanted: all are, or those of which the walk's sums about zero left few digits. */
static bool is_wanted(const struct blocks *of, int64_t j) {
    static const double few = 1e-3;
    const double c = read_real(of->gram->X, of->c, j);
    return !(of->weight > 0) || !(read_real(of->gram->X, of->G, j * of->n + j) >= few * c * c * of->weight);
}

/* weight: 0, or the sum of |v|, where G and g are there and few of their columns are wanted anew. */
static kiln_status by_blocks(const struct ki_gram *gram, double weight) {
    kiln_status status;
    struct blocks of = {.gram = gram, .n = gram->X->cols, .weight = weight};
    int64_t which[BLOCK], count = 0, all = 0;
    TRY(blocks_new(&of));
    if (weight > 0) TRY(kiln_matrix_get(of.G, gram->G));
    if (weight > 0 && gram->g) TRY(kiln_matrix_get(of.g, gram->g));
    for (int64_t j = 0; j < of.n; j++) {
        if (is_wanted(&of, j)) which[count++] = j;
        if (count < BLOCK && (j < of.n - 1 || count == 0)) continue;
        TRY(add_block(&of, which, count));
        all += count;
        count = 0;
    }
    if (all > 0) TRY(kiln_matrix_set(gram->G, of.G));
    if (all > 0 && gram->g) TRY(kiln_matrix_set(gram->g, of.g));
done:
    blocks_free(&of);
    return status;
}

/* The CPU adds up a sparse X's entries, and takes c off afterwards: columns whose spread is little beside c
 * are taken once more, by blocks. */
static kiln_status look_again(const struct ki_gram *gram) {
    double weight = (double)gram->X->rows;
    if (!gram->c || gram->X->format == KILN_DENSE) return KILN_OK;
    const kiln_status status = gram->v ? kiln_norm(&weight, gram->v, KILN_NORM_1) : KILN_OK;
    return status != KILN_OK || !(weight > 0) ? status : by_blocks(gram, weight);
}

bool ki_gram_in_one_walk(const kiln_matrix *X) {
    const bool kernel = X->device->properties.is_gpu || X->cols <= ki_limits.gram_columns;
    return ki_on_cpu(X->device) || (kernel && X->format == KILN_DENSE);
}

bool ki_gram_streams(const kiln_matrix *X) {
    return ki_streams(X);
}

bool ki_gram_skips(const kiln_matrix *X) {
    return ki_on_cpu(X->device) && !ki_streams(X);
}

bool ki_gram_cancels(const kiln_matrix *X) {
    return X->format == KILN_CSR || !ki_gram_in_one_walk(X);
}

double ki_gram_room(const kiln_matrix *X, double size) {
    enum { COPIES = 66, LEAST = 3, WORK = 128 << 20 };
    const double square = size * size * sizeof(double);
    return ki_on_cpu(X->device) ? fmin(COPIES * square, fmax(WORK, LEAST * square)) : LEAST * square;
}

static const struct ki_rule rules[] = {
    {offsetof(struct ki_gram, v), KI_READS, {KI_ROW}},
    {offsetof(struct ki_gram, Y), KI_READS, {KI_ROW}},
    {offsetof(struct ki_gram, c), KI_READS, {KI_COLUMN}},
    {offsetof(struct ki_gram, d), KI_READS, {KI_COLUMN}},
    {offsetof(struct ki_gram, G), KI_WRITES, {KI_SUM}},
    {offsetof(struct ki_gram, g), KI_WRITES, {KI_SUM}},
};
static const struct ki_rules table = KI_RULES(struct ki_gram, X, offsetof(struct ki_gram, all), rules);

static kiln_status run_here(const void *of) {
    const struct ki_gram *gram = of;
    return ki_on_cpu(gram->X->device) ? ki_bodies(gram->X)->gram(gram) : ki_gram_gpu(gram);
}

static int64_t size_of(const struct ki_gram *gram) {
    return gram->X->cols + (gram->Y ? gram->Y->cols : 0) + 1;
}

static kiln_status walk(const void *of) {
    const struct ki_gram *gram = of;
    const int64_t square = size_of(gram) * size_of(gram);
    return ki_run_single(&(struct ki_single){.rules = &table,
                                             .whole = gram,
                                             .sums = gram->all ? square : 0,
                                             .codes = true,
                                             .narrow = true,
                                             .walked = square * ki_type_bytes(gram->X->type),
                                             .run = run_here});
}

kiln_status ki_gram_all(const struct ki_gram *gram) {
    const kiln_matrix *X = gram->X;
    const int64_t size = size_of(gram);
    if (X->device->lost) return kiln_device_sync(X->device);
    if (!ki_is_split(X)) return walk(gram);
    return ki_share(&(struct ki_shared){
        .rules = &table, .whole = gram, .sums = gram->all ? size * size : 0, .narrow = true, .run = walk});
}

/* Means of `sample` rows of a dense X that lies in host memory, or in its file. */
static kiln_status centre_here(void *means, const kiln_matrix *X, int sample) {
    const int64_t n = X->cols, bytes = n * ki_type_bytes(X->type);
    kiln_status status = KILN_OK;
    double *sums = ki_calloc((size_t)n * 2 * sizeof *sums), *first;
    void *row = ki_alloc((size_t)bytes);
    if (!sums || !row) TRY(ki_fail_nomem((size_t)n * 2 * sizeof *sums, "column means"));
    first = sums + n;
    for (int s = 0; s < sample; s++) {
        const int64_t begin = X->rows * s / sample * n;
        TRY(ki_elements_get(row, X, begin, n));
        for (int64_t j = 0; j < n; j++) /* about the first, so that a constant's mean is that constant */
            if (s == 0)
                first[j] = read_real(X, row, j);
            else
                sums[j] += read_real(X, row, j) - first[j];
    }
    if (X->file) TRY(ki_file_check(X->file));
    for (int64_t j = 0; j < n; j++) write_real(X, means, j, first[j] + sums[j] / sample);
done:
    ki_free(sums);
    ki_free(row);
    return status;
}

kiln_status ki_gram_centre(kiln_matrix *c, const kiln_matrix *X) {
    enum { SAMPLE = 64 };
    kiln_status status;
    if (X->here) X = X->here; /* any rows will do */
    const int sample = (int)ki_min(X->rows, SAMPLE);
    void *means;
    if (sample == 0 || X->format == KILN_CSR) return kiln_fill(c, 0);
    if (!ki_on_cpu(X->device) && ki_matrix_resident(X)) return ki_gram_centre_gpu(c, X, sample);
    means = ki_alloc((size_t)(X->cols * ki_type_bytes(X->type)));
    if (!means) return ki_fail_nomem((size_t)(X->cols * ki_type_bytes(X->type)), "column means");
    TRY(centre_here(means, X, sample));
    TRY(kiln_matrix_set(c, means));
done:
    ki_free(means);
    return status;
}

kiln_status kiln_gram(kiln_matrix *G, kiln_matrix *g, const kiln_matrix *X, const kiln_matrix *v,
                      const kiln_matrix *c) {
    static const char call[] = "kiln_gram";
    kiln_status status;
    if (!G || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: G or X is NULL", call);
    TRY(ki_check_dense(call, "G", G, X, X->cols, X->cols));
    if (g) TRY(ki_check_dense(call, "g", g, X, X->cols, 1));
    if (v) TRY(ki_check_rows(call, "v", v, X, X->rows, 1));
    if (c) TRY(ki_check_dense(call, "c", c, X, X->cols, 1));
    if (G == X || G == v || G == c || G == g || (g && (g == X || g == v || g == c)))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: G and g must not be one, nor X, v or c", call);
    const struct ki_gram gram = {.G = G, .g = g, .X = X, .v = v, .c = c};
    if (X->cols == 0) return KILN_OK;
    if (ki_gram_in_one_walk(X)) {
        status = ki_gram_all(&gram);
        if (status == KILN_OK) status = look_again(&gram);
        if (status != KILN_ERR_DEVICE_NOMEM) return status;
    }
    status = by_blocks(&gram, 0); /* whose work space is smaller */
done:
    return status;
}
