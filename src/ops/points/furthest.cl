/* GPU body of ki_furthest: atomic maxima. Few of them happen, as a distance that is no larger than the
 * maximum so far is only compared. */

#define ARGUMENTS_furthest(FIRST, NEXT)                                                                      \
    FIRST(OUT, real, R)                                                                                      \
    NEXT(IN, real, distances)                                                                                \
    NEXT(IN, real, labels)                                                                                   \
    NEXT(VALUE, long, rows)

#ifndef KI_HOST
__kernel void furthest(PARAMETERS(furthest)) {
    FOR_EACH(i, rows) atomic_max_global(R + (int)labels[i], distances[i]);
}

/* The variants that differ in text, as the tests build them. */
// build
// build INDEX64
// pack {f32|f64}
#endif
