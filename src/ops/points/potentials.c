/* Potentials of candidates: the CPU's body, or a copy of D that a pass for each candidate brings up to
 * date. Of an X that goes by in panels each panel meets all candidates. */
#include "ops/points/potentials.h"

#include "bodies/bodies.h"
#include "core/size.h"
#include "pass/group.h"
#include "pass/roles.h"

/* The sum of weights times what D is with the row `number` of C, too. E, m x 1, and c, 1 x n: work space. */
static kiln_status measure(double *potential, const struct ki_potentials *of, kiln_matrix *E, kiln_matrix *c,
                           int64_t number) {
    static const double one = 1, none = 0;
    const kiln_assignment nearer = {.distances = E, .first = 1};
    kiln_status status;
    TRY(kiln_combine(E, &one, of->D, &none, NULL));
    TRY(kiln_rows(c, of->C, &number));
    TRY(kiln_assign(&nearer, of->X, c, NULL));
    TRY(of->weights ? kiln_dot(potential, E, of->weights) : kiln_norm(potential, E, KILN_NORM_1));
done:
    return status;
}

static const struct ki_rule rules[] = {
    {offsetof(struct ki_potentials, D), KI_READS, {KI_ROW}},
    {offsetof(struct ki_potentials, weights), KI_READS, {KI_ROW}},
    {offsetof(struct ki_potentials, C), KI_READS, {KI_COLUMN}},
};
static const struct ki_rules table =
    KI_RULES(struct ki_potentials, X, offsetof(struct ki_potentials, potential), rules);

static kiln_status run(const void *potentials) {
    const struct ki_potentials *of = potentials;
    const kiln_matrix *X = of->X;
    kiln_matrix *E = NULL, *c = NULL;
    kiln_status status = KILN_OK;
    if (ki_on_cpu(X->device)) return ki_bodies(X)->potentials(of);
    TRY(kiln_matrix_dense(&E, X->device, X->type, X->rows, 1, NULL));
    TRY(kiln_matrix_dense(&c, X->device, X->type, 1, X->cols, NULL));
    for (int64_t i = 0; i < of->C->rows; i++) TRY(measure(&of->potential[i], of, E, c, i));
done:
    kiln_matrix_free(E);
    kiln_matrix_free(c);
    return status;
}

static kiln_status run_single(const void *of) {
    const struct ki_potentials *potentials = of;
    return ki_run_single(
        &(struct ki_single){.rules = &table, .whole = of, .sums = potentials->C->rows, .run = run});
}

kiln_status ki_potentials(const struct ki_potentials *of) {
    if (!ki_is_split(of->X)) return run_single(of);
    return ki_share(
        &(struct ki_shared){.rules = &table, .whole = of, .sums = of->C->rows, .run = run_single});
}
