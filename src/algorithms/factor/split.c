/* Entry e is a test entry if the e-th number of the seed's stream is below the fraction. */
#include "algorithms/factor/entries.h"

enum { STREAM = 0x5713 };

static bool is_test(uint64_t seed, int64_t e, double fraction) {
    uint32_t words[4];
    ki_random(words, seed, STREAM, (uint64_t)e);
    return words[0] * 0x1p-32 < fraction;
}

/* The entries of one side, in their order. */
static kiln_status part(kiln_matrix **part, const struct ki_host_entries *all, const kiln_matrix *X,
                        double fraction, uint64_t seed, bool test) {
    struct ki_host_entries to = {0};
    kiln_status status;
    int64_t count = 0;
    TRY(ki_entries_new(&to, all->rows, all->cols, all->nnz));
    for (int64_t i = 0; i < all->rows; i++) {
        for (int64_t e = all->start[i]; e < all->start[i + 1]; e++) {
            if (is_test(seed, e, fraction) != test) continue;
            to.col[count] = all->col[e];
            to.value[count++] = all->value[e];
        }
        to.start[i + 1] = count;
    }
    to.nnz = count;
    TRY(ki_entries_matrix(part, &to, X));
done:
    ki_host_entries_free(&to);
    return status;
}

kiln_status kiln_split_entries(kiln_matrix **train, kiln_matrix **test, const kiln_matrix *X, double fraction,
                               uint64_t seed) {
    static const char call[] = "kiln_split_entries";
    struct ki_host_entries all = {0};
    kiln_matrix *kept = NULL, *taken = NULL;
    kiln_status status;
    if (!train || !test || !X) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    if (kiln_matrix_format(X) != KILN_CSR) return ki_fail(KILN_ERR_ARGUMENT, "%s: X must be sparse", call);
    if (!(fraction > 0 && fraction < 1))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: the fraction is %g, but must be between 0 and 1", call,
                       fraction);
    TRY(ki_entries_get(&all, X));
    TRY(part(&kept, &all, X, fraction, seed, false));
    TRY(part(&taken, &all, X, fraction, seed, true));
    *train = kept;
    *test = taken;
    kept = taken = NULL;
done:
    ki_host_entries_free(&all);
    kiln_matrix_free(kept);
    kiln_matrix_free(taken);
    return status;
}
