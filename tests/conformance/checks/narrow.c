/* This file says of every operation that its results have the same bits whether a CPU keeps the values of its
 * operands wide or narrow: dense ones, sparse ones whose entries are all one number, written ones and those
 * that it has for itself among them. Whoever takes narrow values as they are adds them up as wide ones, and
 * whoever does not has them widened. On other devices and on groups, whose kernels load narrow values, it
 * says so of the operations that take X as it is and of one that has it widened, for sums that are exact in
 * any order; with X on the device, and in panels. Random bits of each element are the numbers that a CPU
 * takes them for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "core/codes/codes.h"
#include "core/device.h"
#include "core/limits.h"
#include "core/narrow/narrow.h"
#include "core/random.h"
#include "core/size.h"
#include "ops/linear/scales.h"
#include "pass/combine.h"

enum { ENTRIES = 60000 }; /* several windows of a pass, too */

/* Values with a mantissa of 8 bits, which bf16 has: whole numbers and signs stay what they are. Entries of a
 * sparse matrix become the first of them. */
static void round_values(kiln_matrix *A) {
    const int64_t size = ki_type_bytes(A->type);
    for (int64_t i = 0; ki_matrix_resident(A) && i < A->nnz; i++) {
        char *at = (char *)ki_host(&A->values) + i * size;
        uint64_t wide = 0;
        if (A->format == KILN_CSR) memcpy(at, ki_host(&A->values), (size_t)size);
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

/* To every matrix of the device. Returns how many have become narrow. */
static int each_matrix(kiln_device *device, bool narrow) {
    int count = 0;
    for (kiln_matrix *A = device->memory.oldest; A; A = A->newer) {
        int narrowed = 0;
        if (A->codes || A->users || is_hidden(A)) continue;
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
    each_matrix(side->device, false);
    if (narrowed) *narrowed += each_matrix(side->device, true);
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

static void run_all(struct check_context *context) {
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

/* ---- devices whose kernels load narrow values ---- */

enum {
    ROWS = 12345,
    EVEN = 36,
    FEW_ROWS = 300,
    FEW_COLS = 100,
    MANY = 20,
    OUT = 3,
    OUT_MOST = ROWS * FEW_COLS
};

/* Operands of whole numbers so small that sums are exact in f32 in any order: those of a fused pass are
 * 2 * 3 * EVEN * 3 * ROWS at most, below 2^24. */
struct operands {
    kiln_matrix *X, *y, *column, *several, *many, *wide_many, *rows, *out, *more, *third, *square, *back,
        *labels, *centres;
};

static kiln_matrix *whole_numbers(kiln_device *device, kiln_type type, int64_t rows, int64_t cols, int most) {
    float *single = malloc((size_t)(rows * cols) * sizeof *single + 1);
    double *values = malloc((size_t)(rows * cols) * sizeof *values + 1);
    kiln_matrix *A = NULL;
    for (int64_t i = 0; single && values && i < rows * cols; i++)
        single[i] = (float)(values[i] = (double)((i * 7919 + i / 13) % (most + 1)));
    if (single && values)
        (void)kiln_matrix_dense(&A, device, type, rows, cols,
                                type == KILN_F32 ? (const void *)single : values);
    free(single);
    free(values);
    return A;
}

/* Every fifth element is 2, the others are 0. */
static kiln_matrix *twos(kiln_device *device, kiln_type type, int64_t rows, int64_t cols) {
    const int64_t most = rows * ki_ceil_div(cols, 5);
    int64_t *start = malloc((size_t)(rows + 1) * sizeof *start), nnz = 0;
    int32_t *col = malloc((size_t)most * sizeof *col);
    float *single = malloc((size_t)most * sizeof *single);
    double *wide = malloc((size_t)most * sizeof *wide);
    kiln_matrix *A = NULL;
    const bool there = start && col && single && wide;
    for (int64_t i = 0; there && i < rows; i++) {
        start[i] = nnz;
        for (int64_t j = i % 5; j < cols; j += 5, nnz++) {
            col[nnz] = (int32_t)j;
            single[nnz] = (float)(wide[nnz] = 2);
        }
        start[i + 1] = nnz;
    }
    if (there)
        (void)kiln_matrix_csr(&A, device, type, rows, cols, start, col,
                              type == KILN_F32 ? (const void *)single : wide);
    free(start);
    free(col);
    free(single);
    free(wide);
    return A;
}

/* The same X of bytes that the caller has. */
static kiln_matrix *bytes(kiln_device *device, kiln_type type, int64_t rows, int64_t cols, int most) {
    uint8_t *values = malloc((size_t)(rows * cols) + 1);
    kiln_matrix *A = NULL;
    for (int64_t i = 0; values && i < rows * cols; i++)
        values[i] = (uint8_t)((i * 7919 + i / 13) % (most + 1));
    const kiln_memory memory = {.size = sizeof memory,
                                .type = type,
                                .rows = rows,
                                .cols = cols,
                                .values = values,
                                .release = free,
                                .user = values};
    if (!values || kiln_matrix_wrap_narrow(&A, device, &memory, KILN_ELEMENT_U8) != KILN_OK) free(values);
    return A;
}

static void make_operands(struct operands *o, kiln_device *device, kiln_type type, int64_t cols,
                          kiln_element element, bool sparse) {
    const int64_t rows = cols > FEW_COLS ? FEW_ROWS : ROWS, side = cols > FEW_COLS ? 1 : cols;
    *o = (struct operands){
        .X = sparse ? twos(device, type, rows, cols)
                    : (element == KILN_ELEMENT_U8 ? bytes : whole_numbers)(device, type, rows, cols, 3),
        .y = whole_numbers(device, type, rows, 1, 1),
        .column = whole_numbers(device, type, cols, 1, 1),
        .several = whole_numbers(device, type, cols, OUT, 1),
        .many = whole_numbers(device, type, cols, MANY, 3),
        .wide_many = whole_numbers(device, type, rows, MANY, 3),
        .rows = whole_numbers(device, type, rows, MANY, 0),
        .out = whole_numbers(device, type, cols, 1, 0),
        .more = whole_numbers(device, type, cols, OUT, 0),
        .third = whole_numbers(device, type, cols, MANY, 0),
        .square = whole_numbers(device, type, side, side, 0),
        .back = whole_numbers(device, type, rows, side, 0),
        .labels = whole_numbers(device, type, rows, 1, 0),
        .centres = whole_numbers(device, type, OUT, cols, 2)};
}

static void free_operands(struct operands *o) {
    kiln_matrix *const all[] = {o->X,   o->y,    o->column, o->several, o->many, o->wide_many, o->rows,
                                o->out, o->more, o->third,  o->square,  o->back, o->labels,    o->centres};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) kiln_matrix_free(all[i]);
}

static kiln_status fused(struct operands *o) {
    return kiln_mmchain(o->out, 2, o->X, o->y, o->column, 0, NULL);
}
static kiln_status fused_several(struct operands *o) {
    return kiln_mmchain(o->more, 1, o->X, NULL, o->several, 0, NULL);
}
static kiln_status product(struct operands *o) {
    return kiln_multiply(o->rows, 1, KILN_PLAIN, o->X, o->many, 0, NULL);
}
static kiln_status transposed(struct operands *o) {
    return kiln_multiply(o->out, 1, KILN_TRANSPOSED, o->X, o->y, 0, NULL);
}
static kiln_status transposed_many(struct operands *o) {
    return kiln_multiply(o->third, 1, KILN_TRANSPOSED, o->X, o->wide_many, 0, NULL);
}
static kiln_status squares(struct operands *o) {
    return kiln_gram_diagonal(o->out, o->X, o->y);
}
static kiln_status squared_loss(struct operands *o) {
    const kiln_loss loss = {.size = sizeof loss, .kind = KILN_LOSS_SQUARED, .y = o->y};
    double value;
    return kiln_loss_gradient(&value, o->out, NULL, NULL, &loss, o->X, o->column, NULL);
}
static kiln_status sums(struct operands *o) {
    return ki_column_sums(&(struct ki_column_sums){.square = o->out, .sum = o->column, .X = o->X});
}
static kiln_status gram(struct operands *o) {
    return kiln_gram(o->square, NULL, o->X, NULL, NULL);
}
static kiln_status assigned(struct operands *o) {
    return kiln_assign(&(kiln_assignment){.size = sizeof(kiln_assignment), .labels = o->labels}, o->X,
                       o->centres, NULL);
}
static kiln_status widened(struct operands *o) { /* X is no operand that stays narrow */
    return ki_combine_all(o->back, 2, o->X, 0, NULL);
}

static const struct narrow_call {
    const char *name;
    kiln_status (*call)(struct operands *o);
    size_t result; /* of struct operands */
    bool widens;
} calls[] = {{"mmchain", fused, offsetof(struct operands, out), false},
             {"mmchain of columns", fused_several, offsetof(struct operands, more), false},
             {"multiply", product, offsetof(struct operands, rows), false},
             {"multiply by X^T", transposed, offsetof(struct operands, out), false},
             {"multiply by X^T, many", transposed_many, offsetof(struct operands, third), false},
             {"gram_diagonal", squares, offsetof(struct operands, out), false},
             {"squared loss", squared_loss, offsetof(struct operands, out), false},
             {"column sums", sums, offsetof(struct operands, out), false},
             {"gram", gram, offsetof(struct operands, square), false},
             {"combine", widened, offsetof(struct operands, back), true}};
/* These take a sparse X, which a CPU widens for none of them. */
static const struct narrow_call sparse_calls[] = {
    {"mmchain", fused, offsetof(struct operands, out), false},
    {"mmchain of columns", fused_several, offsetof(struct operands, more), false},
    {"multiply", product, offsetof(struct operands, rows), true},
    {"multiply by X^T", transposed, offsetof(struct operands, out), false},
    {"multiply by X^T, many", transposed_many, offsetof(struct operands, third), true},
    {"gram_diagonal", squares, offsetof(struct operands, out), false},
    {"squared loss", squared_loss, offsetof(struct operands, out), false},
    {"gram", gram, offsetof(struct operands, square), false},
    {"assign", assigned, offsetof(struct operands, labels), true}};
static const struct narrow_call gram_by_tiles = {"gram", gram, offsetof(struct operands, square), false};
enum { CALLS = sizeof calls / sizeof *calls, SPARSE_CALLS = sizeof sparse_calls / sizeof *sparse_calls };

/* The result of one call in `type`, with X wide or narrow; whether X is narrow when it is done. */
static kiln_status result_of(double *result, bool *narrow, const struct narrow_call *call,
                             const struct check_context *context, int64_t cols, kiln_element element,
                             int64_t memory) {
    const bool sparse = call >= sparse_calls && call < sparse_calls + SPARSE_CALLS;
    const kiln_device_options options = {.size = sizeof options, .memory = memory};
    struct operands o = {0};
    kiln_device *device = NULL;
    kiln_status status = kiln_device_open(&device, context->device_name, &options);
    if (status != KILN_OK) return status;
    make_operands(&o, device, context->type, cols, element, sparse);
    if (element) status = kiln_matrix_narrow(o.X, element, NULL);
    if (status == KILN_OK) status = call->call(&o);
    if (status == KILN_OK && (call == calls || call == sparse_calls) && memory)
        status = call->call(&o); /* with panels that stayed */
    kiln_matrix *to;
    memcpy(&to, (const char *)&o + call->result, sizeof to);
    memset(result, 0, OUT_MOST * sizeof *result);
    if (status == KILN_OK) status = kiln_matrix_get(result, to);
    *narrow = o.X && o.X->element == element && element;
    free_operands(&o);
    kiln_device_close(device);
    return status;
}

static void compare_there(struct check_context *context, const struct narrow_call *call, int64_t cols,
                          kiln_element element, int64_t memory) {
    double *wide = malloc(OUT_MOST * sizeof *wide), *narrow = malloc(OUT_MOST * sizeof *narrow);
    bool stays = false, ignored;
    kiln_status first = KILN_ERR_NOMEM, second = KILN_ERR_NOMEM;
    if (wide && narrow) {
        first = result_of(wide, &ignored, call, context, cols, KILN_ELEMENT_TYPE, memory);
        second = result_of(narrow, &stays, call, context, cols, element, memory);
    }
    const bool cpu = strncmp(context->device_name, "cpu", 3) == 0,
               widens = call->widens && !(cpu && element == KILN_ELEMENT_SAME);
    const bool same = first == KILN_OK && second == KILN_OK && stays != widens &&
                      !memcmp(wide, narrow, OUT_MOST * sizeof *wide);
    check_report(context, same, "narrow: %s: %lld columns, element %d, memory %lld: %s, %s%s", call->name,
                 (long long)cols, (int)element, (long long)memory, kiln_status_name(first),
                 kiln_status_name(second), stays ? ", narrow" : "");
    free(wide);
    free(narrow);
}

/* ---- random bits ---- */

/* Any bits of an element, but those of no finite number: exponents lose a digit. */
static void draw_bits(void *to, kiln_element element, int64_t count) {
    static const uint32_t keep[] = {
        [KILN_ELEMENT_F16] = 0xbfff, [KILN_ELEMENT_BF16] = 0xbfff, [KILN_ELEMENT_F32] = 0xbfffffffu};
    struct ki_draws draws = {.seed = 41, .stream = (uint64_t)element};
    const size_t size = (size_t)ki_element_bytes(element);
    for (int64_t i = 0; i < count; i++) {
        uint32_t word = ki_draw_word(&draws);
        if (element >= KILN_ELEMENT_F16) word &= keep[element];
        memcpy((char *)to + (size_t)i * size, &word, size); /* its low bytes */
    }
}

/* X times a unit vector is a column of X: element by element what the bits are on a CPU. */
static kiln_status column_of(void *column, const struct check_context *context, const kiln_memory *memory,
                             kiln_element element, int64_t which) {
    const kiln_type type = context->type;
    kiln_device *device = NULL;
    kiln_matrix *X = NULL, *y = NULL, *out = NULL;
    double wide[EVEN] = {0};
    float single[EVEN] = {0};
    kiln_status status = kiln_device_open(&device, context->device_name, NULL);
    single[which] = (float)(wide[which] = 1);
    const void *unit = type == KILN_F32 ? (const void *)single : wide;
    if (status == KILN_OK) status = kiln_matrix_wrap_narrow(&X, device, memory, element);
    if (status == KILN_OK) status = kiln_matrix_dense(&y, device, type, EVEN, 1, unit);
    if (status == KILN_OK) status = kiln_matrix_dense(&out, device, type, memory->rows, 1, NULL);
    if (status == KILN_OK) status = kiln_multiply(out, 1, KILN_PLAIN, X, y, 0, NULL);
    if (status == KILN_OK && X->element != element) status = KILN_ERR_INTERNAL;
    if (status == KILN_OK) status = kiln_matrix_get(column, out);
    kiln_matrix_free(X);
    kiln_matrix_free(y);
    kiln_matrix_free(out);
    kiln_device_close(device);
    return status;
}

static void compare_bits(struct check_context *context, kiln_element element) {
    enum { BIT_ROWS = 1500, NUMBERS = BIT_ROWS * EVEN };
    const int64_t size = ki_type_bytes(context->type);
    char *bits = malloc(NUMBERS * sizeof(double)), *wide = malloc(NUMBERS * sizeof(double)),
         *column = malloc(BIT_ROWS * sizeof(double));
    kiln_memory memory = {.size = sizeof memory, .type = context->type, .rows = BIT_ROWS, .cols = EVEN};
    kiln_device *cpu = NULL;
    kiln_matrix *A = NULL;
    kiln_status status = bits && wide && column ? kiln_device_open(&cpu, "cpu", NULL) : KILN_ERR_NOMEM;
    bool same = true;
    if (status == KILN_OK) draw_bits(bits, element, NUMBERS);
    memory.values = bits;
    if (status == KILN_OK) status = kiln_matrix_wrap_narrow(&A, cpu, &memory, element);
    if (status == KILN_OK) status = kiln_matrix_get(wide, A);
    for (int64_t j = 0; j < 4 && status == KILN_OK; j++) { /* each place of a load */
        status = column_of(column, context, &memory, element, j);
        for (int64_t i = 0; i < BIT_ROWS && status == KILN_OK; i++) {
            const char *a = column + i * size, *b = wide + (i * EVEN + j) * size;
            float single[2];
            double both[2];
            memcpy(size == 4 ? (void *)&single[0] : &both[0], a, (size_t)size);
            memcpy(size == 4 ? (void *)&single[1] : &both[1], b, (size_t)size);
            same = same && (size == 4 ? single[0] == single[1] : both[0] == both[1]);
        }
    }
    check_report(context, same && status == KILN_OK, "narrow: random bits of element %d: %s", (int)element,
                 kiln_status_name(status));
    kiln_matrix_free(A);
    kiln_device_close(cpu);
    free(bits);
    free(wide);
    free(column);
}

/* Loads of four numbers, of two and of one; a budget of less than the narrow X. */
static void run_there(struct check_context *context) {
    enum { BUDGET = 300000, FEW_COLUMNS = 28 };
    const int64_t worth = ki_limits.narrow_bytes, columns = ki_limits.gram_columns;
    const kiln_element last = context->type == KILN_F64 ? KILN_ELEMENT_F32 : KILN_ELEMENT_BF16;
    ki_limits.narrow_bytes = 0;
    for (int c = 0; c < CALLS; c++) compare_there(context, &calls[c], EVEN, KILN_ELEMENT_U8, 0);
    for (kiln_element e = KILN_ELEMENT_U8; e <= last; e++) compare_bits(context, e);
    for (kiln_element e = KILN_ELEMENT_I8; e <= last; e++) compare_there(context, &calls[0], EVEN, e, 0);
    for (int c = 0; c < SPARSE_CALLS; c++)
        compare_there(context, &sparse_calls[c], EVEN, KILN_ELEMENT_SAME, 0);
    ki_limits.gram_columns = FEW_COLUMNS; /* tiles on processors, too */
    compare_there(context, &gram_by_tiles, FEW_COLUMNS, KILN_ELEMENT_U8, 0);
    ki_limits.gram_columns = columns;
    for (int64_t cols = EVEN + 1; cols <= EVEN + 2; cols++)
        compare_there(context, &calls[0], cols, KILN_ELEMENT_F16, 0);
    compare_there(context, &calls[0], 1500, KILN_ELEMENT_I16, 0); /* rows wider than registers */
    if (strncmp(context->device_name, "cpu", 3) != 0) {
        compare_there(context, &calls[0], EVEN, KILN_ELEMENT_U8, BUDGET);
        compare_there(context, &sparse_calls[0], EVEN, KILN_ELEMENT_SAME, BUDGET);
    }
    ki_limits.narrow_bytes = worth;
}

static void run(struct check_context *context) {
    strcmp(context->device_name, "cpu") == 0 ? run_all(context) : run_there(context);
}

const struct check check_narrow = {.name = "narrow", .run = run};
