/* An operation on all rows of X, on one device: X there beside the other operands, or in panels. */
#include "pass/roles.h"

#include <string.h>

#include "core/codes/codes.h"
#include "core/group/group.h"

static const kiln_matrix *matrix_of(const struct ki_single *single) {
    const kiln_matrix *X;
    memcpy(&X, (const char *)single->whole + single->rules->X, sizeof X);
    return X;
}

bool ki_works_in_place(const struct ki_single *single) {
    const struct ki_rules *rules = single->rules;
    for (int i = 0; i < rules->count; i++) {
        const kiln_matrix *A = ki_operand_of(single->whole, &rules->rule[i]);
        if (!A || !(rules->rule[i].use & KI_WRITES)) continue;
        for (int j = 0; j < rules->count; j++) {
            const enum ki_use use = rules->rule[j].use;
            const bool reads = single->fresh ? use == KI_READS : use & KI_READS;
            if (reads && ki_operand_of(single->whole, &rules->rule[j]) == A) return true;
        }
    }
    return false;
}

/* With X's codes as they are. Returns whether that is all; else the device has no room for them, and X gets
 * entries, which can pass by. */
static bool run_with_codes(kiln_status *status, const struct ki_single *single, const kiln_matrix *X) {
    const struct ki_operand held[] = {{X->codes->numbers, false}, {X->codes->words, false}};
    *status = ki_operands_hold(X->device, held, 2);
    if (*status != KILN_OK) return *status != KILN_ERR_DEVICE_NOMEM;
    *status = single->run(single->whole);
    ki_operands_release(X->device, held, 2);
    return *status != KILN_ERR_DEVICE_NOMEM || ki_works_in_place(single);
}

/* Matrices that drive each other out in turn, as ratings and their transpose, would all come back for every
 * pass. One that has been driven out for the second time goes by in panels, of which as many stay as there is
 * room for, and the others stay; beside one of more than half of the budget no room is worth that.
 * Deterministic: an X that fits is not cut, whatever else is on the device. */
static bool comes_and_goes(const kiln_matrix *X) {
    const kiln_device *device = X->device;
    return X->driven_out > 1 && !device->options.deterministic && !ki_matrix_resident(X) &&
           2 * ki_matrix_bytes(X) <= device->budget;
}

/* An operation allocates before it writes, so that one that found too little memory can be begun again; not
 * so where the driver failed it later, which would tell if an operand, already overwritten, were read
 * again. */
static kiln_status run_with_X(const struct ki_single *single, const kiln_matrix *X) {
    const struct ki_operand held = {X, false};
    if (X->streams || comes_and_goes(X)) return ki_stream(single);
    kiln_status status;
    if (X->codes && single->codes && run_with_codes(&status, single, X)) return status;
    status = (single->narrow ? ki_operands_hold_kept : ki_operands_hold)(X->device, &held, 1);
    if (status == KILN_ERR_DEVICE_NOMEM) return ki_stream(single);
    if (status != KILN_OK) return status;
    const bool fits = !single->work || ki_on_cpu(X->device) || single->work <= ki_memory_room(X->device);
    if (fits) status = single->run(single->whole);
    ki_operands_release(X->device, &held, 1);
    if (!fits) return ki_stream(single);
    if (status == KILN_ERR_DEVICE_NOMEM && !ki_works_in_place(single)) return ki_stream(single);
    return status;
}

kiln_status ki_run_single(const struct ki_single *single) {
    const kiln_matrix *X = matrix_of(single);
    kiln_device *device = X->device;
    struct ki_operand operands[KI_RULES_MOST];
    if (device->lost) return kiln_device_sync(device);
    ki_operands_list(operands, single->rules, single->whole);
    kiln_status status = ki_operands_hold(device, operands, KI_RULES_MOST);
    if (status != KILN_OK) return status;
    status = run_with_X(single, X);
    ki_operands_release(device, operands, KI_RULES_MOST);
    return status;
}

bool ki_streams(const kiln_matrix *X) {
    if (X->here) X = X->here;
    return !ki_matrix_resident(X->codes ? X->codes->numbers : X) && ki_streams_beside(X, 0);
}

bool ki_streams_beside(const kiln_matrix *X, int64_t bytes) {
    if (X->here) X = X->here;
    if (X->streams || ki_on_cpu(X->device)) return X->streams || X->file;
    int64_t room = -bytes;
    const struct ki_group *group = X->device->group;
    for (int i = 0; i < (group ? group->count : 1); i++)
        room += ki_memory_room(group ? group->member[i] : X->device);
    return (X->codes ? ki_codes_bytes(X->codes, X->rows) : ki_matrix_own_bytes(X)) > room;
}
