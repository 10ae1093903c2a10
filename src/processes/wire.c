/* Bytes, values and orders between processes, in pieces that MPI counts with an int. */
#include "processes/processes.h"

#include <stdio.h>
#include <string.h>

#include "core/seams.h"
#include "core/size.h"

/* The error that a code of the transport stands for. */
static kiln_status check(struct kiln_processes *p, int code) {
    char text[512];
    if (!code) return KILN_OK;
    p->broken = true;
    if (p->device) p->device->lost = true;
    p->transport.text(code, text, sizeof text);
    return ki_fail_native(KILN_ERR_DEVICE_LOST, "mpi", code, "%s: %s", p->transport.name, text);
}

static int pass(struct kiln_processes *p, enum ki_way way, int peer, void *bytes, int64_t count,
                kiln_type type) {
    const struct ki_transport *t = &p->transport;
    const int real = (int)ki_type_bytes(type);
    switch (way) {
    case KI_BROADCAST: return t->broadcast(t->of, bytes, count, false);
    case KI_SEND: return t->send(t->of, peer, bytes, count);
    case KI_RECEIVE: return t->receive(t->of, peer, bytes, count);
    case KI_ADD_UP:
    case KI_ADD_UP_ORDERED: break;
    }
    return t->sum(t->of, bytes, count / real, real, way == KI_ADD_UP_ORDERED);
}

static kiln_status pass_all(struct kiln_processes *p, enum ki_way way, int peer, void *bytes, int64_t count,
                            kiln_type type) {
    kiln_status status = KILN_OK;
    for (int64_t at = 0; at < count; at += KI_TRANSPORT_MOST)
        TRY(check(p, pass(p, way, peer, (char *)bytes + at, ki_min(count - at, KI_TRANSPORT_MOST), type)));
done:
    return status;
}

kiln_status ki_wire_broadcast(struct kiln_processes *p, void *bytes, int64_t count) {
    return pass_all(p, KI_BROADCAST, 0, bytes, count, KILN_F64);
}

kiln_status ki_wire_send(struct kiln_processes *p, int to, const void *bytes, int64_t count) {
    return pass_all(p, KI_SEND, to, (void *)(uintptr_t)bytes, count, KILN_F64);
}

kiln_status ki_wire_receive(struct kiln_processes *p, int from, void *bytes, int64_t count) {
    return pass_all(p, KI_RECEIVE, from, bytes, count, KILN_F64);
}

kiln_status ki_wire_sum(struct kiln_processes *p, double *numbers, int64_t count, bool ordered) {
    return pass_all(p, ordered ? KI_ADD_UP_ORDERED : KI_ADD_UP, 0, numbers, count * (int64_t)sizeof *numbers,
                    KILN_F64);
}

kiln_status ki_wire_gather(struct kiln_processes *p, int64_t *numbers, int64_t own) {
    kiln_status status = KILN_OK;
    numbers[p->transport.rank] = own;
    if (!ki_leads(p)) TRY(ki_wire_send(p, 0, &own, sizeof own));
    for (int i = 1; i < p->transport.count && ki_leads(p); i++)
        TRY(ki_wire_receive(p, i, &numbers[i], sizeof *numbers));
    TRY(ki_wire_broadcast(p, numbers, p->transport.count * (int64_t)sizeof *numbers));
done:
    return status;
}

kiln_status ki_wire_all_well(bool *well, struct kiln_processes *p, bool own) {
    int64_t *each = p->piece;
    kiln_status status;
    TRY(ki_wire_gather(p, each, own));
    *well = true;
    for (int i = 0; i < p->transport.count; i++) *well = *well && each[i];
done:
    return status;
}

/* In rounds: a piece to each process that still awaits some, and from each that still has some. Both ends of
 * a pair know how many pieces that is, so that nobody waits for what does not come. */
kiln_status ki_wire_exchange(struct kiln_processes *p) {
    const struct ki_transport *t = &p->transport;
    struct ki_exchange *all = p->exchange;
    kiln_status status = KILN_OK;
    if (all[t->rank].in != all[t->rank].out && all[t->rank].in_bytes)
        memcpy(all[t->rank].in, all[t->rank].out, (size_t)all[t->rank].in_bytes);
    all[t->rank] = (struct ki_exchange){NULL, NULL, 0, 0};
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < t->count; i++) {
            p->some[i] = all[i];
            p->some[i].out_bytes = ki_min(all[i].out_bytes, KI_TRANSPORT_MOST);
            p->some[i].in_bytes = ki_min(all[i].in_bytes, KI_TRANSPORT_MOST);
            all[i].out_bytes -= p->some[i].out_bytes;
            all[i].in_bytes -= p->some[i].in_bytes;
            if (all[i].out_bytes) all[i].out = (const char *)all[i].out + p->some[i].out_bytes;
            if (all[i].in_bytes) all[i].in = (char *)all[i].in + p->some[i].in_bytes;
            more = more || all[i].out_bytes || all[i].in_bytes;
        }
        TRY(check(p, t->exchange(t->of, p->some)));
    }
done:
    return status;
}

/* Code and tables lie at the same distance from each other in all processes, which run the same build. */
intptr_t ki_place_of(uintptr_t address) {
    return (intptr_t)(address - (uintptr_t)&ki_chain_rules);
}

uintptr_t ki_address_of(intptr_t place) {
    return (uintptr_t)&ki_chain_rules + (uintptr_t)place;
}

/* Returns whether this process's values go out, and whether others come in. */
static bool goes(const struct kiln_processes *p, enum ki_way way) {
    return way == KI_SEND || way >= KI_ADD_UP || (way == KI_BROADCAST && ki_leads(p));
}

static bool comes(const struct kiln_processes *p, enum ki_way way) {
    return way == KI_RECEIVE || (way == KI_BROADCAST && !ki_leads(p)) || (way >= KI_ADD_UP && ki_leads(p));
}

kiln_status ki_wire_values(struct kiln_processes *p, enum ki_way way, int peer, kiln_matrix *A, int64_t first,
                           int64_t count, kiln_type type, kiln_status *outcome) {
    kiln_status status = KILN_OK;
    bool carried;
    TRY(ki_united_values(&carried, p, way, A, count, outcome));
    if (carried) return KILN_OK;
    if (A && *outcome == KILN_OK && ki_on_cpu(A->device))
        return pass_all(p, way, peer, (char *)ki_host(&A->values) + first, count, type);
    for (int64_t at = 0; at < count; at += KI_TRANSPORT_MOST) {
        const int64_t bytes = ki_min(count - at, KI_TRANSPORT_MOST);
        if (A && *outcome == KILN_OK && goes(p, way))
            *outcome = ki_device_download(A->device, p->piece, &A->values, first + at, bytes);
        TRY(check(p, pass(p, way, peer, p->piece, bytes, type)));
        if (A && *outcome == KILN_OK && comes(p, way))
            *outcome = ki_device_upload(A->device, &A->values, first + at, p->piece, bytes);
    }
done:
    return status;
}

kiln_status ki_order_send(struct kiln_processes *p, struct ki_order *order) {
    kiln_status status;
    order->dropped = p->dropped_count;
    TRY(ki_wire_broadcast(p, order, sizeof *order));
    TRY(ki_wire_broadcast(p, p->dropped, order->dropped * (int64_t)sizeof *p->dropped));
    p->dropped_count = 0;
done:
    return status;
}

/* The next one may be long in coming. */
kiln_status ki_order_take(struct kiln_processes *p, struct ki_order *order) {
    const struct ki_transport *t = &p->transport;
    return check(p, t->broadcast(t->of, order, sizeof *order, true));
}

kiln_status ki_outcome_send(struct kiln_processes *p, kiln_status outcome) {
    const int64_t number = outcome;
    if (outcome != KILN_OK) ki_error_keep(&p->error);
    return ki_wire_send(p, 0, &number, sizeof number);
}

/* The error of process `whose`, with its number; what points into its memory does not come along. */
kiln_status ki_error_fetch(struct kiln_processes *p, int whose) {
    struct ki_order order = {.kind = KI_ORDER_EXPLAIN, .whose = whose};
    struct ki_error_copy theirs, told;
    kiln_status status;
    TRY(ki_order_send(p, &order));
    TRY(ki_wire_receive(p, whose, &theirs, sizeof theirs));
    theirs.error.subsystem = "";
    told = theirs;
    snprintf(told.message, sizeof told.message, "process %d of %d: %.*s", whose + 1, p->transport.count,
             (int)sizeof told.message - 64, theirs.message);
    status = ki_error_renew(&told);
done:
    return status;
}

kiln_status ki_outcomes_take(struct kiln_processes *p, kiln_status own) {
    struct ki_error_copy error;
    kiln_status status = KILN_OK;
    int failed = 0;
    if (own != KILN_OK) ki_error_keep(&error);
    for (int i = 1; i < p->transport.count; i++) {
        int64_t outcome;
        TRY(ki_wire_receive(p, i, &outcome, sizeof outcome));
        if (outcome != KILN_OK && !failed) failed = i;
    }
    if (own != KILN_OK) return ki_error_renew(&error);
    if (failed) TRY(ki_error_fetch(p, failed));
done:
    return status;
}

kiln_status ki_agree(kiln_status *outcome, struct kiln_processes *p) {
    const kiln_status own = *outcome;
    int64_t theirs;
    int failed = 0;
    kiln_status status = KILN_OK;
    if (own != KILN_OK) ki_error_keep(&p->error);
    if (!ki_leads(p)) TRY(ki_outcome_send(p, own));
    for (int i = 1; i < p->transport.count && ki_leads(p); i++) {
        TRY(ki_wire_receive(p, i, &theirs, sizeof theirs));
        if (theirs != KILN_OK && !failed) failed = i;
    }
    theirs = own != KILN_OK ? (int64_t)own : failed ? (int64_t)KILN_ERR_DEVICE : (int64_t)KILN_OK;
    TRY(ki_wire_broadcast(p, &theirs, sizeof theirs));
    *outcome = (kiln_status)theirs;
    if (ki_leads(p) && own != KILN_OK) *outcome = ki_error_renew(&p->error);
    if (ki_leads(p) && own == KILN_OK && failed) *outcome = ki_error_fetch(p, failed);
done:
    return status;
}

/* ---------------------------------------------------------------------------------------- numbers */

/* Both lists have room for all numbers that there are, so that a drop cannot fail: what is free has been
 * dropped, and what has been dropped twice since the last order, as its number was taken again meanwhile, is
 * listed once. */
kiln_status ki_number_take(int *number, struct kiln_processes *p) {
    if (p->free_count) {
        *number = p->free_numbers[--p->free_count];
        return KILN_OK;
    }
    const size_t bytes = (size_t)(p->numbers + 1) * sizeof *p->dropped;
    int *dropped = ki_resize(p->dropped, bytes), *numbers = NULL;
    if (dropped) {
        p->dropped = dropped;
        numbers = ki_resize(p->free_numbers, bytes);
    }
    if (!numbers) return ki_fail_nomem(bytes, "the numbers of what processes keep");
    p->free_numbers = numbers;
    *number = p->numbers++;
    return KILN_OK;
}

void ki_number_drop(struct kiln_processes *p, int number) {
    p->free_numbers[p->free_count++] = number;
    for (int i = 0; i < p->dropped_count; i++)
        if (p->dropped[i] == number) return;
    p->dropped[p->dropped_count++] = number;
}
