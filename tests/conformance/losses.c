/* Problems and operands of the losses: see losses.h. */
#include "losses.h"

#include <string.h>

static const double TWEEDIE_POWER = 1.5, ALPHA = 0.5, PRECISION = 7, EPSILON = 0.25, LINK_POWER = 2;

bool loss_is_softmax(const struct problem *problem) {
    return problem->k > 1;
}

/* The family's own. */
static kiln_link default_link(int family) {
    const kiln_family_info *known = kiln_family_describe((kiln_family)family);
    return known ? known->link : KILN_LINK_DEFAULT;
}

static const struct host_matrix *host(const struct operand *A) {
    return A->matrix ? &A->host : NULL;
}

struct loss_pair loss_of(const struct work *work) {
    const struct problem *p = work->problem;
    const kiln_loss_kind kind = loss_is_softmax(p) ? KILN_LOSS_SOFTMAX : (kiln_loss_kind)p->kind;
    const int link = p->link || kind != KILN_LOSS_GLM ? p->link : (int)default_link(p->family);
    const double parameter = kind == KILN_LOSS_SQUARED_EPSILON     ? EPSILON
                             : p->family == KILN_TWEEDIE           ? TWEEDIE_POWER
                             : p->family == KILN_NEGATIVE_BINOMIAL ? ALPHA
                             : p->family == KILN_BETA              ? PRECISION
                                                                   : 0;
    return (struct loss_pair){{.kind = kind,
                               .family = (kiln_family)p->family,
                               .link = (kiln_link)p->link,
                               .parameter = parameter,
                               .link_power = LINK_POWER,
                               .y = work->target.matrix,
                               .weights = work->weights.matrix,
                               .offset = work->offset.matrix},
                              {(int)kind, p->family, link, parameter, LINK_POWER, &work->target.host,
                               host(&work->weights), host(&work->offset)}};
}

void loss_each_model(struct problem_list *list, struct problem problem, bool thin) {
    problem.kind = KILN_LOSS_GLM;
    problem.flags |= WITH_OFFSET;
    for (problem.family = KILN_GAUSSIAN; kiln_family_describe((kiln_family)problem.family); problem.family++)
        for (problem.link = KILN_LINK_DEFAULT; problem.link <= KILN_LINK_POWER; problem.link++) {
            /* thin: the default links, and two that have formulas of their own for the tails; the inverses of
             * all links are loss_mean's to try, with one kernel */
            const bool tails = problem.family == KILN_BINOMIAL &&
                               (problem.link == KILN_LINK_PROBIT || problem.link == KILN_LINK_CLOGLOG);
            const bool taken = problem.link == KILN_LINK_DEFAULT ||
                               kiln_family_describe((kiln_family)problem.family)->links >> problem.link & 1;
            if (taken && (!thin || problem.link == KILN_LINK_DEFAULT || tails)) problem_add(list, problem);
        }
}

double loss_middle(int family, int link) {
    switch (link == KILN_LINK_DEFAULT ? default_link(family) : (kiln_link)link) {
    case KILN_LINK_LOG: return family == KILN_BINOMIAL ? -1.5 : 0.5;
    case KILN_LINK_INVERSE:
    case KILN_LINK_INVERSE_SQUARED: return 2;
    case KILN_LINK_IDENTITY:
    case KILN_LINK_SQRT:
    case KILN_LINK_POWER: return family == KILN_BINOMIAL ? 0.5 : 2;
    default: return 0;
    }
}

/* ---------------------------------------------------------------------------------------- operands */

kiln_status make_between(struct work *work, struct operand *A, int64_t rows, int64_t cols, double low,
                         double high) {
    const uint64_t stream = 200 + (uint64_t)((const char *)A - (const char *)work);
    host_new(A, work->type, rows, cols);
    for (int64_t e = 0; e < rows * cols; e++)
        host_set(&A->host, e, low + (high - low) * random_uniform(stream, (uint64_t)e));
    return operand_upload(work, A);
}

/* The predictor of rows that are certain: e^-30 is 1e-13. */
static const double CERTAIN = 30;

/* u is uniform in [0, 1). */
static double target(const struct problem *p, double u) {
    if (p->flags & WITH_CERTAIN) return loss_is_softmax(p) ? 0 : 1;
    if (loss_is_softmax(p)) return floor(u * (double)p->k);
    switch (p->kind) {
    case KILN_LOSS_LOGISTIC: return u < 0.4 ? 0 : u < 0.8 ? 1 : u;
    case KILN_LOSS_SQUARED_HINGE: return u < 0.5 ? 1 : u < 0.75 ? -1 : 0;
    case KILN_LOSS_GLM: break;
    default: return 4 * u - 2;
    }
    switch ((kiln_family)p->family) {
    case KILN_POISSON:
    case KILN_NEGATIVE_BINOMIAL: return floor(5 * u);
    case KILN_GAMMA:
    case KILN_INVERSE_GAUSSIAN: return 0.1 + 2 * u;
    case KILN_BINOMIAL: return u < 0.3 ? 0 : u < 0.6 ? 1 : u;
    case KILN_TWEEDIE: return u < 0.3 ? 0 : 3 * u;
    case KILN_BETA: return u < 0.1 ? 1e-6 * (1 + u) : 0.01 + 0.98 * u;
    default: return 4 * u - 2;
    }
}

kiln_status make_loss_operands(struct work *work) {
    const struct problem *p = work->problem;
    const double middle = p->kind == KILN_LOSS_GLM ? loss_middle(p->family, p->link) : 0;
    struct operand *y = &work->target;
    host_new(y, work->type, p->rows, 1);
    for (int64_t i = 0; i < p->rows; i++) host_set(&y->host, i, target(p, random_uniform(99, (uint64_t)i)));
    CHECK_OK(operand_upload(work, y));
    if (p->flags & WITH_WEIGHTS) CHECK_OK(make_between(work, &work->weights, p->rows, 1, 0, 3));
    if (p->flags & WITH_OFFSET && !loss_is_softmax(p))
        CHECK_OK(make_between(work, &work->offset, p->rows, 1, middle - 0.1, middle + 0.1));
    if (!(p->flags & WITH_SHIFT)) return KILN_OK;
    CHECK_OK(make_between(work, &work->shift, 1, p->k, -0.1, 0.1));
    if (!(p->flags & WITH_CERTAIN)) return KILN_OK;
    host_set(&work->shift.host, 0, CERTAIN);
    kiln_matrix_free(work->shift.matrix); /* which has another number there */
    return operand_upload(work, &work->shift);
}

/* The losses without a link take predictors that reach both their tails and their kinks. */
kiln_status make_coefficients(struct work *work) {
    const struct problem *p = work->problem;
    int64_t longest = longest_row(&work->X.host);
    if (longest < 1) longest = 1;
    const double size =
        p->kind == KILN_LOSS_GLM && !loss_is_softmax(p) ? 0.2 / (double)longest : 6 / sqrt((double)longest);
    return make_between(work, &work->y, p->cols, p->k, -size, size);
}
