/* Sums over processes, and copies to all of them, from GPU to GPU: by the backend's collectives
 * (core/backend.h), behind the kernels that are queued, where each process has a GPU of its own. MPI makes
 * them meet: at the first large sum it tells all who has which GPU, and hands the invitation round.
 *
 * A collective waits on the GPU until all have come, and nothing can be thrown away there. So the processes
 * first tell each other whether they are well, and where one is not all take MPI's way, which serves those,
 * too. One that fails in the middle of a collective ends all, as MPI would: others already wait for it. */
#include "core/limits.h"
#include "core/seams.h"
#include "core/size.h"
#include "processes/processes.h"

/* Bytes: less are through MPI before a collective has begun. */
enum { LEAST = 1 << 16 };

/* The leader's user is told why not. */
static bool may_meet(const struct kiln_processes *p, const int64_t *identity) {
    const int count = p->transport.count;
    for (int i = 0; i < count; i++) {
        if (!identity[i]) {
            ki_device_message(p->device, "process %d of %d has no NCCL; sums go through MPI and host memory",
                              i + 1, count);
            return false;
        }
        for (int j = 0; j < i; j++)
            if (identity[j] == identity[i]) {
                ki_device_message(
                    p->device,
                    "processes %d and %d share a GPU, which NCCL does not serve; sums go through "
                    "MPI and host memory",
                    j + 1, i + 1);
                return false;
            }
    }
    return true;
}

/* A connection that some processes alone have, none has. */
static kiln_status connect_all(struct kiln_processes *p) {
    const struct ki_backend *backend = p->device->backend;
    struct ki_invitation invitation = {{0}};
    kiln_status status;
    bool well;
    TRY(ki_wire_all_well(&well, p, !ki_leads(p) || backend->invite(p->device, &invitation)));
    if (well) {
        TRY(ki_wire_broadcast(p, &invitation, sizeof invitation));
        p->united = backend->accept(p->device, &invitation, p->transport.rank, p->transport.count);
        TRY(ki_wire_all_well(&well, p, p->united != NULL));
    }
    if (well) goto done;
    ki_device_message(p->device, "NCCL does not connect all processes; sums go through MPI and host memory");
    if (p->united) backend->part(p->united, false);
    p->united = NULL;
done:
    return status;
}

static kiln_status meet(struct kiln_processes *p) {
    int64_t *identity = p->piece;
    kiln_status status;
    TRY(ki_wire_gather(p, identity, p->device->backend->identity(p->device)));
    p->asked = true;
    if (may_meet(p, identity)) TRY(connect_all(p));
done:
    return status;
}

static kiln_status collect(struct kiln_processes *p, enum ki_way way, kiln_matrix *A, int64_t count) {
    const struct ki_backend *backend = p->device->backend;
    const struct ki_buffer *const buffers[] = {&A->values, NULL};
    const int64_t numbers = count / ki_type_bytes(A->type);
    const kiln_status status =
        (way == KI_ADD_UP ? backend->sum : backend->spread)(&p->device, p->united, buffers, numbers, A->type);
    p->broken = p->broken || status != KILN_OK;
    return status;
}

kiln_status ki_united_values(bool *carried, struct kiln_processes *p, enum ki_way way, kiln_matrix *A,
                             int64_t count, kiln_status *outcome) {
    const struct ki_operand own = {A, !ki_leads(p)}; /* the leader holds its own */
    kiln_status status = KILN_OK;
    bool held = false;
    *carried = false;
    if ((way != KI_BROADCAST && way != KI_ADD_UP) || !p->device->backend->accept ||
        count < ki_min(LEAST, ki_limits.collective_bytes))
        return KILN_OK;
    if (!p->asked) TRY(meet(p));
    if (!p->united) return KILN_OK;
    if (A && *outcome == KILN_OK) *outcome = ki_operands_hold(p->device, &own, 1);
    held = A && *outcome == KILN_OK;
    TRY(ki_wire_all_well(carried, p, held));
    if (*carried) TRY(collect(p, way, A, count));
done:
    if (held) ki_operands_release(p->device, &own, 1);
    return status;
}

void ki_united_end(struct kiln_processes *p, bool alive) {
    if (p->united) p->device->backend->part(p->united, alive && !p->broken && !p->device->lost);
    p->united = NULL;
    p->asked = false;
}
