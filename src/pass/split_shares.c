/* Each member of a group has this share of X:
 *
 *     share_i = (1 / seconds_i) / sum_j (1 / seconds_j),
 *
 * seconds_i of a pass over all of X on member i alone, so that all end a pass at the same time. Members that
 * are alike have the same. What a device's budget has no room for goes to those that have, in proportion, as
 * long as there are any: beyond that X streams anyway. A CPU has X where it lies. Shares that the group's
 * name gives count as they are. */
#include <math.h>

#include "core/size.h"
#include "core/threads.h"
#include "pass/group.h"

/* X, and beside it what passes need, as in choose/cost.c. */
static const double ROOM = 1.1;

/* The part of X that has room on a member. By its budget alone, so that the cut does not depend on what else
 * is there. */
static double most(const kiln_device *member, const kiln_matrix *X) {
    const double bytes = ROOM * (double)ki_matrix_bytes(X);
    return ki_on_cpu(member) || bytes <= 0 ? 1 : fmin((double)member->budget / bytes, 1);
}

/* Shares that add up to 1: those above what there is room for become that, and the others grow, until all
 * fit, or none can grow. */
static void fit(double *share, const struct ki_group *group, const kiln_matrix *X) {
    bool full[KI_MEMBERS] = {false};
    for (int turn = 0; turn < group->count; turn++) {
        double left = 1, growing = 0, over = 0;
        for (int i = 0; i < group->count; i++) {
            left -= full[i] ? share[i] : 0;
            growing += full[i] ? 0 : share[i];
        }
        if (growing <= 0) break;
        for (int i = 0; i < group->count; i++) {
            const double grown = share[i] * left / growing, room = most(group->member[i], X);
            if (full[i]) continue;
            full[i] = grown > room;
            over += full[i];
            share[i] = full[i] ? room : grown;
        }
        if (over == 0) break;
    }
}

static double sum_of(const double *share, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += share[i];
    return sum;
}

/* A device too full to be measured makes all count the same: what is to be done does not fail for that. */
static void measure(double *share, const struct ki_group *group, const kiln_matrix *X) {
    double speed[KI_MEMBERS], seconds;
    bool measured = true;
    for (int i = 0; measured && i < group->count; i++) {
        measured = ki_member_seconds(&seconds, X, i) == KILN_OK;
        speed[i] = 1 / seconds;
        if (!measured)
            ki_device_message(X->device,
                              "device %s could not be measured, so that all have the same share: %s",
                              group->member[i]->info.name, kiln_last_error()->message);
    }
    for (int i = 0; i < group->count; i++)
        share[i] = measured ? speed[i] / sum_of(speed, group->count) : 1.0 / group->count;
    fit(share, group, X);
}

int64_t ki_shares_begin(const struct ki_shares *shares, int64_t all, int i) {
    return shares->even ? ki_part_begin(all, i, shares->count) : (int64_t)((double)all * shares->until[i]);
}

void ki_shares_of(struct ki_shares *shares, const kiln_matrix *X) {
    const struct ki_group *group = X->device->group;
    double share[KI_MEMBERS];
    *shares = (struct ki_shares){.count = group->count, .even = !group->unlike && group->share[0] == 0};
    for (int i = 0; i < group->count; i++) share[i] = shares->even ? 1 : group->share[i];
    if (group->unlike && group->share[0] == 0 && X->nnz > 0) measure(share, group, X);
    const double all = sum_of(share, group->count);
    for (int i = 1; i <= group->count; i++) shares->until[i] = i == group->count ? 1 : sum_of(share, i) / all;
}
