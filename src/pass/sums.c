/* Slices of X that run one after the other on one device: what is summed over rows is added up from one to
 * the next. */
#include <string.h>

#include "core/seams.h"
#include "pass/combine.h"
#include "pass/roles.h"

static bool is_sum(const struct ki_single *of, int i) {
    const struct ki_rule *rule = &of->rules->rule[i];
    return rule->use == KI_WRITES && rule->role[of->kind] == KI_SUM && ki_operand_of(of->whole, rule);
}

/* Sums that have a place of their own for a slice's part. */
static bool apart(const struct ki_single *of, int i) {
    return is_sum(of, i) && !(i == 0 && of->go_on);
}

static kiln_status host_memory(struct ki_sums *sums) {
    const struct ki_single *of = sums->of;
    const size_t bytes = (size_t)of->sums * sizeof(double);
    sums->slice = ki_alloc(of->rules->bytes);
    if (!sums->slice) return ki_fail_nomem(of->rules->bytes, "a slice of an operation");
    if (!of->sums) return KILN_OK;
    sums->added = ki_calloc(bytes);
    sums->sums = ki_calloc(bytes);
    return sums->added && sums->sums ? KILN_OK : ki_fail_nomem(2 * bytes, "sums over slices");
}

kiln_status ki_sums_begin(struct ki_sums *sums, const struct ki_single *of) {
    kiln_status status;
    *sums = (struct ki_sums){.of = of};
    TRY(host_memory(sums));
    for (int i = 0; i < of->rules->count; i++) {
        const kiln_matrix *A = ki_operand_of(of->whole, &of->rules->rule[i]);
        if (apart(of, i)) TRY(ki_matrix_new_held(&sums->part[i], A->device, A->type, A->rows, A->cols));
    }
done:
    if (status != KILN_OK) ki_sums_end(sums);
    return status;
}

kiln_status ki_sums_add(struct ki_sums *sums, const kiln_matrix *X, int64_t first) {
    const struct ki_single *of = sums->of;
    const struct ki_rules *rules = of->rules;
    const bool leads = sums->slices == 0;
    double *const to = leads ? sums->added : sums->sums;
    kiln_matrix views[KI_RULES_MOST];
    kiln_status status;
    ki_slice(sums->slice, views, rules, of->kind, of->whole, X,
             (struct ki_offset){.row = first, .rows = X->rows, .leads = leads});
    if (!leads && of->go_on && is_sum(of, 0)) of->go_on(sums->slice);
    for (int i = 0; !leads && i < rules->count; i++)
        if (apart(of, i)) ki_operand_set(sums->slice, &rules->rule[i], sums->part[i]);
    if (of->sums) memcpy((char *)sums->slice + rules->sums, &to, sizeof to);
    TRY(of->run(sums->slice));
    for (int i = 0; !leads && i < rules->count; i++) {
        kiln_matrix *sum = ki_operand_of(of->whole, &rules->rule[i]);
        if (apart(of, i)) TRY(ki_combine_all(sum, 1, sum, 1, sums->part[i]));
    }
    for (int64_t s = 0; !leads && s < of->sums; s++) sums->added[s] += sums->sums[s];
    sums->slices++;
done:
    return status;
}

void ki_sums_give(const struct ki_sums *sums) {
    const struct ki_single *of = sums->of;
    double *to;
    if (!of->sums) return;
    memcpy(&to, (const char *)of->whole + of->rules->sums, sizeof to);
    memcpy(to, sums->added, (size_t)of->sums * sizeof *to);
}

void ki_sums_end(struct ki_sums *sums) {
    for (int i = 0; i < KI_RULES_MOST; i++) {
        kiln_matrix_free(sums->part[i]);
        sums->part[i] = NULL;
    }
    ki_free(sums->slice);
    ki_free(sums->added);
    ki_free(sums->sums);
    sums->slice = sums->added = sums->sums = NULL;
}
