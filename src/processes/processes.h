/* Processes that compute together: one leads, the others serve it.
 *
 * What the leader wants goes to all as an order of fixed size, with what belongs to it behind; both sides
 * then know what is to be sent to whom, and how much. An error never breaks that off: who cannot use what is
 * sent throws it away, who cannot make what is awaited sends anything, and says so in its status, which
 * follows. So one process's want of memory is an error of the leader's call, and the next call finds
 * everything in step. */
#ifndef KI_PROCESSES_ROOM_H
#define KI_PROCESSES_ROOM_H

#include "core/matrix.h"
#include "core/processes.h"
#include "core/threads.h"
#include "kiln/meet.h"
#include "pass/group.h"
#include "processes/transport.h"

enum ki_order_kind {
    KI_ORDER_LEAVE,   /* no more orders */
    KI_ORDER_REST,    /* none until the next meeting */
    KI_ORDER_OPEN,    /* a device */
    KI_ORDER_CLOSE,   /* all that is kept, and the device */
    KI_ORDER_GIVE,    /* rows of a matrix, which follow */
    KI_ORDER_SHARE,   /* an operation on such rows */
    KI_ORDER_READ,    /* a part of a file */
    KI_ORDER_ROWS,    /* some rows of a matrix */
    KI_ORDER_LARGEST, /* the largest elements of its columns */
    KI_ORDER_FETCH,   /* one of its arrays */
    KI_ORDER_STORE,   /* values for it */
    KI_ORDER_EACH,    /* what is done to its rows where they lie */
    KI_ORDER_COLUMNS, /* columns of a matrix whose rows the processes have */
    KI_ORDER_EXPLAIN  /* the error of process `whose` */
};

enum { KI_ORDER_STRUCT = 512, KI_ORDER_NAME = 32 };

/* An operand of a shared operation (pass/roles.h). */
struct ki_order_operand {
    enum ki_role role; /* KI_NO_ROLE: there is none */
    enum ki_use use;
    int number; /* what it is kept as; of a SUM nothing is kept */
    bool made;  /* it is new */
    bool sent;  /* its values follow */
    bool away;  /* it lies in the processes, as X does, and stays there */
    kiln_type type;
    int64_t rows, cols; /* of the whole */
};

struct ki_order {
    enum ki_order_kind kind;
    int64_t dropped; /* so many numbers follow, of what need not be kept any longer; before all else */
    int whose;       /* EXPLAIN */
    int look;        /* ROWS, LARGEST, FETCH, STORE: the number of X */
    int part;        /* FETCH: KI_VALUES, ... */
    bool some;       /* FETCH: only elements, of which follow the first and how many */
    struct {
        char device[KI_ORDER_NAME];
        int threads, deterministic;
        int64_t memory;
    } open;
    struct {
        int number;
        kiln_type type;
        kiln_format format;
        int64_t cols;
    } give;
    struct {
        struct ki_each each;
        intptr_t run; /* its place */
        int number[KI_EACH_MADE], X;
    } each;
    struct {
        int number, X;
        bool transposed; /* columns become rows */
    } columns;
    struct {
        intptr_t rules, run; /* places in the library's code, which is the same in all processes */
        int kind, X;
        bool fresh, ordered;
        int64_t sums, rounds;
        enum ki_split_by cut;
        struct ki_order_operand operand[KI_RULES_MOST];
        char whole[KI_ORDER_STRUCT];
    } share;
    struct {
        int number; /* of the rows of X */
        kiln_file_format format;
        kiln_read_options options; /* whose texts follow, so many bytes */
        kiln_range target_range;
        int64_t texts;
        const char *schema; /* ki_together.schema, whose text stands behind those of the options */
        uint64_t key[2];    /* ki_together.key */
    } read;
};

struct kiln_processes {
    struct ki_processes calls; /* first: a device points to it */
    struct ki_transport transport;
    kiln_device *device;
    void *united;                        /* the collectives of their GPUs; NULL: none */
    bool asked;                          /* whether the GPUs have been tried: united is settled */
    bool broken;                         /* MPI has failed */
    bool met;                            /* every process runs the program */
    bool ended;                          /* one that serves: its service */
    bool left;                           /* while its device was open, at whose end this goes, too */
    void *piece;                         /* KI_TRANSPORT_MOST bytes on their way */
    struct ki_exchange *exchange, *some; /* with each process: what is asked for, and a piece of it */
    /* The leader: numbers that are free, and those to be dropped at the next order. */
    int numbers, free_count, *free_numbers, dropped_count, *dropped;
    int64_t cuts; /* so many matrices have been cut into rows */
    /* The others: what they keep, by number. */
    kiln_matrix **kept;
    int kept_most;
    struct ki_error_copy error; /* the last */
};

static inline bool ki_leads(const struct kiln_processes *p) {
    return p->transport.rank == 0;
}

/* The transport of a program's own functions, which it is given: given.c */
kiln_status ki_transport_given(struct ki_transport *transport, const kiln_transport *given);

/* ---- wire.c: bytes between processes. An error is ERR_DEVICE_LOST: MPI has failed. ---- */

kiln_status ki_wire_broadcast(struct kiln_processes *p, void *bytes, int64_t count);
kiln_status ki_wire_send(struct kiln_processes *p, int to, const void *bytes, int64_t count);
kiln_status ki_wire_receive(struct kiln_processes *p, int from, void *bytes, int64_t count);
/* Adds up numbers of the host. */
kiln_status ki_wire_sum(struct kiln_processes *p, double *numbers, int64_t count, bool ordered);
/* Each process's number to all: numbers[i] is that of process i. */
kiln_status ki_wire_gather(struct kiln_processes *p, int64_t *numbers, int64_t own);
/* Finds whether all are well, which all learn. p->piece is used for it. */
kiln_status ki_wire_all_well(bool *well, struct kiln_processes *p, bool own);
/* p->exchange with all others at once, the own one as a copy; what it says is used up. */
kiln_status ki_wire_exchange(struct kiln_processes *p);

/* The ways of a matrix's values. */
enum ki_way { KI_BROADCAST, KI_SEND, KI_RECEIVE, KI_ADD_UP, KI_ADD_UP_ORDERED };
/* `count` bytes of A's values from byte `first` on, which go to or come from `peer`, or all. A NULL: what
 * comes is thrown away, and what goes is anything. *outcome: what went wrong with A's device; the bytes go
 * their way all the same. */
kiln_status ki_wire_values(struct kiln_processes *p, enum ki_way way, int peer, kiln_matrix *A, int64_t first,
                           int64_t count, kiln_type type, kiln_status *outcome);

/* united.c: what ki_wire_values would do, where GPUs do it without the host. *carried, the same in all
 * processes: they have; if not, nothing has been sent. `count` bytes are all of A, in all processes. An error
 * is of NCCL or MPI, and the end of all. */
kiln_status ki_united_values(bool *carried, struct kiln_processes *p, enum ki_way way, kiln_matrix *A,
                             int64_t count, kiln_status *outcome);
/* The GPUs part, in all processes at once; alive: nothing has failed. */
void ki_united_end(struct kiln_processes *p, bool alive);

/* The leader's order to all others. */
kiln_status ki_order_send(struct kiln_processes *p, struct ki_order *order);
kiln_status ki_order_take(struct kiln_processes *p, struct ki_order *order);
/* Each other process's outcome to the leader, who gets the first error as an error of its own, after `own`,
 * which counts first. */
kiln_status ki_outcome_send(struct kiln_processes *p, kiln_status outcome);
kiln_status ki_outcomes_take(struct kiln_processes *p, kiln_status own);
/* In the middle of an order: *outcome, each process's own, becomes that of all. Unless it is OK all break
 * off; the leader has the first error. */
kiln_status ki_agree(kiln_status *outcome, struct kiln_processes *p);
/* The error of process `whose`, which has kept it, as one of the leader's. */
kiln_status ki_error_fetch(struct kiln_processes *p, int whose);

/* A number for something that the others are to keep, and its end. */
kiln_status ki_number_take(int *number, struct kiln_processes *p);
void ki_number_drop(struct kiln_processes *p, int number);

/* ---- leader ---- */

/* A matrix that is cut into rows, or columns: what a slot of it holds. Process i has the rows, or columns,
 * [first[i], first[i + 1]). */
struct ki_cut {
    struct kiln_processes *processes;
    int number;
    int64_t identity, rows; /* of this cut; the same for all matrices that are cut into the same rows */
    kiln_matrix *here;      /* the leader's part */
    int64_t *first, *entry; /* count + 1 of each, of rows in one piece of memory */
};
/* The cut of X, which is made now if there is none: give.c. An X that was read in parts is never cut by
 * pairs. */
kiln_status ki_cut_of(const struct ki_cut **cut, const kiln_matrix *X, enum ki_split_by by);
/* The same into columns: columns.c. */
kiln_status ki_cut_columns_of(const struct ki_cut **cut, const kiln_matrix *X);
void ki_cut_columns_drop(const kiln_matrix *X); /* X has other values now */
/* The process whose range [first[i], first[i + 1]) holds n, of `count` ranges that begin where others end. */
static inline int ki_owner_of(const int64_t *first, int count, int64_t n) {
    return (int)ki_row_at(first + 1, count - 1, n + 1, 0);
}
/* A cut without places, under a number that is its own from then on, and its end. */
kiln_status ki_cut_new(struct ki_cut **cut, struct kiln_processes *p, int number);
void ki_cut_free(kiln_device *device, void *cut);
/* A new cut, of parts that the processes have already: rows[i] and entries[i] are those of process i. It
 * belongs to X, to which it gives its shape, from then on; `here` does, too. */
kiln_status ki_cut_keep(kiln_matrix *X, struct kiln_processes *p, int number, kiln_matrix *here,
                        const int64_t *rows, const int64_t *entries);
/* The same of a cut that has its places and the leader's rows. */
kiln_status ki_cut_give(kiln_matrix *X, struct ki_cut *cut);
/* The rows of X, which has been made of another matrix's, are those of that one's cut: what is kept of
 * operands serves both. */
void ki_cut_alike(const kiln_matrix *X, const struct ki_cut *other);
kiln_status ki_processes_share(const struct ki_shared *shared);
kiln_status ki_processes_read(kiln_matrix **X, struct ki_table *table, kiln_file_format *format,
                              int64_t *bytes, kiln_device *device, const char *path,
                              const kiln_read_options *options);

/* Finds what struct ki_processes says of an X whose rows lie in the processes. */
kiln_status ki_processes_each(kiln_matrix **made, double *sums, const struct ki_each *each,
                              const kiln_matrix *X);
kiln_status ki_processes_transpose(kiln_matrix **T, const kiln_matrix *X);
kiln_status ki_processes_fetch(void *to, const kiln_matrix *X, int part);
kiln_status ki_processes_store(kiln_matrix *X, const void *values);
kiln_status ki_processes_rows(kiln_matrix *R, const kiln_matrix *X, const int64_t *rows);
kiln_status ki_processes_largest(double *largest, const kiln_matrix *X);

/* ---- the others ---- */

/* Serves until the leader leaves or rests. After an error, and when it has left, p->ended. */
kiln_status ki_processes_serve(struct kiln_processes *p);
/* Opens this process's device, of the name that all were given. */
kiln_status ki_open_here(struct kiln_processes *p, const char *name, const kiln_device_options *options);
/* Places in the library's code, which is the same in all processes (join.c sees to it). */
intptr_t ki_place_of(uintptr_t address);
uintptr_t ki_address_of(intptr_t place);
/* Keeps A under a number, for which there must be no other; takes it over, on failure too. */
kiln_status ki_keep(struct kiln_processes *p, int number, kiln_matrix *A);
/* Returns what is kept under a number, or NULL. */
kiln_matrix *ki_kept(const struct kiln_processes *p, int number);
/* Each: what an order asks of this process. Errors are those of MPI. */
kiln_status ki_serve_give(struct kiln_processes *p, const struct ki_order *order);
kiln_status ki_serve_share(struct kiln_processes *p, const struct ki_order *order);
kiln_status ki_serve_fetch(struct kiln_processes *p, const struct ki_order *order);
kiln_status ki_serve_store(struct kiln_processes *p, const struct ki_order *order);
kiln_status ki_serve_each(struct kiln_processes *p, const struct ki_order *order);
kiln_status ki_serve_columns(struct kiln_processes *p, const struct ki_order *order);
kiln_status ki_serve_rows(struct kiln_processes *p, const struct ki_order *order);
kiln_status ki_serve_largest(struct kiln_processes *p, const struct ki_order *order);
kiln_status ki_serve_read(struct kiln_processes *p, struct ki_order *order);

#endif
