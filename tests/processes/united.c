/* Sums over processes and copies to all by NCCL, on stubs of it and of CUDA, with MPI between: mpirun -n N
 * united CASE.
 *
 * apart: each process has a GPU of its own; shared: one for all; unconnected: NCCL begins in all but the
 * second; broken: it fails in the second in the middle of a sum, which ends all. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/stub.h"
#include "core/seams.h"
#include "processes/processes.h"

enum { FEW = 100, MANY = 20000, FAILED = 1, LOST = 5 };

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s: process %d\n", __FILE__, __LINE__, #condition, p.transport.rank);    \
            p.transport.end(p.transport.of, FAILED);                                                         \
        }                                                                                                    \
    } while (0)

static struct kiln_processes p;
static struct stub *nccl;
static char told[512];

static void *symbol_of(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_NOW), *symbol = handle ? dlsym(handle, name) : NULL;
    if (symbol) return symbol;
    fprintf(stderr, "%s: %s\n", library, dlerror());
    exit(FAILED);
}

static void listen(void *user, const char *text) {
    (void)user;
    if (strstr(text, "NCCL")) snprintf(told, sizeof told, "%s", text);
}

static void begin(bool shared) {
    const kiln_device_options options = {.size = sizeof options, .message = listen};
    void *symbol = symbol_of(getenv("KILN_MPI_PATH"), KI_TRANSPORT_SYMBOL);
    struct stub *driver = symbol_of("libcuda.so.1", "stub_cuda");
    ki_transport_join *join;
    memcpy(&join, &symbol, sizeof join);
    p.transport.version = KI_TRANSPORT_VERSION;
    p.transport.limit = 20;
    if (join(&p.transport, -1)) exit(FAILED);
    p.piece = ki_alloc(KI_TRANSPORT_MOST);
    driver->machine = shared ? 0 : p.transport.rank;
    nccl = symbol_of("libnccl.so.2", "stub_nccl");
    CHECK(p.piece && kiln_device_open(&p.device, "cuda:0", &options) == KILN_OK);
}

static void put(void *values, kiln_type type, int i, double value) {
    if (type == KILN_F64)
        ((double *)values)[i] = value;
    else
        ((float *)values)[i] = (float)value;
}

static double got(const void *values, kiln_type type, int i) {
    return type == KILN_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* `count` numbers, (process + 1) i each, go their way; whether the leader has their sum then, or all have the
 * leader's. lacking: the process that has none, so that whatever comes out is right. */
static bool moves(enum ki_way way, kiln_type type, int count, int lacking) {
    kiln_matrix *A = NULL;
    const int rank = p.transport.rank;
    const int times = way == KI_BROADCAST ? 1 : p.transport.count * (p.transport.count + 1) / 2;
    kiln_status outcome = KILN_OK;
    double *values = ki_alloc((size_t)count * sizeof *values);
    bool right = true;
    CHECK(values && kiln_matrix_dense(&A, p.device, type, count, 1, NULL) == KILN_OK);
    for (int i = 0; i < count; i++) put(values, type, i, (rank + 1) * i);
    CHECK(kiln_matrix_set(A, values) == KILN_OK);
    const kiln_status status = ki_wire_values(&p, way, 0, rank == lacking ? NULL : A, 0,
                                              count * ki_type_bytes(type), type, &outcome);
    if (status == KILN_OK) CHECK(outcome == KILN_OK && kiln_matrix_get(values, A) == KILN_OK);
    const bool known = status == KILN_OK && lacking < 0 && (way == KI_BROADCAST || rank == 0);
    for (int i = 0; i < count && known; i++) right = right && got(values, type, i) == (double)times * i;
    kiln_matrix_free(A);
    ki_free(values);
    return status == KILN_OK && right;
}

/* Returns whether that went by NCCL: three calls of it, between its group's begin and end. */
static bool by_nccl(enum ki_way way, kiln_type type, int count, int lacking) {
    const int before = nccl->calls;
    CHECK(moves(way, type, count, lacking));
    CHECK(nccl->calls == before || nccl->calls == before + 3);
    return nccl->calls == before + 3;
}

static void check_apart(void) {
    CHECK(!by_nccl(KI_ADD_UP, KILN_F64, FEW, -1));
    CHECK(!p.asked && nccl->calls == 0);         /* not before it is wanted */
    CHECK(moves(KI_ADD_UP, KILN_F64, MANY, -1)); /* who connects for it */
    CHECK(p.united && nccl->live == 1);
    CHECK(by_nccl(KI_ADD_UP, KILN_F32, MANY, -1));
    CHECK(by_nccl(KI_BROADCAST, KILN_F64, MANY, -1));
    CHECK(!by_nccl(KI_ADD_UP_ORDERED, KILN_F64, MANY, -1));
    CHECK(!by_nccl(KI_ADD_UP, KILN_F64, MANY, p.transport.count - 1)); /* MPI serves who is not well, too */
    CHECK(by_nccl(KI_BROADCAST, KILN_F32, MANY, -1));
    CHECK(p.transport.rank > 0 || strstr(told, "through NCCL 2.27.3"));
}

static void check_without(const char *reason) {
    CHECK(moves(KI_ADD_UP, KILN_F64, MANY, -1));
    CHECK(p.asked && !p.united);
    CHECK(!by_nccl(KI_ADD_UP, KILN_F64, MANY, -1));
    CHECK(!by_nccl(KI_BROADCAST, KILN_F32, MANY, -1));
    CHECK(p.transport.rank > 0 || strstr(told, reason));
}

static void break_it(void) {
    CHECK(moves(KI_ADD_UP, KILN_F64, MANY, -1));
    if (p.transport.rank == 1) {
        nccl->fail_at = nccl->calls + 2;
        nccl->code = 3;
    }
    CHECK(!moves(KI_ADD_UP, KILN_F64, MANY, -1) && p.broken && p.device->lost);
    CHECK(p.transport.rank != 1 || strcmp(kiln_last_error()->subsystem, "nccl") == 0);
    p.transport.end(p.transport.of, LOST);
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "";
    begin(strcmp(name, "shared") == 0);
    if (strcmp(name, "unconnected") == 0 && p.transport.rank == 1) {
        nccl->fail_at = 3; /* when all have met */
        nccl->code = 3;
    }
    if (strcmp(name, "apart") == 0) check_apart();
    if (strcmp(name, "shared") == 0) check_without("processes 1 and 2 share a GPU");
    if (strcmp(name, "unconnected") == 0) check_without("NCCL does not connect all");
    if (strcmp(name, "broken") == 0) break_it();
    ki_united_end(&p, true);
    /* who has connected alone does not wait for the others once more */
    CHECK(nccl->live == (strcmp(name, "unconnected") == 0 && p.transport.rank != 1));
    kiln_device_close(p.device);
    ki_free(p.piece);
    p.transport.leave(p.transport.of);
    return 0;
}
