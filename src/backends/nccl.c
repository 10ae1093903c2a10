/* Finding NCCL, and its collectives over the members of a group, or over processes. A group's members are of
 * one process, so that one thread queues the parts of all of them between ncclGroupStart and ncclGroupEnd; a
 * process that accepts an invitation queues its own. */
#include "backends/nccl.h"

#include <pthread.h>

#include "core/library.h"
#include "core/seams.h"

typedef struct nccl_comm_opaque *nccl_comm;

static struct {
#define FUNCTION(member, symbol, parameters) int(*member) parameters;
#include "backends/nccl.fn.h"
#undef FUNCTION
} nccl;

static const struct ki_symbol symbols[] = {
#define FUNCTION(member, symbol, parameters) {#symbol, &nccl.member},
#include "backends/nccl.fn.h"
#undef FUNCTION
};

enum { NCCL_FLOAT32 = 7, NCCL_FLOAT64 = 8, NCCL_SUM = 0, MEMBERS = 64 };

struct ki_nccl {
    int count;
    nccl_comm comm[MEMBERS];
    cuda_stream stream[MEMBERS];
};

static const char *const sonames[] = {"libnccl.so.2", NULL};
static struct ki_library library;
static bool usable; /* it has all functions, and tells its version */
static int version;

static void load(void) {
    if (ki_library_toolkit(&library, sonames, "nccl"))
        usable = !ki_library_resolve(&library, symbols, sizeof symbols / sizeof *symbols) &&
                 nccl.version(&version) == 0;
}

bool ki_nccl_there(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return usable;
}

/* Tells which NCCL it is, or that it does not work; NULL then. */
static struct ki_nccl *connected(struct ki_nccl *united, const kiln_device *teller, int code,
                                 const char *otherwise) {
    if (code) {
        ki_device_message(teller, "NCCL (%s) does not work: error %d; sums go %s", library.path, code,
                          otherwise);
        ki_free(united);
        return NULL;
    }
    ki_device_message(teller, "large sums go through NCCL %d.%d.%d", version / 10000, version % 10000 / 100,
                      version % 100);
    return united;
}

struct ki_nccl *ki_nccl_unite(const kiln_device *teller, const int *gpus, const cuda_stream *streams,
                              int count) {
    if (!ki_nccl_there() || count > MEMBERS) return NULL;
    struct ki_nccl *united = ki_calloc(sizeof *united);
    if (!united) return NULL; /* copies need none */
    united->count = count;
    for (int i = 0; i < count; i++) united->stream[i] = streams[i];
    return connected(united, teller, nccl.unite(united->comm, count, gpus), "from GPU to GPU by copies");
}

bool ki_nccl_invite(struct ki_invitation *invitation) {
    return ki_nccl_there() && nccl.invite(invitation) == 0;
}

struct ki_nccl *ki_nccl_accept(const kiln_device *teller, const struct ki_invitation *invitation,
                               cuda_stream stream, int rank, int count) {
    struct ki_nccl *united = ki_calloc(sizeof *united);
    if (!united) return NULL; /* MPI needs none */
    united->count = 1;
    united->stream[0] = stream;
    return connected(united, teller, nccl.accept(united->comm, count, *invitation, rank),
                     "through MPI and host memory");
}

void ki_nccl_part(struct ki_nccl *united, bool alive) {
    for (int i = 0; alive && i < united->count; i++) nccl.part(united->comm[i]);
    ki_free(united);
}

static kiln_status done(int code, int end) {
    if (code == 0) code = end;
    if (code == 0) return KILN_OK;
    ki_fail_native(KILN_ERR_DEVICE_LOST, "nccl", code, "cuda: NCCL (%s) failed: error %d", library.path,
                   code);
    return ki_hint("start the program again; NCCL_DEBUG=WARN makes NCCL tell why");
}

static int type_of(kiln_type type) {
    return type == KILN_F32 ? NCCL_FLOAT32 : NCCL_FLOAT64;
}

kiln_status ki_nccl_sum(struct ki_nccl *united, const uint64_t *part, int64_t count, kiln_type type) {
    int code = nccl.begin();
    if (code) return done(code, 0);
    for (int i = 0; i < united->count && code == 0; i++)
        code = nccl.reduce((const void *)(uintptr_t)part[i], (void *)(uintptr_t)part[i], (size_t)count,
                           type_of(type), NCCL_SUM, 0, united->comm[i], united->stream[i]);
    return done(code, nccl.end());
}

kiln_status ki_nccl_spread(struct ki_nccl *united, const uint64_t *part, int64_t count, kiln_type type) {
    int code = nccl.begin();
    if (code) return done(code, 0);
    for (int i = 0; i < united->count && code == 0; i++)
        code = nccl.broadcast((const void *)(uintptr_t)part[i], (void *)(uintptr_t)part[i], (size_t)count,
                              type_of(type), 0, united->comm[i], united->stream[i]);
    return done(code, nccl.end());
}
