/* This header says what each process reads of data that all read together (read.c). */
#ifndef KI_READING_H
#define KI_READING_H

#include "io/part.h"
#include "processes/processes.h"

struct ki_summary {
    int64_t rows, cols, entries, targets, bytes, filled, left_out;
    kiln_format format;
    int weights, offset, groups;
    uint64_t names;     /* a digest of those of features and targets */
    uint64_t files;     /* a digest of sizes, heads and tails of all files; 0: one could not be read */
    int whole;          /* the leader is to read all of it */
    int unread;         /* that is so because this part could not be read; the error is kept in p->error */
    int bad;            /* and the data are why */
    kiln_status status; /* an error that is no reason for that, which is kept in p->error, too */
};

/* This process's part of what an order says, into a zeroed table; all processes take part. An error is
 * MPI's. part.c */
kiln_status ki_read_part(struct ki_summary *summary, struct kiln_processes *p, struct ki_table *table,
                         const char *path, const struct ki_order *order);
/* The same of a Matrix Market file, whose entries go to the processes of their rows. *outcome: what went
 * wrong here, where the table stays empty; it does so, too, where something went wrong elsewhere. deal.c */
kiln_status ki_deal_entries(struct kiln_processes *p, struct ki_table *table, int64_t *bytes,
                            const char *path, const kiln_read_options *options, kiln_status *outcome);

#endif
