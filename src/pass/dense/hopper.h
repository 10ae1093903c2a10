/* This header says what the cost model of dense passes (cost.c) takes from measurements on Hopper GPUs (H100,
 * H200): one row a constant, named as in the formulas that use it. Nanoseconds, or numbers without a unit.
 * Fitted to timings of plans on an H200, those of bench/studies, by bench/studies/fit_dense.py; what its
 * files do not reach is of former kernels. Bandwidth, units, registers and on-chip memory are those of the
 * GPU at hand; on one of another family latencies and instructions take so many times as long as was measured
 * on it (pace.h). */
#ifndef KI_HOPPER_H
#define KI_HOPPER_H

/* dense.cl. step: a group's way through a tile; busy: of a unit's issue slots, a warp and tile. */
#define KI_DENSE_CONSTANTS(C)                                                                                \
    C(dense_step, 307)          /* at least */                                                               \
    C(dense_shuffle, 11.4)      /* step: each */                                                             \
    C(dense_warp, 18.2)         /* step: each warp */                                                        \
    C(dense_own, 0.39)          /* step: of the tiles' own way */                                            \
    C(dense_barrier, 206)       /* step: a column of y, where several warps share rows */                    \
    C(dense_meeting, 10.8)      /* step: a sum and warp there */                                             \
    C(dense_multiply, 0.084)    /* busy: a multiplication */                                                 \
    C(dense_element, 1.46)      /* busy: an element of a row */                                              \
    C(dense_number, 3.2)        /* busy: a dot product */                                                    \
    C(dense_weight, 1.2)        /* busy: a dot product, where each column may have a v */                    \
    C(dense_exchange, 1.18)     /* busy: a shuffle, or a load */                                             \
    C(dense_narrow, 1.6)        /* busy: a load of less than 16 bytes, by as much as it is less */           \
    C(dense_rows_gain, 0.005)   /* of bandwidth, where rows are asked for together */                        \
    C(dense_split_lines, 0.954) /* ... is left, where rows of f64 share lines */                             \
    C(dense_end, 755)           /* an element of w, at the end */                                            \
    C(dense_end_vector, 1.84)

/* ring.cl. */
#define KI_RING_CONSTANTS(C)                                                                                 \
    C(ring_memory, 1.014)                                                                                    \
    C(ring_step, 760)                                                                                        \
    C(ring_number, 38)   /* step: a dot product */                                                           \
    C(ring_spread, 4.1)  /* step: rows of a warp's vectors lie apart */                                      \
    C(ring_load, 0.54)   /* step: a load from on-chip memory */                                              \
    C(ring_narrow, 2.15) /* step: ... of less than 16 bytes, by as much as it is less */                     \
    C(ring_meeting, 3.2) /* step: a dot product and warp, where several share rows */                        \
    C(ring_warp, 30.3)   /* busy: a warp and tile */                                                         \
    C(ring_multiply, 0.05)                                                                                   \
    C(ring_busy_load, 0.25)                                                                                  \
    C(ring_busy_number, 0.98)                                                                                \
    C(ring_shuffle, 0.76)                                                                                    \
    C(ring_latency, 858)         /* of a copy */                                                             \
    C(ring_share, 0.00376)       /* of the rate that each further group costs */                             \
    C(ring_share_warps, 0.00819) /* ... where several warps share rows */                                    \
    C(ring_end, 130)             /* an element of w, at the end */                                           \
    C(ring_end_vector, 4.2)

/* team.cl: of several groups that share rows, and of one alone. */
#define KI_TEAM_CONSTANTS(C)                                                                                 \
    C(team_step, 790)                                                                                        \
    C(team_load, 0.78)                                                                                       \
    C(team_narrow, 0.363) /* step: a load of less than 16 bytes, by as much as it is less */                 \
    C(team_odd_row, 145)  /* step: a row of loads of 4 bytes */                                              \
    C(team_part, 0.806)   /* step: a part that a group reads */                                              \
    C(team_meeting, 11.1)                                                                                    \
    C(team_alone_step, 714)                                                                                  \
    C(team_alone_load, 5)                                                                                    \
    C(team_alone_meeting, 5.3)                                                                               \
    C(team_warp, 8.7)                                                                                        \
    C(team_multiply, 0.31)                                                                                   \
    C(team_busy_load, 0.042)                                                                                 \
    C(team_shuffle, 1.14)                                                                                    \
    C(team_busy_part, 0.07)                                                                                  \
    C(team_memory, 1.02)        /* of the bandwidth, by bulk copies */                                       \
    C(team_memory_copies, 0.83) /* ... by copies of threads */                                               \
    C(team_rows_gain, 0.0326)                                                                                \
    C(team_alone_memory, 0.94)                                                                               \
    C(team_alone_turns, 0.004)                                                                               \
    C(team_latency, 400) /* of a tile */                                                                     \
    C(team_alone_latency, 310)                                                                               \
    C(team_exchange, 1240)        /* the way of the sums */                                                  \
    C(team_exchange_group, 0.223) /* ... longer with each further group of a unit */

/* tile.cl, f64 and f32: of a tile's way to the ring; of a warp's way through a tile where it looks ahead,
 * where it does not and where its rows are its own; of a block of 8 words and 8 rows, and of one whatever its
 * rows; of the issue slots of a warp and of a block, shared and own. */
#define KI_TILE_CONSTANTS(C)                                                                                 \
    C(way, 1358, 1189)                                                                                       \
    C(ahead, 822, 1157)                                                                                      \
    C(meeting, 822, 904)                                                                                     \
    C(own, 822, 1078)                                                                                        \
    C(block, 33.3, 61.7)                                                                                     \
    C(words, 0, 19.4)                                                                                        \
    C(warp, 59.3, 18.3)                                                                                      \
    C(shared_block, 3.26, 9.83)                                                                              \
    C(own_block, 3.26, 15.2)                                                                                 \
    C(reach, 1.1, 1.043)

/* ... of a team, f64, f32, and f32 where no load is tested: of a worker's step and for each of its blocks; of
 * the warp that adds up, at all and for each warp and group whose parts it takes; of the sums' way where one
 * tile waits for them and where more do; of the issue slots of a warp and a block. under_way: what is left of
 * the bytes under way. */
#define KI_TILE_TEAM_CONSTANTS(C)                                                                            \
    C(step, 797, 265, 613)                                                                                   \
    C(block, 24, 123, 58.8)                                                                                  \
    C(clerk, 78.3, 0, 51.7)                                                                                  \
    C(clerk_warp, 70.9, 19.7, 66)                                                                            \
    C(clerk_group, 22.8, 13.6, 10.8)                                                                         \
    C(one, 1580, 453, 2060)                                                                                  \
    C(more, 380, 130, 1490)                                                                                  \
    C(warp, 5.92, 10.3, 7.69)                                                                                \
    C(warp_block, 1.38, 16, 6.6)                                                                             \
    C(under_way, 1.07, 1.27, 0.88)

#define KI_CONSTANT(name, ...) double name;
struct ki_dense_constants {
    KI_DENSE_CONSTANTS(KI_CONSTANT)
    KI_RING_CONSTANTS(KI_CONSTANT)
    KI_TEAM_CONSTANTS(KI_CONSTANT)
    struct ki_tile_constants {
        KI_TILE_CONSTANTS(KI_CONSTANT)
    } tile_f64, tile_f32;
    struct ki_tile_team_constants {
        KI_TILE_TEAM_CONSTANTS(KI_CONSTANT)
    } team_f64, team_f32, team_f32_whole;
};
#undef KI_CONSTANT

extern const struct ki_dense_constants *ki_dense_constants;

#endif
