/* The processes that the leader orders about: each does its part of an order, and waits for the next. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "processes/processes.h"

static void drop(struct kiln_processes *p, int number) {
    if (number >= p->kept_most) return;
    kiln_matrix_free(p->kept[number]);
    p->kept[number] = NULL;
}

kiln_matrix *ki_kept(const struct kiln_processes *p, int number) {
    return number < p->kept_most ? p->kept[number] : NULL;
}

kiln_status ki_keep(struct kiln_processes *p, int number, kiln_matrix *A) {
    if (number >= p->kept_most) {
        const int most = (int)ki_max(2 * (int64_t)p->kept_most, number + 16);
        kiln_matrix **more = ki_resize(p->kept, (size_t)most * sizeof(kiln_matrix *));
        if (!more) {
            kiln_matrix_free(A);
            return ki_fail_nomem((size_t)most * sizeof(kiln_matrix *), "what a process keeps");
        }
        memset(more + p->kept_most, 0, (size_t)(most - p->kept_most) * sizeof(kiln_matrix *));
        p->kept = more;
        p->kept_most = most;
    }
    drop(p, number);
    p->kept[number] = A;
    return KILN_OK;
}

/* The threads of this machine are shared by its processes. */
static kiln_status open_device(struct kiln_processes *p, const struct ki_order *order) {
    const kiln_device_options options = {.threads = order->open.threads,
                                         .memory = order->open.memory,
                                         .deterministic = order->open.deterministic};
    return ki_outcome_send(p, ki_open_here(p, order->open.device, &options));
}

static void close_device(struct kiln_processes *p, bool alive) {
    ki_united_end(p, alive);
    for (int number = 0; number < p->kept_most; number++) drop(p, number);
    kiln_device_close(p->device);
    p->device = NULL;
}

static kiln_status take_dropped(struct kiln_processes *p, int64_t count) {
    enum { AT_ONCE = 1024 };
    int numbers[AT_ONCE];
    kiln_status status = KILN_OK;
    for (int64_t at = 0; at < count; at += AT_ONCE) {
        const int64_t some = ki_min(count - at, AT_ONCE);
        TRY(ki_wire_broadcast(p, numbers, some * (int64_t)sizeof *numbers));
        for (int64_t i = 0; i < some; i++) drop(p, numbers[i]);
    }
done:
    return status;
}

static kiln_status explain(struct kiln_processes *p, const struct ki_order *order) {
    return order->whose == p->transport.rank ? ki_wire_send(p, 0, &p->error, sizeof p->error) : KILN_OK;
}

static kiln_status serve_one(struct kiln_processes *p, struct ki_order *order) {
    switch (order->kind) {
    case KI_ORDER_OPEN: return open_device(p, order);
    case KI_ORDER_CLOSE: close_device(p, true); return KILN_OK;
    case KI_ORDER_GIVE: return ki_serve_give(p, order);
    case KI_ORDER_SHARE: return ki_serve_share(p, order);
    case KI_ORDER_READ: return ki_serve_read(p, order);
    case KI_ORDER_ROWS: return ki_serve_rows(p, order);
    case KI_ORDER_LARGEST: return ki_serve_largest(p, order);
    case KI_ORDER_FETCH: return ki_serve_fetch(p, order);
    case KI_ORDER_STORE: return ki_serve_store(p, order);
    case KI_ORDER_EACH: return ki_serve_each(p, order);
    case KI_ORDER_COLUMNS: return ki_serve_columns(p, order);
    case KI_ORDER_EXPLAIN: return explain(p, order);
    case KI_ORDER_REST:
    case KI_ORDER_LEAVE: break;
    }
    return KILN_OK;
}

kiln_status ki_processes_serve(struct kiln_processes *p) {
    struct ki_order *order = ki_calloc(sizeof *order);
    kiln_status status;
    if (!order) TRY(ki_fail_nomem(sizeof *order, "the orders of a process"));
    if (p->broken) TRY(ki_fail(KILN_ERR_DEVICE_LOST, "another process has ended"));
    do {
        TRY(ki_order_take(p, order));
        TRY(take_dropped(p, order->dropped));
        TRY(serve_one(p, order));
    } while (order->kind != KI_ORDER_LEAVE && order->kind != KI_ORDER_REST);
done:
    p->broken = p->broken || status != KILN_OK; /* the others wait for it in vain */
    p->ended = p->broken || order->kind == KI_ORDER_LEAVE;
    if (p->ended) close_device(p, !p->broken);
    ki_free(order);
    return status;
}
