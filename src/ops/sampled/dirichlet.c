/* Dirichlet expectations: checks, then the CPU's body or the GPU's launch and its sums. */
#include "ops/sampled/dirichlet.h"

#include "bodies/bodies.h"
#include "core/arguments.h"
#include "core/size.h"
#include "core/sized.h"
#include "dialect/scalar_math.h"
#include "ops/sampled/dirichlet.cl"
#include "ops/sampled/gamma.h"
#include "pass/combine.h"

KI_ARGUMENTS(dirichlet);

enum { GROUP = 64 };

double ki_digamma(double x) {
    return digamma(x);
}

double ki_trigamma(double x) {
    return trigamma(x);
}

double ki_log_gamma(double x) {
    return log_gamma_positive(x);
}

static kiln_status check(const char *call, const kiln_dirichlet *d) {
    kiln_status status;
    if (!d->G) return ki_fail(KILN_ERR_ARGUMENT, "%s: G is NULL", call);
    const int64_t r = d->G->rows, k = d->G->cols;
    TRY(ki_check_dense(call, "G", d->G, d->G, r, k));
    TRY(ki_check_dense(call, "T", d->T, d->G, r, k));
    TRY(ki_check_dense(call, "prior", d->prior, d->G, 1, k));
    if (d->Y) TRY(ki_check_dense(call, "Y", d->Y, d->G, r, k));
    if (d->shift) TRY(ki_check_dense(call, "shift", d->shift, d->G, 1, k));
    if (d->scale) TRY(ki_check_dense(call, "scale", d->scale, d->G, r, 1));
    if (d->logs) TRY(ki_check_dense(call, "logs", d->logs, d->G, r, k));
    const kiln_matrix *const all[] = {d->G, d->T, d->scale, d->logs, d->Y, d->prior, d->shift};
    for (int i = 0; i < 4; i++)
        for (int j = i + 1; j < 7; j++)
            if (all[i] && all[i] == all[j])
                return ki_fail(KILN_ERR_ARGUMENT, "%s: a result must not be an operand or another result",
                               call);
done:
    return status;
}

static kiln_status run_cpu(double sums[KI_DIRICHLET_SUMS], const kiln_dirichlet *d, bool bound) {
    double parts[KI_DIRICHLET_PARTS][KI_DIRICHLET_SUMS] = {{0}};
    ki_bodies(d->G)->dirichlet(&(struct ki_dirichlet){.of = d, .sums = parts, .bound = bound});
    for (int part = 0; part < KI_DIRICHLET_PARTS; part++)
        for (int i = 0; i < KI_DIRICHLET_SUMS; i++) sums[i] += parts[part][i];
    return KILN_OK;
}

static kiln_status run_gpu(double sums[KI_DIRICHLET_SUMS], const kiln_dirichlet *d, bool bound, bool wanted) {
    kiln_device *device = d->G->device;
    const int64_t groups = ki_min(d->G->rows, (int64_t)device->properties.compute_units * 32);
    struct ki_buffer left;
    kiln_status status;
    const char *defines = KI_DEFINES("-DGROUP=%d%s", GROUP, bound ? " -DBOUND" : "");
    TRY(ki_device_scratch(device, &left, groups * KI_DIRICHLET_SUMS * 8));
    TRY(ki_kernel_run(device, "dirichlet", "dirichlet", d->G->type, defines, groups, GROUP,
                      KI_PACK(dirichlet, d->G, .G = d->G, .T = d->T, .Y = d->Y, .prior = d->prior,
                              .shift = d->shift, .scale = d->scale, .logs = d->logs, .sums = &left,
                              .count = d->G->rows, .k = (int32_t)d->G->cols, .by_rows = d->rows != 0)));
    if (wanted) TRY(ki_group_sums(sums, KI_DIRICHLET_SUMS, device, &left, groups));
done:
    return status;
}

kiln_status kiln_dirichlet_expect(const kiln_dirichlet *dirichlet, double *bound, double *change) {
    static const char call[] = "kiln_dirichlet_expect";
    kiln_dirichlet d;
    double sums[KI_DIRICHLET_SUMS] = {0};
    kiln_status status;
    if (!dirichlet) return ki_fail(KILN_ERR_ARGUMENT, "%s: dirichlet is NULL", call);
    TRY(KI_TAKE(kiln_dirichlet, &d, dirichlet));
    TRY(check(call, &d));
    const struct ki_operand operands[] = {{d.G, true},      {d.T, true},     {d.Y, false},  {d.prior, false},
                                          {d.shift, false}, {d.scale, true}, {d.logs, true}};
    const int count = sizeof operands / sizeof *operands;
    if (d.G->nnz > 0) {
        TRY(ki_operands_hold(d.G->device, operands, count));
        status = ki_on_cpu(d.G->device) ? run_cpu(sums, &d, bound != NULL)
                                        : run_gpu(sums, &d, bound != NULL, bound || change);
        ki_operands_release(d.G->device, operands, count);
        TRY(status);
    }
    if (bound) *bound = sums[0];
    if (change) *change = sums[1];
done:
    return status;
}
