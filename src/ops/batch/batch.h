/* Batches of vectors: where the vectors of one call lie, and the ways for a device to go about them. */
#ifndef KI_BATCH_H
#define KI_BATCH_H

#include "kiln/ops.h"
#include "core/matrix.h"

/* Arrays on the device; TILES of f32, then of f64. */
enum {
    KI_BATCH_OFFSETS,
    KI_BATCH_PIECES,
    KI_BATCH_VECTORS,
    KI_BATCH_STARTS,
    KI_BATCH_TILES,
    KI_BATCH_ARRAYS = KI_BATCH_TILES + 2
};

/* Long vectors of a ragged batch are cut into pieces, so that none holds up the others. */
struct ki_batch_pieces {
    int64_t count, vectors;
    int64_t *piece;  /* 3 x count: vector, first element, the one behind the last */
    int64_t *vector; /* the long ones, and vectors + 1 places where their pieces begin */
    int64_t *start;
};

struct kiln_batch {
    kiln_device *device; /* of the arrays; NULL: there are none */
    int64_t count;
    int64_t length, first, stride, step; /* of equal vectors */
    int64_t *offsets;                    /* of a ragged batch: count + 1, in host memory; else NULL */
    int64_t elements, longest;
    int64_t end; /* behind the last element that a vector has */
    struct ki_batch_pieces
        pieces; /* of a ragged batch, as are the tiles: pairs of vectors, the first and the one behind the
                 * last */
    int64_t *tiles[2], tile_count[2];
    int lanes;                                   /* threads that take a vector of a tile */
    struct ki_buffer on_device[KI_BATCH_ARRAYS]; /* empty on the CPU */
    struct ki_batch_members *members; /* of the rows of a sparse X on a group, else NULL (batch_rows.c) */
};

enum { KI_BATCH_GROUP = 256, KI_BATCH_TILE_BYTES = 16384 };
/* Vectors longer than this go by pieces of half of it: on the CPU, and of ragged batches on a GPU, where it
 * is no more than what keeps the threads of a tile's vector from looping for long. */
enum { KI_BATCH_LONG_CPU = 1 << 18, KI_BATCH_LONG_GPU = 1000, KI_BATCH_PIECE_GPU = 1 << 14 };

/* Says how a device reduces: the paper's three ways (a vector a thread, a block, a looped block), fewer
 * threads than a block, vectors cut for several groups, tiles. */
enum ki_batch_way {
    KI_BATCH_THREAD,
    KI_BATCH_LANES,
    KI_BATCH_BLOCK,
    KI_BATCH_LOOP,
    KI_BATCH_SPLIT,
    KI_BATCH_TILED,
    KI_BATCH_WAYS
};

struct ki_batch_plan {
    enum ki_batch_way way;
    int lanes, group;        /* VS, BS */
    bool wide;               /* loads of 16 bytes */
    int64_t parts, together; /* pieces of a vector; vectors of a tile */
    int64_t groups;
    double bytes, seconds; /* predicted */
    const char *limit;
};

/* The launch model's, of an H200: seconds of the memory's latency and of a launch; lines a second that a
 * unit's memory pipe takes, and instructions of a warp that it issues; what of a bound the largest one does
 * not hide; instructions of a vector and of an exchange between its threads, and of an element, straight from
 * memory and from tiles; lines of a tile's element. Fitted by bench/studies/fit_batch.py. */
#define KI_BATCH_CONSTANTS(C)                                                                                \
    C(latency, 1.04e-6)                                                                                      \
    C(launch, 3e-6)                                                                                          \
    C(lines, 2.54e9)                                                                                         \
    C(issued, 4.88e9)                                                                                        \
    C(not_hidden, 0.195)                                                                                     \
    C(vector, 81)                                                                                            \
    C(exchange, 7.2)                                                                                         \
    C(element, 8)                                                                                            \
    C(tile_vector, 25)                                                                                       \
    C(tile_exchange, 6.4)                                                                                    \
    C(tile_element, 8.4)                                                                                     \
    C(tile_lines, 9.7)
#define KI_BATCH_CONSTANT(name, value) double name;
struct ki_batch_constants {
    KI_BATCH_CONSTANTS(KI_BATCH_CONSTANT)
};
extern const struct ki_batch_constants *ki_batch_constants;

enum { KI_BATCH_PLANS = 32 };
/* The ways of the batch's device, the best predicted one first; returns how many. */
int ki_batch_plans(struct ki_batch_plan plans[KI_BATCH_PLANS], const kiln_device *device,
                   const kiln_batch *batch, kiln_type type);
kiln_status ki_batch_launch(kiln_matrix *result, int kind, const kiln_matrix *X, const kiln_batch *batch,
                            const struct ki_batch_plan *plan);
kiln_status ki_batch_launch_scale(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,
                                  const kiln_batch *batch);
/* Equal vectors that lie side by side. */
static inline bool ki_batch_adjoins(const kiln_batch *batch) {
    return !batch->offsets && batch->step == 1 && (batch->stride == batch->length || batch->count == 1);
}
/* Shares of the vectors with about as many elements each, the same whatever the number of threads: share
 * `part` of `parts` begins with this vector. */
int ki_batch_shares(const kiln_batch *batch);
int64_t ki_batch_share(const kiln_batch *batch, int part, int parts);
/* ERR_ARGUMENT unless the batch lies within X and the result fits both. */
kiln_status ki_batch_check_reduce(const char *call, const kiln_matrix *result, kiln_batch_kind kind,
                                  const kiln_matrix *X, const kiln_batch *batch);
/* Runs what has been checked; plan NULL: the best predicted one. */
kiln_status ki_batch_run(kiln_matrix *result, int kind, const kiln_matrix *X, const kiln_batch *batch,
                         const struct ki_batch_plan *plan);

/* Runs what has been checked, and has elements. */
kiln_status ki_batch_run_scale(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *scale,
                               const kiln_batch *batch);

/* Finds whether a group's members share the batch: it is X's rows (batch_rows.c); and then of that batch,
 * checked, Y not X. */
kiln_status ki_batch_shared(bool *shared, const kiln_batch *batch, const kiln_matrix *X);
kiln_status ki_batch_share_reduce(kiln_matrix *result, int kind, const kiln_matrix *X,
                                  const kiln_batch *batch);
kiln_status ki_batch_share_scale(kiln_matrix *Y, const kiln_matrix *X, const kiln_matrix *by,
                                 const kiln_batch *batch);
/* A batch of X's rows for each member of the group on which a sparse X lies, if it does. */
kiln_status ki_batch_members_new(struct ki_batch_members **members, const kiln_batch *batch,
                                 const kiln_matrix *X);
void ki_batch_members_free(struct ki_batch_members *members);

#endif
