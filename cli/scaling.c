/* A pass on G GPUs of M machines, from what one and two H200s took (docs/scaling.md says how far off it is):
 *
 *   seconds = bytes of X / (G read) + beside + meet (G / M - 1) + sums + alone
 *
 * PageRank sends each GPU's ranks to all others in place of sums. `sums` is what the first GPU sends to the
 * others and what they send back: vectors of cols * k numbers, by copies or by NCCL within a machine,
 * whichever is sooner, and around a ring between machines; copies go on beside the first GPU's work, whose
 * slice is larger for it.
 * Where arithmetic takes longer than reading, it counts in its place. `alone` is what the first GPU does for
 * itself. */
#include "scaling.h"

#include <math.h>

/* Seconds, bytes and links a second, of H200s on NVLink (docs/scaling.md has each with its file). NET and HOP
 * are those of a card of 400 Gb/s between machines: assumed, and said to be. */
static const double READ_DENSE = 4.3e12, READ_SPARSE = 1.1e12, READ_BEYOND_CACHE = 0.78e12, GATHER = 2.3e12,
                    VECTORS = 4e12, LINKS = 1.37e11, BESIDE = 10e-6, MEET = 16e-6, COPY = 8e-6,
                    COPY_BYTE = 2.55e-12, ADD_BYTE = 0.75e-12, COLLECTIVE = 36e-6, COLLECTIVE_BYTE = 3.2e-12,
                    NET = 50e9, HOP = 10e-6;

/* Pairs of points a second in f32, one way and the other, whose dissimilarities are made from the points; f64
 * takes three times as long. */
static const double PAIRS = 6.7e11;

/* The nearest of k centres and their sums, in f32: seconds of a row, of each number of it, and products of
 * such a number and a centre's a second. */
static const double NEAREST_ROW = 9e-11, NEAREST_NUMBER = 2e-12, NEAREST_PRODUCTS = 1.26e14;

/* Columns of which y and w stay in the second cache level, and sweeps over vectors beside a pass. */
enum { CACHED = 2 << 20, SWEEPS = 6 };

static double bytes_of(const kiln_work *work) {
    const double element = work->type == KILN_F32 ? 4 : 8;
    if (work->format != KILN_CSR) return (double)work->rows * (double)work->cols * element;
    return (double)work->nnz * (element + 4) + 8 * (double)work->rows;
}

/* A vector of the first GPU's to all others, or theirs back and added up. */
static double within(double bytes, double others, bool add) {
    const double copies = others * (COPY + bytes * (COPY_BYTE + (add ? ADD_BYTE : 0)));
    return others > 0 ? fmin(copies, COLLECTIVE + bytes * COLLECTIVE_BYTE) : 0;
}

/* On one GPU: what goes by rows. */
static double shared_seconds(const struct verb *verb, const kiln_work *work, double k) {
    const double element = work->type == KILN_F32 ? 4 : 8;
    const double read = work->format != KILN_CSR ? READ_DENSE
                        : work->cols > CACHED    ? READ_BEYOND_CACHE
                                                 : READ_SPARSE;
    const double numbers =
        work->format == KILN_CSR ? (double)work->nnz : (double)work->rows * (double)work->cols;
    if (verb->sharing == SHARES_RANKS) return numbers / LINKS;
    if (verb->sharing == SHARES_PAIRS)
        return (double)work->rows * (double)work->rows / PAIRS * (work->type == KILN_F32 ? 1 : 3);
    const double gathered = verb->sharing == SHARES_FACTORS ? numbers * k * element : 0,
                 computed = verb->sharing != SHARES_NEAREST
                                ? 0
                                : (double)work->rows * NEAREST_ROW +
                                      numbers * (NEAREST_NUMBER + k / NEAREST_PRODUCTS);
    return fmax(fmax(bytes_of(work) / read, gathered / GATHER), computed);
}

/* A vector to all, and theirs back, added up; `each` GPUs of each machine. */
static double sum_seconds(double vector, double each, double nodes) {
    const double between = nodes > 1 ? 2 * (HOP * ceil(log2(nodes)) + vector * (nodes - 1) / nodes / NET) : 0;
    return within(vector, each - 1, false) + within(vector, each - 1, true) + between;
}

/* Each GPU's rows of a vector to the others of the machine one after the other, and all to the other
 * machines. */
static double gather_seconds(double vector, double each, double nodes) {
    const double between = nodes > 1 ? HOP * ceil(log2(nodes)) + vector * (nodes - 1) / nodes / NET : 0;
    return (each - 1) * (COPY + vector / (each * nodes) * COPY_BYTE) + between;
}

/* New rows of a side go to the first GPU and all of them to the others, every second pass. */
static double factor_seconds(double side, double each, double nodes) {
    return (gather_seconds(side, each, nodes) + within(side, each - 1, false)) / 2;
}

static struct scaled_time predict(const struct verb *verb, const kiln_work *work, int64_t gpus,
                                  int64_t nodes) {
    const double element = work->type == KILN_F32 ? 4 : 8, k = (double)(work->k > 0 ? work->k : 1);
    const bool factors = verb->sharing == SHARES_FACTORS;
    const double length = factors                         ? (double)(work->rows + work->cols) / 2
                          : verb->sharing == SHARES_PAIRS ? (double)work->rows
                                                          : (double)work->cols;
    const double vector = length * k * element, m = (double)nodes, each = (double)gpus / m;
    const double shared = shared_seconds(verb, work, k);
    struct scaled_time t = {
        .gpus = gpus, .nodes = nodes, .beside = BESIDE, .alone = SWEEPS * vector / VECTORS};
    const bool sums = verb->sharing != SHARES_RANKS && !factors;
    const bool copies =
        2 * (each - 1) * (COPY + vector * COPY_BYTE) < 2 * (COLLECTIVE + vector * COLLECTIVE_BYTE);
    const double overlapped =
        sums && copies && m == 1 && each > 1 ? fmin(2 * vector * COPY_BYTE, shared / 2) : 0;
    t.pass = (shared - overlapped) / (double)gpus;
    t.beside += gpus > 1 ? MEET + COPY * fmax(each - 2, 0) : 0;
    t.sums = factors ? factor_seconds(vector, each, m)
             : sums  ? sum_seconds(vector, each, m)
                     : gather_seconds(vector, each, m);
    if (verb->sharing == SHARES_RANKS) t.alone /= (double)gpus;
    t.seconds = t.pass + t.beside + t.sums + t.alone;
    return t;
}

static const char *bound(const struct scaled_time *t) {
    if (t->alone > t->pass && t->alone > t->sums && t->alone > t->beside) return "the first GPU's own work";
    if (t->sums > t->pass && t->sums > t->beside) return "sums of vectors";
    return t->beside > t->pass ? "meetings" : "reading X";
}

static void put_time(struct result *row, const void *of, int64_t i) {
    const struct scaling *scaling = of;
    const struct scaled_time *t = &scaling->times[i];
    const double run = (double)(scaling->passes > 0 ? scaling->passes : 1) * t->seconds;
    const struct {
        const char *key, *label;
        double seconds;
    } parts[] = {{"pass_seconds", "in all", t->seconds},
                 {"read_seconds", "reading", t->pass},
                 {"beside_seconds", "beside", t->beside},
                 {"sum_seconds", "sums", t->sums},
                 {"alone_seconds", "alone", t->alone}};
    PUT(row, "gpus", COUNT(t->gpus), .label = "GPUs", .width = 6);
    PUT(row, "nodes", COUNT(t->nodes), .label = "nodes", .width = 6);
    for (int p = 0; p < 5; p++) {
        PUT(row, parts[p].key, NUMBER(parts[p].seconds));
        PUT(row, NULL, NUMBER(1e3 * parts[p].seconds), .format = "%.3f", .label = parts[p].label,
            .before = p ? NULL : "   ", .width = 9);
    }
    PUT(row, "seconds", SECONDS(run), .label = "a run", .before = "   ", .width = 10);
    PUT(row, "times", NUMBER(scaling->one / t->seconds), .format = "%.2f", .label = "times", .width = 7);
    PUT(row, "limit", TEXT(bound(t)), .label = "limited by", .before = "   ");
}

void scaling_put(struct result *result, struct scaling *scaling, const struct verb *verb,
                 const kiln_work *work, int64_t gpus, int64_t nodes) {
    *scaling = (struct scaling){.one = predict(verb, work, 1, 1).seconds, .passes = work->passes};
    for (int64_t g = 1; g < 2 * gpus; g *= 2)
        scaling->times[scaling->count++] = predict(verb, work, g < gpus ? g : gpus, 1);
    for (int64_t m = 2; m < 2 * nodes; m *= 2) {
        const int64_t machines = m < nodes ? m : nodes;
        scaling->times[scaling->count++] = predict(verb, work, gpus * machines, machines);
    }
    PUT_LINE(result, "%s", "");
    PUT(result, "scaling", TABLE(scaling->count, put_time, scaling),
        .head = "on H200s, milliseconds of a pass (docs/scaling.md)");
    if (nodes < 2) return;
    PUT_LINE(result, "%s", "");
    PUT_LINE(result, "between nodes a card of 400 Gb/s is assumed, all else was measured");
    PUT_LINE(result, "several nodes: mpirun -n %lld kiln %s ... --mpi --device cuda (docs/mpi.md)",
             (long long)(gpus * nodes), verb->name);
}
