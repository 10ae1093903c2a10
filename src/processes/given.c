/* A transport of the program's own functions (kiln_transport): what they have not is made of `send` and
 * `receive`. */
#include <stdio.h>
#include <string.h>

#include "core/seams.h"
#include "processes/processes.h"
#include "processes/tree.h"

struct given {
    kiln_transport calls;
    void *part; /* KI_TRANSPORT_MOST bytes: what another process sends to be added */
};

/* A tree: in each round twice as many processes have the bytes. */
static int broadcast(void *of, void *bytes, int64_t count, int idle) {
    const kiln_transport *calls = &((const struct given *)of)->calls;
    int apart = 1;
    (void)idle;
    if (calls->broadcast) return calls->broadcast(calls->user, bytes, count);
    while (apart < calls->count && !(calls->rank & apart)) apart *= 2;
    if (calls->rank) {
        const int code = calls->receive(calls->user, calls->rank - apart, bytes, count);
        if (code) return code;
    }
    for (apart /= 2; apart > 0; apart /= 2) {
        const int to = calls->rank + apart;
        const int code = to < calls->count ? calls->send(calls->user, to, bytes, count) : 0;
        if (code) return code;
    }
    return 0;
}

static int send_bytes(void *of, int to, const void *bytes, int64_t count) {
    const kiln_transport *calls = &((const struct given *)of)->calls;
    return calls->send(calls->user, to, bytes, count);
}

static int receive_bytes(void *of, int from, void *bytes, int64_t count) {
    const kiln_transport *calls = &((const struct given *)of)->calls;
    return calls->receive(calls->user, from, bytes, count);
}

/* The first of a pair sends first, so that a send may wait for its receive. */
static int exchange_with(const kiln_transport *calls, int other, const struct ki_exchange *with) {
    for (int turn = 0; turn < 2; turn++) {
        const bool sends = (calls->rank < other) == (turn == 0);
        int code = 0;
        if (sends && with->out_bytes) code = calls->send(calls->user, other, with->out, with->out_bytes);
        if (!sends && with->in_bytes) code = calls->receive(calls->user, other, with->in, with->in_bytes);
        if (code) return code;
    }
    return 0;
}

/* In each round r the processes i and j with i + j = r modulo their number are a pair: each process has one
 * partner a round, whose partner it is, so that no circle of processes waits. */
static int exchange(void *of, const struct ki_exchange *with) {
    const kiln_transport *calls = &((const struct given *)of)->calls;
    for (int round = 0; round < calls->count; round++) {
        const int other = (round - calls->rank + calls->count) % calls->count;
        const int code = other == calls->rank ? 0 : exchange_with(calls, other, &with[other]);
        if (code) return code;
    }
    return 0;
}

static int sum(void *of, void *numbers, int64_t count, int real_bytes, int ordered) {
    struct given *given = of;
    const kiln_transport *calls = &given->calls;
    if (calls->sum && !ordered) return calls->sum(calls->user, numbers, count, real_bytes);
    const struct ki_tree tree = {calls->rank, calls->count, given, given->part, send_bytes, receive_bytes};
    return ki_tree_sum(&tree, numbers, count, real_bytes);
}

static void text(int code, char *to, int64_t bytes) {
    snprintf(to, (size_t)bytes, "the bytes of another process did not come or go, code %d", code);
}

/* The others learn it from their own transport; the program goes on, and has the error. */
static void end(void *of, int code) {
    (void)of;
    (void)code;
}

static void leave(void *of) {
    struct given *given = of;
    ki_free(given->part);
    ki_free(given);
}

static kiln_status check(const kiln_transport *given) {
    const bool fits = given->count >= 1 && given->rank >= 0 && given->rank < given->count &&
                      given->local >= 0 && given->local_count >= 0;
    if (fits && given->send && given->receive) return KILN_OK;
    return ki_fail(KILN_ERR_ARGUMENT, "kiln_processes_meet: the transport has process %d of %d%s",
                   given->rank, given->count, fits ? ", but lacks send or receive" : "");
}

kiln_status ki_transport_given(struct ki_transport *transport, const kiln_transport *given) {
    struct given *of = NULL;
    kiln_status status;
    TRY(check(given));
    of = ki_calloc(sizeof *of);
    if (of) of->part = ki_alloc(KI_TRANSPORT_MOST);
    if (!of || !of->part) {
        ki_free(of);
        return ki_fail_nomem(KI_TRANSPORT_MOST, "a transport");
    }
    of->calls = *given;
    *transport = (struct ki_transport){.version = KI_TRANSPORT_VERSION,
                                       .rank = given->rank,
                                       .count = given->count,
                                       .local = given->local_count ? given->local : given->rank,
                                       .local_count = given->local_count ? given->local_count : given->count,
                                       .of = of,
                                       .broadcast = broadcast,
                                       .send = send_bytes,
                                       .receive = receive_bytes,
                                       .exchange = exchange,
                                       .sum = sum,
                                       .text = text,
                                       .end = end,
                                       .leave = leave};
    snprintf(transport->name, sizeof transport->name, "%s", given->name ? given->name : "the transport");
done:
    return status;
}
