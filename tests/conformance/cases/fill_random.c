/* Random numbers by counter: the same bits on every device. The seeds use both halves of key and counter. */
#include "elementwise.h"
#include "refusals.h"

static const uint64_t seed = UINT64_C(0xA4093822299F31D0), stream = UINT64_C(0x13198A2E03707344);

static void list(struct problem_list *list) {
    static const int64_t shapes[][2] = {{0, 1}, {1, 1}, {1, 5}, {100, 7}, {70001, 1}, {33, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (unsigned t = 0; t < 2; t++)
            problem_add(list, (struct problem){.format = KILN_DENSE,
                                               .pattern = PATTERN_DENSE,
                                               .rows = shapes[i][0],
                                               .cols = shapes[i][1],
                                               .k = shapes[i][1],
                                               .flags = t ? WITH_NORMAL : 0});
}

static kiln_distribution distribution_of(const struct work *work) {
    return work->problem->flags & WITH_NORMAL ? KILN_NORMAL : KILN_UNIFORM;
}

static kiln_status prepare(struct work *work) {
    return make_output(work, work->problem->rows, work->problem->cols);
}

static kiln_status run(struct work *work) {
    return kiln_fill_random(work->w.matrix, distribution_of(work), seed, stream);
}

static void expect(struct expected *expected, const struct work *work) {
    reference_fill_random(expected, work->type, work->w.host.nnz, distribution_of(work), seed, stream);
}

static double flops(const struct work *work) {
    (void)work;
    return 0;
}

static void refuse(struct check_context *context, struct refusal_set *s) {
    REFUSED(kiln_fill_random(NULL, KILN_UNIFORM, 1, 1));
    REFUSED(kiln_fill_random(s->S, KILN_UNIFORM, 1, 1));
    REFUSED(kiln_fill_random(s->w, (kiln_distribution)2, 1, 1));
}

const struct operation operation_fill_random = {.name = "fill_random",
                                                .list = list,
                                                .prepare = prepare,
                                                .run = run,
                                                .refuse = refuse,
                                                .expect = expect,
                                                .flops = flops,
                                                .bytes = elementwise_bytes};
