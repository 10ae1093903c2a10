/* This header says what becomes of an operation's operands where X is cut into slices of rows: panels that
 * stream through a device, or the shares of a group's members. An operation states it once, in a table of
 * rules; slices, copies, sums and holds follow from the table. */
#ifndef KI_ROLES_H
#define KI_ROLES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/memory.h"
#include "pass/chain.h"

enum ki_role {
    KI_NO_ROLE, /* not an operand of this kind */
    KI_ROW,     /* sliced with X's rows */
    KI_ENTRY,   /* a sparse matrix with X's structure, whose values are sliced with X's entries */
    KI_COLUMN,  /* the same for every slice */
    KI_GATHER,  /* whole for every slice, which writes the rows of its own; between rounds all get them
                * (pass/group.h) */
    KI_MEMBER,  /* the same of a row for each member */
    KI_OWN,     /* whole for every slice, all of which change it alike: it is the first's in the end */
    KI_SUM      /* added up over the slices; one that is only read (z) is a term of the sum, for one slice to
            * take */
};

/* Returns whether every slice has all of it: not its own part of it, nor a part of a sum. */
static inline bool ki_role_is_whole(enum ki_role role) {
    return role == KI_COLUMN || role == KI_GATHER || role == KI_MEMBER || role == KI_OWN;
}

enum ki_use { KI_READS = 1, KI_WRITES = 2, KI_CHANGES = KI_READS | KI_WRITES };

enum { KI_RULES_MOST = 12, KI_KINDS_MOST = 4 };

struct ki_rule {
    size_t at; /* of the operand's pointer in the operation's struct; it may be NULL there */
    enum ki_use use;
    enum ki_role role[KI_KINDS_MOST]; /* by the operation's kind, which is 0 where there is but one */
};

struct ki_rules {
    size_t bytes; /* of the operation's struct */
    size_t X;     /* where the pointer to the matrix lies that is cut */
    size_t sums;  /* where a pointer to doubles in host memory lies that are added up; 0: there is none */
    size_t place; /* where the struct receives its slice's ki_offset; 0: it does not ask */
    int count;
    const struct ki_rule *rule;
};

/* The rules in a list, of a struct whose member `matrix` is cut and whose member at `added` (0: none) points
 * to sums. */
#define KI_RULES(operation, matrix, added, list)                                                             \
    {                                                                                                        \
        .bytes = sizeof(operation), .X = offsetof(operation, matrix), .sums = (added),                       \
        .count = sizeof(list) / sizeof *(list), .rule = (list)                                               \
    }

/* An operand, which may be NULL. */
kiln_matrix *ki_operand_of(const void *operation, const struct ki_rule *rule);
void ki_operand_set(void *operation, const struct ki_rule *rule, const kiln_matrix *A);
/* All operands but X, for ki_operands_hold. */
void ki_operands_list(struct ki_operand operands[KI_RULES_MOST], const struct ki_rules *rules,
                      const void *operation);

/* Says where a slice lies in the whole. */
struct ki_offset {
    int64_t row, entry; /* its first */
    int64_t rows;       /* how many; of an X that is cut into columns, these */
    int member;
    bool leads; /* takes the terms of sums */
};
/* Makes `slice`, a copy of `whole`, an operation on the rows of X: what is sliced becomes views, sums stay
 * the whole's own matrices. */
void ki_slice(void *slice, kiln_matrix views[KI_RULES_MOST], const struct ki_rules *rules, int kind,
              const void *whole, const kiln_matrix *X, struct ki_offset place);

/* ---- passes ---- */

extern const struct ki_rules ki_chain_rules;

/* An operation on all rows of an X, on one device, for which X may be too large. */
struct ki_single {
    const struct ki_rules *rules;
    int kind;          /* of roles */
    const void *whole; /* the operation's struct, its arguments checked */
    int64_t sums;      /* doubles where rules->sums points to, if to anything */
    bool codes;        /* run knows categories, and an X that keeps them as codes stays as it is */
    bool narrow;       /* run knows narrow values, and an X that has them stays as it is */
    bool fresh;        /* what KI_CHANGES says of an operand does not hold this time: it is only written */
    int64_t walked;    /* bytes of results that each slice of X walks through beside its own */
    int64_t work;      /* bytes that `run` takes beside the operands, at most, of what works in place: such
                        * cannot begin again with panels once it finds too little. 0: not known */
    kiln_status (*run)(const void *slice); /* where X and all operands are on the device */
    /* Makes a slice add to what its first operand, a sum, holds. NULL: it cannot, and its part is added
     * afterwards. */
    void (*go_on)(void *slice);
};
/* With X on the device if it can be there beside the others, else panel by panel (stream.c): the one place
 * where that is decided. */
kiln_status ki_run_single(const struct ki_single *single);
/* Whether passes over X are expected to move it panel by panel: for prices, as only running one tells. */
bool ki_streams(const kiln_matrix *X);
/* The same of passes that take so many bytes beside X and the operands, whether X is there or not. */
bool ki_streams_beside(const kiln_matrix *X, int64_t bytes);
/* ki_check_operand of an operand that may so lie in a file. */
kiln_status ki_check_passed(const char *call, const char *name, const kiln_matrix *A,
                            const kiln_matrix *like);
/* Returns whether an operand that is read is also written, so that what has begun cannot begin again. */
bool ki_works_in_place(const struct ki_single *single);
/* Panel by panel. All operands but X are held. */
kiln_status ki_stream(const struct ki_single *single);

/* The sums of slices that run one after the other on one device. */
struct ki_sums {
    const struct ki_single *of;
    kiln_matrix *part[KI_RULES_MOST]; /* a slice's part of what is summed */
    void *slice;                      /* a copy of the operation's struct */
    double *added, *sums;             /* host memory's sums: of all slices that have run, and of one */
    int64_t slices;                   /* that have run */
};
kiln_status ki_sums_begin(struct ki_sums *sums, const struct ki_single *of);
/* Runs the slice of these rows and adds it up; after the last the whole's results are there. */
kiln_status ki_sums_add(struct ki_sums *sums, const kiln_matrix *X, int64_t first);
/* The sums in host memory go to where the operation wants them. */
void ki_sums_give(const struct ki_sums *sums);
void ki_sums_end(struct ki_sums *sums);

#endif
