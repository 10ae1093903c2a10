/* Arguments of kernels that pass over X (struct ki_chain, pass/chain.h): KI_CHAIN_ARGUMENTS and its like in
 * pass/launch.h say where the host has them from. */

/* A kernel that makes the whole chain has these among its own. */
#define ARGUMENTS_chain(FIRST, NEXT)                                                                         \
    FIRST(IN, real, v)                                                                                       \
    NEXT(IN, real, y)                                                                                        \
    NEXT(IN, real, z)                                                                                        \
    NEXT(VALUE, real, alpha)                                                                                 \
    NEXT(VALUE, real, beta)                                                                                  \
    NEXT(VALUE, long, rows)

/* All kernels over a dense X take these: `out` is the result or the groups' partial ones. Columns [first,
 * first + K) of y's k. */
#define ARGUMENTS_dense(FIRST, NEXT)                                                                         \
    FIRST(SPACE, real, out)                                                                                  \
    NEXT(KEPT, stored, X)                                                                                    \
    ARGUMENTS_chain(NEXT, NEXT) NEXT(VALUE, int, n) NEXT(VALUE, int, k) NEXT(VALUE, int, first)              \
        NEXT(VALUE, int, v_cols)

/* Behind them where rows go through a map (pass.h). */
#define ARGUMENTS_row_map(FIRST, NEXT)                                                                       \
    FIRST(IN, real, shift)                                                                                   \
    NEXT(IN, real, target)                                                                                   \
    NEXT(IN, real, weights)                                                                                  \
    NEXT(IN, real, offset)                                                                                   \
    NEXT(OUT, real, curvature)                                                                               \
    NEXT(VALUE, real, parameter)                                                                             \
    NEXT(VALUE, real, power)                                                                                 \
    NEXT(SPACE, wide, records)                                                                               \
    NEXT(VALUE, long, records_at)

/* Behind these where groups that share rows exchange their sums through memory (exchange.h). */
#define ARGUMENTS_team(FIRST, NEXT)                                                                          \
    FIRST(SPACE, real, work_space)                                                                           \
    NEXT(VALUE, long, exchange_at)
