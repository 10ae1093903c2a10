/* Every process runs the program: rows that each has in memory of its own become one matrix, and bytes go to
 * process 0 and come from there. What fails in one process fails in all, at the same place. */
#include <string.h>

#include "core/seams.h"
#include "core/size.h"
#include "processes/processes.h"

static kiln_status check(const char *call, const struct kiln_processes *p) {
    if (!p) return ki_fail(KILN_ERR_ARGUMENT, "%s: processes is NULL", call);
    if (!p->met) return ki_fail(KILN_ERR_ARGUMENT, "%s: the processes have joined, and not met", call);
    if (p->broken || p->ended) return ki_fail(KILN_ERR_DEVICE_LOST, "%s: another process has ended", call);
    return KILN_OK;
}

kiln_status kiln_processes_serve(kiln_processes *processes) {
    kiln_status status;
    TRY(check("kiln_processes_serve", processes));
    if (ki_leads(processes)) return ki_fail(KILN_ERR_ARGUMENT, "kiln_processes_serve: process 0 leads");
    TRY(ki_processes_serve(processes));
    if (processes->ended) status = ki_fail(KILN_ERR_DEVICE_LOST, "process 1 has left");
done:
    return status;
}

kiln_status kiln_processes_rest(kiln_processes *processes) {
    struct ki_order order = {.kind = KI_ORDER_REST};
    kiln_status status;
    TRY(check("kiln_processes_rest", processes));
    if (!ki_leads(processes)) return ki_fail(KILN_ERR_ARGUMENT, "kiln_processes_rest: process 0 leads");
    TRY(ki_order_send(processes, &order));
done:
    return status;
}

/* ------------------------------------------------------------------------------------------- rows */

/* The facts that all processes' rows have to have in common, and those that each has. */
enum { ROWS, ENTRIES, COLUMNS, TYPE, FORMAT, FACTS };

static kiln_status gather_facts(int64_t *facts, struct kiln_processes *p, const kiln_matrix *here) {
    const int64_t own[FACTS] = {here->rows, here->nnz, here->cols, here->type, here->format};
    kiln_status status = KILN_OK;
    for (int i = 0; i < FACTS; i++) TRY(ki_wire_gather(p, facts + (int64_t)i * p->transport.count, own[i]));
done:
    return status;
}

/* The same error in all processes, as all have the same facts. */
static kiln_status check_facts(const int64_t *facts, int count) {
    static const char *const what[FACTS] = {
        [COLUMNS] = "number of columns", [TYPE] = "type", [FORMAT] = "format"};
    for (int i = COLUMNS; i < FACTS; i++)
        for (int process = 1; process < count; process++)
            if (facts[i * count + process] != facts[i * count])
                return ki_fail(KILN_ERR_ARGUMENT,
                               "kiln_processes_unite: the rows of process %d have another %s than those of "
                               "process 1",
                               process + 1, what[i]);
    return KILN_OK;
}

/* The error that a process without one of its own has of another's. */
static kiln_status fail_elsewhere(const struct kiln_processes *p, kiln_status own, kiln_status all) {
    if (own != KILN_OK || all == KILN_OK || ki_leads(p)) return all;
    return ki_fail(all, "another process could not do its part");
}

static kiln_status agree(struct kiln_processes *p, kiln_status own) {
    kiln_status all = own, status;
    TRY(ki_agree(&all, p));
    status = fail_elsewhere(p, own, all);
done:
    return status;
}

/* The leader's whole; the others keep their rows. *here belongs to it afterwards. */
static kiln_status keep(kiln_matrix **X, struct kiln_processes *p, int number, kiln_matrix **here,
                        const int64_t *facts) {
    kiln_matrix *made = NULL, *mine = *here;
    kiln_status status;
    if (!ki_leads(p)) {
        *here = NULL;
        return ki_keep(p, number, mine);
    }
    TRY(ki_matrix_shell(&made, p->device, mine->type, mine->format, 0, mine->cols));
    made->given = true;
    TRY(ki_cut_keep(made, p, number, mine, facts, facts + p->transport.count));
    *here = NULL;
    *X = made;
    made = NULL;
done:
    kiln_matrix_free(made);
    return status;
}

/* The others learn what need not be kept any longer: a number that is free is taken again below. */
static kiln_status drop_first(struct kiln_processes *p) {
    struct ki_order order = {.kind = KI_ORDER_REST};
    kiln_status status;
    TRY(ki_leads(p) ? ki_order_send(p, &order) : ki_processes_serve(p));
    if (p->ended) status = ki_fail(KILN_ERR_DEVICE_LOST, "process 1 has left");
done:
    return status;
}

static kiln_status begin_rows(kiln_matrix **here, int *number, struct kiln_processes *p,
                              const kiln_memory *mine) {
    kiln_status status;
    if (!p->device) return ki_fail(KILN_ERR_ARGUMENT, "kiln_processes_unite: no device has been opened");
    TRY(kiln_matrix_wrap(here, p->device, mine));
    (*here)->given = false;
    if (ki_leads(p)) TRY(ki_number_take(number, p));
done:
    return status;
}

kiln_status kiln_processes_unite(kiln_matrix **X, kiln_processes *processes, const kiln_memory *mine) {
    struct kiln_processes *p = processes;
    kiln_matrix *here = NULL, *made = NULL;
    int64_t *facts = NULL;
    int number = -1;
    bool wrapped = false;
    kiln_status status, outcome;
    TRY(check("kiln_processes_unite", p));
    if (!X || !mine) TRY(ki_fail(KILN_ERR_ARGUMENT, "kiln_processes_unite: an argument is NULL"));
    TRY(drop_first(p));
    const size_t bytes = FACTS * (size_t)p->transport.count * sizeof *facts;
    facts = ki_alloc(bytes);
    outcome = facts ? begin_rows(&here, &number, p, mine) : ki_fail_nomem(bytes, "the rows of processes");
    wrapped = here != NULL; /* and has release */
    TRY(agree(p, outcome));
    TRY(gather_facts(facts, p, here));
    TRY(check_facts(facts, p->transport.count));
    TRY(ki_wire_broadcast(p, &number, sizeof number));
    outcome = keep(&made, p, number, &here, facts);
    if (made) number = -1; /* which is its own */
    TRY(agree(p, outcome));
    *X = made;
    made = NULL;
done:
    if (p && ki_leads(p) && number >= 0) ki_number_drop(p, number);
    kiln_matrix_free(made);
    kiln_matrix_free(here);
    ki_free(facts);
    if (!wrapped && mine && mine->release) mine->release(mine->user);
    return status;
}

/* ------------------------------------------------------------------------------------------- bytes */

kiln_status kiln_processes_collect(void **all, int64_t *ends, kiln_processes *processes, const void *mine,
                                   int64_t count) {
    struct kiln_processes *p = processes;
    char *made = NULL;
    kiln_status status, outcome = KILN_OK;
    TRY(check("kiln_processes_collect", p));
    if (!all || !ends || count < 0 || (count && !mine))
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_processes_collect: an argument is NULL or negative");
    TRY(ki_wire_gather(p, ends, count));
    for (int i = 1; i < p->transport.count; i++) ends[i] += ends[i - 1];
    const int64_t total = ends[p->transport.count - 1];
    if (ki_leads(p) && !(made = ki_alloc((size_t)ki_max(total, 1))))
        outcome = ki_fail_nomem((size_t)total, "what the processes collect");
    TRY(agree(p, outcome));
    if (!ki_leads(p)) TRY(ki_wire_send(p, 0, mine, count));
    if (ki_leads(p) && count) memcpy(made, mine, (size_t)count);
    for (int i = 1; i < p->transport.count && ki_leads(p); i++)
        TRY(ki_wire_receive(p, i, made + ends[i - 1], ends[i] - ends[i - 1]));
    *all = made;
    made = NULL;
done:
    ki_free(made);
    return status;
}

kiln_status kiln_processes_spread(void **bytes, int64_t *count, kiln_processes *processes) {
    struct kiln_processes *p = processes;
    void *made = NULL;
    bool well = true;
    kiln_status status;
    TRY(check("kiln_processes_spread", p));
    if (!bytes || !count || (ki_leads(p) && (*count < 0 || (*count && !*bytes))))
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_processes_spread: an argument is NULL or negative");
    int64_t total = ki_leads(p) ? *count : 0;
    TRY(ki_wire_broadcast(p, &total, sizeof total));
    if (!ki_leads(p)) made = ki_alloc((size_t)ki_max(total, 1));
    TRY(ki_wire_all_well(&well, p, ki_leads(p) || made));
    if (!well) TRY(ki_fail_nomem((size_t)total, "what process 1 spreads"));
    TRY(ki_wire_broadcast(p, made ? made : *bytes, total));
    if (made) *bytes = made;
    *count = total;
    made = NULL;
done:
    ki_free(made);
    return status;
}
