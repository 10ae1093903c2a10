/* Families and links by name, the loss that a model was trained with, and whether that makes it a start for
 * another. */
#include <stdio.h>

#include "algorithms/linear_model.h"

#include "ops/linear/families.h"

/* "parameters", 1 x 2: the family's and the link's. */
static void read_parameters(kiln_loss *loss, const kiln_model *model) {
    const struct ki_tensor *stored = ki_model_tensor(model, "parameters");
    loss->parameter = ki_tensor_value(stored, 0);
    loss->link_power = ki_tensor_value(stored, 1);
}

kiln_status ki_loss_linreg(kiln_loss *loss, const kiln_model *model) {
    (void)model;
    loss->kind = KILN_LOSS_SQUARED;
    return KILN_OK;
}

kiln_status ki_loss_logreg(kiln_loss *loss, const kiln_model *model) {
    loss->kind = ki_model_tensor(model, "W")->cols > 1 ? KILN_LOSS_SOFTMAX : KILN_LOSS_LOGISTIC;
    return KILN_OK;
}

kiln_status ki_loss_svm(kiln_loss *loss, const kiln_model *model) {
    const bool regression = !ki_model_tensor(model, "classes");
    loss->kind = regression ? KILN_LOSS_SQUARED_EPSILON : KILN_LOSS_SQUARED_HINGE;
    if (regression && ki_model_tensor(model, "parameters")) read_parameters(loss, model);
    return KILN_OK;
}

kiln_status ki_loss_glm(kiln_loss *loss, const kiln_model *model) {
    const char *family = kiln_model_text(model, "family"), *link = kiln_model_text(model, "link");
    loss->kind = KILN_LOSS_GLM;
    const char *name;
    for (int i = 1; (name = kiln_family_name((kiln_family)i)); i++)
        if (strcmp(name, family) == 0) loss->family = (kiln_family)i;
    if (!loss->family) return ki_fail(KILN_ERR_MODEL, "the model's family '%.40s' is unknown", family);
    bool known = false;
    for (int i = 0; !known && (name = kiln_link_name((kiln_link)i)); i++)
        if ((known = strcmp(name, link) == 0)) loss->link = (kiln_link)i;
    if (!known) return ki_fail(KILN_ERR_MODEL, "the model's link '%.40s' is unknown", link);
    /* Models of today name this link; those that do not are older than its default. */
    if (loss->family == KILN_INVERSE_GAUSSIAN && loss->link == KILN_LINK_DEFAULT)
        loss->link = KILN_LINK_INVERSE_SQUARED;
    read_parameters(loss, model);
    return KILN_OK;
}

/* Returns whether X W + b is the mean at a link: the target's value is that at the identity. */
static bool at_link(const kiln_loss *loss, kiln_link *link) {
    *link = loss->kind == KILN_LOSS_GLM ? ki_link_of(loss) : KILN_LINK_IDENTITY;
    return loss->kind == KILN_LOSS_SQUARED || loss->kind == KILN_LOSS_SQUARED_EPSILON ||
           loss->kind == KILN_LOSS_GLM;
}

static bool of_one_kind(const kiln_loss *a, const kiln_loss *b) {
    kiln_link link, other;
    if (at_link(a, &link) && at_link(b, &other))
        return link == other && (link != KILN_LINK_POWER || a->link_power == b->link_power);
    const bool two = a->kind == KILN_LOSS_LOGISTIC || a->kind == KILN_LOSS_SOFTMAX;
    return two ? b->kind == KILN_LOSS_LOGISTIC || b->kind == KILN_LOSS_SOFTMAX : a->kind == b->kind;
}

static const char *describe(char text[80], const kiln_loss *loss) {
    static const char *const kinds[] = {[KILN_LOSS_SQUARED] = "linreg",
                                        [KILN_LOSS_LOGISTIC] = "logreg",
                                        [KILN_LOSS_SOFTMAX] = "logreg",
                                        [KILN_LOSS_SQUARED_HINGE] = "svm",
                                        [KILN_LOSS_SQUARED_EPSILON] = "svm for regression"};
    const char *name = kiln_link_name(ki_link_of(loss));
    if (loss->kind == KILN_LOSS_GLM && loss->link == KILN_LINK_POWER)
        snprintf(text, 80, "glm with the link %s %g", name, loss->link_power);
    else if (loss->kind == KILN_LOSS_GLM)
        snprintf(text, 80, "glm with the link %s", name);
    else
        snprintf(text, 80, "%s", kinds[loss->kind]);
    return text;
}

kiln_status kiln_model_check_start(const kiln_model *model, const kiln_loss *loss) {
    static const char call[] = "kiln_model_check_start";
    kiln_loss theirs = {0}, own;
    char from[80], to[80];
    if (!model || !loss) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    kiln_status status = KI_TAKE(kiln_loss, &own, loss);
    if (status != KILN_OK) return status;
    loss = &own;
    if (loss->kind < KILN_LOSS_SQUARED || loss->kind > KILN_LOSS_GLM || !kiln_link_name(loss->link))
        return ki_fail(KILN_ERR_ARGUMENT, "%s: no loss has the number %d, or no link the number %d", call,
                       (int)loss->kind, (int)loss->link);
    if (loss->kind == KILN_LOSS_GLM) status = ki_family_check(call, loss);
    if (status == KILN_OK) status = kiln_model_loss(&theirs, model);
    if (status != KILN_OK || of_one_kind(&theirs, loss)) return status;
    ki_fail(KILN_ERR_MODEL,
            "coefficients of %s mean something else than those of %s, and are no start for them",
            describe(from, &theirs), describe(to, loss));
    return ki_hint("start from a model of the same algorithm, for glm of the same link, or without one");
}
