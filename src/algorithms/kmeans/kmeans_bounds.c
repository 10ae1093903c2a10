/* Whether passes of a run go on from the ones before: kiln_bounds, where they are asked for or pay. */
#include "algorithms/kmeans/kmeans.h"

static bool on_cpu(const struct kmeans *s) {
    kiln_device_info info = {0};
    return kiln_device_get_info(s->device, &info) == KILN_OK && strcmp(info.name, "cpu") == 0;
}

/* Bounds that a pass keeps of a row cost time. In runs of some twenty iterations they make up for it where
 * rows are long, as images are, or centres many; in short ones they cost up to a seventh more
 * (bench/results/cpu2-kmeans-bounds.json). On a GPU a list of the rows that changed costs some launches and a
 * wait. */
static bool bounds_pay(const struct kmeans *s) {
    enum { LONG = 256, PRODUCTS = 1 << 16, LARGE = 1 << 26 };
    if (!on_cpu(s)) return !s->options.weights && ki_bytes_of(s->X) >= LARGE;
    return s->n >= LONG || s->n * s->k >= PRODUCTS;
}

kiln_status ki_kmeans_open_bounds(struct kmeans *s) {
    const kiln_kmeans_options *o = &s->options;
    const bool wanted = o->algorithm ? o->algorithm == KILN_KMEANS_BOUNDS : bounds_pay(s);
    kiln_status status = KILN_OK;
    kiln_bounds_free(s->bounds);
    s->bounds = NULL;
    s->running = NULL;
    if (o->batch == 0 && wanted) TRY(kiln_bounds_new(&s->bounds, s->X, s->k));
    if (s->bounds || o->algorithm != KILN_KMEANS_BOUNDS) return KILN_OK;
    ki_fail(KILN_ERR_UNSUPPORTED, "kiln_kmeans_options.algorithm is bounds, but there are none for this run");
    TRY(ki_hint(
        "bounds are for one device, all rows at once, two centres or more and a dense X: with 16 columns or "
        "more of at least 100 bytes on a CPU, with rows of 16 bytes on a GPU; they take 20 bytes a row or "
        "more "
        "of a third of the room beside X; leave the option out, or take "
        "lloyd"));
done:
    return status;
}

void ki_kmeans_close_bounds(struct kmeans *s) {
    if (s->bounds && on_cpu(s)) ki_report_figure(&s->run.report, "skipped", kiln_bounds_skipped(s->bounds));
    kiln_bounds_free(s->bounds);
    s->bounds = NULL;
}
