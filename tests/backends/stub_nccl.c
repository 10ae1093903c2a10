/* A libnccl.so.2 over the memory of the stub of CUDA: what is asked for between ncclGroupStart and
 * ncclGroupEnd happens at its end. Ranks in processes of their own meet in a file that all of them map, whose
 * name is the invitation. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backends/cuda_types.h"
#include "core/backend.h"
#include "stub.h"

typedef struct nccl_comm_opaque *nccl_comm;
#define FUNCTION(member, symbol, parameters) int symbol parameters;
#include "backends/nccl.fn.h"
#undef FUNCTION

#define STUB stub_nccl
extern struct stub stub_nccl;
struct stub stub_nccl;

enum {
    RANKS = 8,
    FLOAT32 = 7,
    FLOAT64 = 8,
    SYSTEM_ERROR = 2,
    INVALID_ARGUMENT = 4,
    INVALID_USAGE = 5,
    REMOTE_ERROR = 6,
    ROOM = 1 << 18 /* bytes of one collective between processes */
};

/* Holds what processes share. */
struct meeting {
    _Atomic int arrived;
    struct {
        size_t count;
        int type, reduces;
        char bytes[ROOM];
    } part[RANKS];
};
static struct meeting *meeting; /* NULL: all ranks are of this process */
static int own, met;            /* this process's rank; how often all have met */

static char comms[RANKS];
static int ranks, type, reduces;
static size_t count;
static void *given[RANKS];

static int rank_of(nccl_comm comm) {
    return (int)((char *)(void *)comm - comms);
}

int ncclGetVersion(int *version) {
    CALL("ncclGetVersion");
    *version = 22703;
    return 0;
}

int ncclCommInitAll(nccl_comm *made, int number, const int *devices) {
    CALL("ncclCommInitAll");
    for (int i = 0; i < number; i++)
        for (int j = 0; j < i; j++)
            if (devices[i] == devices[j]) return INVALID_USAGE;
    for (int i = 0; i < number; i++) made[i] = (nccl_comm)(void *)&comms[i];
    ranks = number;
    STUB.live += number;
    return 0;
}

/* All processes; the real one would wait for ever for one that does not come. */
static bool meet(void) {
    enum { TRIES = 20000 };
    const struct timespec nap = {.tv_nsec = 500000};
    met++;
    meeting->arrived++;
    for (int i = 0; i < TRIES && meeting->arrived < met * ranks; i++) nanosleep(&nap, NULL);
    return meeting->arrived >= met * ranks;
}

int ncclGetUniqueId(struct ki_invitation *made) {
    CALL("ncclGetUniqueId");
    snprintf(made->bytes, sizeof made->bytes, "/tmp/kiln-stub-nccl-%ld", (long)getpid());
    const int file = open(made->bytes, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0) return SYSTEM_ERROR;
    const bool made_room = ftruncate(file, sizeof *meeting) == 0;
    close(file);
    return made_room ? 0 : SYSTEM_ERROR;
}

int ncclCommInitRank(nccl_comm *made, int number, struct ki_invitation invitation, int rank) {
    CALL("ncclCommInitRank");
    const int file = open(invitation.bytes, O_RDWR);
    if (file < 0 || number > RANKS) return SYSTEM_ERROR;
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (meeting == MAP_FAILED) return SYSTEM_ERROR;
    ranks = number;
    own = rank;
    met = 0;
    if (!meet()) return REMOTE_ERROR;
    if (rank == 0) unlink(invitation.bytes);
    CALL("ncclCommInitRank in one of the ranks");
    *made = (nccl_comm)(void *)&comms[rank];
    STUB.live++;
    return 0;
}

int ncclCommDestroy(nccl_comm comm) {
    CALL("ncclCommDestroy");
    STUB.live--;
    return rank_of(comm) < ranks ? 0 : INVALID_ARGUMENT;
}

int ncclGroupStart(void) {
    CALL("ncclGroupStart");
    memset(given, 0, sizeof given);
    return 0;
}

static int take(const void *from, void *to, size_t elements, int kind, nccl_comm comm, int is_reduce) {
    if (from != to || (kind != FLOAT32 && kind != FLOAT64) || given[rank_of(comm)]) return INVALID_ARGUMENT;
    given[rank_of(comm)] = to;
    count = elements;
    type = kind;
    reduces = is_reduce;
    return 0;
}

int ncclReduce(const void *from, void *to, size_t elements, int kind, int operation, int root, nccl_comm comm,
               cuda_stream stream) {
    CALL("ncclReduce");
    return operation || root || !stream ? INVALID_ARGUMENT : take(from, to, elements, kind, comm, 1);
}

int ncclBroadcast(const void *from, void *to, size_t elements, int kind, int root, nccl_comm comm,
                  cuda_stream stream) {
    CALL("ncclBroadcast");
    return root || !stream ? INVALID_ARGUMENT : take(from, to, elements, kind, comm, 0);
}

static size_t bytes_given(void) {
    return count * (type == FLOAT64 ? 8 : 4);
}

static void add(void *to, const void *from) {
    for (size_t i = 0; i < count; i++)
        if (type == FLOAT64)
            ((double *)to)[i] += ((const double *)from)[i];
        else
            ((float *)to)[i] += ((const float *)from)[i];
}

static int end_between_processes(void) {
    if (!given[own] || bytes_given() > ROOM) return INVALID_USAGE;
    meeting->part[own].count = count;
    meeting->part[own].type = type;
    meeting->part[own].reduces = reduces;
    memcpy(meeting->part[own].bytes, given[own], bytes_given());
    if (!meet()) return REMOTE_ERROR;
    for (int r = 0; r < ranks; r++)
        if (meeting->part[r].count != count || meeting->part[r].type != type ||
            meeting->part[r].reduces != reduces)
            return INVALID_USAGE;
    for (int r = 1; r < ranks && reduces && own == 0; r++) add(given[0], meeting->part[r].bytes);
    if (!reduces) memcpy(given[own], meeting->part[0].bytes, bytes_given());
    return meet() ? 0 : REMOTE_ERROR; /* what is shared has been read */
}

int ncclGroupEnd(void) {
    CALL("ncclGroupEnd");
    if (meeting) return end_between_processes();
    for (int r = 1; r < ranks; r++) {
        if (!given[0] || !given[r]) return INVALID_USAGE; /* the real one would wait for ever */
        if (!reduces)
            memcpy(given[r], given[0], bytes_given());
        else
            add(given[0], given[r]);
    }
    return 0;
}
