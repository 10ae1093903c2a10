/* Entry e is a test entry if the e-th number of the seed's stream is below the fraction. */
#include "algorithms/factor/entries.h"

static bool is_test(uint64_t seed, int64_t e, double fraction) {
    uint32_t words[4];
    kiln_random(words, seed, KI_STREAM_SPLIT, (uint64_t)e);
    return words[0] * 0x1p-32 < fraction;
}

/* The entries of one side, in their order; `first` stand before them in the whole. */
static kiln_status part(kiln_matrix **part, const struct ki_host_entries *all, const kiln_matrix *rows,
                        int64_t first, const struct ki_each *each, bool test) {
    struct ki_host_entries to = {0};
    kiln_status status;
    int64_t count = 0;
    TRY(ki_entries_new(&to, all->rows, all->cols, all->nnz));
    for (int64_t i = 0; i < all->rows; i++) {
        for (int64_t e = all->start[i]; e < all->start[i + 1]; e++) {
            if (is_test(each->seed, first + e, each->number) != test) continue;
            to.col[count] = all->col[e];
            to.value[count++] = all->value[e];
        }
        to.start[i + 1] = count;
    }
    to.nnz = count;
    TRY(ki_entries_matrix(part, &to, rows));
done:
    ki_host_entries_free(&to);
    return status;
}

/* Finds where the rows lie, so that each process shares out its own. */
static kiln_status split(const struct ki_each *each, const kiln_matrix *rows, int64_t row, int64_t entry,
                         kiln_matrix **made, double *sums) {
    struct ki_host_entries all = {0};
    kiln_status status;
    (void)row, (void)sums;
    TRY(ki_entries_get(&all, rows));
    for (int test = 0; test < 2; test++) TRY(part(&made[test], &all, rows, entry, each, test));
done:
    ki_host_entries_free(&all);
    return status;
}

kiln_status kiln_split_entries(kiln_matrix **train, kiln_matrix **test, const kiln_matrix *X, double fraction,
                               uint64_t seed) {
    static const char call[] = "kiln_split_entries";
    const struct ki_each each = {.run = split, .made = 2, .number = fraction, .seed = seed};
    kiln_matrix *sides[2];
    kiln_status status;
    if (!train || !test || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (kiln_matrix_format(X) != KILN_CSR) return ki_fail(KILN_ERR_ARGUMENT, "%s: X must be sparse", call);
    if (!(fraction > 0 && fraction < 1))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the fraction is %g, but must be between 0 and 1", call,
                       fraction);
    TRY(ki_each_run(sides, NULL, &each, X));
    *train = sides[0];
    *test = sides[1];
done:
    return status;
}
