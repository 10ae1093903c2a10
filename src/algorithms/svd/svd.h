/* The parts of kiln_svd, from below: products with A, orthonormal blocks, the search, the judgement.
 *
 * "Near" vectors belong to the smaller side of A, "far" ones to the other: B = A, or A^T where A is wide,
 * takes near vectors to far ones, and C = B^T B near ones to near ones; of a graph, where A is symmetric and
 * not negative, C = A. */
#ifndef KI_SVD_H
#define KI_SVD_H

#include "algorithms/registry.h"
#include "algorithms/run/run.h"

enum {
    KI_SVD_PANELS = 8,
    KI_SVD_PARTS = KI_SVD_PANELS + 19,
    KI_SVD_DEGREE_MOST = 256 /* products of a step */
};

/* Room for what is done to so many vectors at once. */
struct ki_svd_room {
    int64_t count;
    kiln_matrix *columns, *scaled; /* n x count */
    kiln_matrix *sums, *shift;     /* 1 x count */
    kiln_matrix *small;            /* count x count */
    double *g, *q, *t;             /* the same on the host */
    double *scale, *root;          /* count */
    int64_t *place;
};

struct ki_svd {
    struct ki_run run;
    const char *call;         /* for errors */
    kiln_svd_options options; /* defaults filled in */
    const kiln_matrix *X;     /* a dense one may be a copy with the means taken off */
    int64_t m, n, k, near, far;
    bool wide; /* near vectors have m numbers */
    bool on_cpu;
    kiln_matrix *mean;    /* of X's columns, n x 1; NULL: zeros */
    kiln_matrix *inverse; /* what A's columns are multiplied by, n x 1; NULL: ones */
    kiln_matrix *ones;    /* m x 1 */
    kiln_matrix *G;       /* C, or NULL; `exact`: it no longer does */
    kiln_matrix *between; /* far x b where X is multiplied by, and then its transpose, in place of one pass */
    bool exact;
    double unit; /* a power of two that A is multiplied by, so that squares stay in range */
    double *means, *deviations, total; /* the caller's; the sum of A's columns' variances */
    double taken;     /* the sum of squares of what is taken off X's products: 1 mean^T D^-1 */
    bool one_way;     /* a graph's X is not symmetric */
    int64_t isolated; /* vertices without links */
    int64_t parts;    /* connected components, of which these are some */

    /* The search: orthonormal near vectors, those that are found in L, `known` others in V, whose columns are
     * 0 from there on, the block that is multiplied next, and H = V^T C V. V lies in panels of so many
     * columns that a step is few products; a block does not cross their borders. */
    struct ki_svd_room block;
    int64_t b, most, known, width, panels; /* columns of a block, of V at most, of V, of a panel; panels */
    kiln_matrix *V[KI_SVD_PANELS], *fresh[KI_SVD_PANELS], *next, *W, *spare;
    kiln_matrix *L, *products, *part, *place; /* near x k; k x b; width x b; b x width */
    double *h;                                /* V^T C V_j, room for all panels */
    double *H, *K, *Q, *R;                    /* most x most, R b x b: what C V leaves is `next` times R */
    double *theta, *rest; /* Ritz values of V, descending, and how long C y - theta y is */
    int64_t locked;       /* vectors in L */
    int64_t streams;      /* random blocks that were drawn */
    int64_t patience;     /* looks since the estimate was the least */
    int64_t idle;         /* looks since that, or since squares last grew */
    double least, before; /* estimate; residual at the last judgement */
    int64_t wait, apart;  /* iterations until the next look at the estimate, and from the last to that one;
                           * 0: it was stopped, and comes first */
    double seen, squares; /* the estimate at the last look, and the sum of squares of what was found */

    /* The polynomial that stands in C's place, of a degree above 1 (svd_spread.c). */
    int64_t degree;
    double beta;
    kiln_matrix *third; /* near x b, beside W and spare */

    /* The result: near x k twice, far x k three times. */
    struct ki_svd_room wanted;
    kiln_matrix *near_v, *near_w, *far_v, *far_w, *far_x;
    double *s, *residual;
    double orthogonality;
    bool judged; /* V has not changed since */
    struct ki_state state[KI_SVD_PARTS];
};

/* svd_product.c. Rooms' counts are the vectors' columns. */
kiln_status ki_svd_room_new(struct ki_svd_room *room, struct ki_svd *s, int64_t count);
kiln_status ki_svd_forward(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix *far,
                           const kiln_matrix *near);
kiln_status ki_svd_back(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix *near,
                        const kiln_matrix *far);
kiln_status ki_svd_square(struct ki_svd *s, kiln_matrix *W, const kiln_matrix *V); /* b columns: W = C V */

/* svd_block.c. A's first `wanted` columns become an orthonormal basis of what they span, and random where
 * they depend on each other; the others become 0. `search`: they are near, and orthogonal to L and V, too. */
kiln_status ki_svd_orthonormalise(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix **A,
                                  kiln_matrix **spare, int64_t wanted, bool search);
/* W loses what lies in L and V; its products with V's columns go to h, `known` rows of b, unless NULL. */
kiln_status ki_svd_project(struct ki_svd *s, kiln_matrix *W, double *h);
/* W -= V (V^T W), by way of `products`. */
kiln_status ki_svd_take_off(kiln_matrix *W, const kiln_matrix *V, kiln_matrix *products);

/* svd_graph.c: W = A Y of a graph, of room->count columns; its degrees, as deviations; what was found. */
kiln_status ki_svd_graph_product(struct ki_svd *s, struct ki_svd_room *room, kiln_matrix *W,
                                 const kiln_matrix *Y);
kiln_status ki_svd_graph_measure(struct ki_svd *s);
void ki_svd_graph_tell(struct ki_svd *s);

/* svd_setup.c: all that the run needs besides options and X. */
kiln_status ki_svd_set_up(struct ki_svd *s);

/* svd_spread.c: s->W = P Y, unless the run is cancelled; C's eigenvalue where P's is p; whether P changes at
 * a restart that would keep so many Ritz vectors, which theta tells. */
kiln_status ki_svd_apply(struct ki_svd *s, const kiln_matrix *Y);
double ki_svd_value(const struct ki_svd *s, double p);
bool ki_svd_spread(struct ki_svd *s, int64_t kept);

/* svd_search.c. */
kiln_status ki_svd_begin(struct ki_svd *s);
kiln_status ki_svd_step(struct ki_svd *s);
/* The first `count` triples move to L, and the search begins again at the ones behind them; `anew`: at random
 * vectors, as these say nothing of others that are missing. */
kiln_status ki_svd_lock(struct ki_svd *s, int64_t count, bool anew);
/* theta, and Q's rows the eigenvectors of H's `count` largest eigenvalues, or all that there are; of a run
 * that is cancelled meanwhile, V's columns as they are. */
kiln_status ki_svd_ritz(struct ki_svd *s, int64_t count);
/* Holds what is to be expected of the triples that are wanted beside L; theta, and rest, are found for it. */
struct ki_svd_outlook {
    double squares;  /* the sum of the singular values' squares that are expected of V */
    double estimate; /* the largest residual over s_1 */
    double blur;     /* above this it is not rounding */
    int64_t certain; /* of them, those in front that are not lost in the rounding of the largest */
    bool settled;    /* the search cannot make the residuals smaller, or need not */
    bool vanished;   /* all that is left is rounding */
};
kiln_status ki_svd_look(struct ki_svd_outlook *to, struct ki_svd *s); /* nothing where the run is cancelled */
/* Returns how many of the first `certain` have values that A itself has confirmed, at V's judgement. */
int64_t ki_svd_agreed(const struct ki_svd *s, int64_t certain);
bool ki_svd_is_whole(const struct ki_svd *s); /* V spans all that there is beside L */
bool ki_svd_is_full(const struct ki_svd *s);  /* V has no room for another block */

/* svd_judge.c: the k triples of the search as it stands, and their residuals, from A itself. */
kiln_status ki_svd_judge(struct ki_svd *s);
/* near_v = L and, behind its columns, the Ritz vectors that ki_svd_ritz has found; orthonormal. */
kiln_status ki_svd_collect(struct ki_svd *s);

/* svd_small.c: R = U diag(s) V^T, room->count square, s descending: R becomes U. */
kiln_status ki_small_svd(double *R, double *V, double *s, struct ki_svd_room *room, struct ki_run *run);

#endif
