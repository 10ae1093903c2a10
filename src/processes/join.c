/* Finding the plug-in for MPI, the meeting of the processes, and their devices. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library.h"
#include "core/os/os.h"
#include "core/seams.h"
#include "core/size.h"
#include "core/sized.h"
#include "processes/processes.h"

/* ------------------------------------------------------------------------------------------- plug-in */

/* One plug-in for each MPI that it was built against; the process has one at most. */
static struct ki_library library;
static ki_transport_join *join;

/* The MPI that the program has loaded, or whose mpirun has started it; then the other. */
static bool is_mpich(void) {
    if (dlsym(RTLD_DEFAULT, "MPIR_Process")) return true;
    if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world")) return false;
    return getenv("PMI_RANK") && !getenv("OMPI_COMM_WORLD_RANK");
}

static void load(void) {
    static const char *const names[] = {"libkiln-openmpi.so", "libkiln-mpich.so"};
    const int first = is_mpich();
    if (!ki_library_chosen(&library, "KILN_MPI_PATH"))
        for (int i = 0; i < 2 && !library.handle; i++) ki_library_beside(&library, names[(first + i) % 2]);
    const struct ki_symbol symbol = {KI_TRANSPORT_SYMBOL, &join};
    if (library.handle && ki_library_resolve(&library, &symbol, 1)) join = NULL;
}

static kiln_status find_plugin(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (join) return KILN_OK;
    ki_fail(KILN_ERR_DEVICE, "the plug-in for MPI is missing (%s)%s%s", library.tried,
            library.broken[0] ? ": " : "", library.broken);
    return ki_hint(
        "it is built with Kiln where mpicc is found, of Open MPI or MPICH (Debian: libopenmpi-dev or "
        "libmpich-dev); KILN_MPI_PATH names the file if it lies elsewhere");
}

/* ------------------------------------------------------------------------------------------- meeting */

/* Operations travel as places in the code, and structs as they lie in memory: all processes learn whether one
 * differs. */
static kiln_status check_builds(struct kiln_processes *p) {
    uint8_t own[32], leaders[sizeof own];
    int64_t differs, other = 0;
    kiln_status status;
    ki_os_build(own);
    memcpy(leaders, own, sizeof leaders);
    TRY(ki_wire_broadcast(p, leaders, sizeof leaders));
    differs = memcmp(leaders, own, sizeof leaders) != 0;
    if (!ki_leads(p)) TRY(ki_wire_send(p, 0, &differs, sizeof differs));
    for (int i = 1; i < p->transport.count && ki_leads(p); i++) {
        TRY(ki_wire_receive(p, i, &differs, sizeof differs));
        if (differs) other = i + 1;
    }
    TRY(ki_wire_broadcast(p, &other, sizeof other));
    if (other) {
        ki_fail(KILN_ERR_DEVICE, "process %d of %d runs another build of Kiln than process 1 (%s)",
                (int)other, p->transport.count, kiln_version());
        status = ki_hint("the same file for all processes");
    }
done:
    return status;
}

static void free_processes(struct kiln_processes *p) {
    ki_free(p->piece);
    ki_free(p->exchange);
    ki_free(p->free_numbers);
    ki_free(p->dropped);
    ki_free(p->kept);
    ki_free(p);
}

/* The end of one that has failed is the end of all: the others wait for it. */
static void part(struct kiln_processes *p) {
    enum { EXIT_LOST = 5 };
    if (p->broken) p->transport.end(p->transport.of, EXIT_LOST);
    p->transport.leave(p->transport.of);
    if (!p->left) free_processes(p);
}

static void close_all(kiln_device *device) {
    struct kiln_processes *p = (struct kiln_processes *)device->processes;
    struct ki_order order = {.kind = KI_ORDER_CLOSE};
    if (!p->broken && !p->left) (void)ki_order_send(p, &order);
    ki_united_end(p, true);
    p->device = NULL;
    if (p->left) free_processes(p);
}

/* Seconds after which a process that is not heard of is taken for dead. */
static double silence(void) {
    enum { LEAST = 2, STANDARD = 20, MOST = 3600 };
    const char *text = secure_getenv("KILN_MPI_SILENCE");
    const double seconds = text ? strtod(text, NULL) : STANDARD;
    return seconds >= LEAST && seconds <= MOST ? seconds : STANDARD;
}

static kiln_status connect_mpi(struct ki_transport *transport, int communicator) {
    kiln_status status;
    TRY(find_plugin());
    transport->limit = silence();
    transport->version = KI_TRANSPORT_VERSION;
    const int code = join(transport, communicator);
    if (code)
        return ki_fail_native(KILN_ERR_DEVICE, "mpi", code, "MPI does not begin (%s): error %d", library.path,
                              code);
    if (transport->version != KI_TRANSPORT_VERSION)
        return ki_fail(KILN_ERR_DEVICE, "the plug-in for MPI (%s) is of another release", library.path);
done:
    return status;
}

static kiln_status connect_all(struct kiln_processes *p, int communicator, const kiln_transport *given) {
    kiln_status status;
    TRY(given ? ki_transport_given(&p->transport, given) : connect_mpi(&p->transport, communicator));
    p->calls = (struct ki_processes){.count = p->transport.count,
                                     .share = ki_processes_share,
                                     .read = ki_processes_read,
                                     .rows = ki_processes_rows,
                                     .largest = ki_processes_largest,
                                     .each = ki_processes_each,
                                     .transpose = ki_processes_transpose,
                                     .fetch = ki_processes_fetch,
                                     .store = ki_processes_store,
                                     .close = close_all};
    p->exchange = ki_calloc(2 * (size_t)p->transport.count * sizeof *p->exchange);
    if (!p->exchange) return ki_fail_nomem(2 * (size_t)p->transport.count * sizeof *p->exchange, "processes");
    p->some = p->exchange + p->transport.count;
    TRY(check_builds(p));
done:
    return status;
}

static kiln_status meet(kiln_processes **processes, int communicator, const kiln_transport *given) {
    struct kiln_processes *p = ki_calloc(sizeof *p);
    kiln_status status;
    if (p) p->piece = ki_alloc(KI_TRANSPORT_MOST);
    if (!p || !p->piece) TRY(ki_fail_nomem(KI_TRANSPORT_MOST, "processes"));
    TRY(connect_all(p, communicator, given));
    *processes = p;
    p = NULL;
done:
    if (p && p->transport.of)
        part(p);
    else if (p)
        free_processes(p);
    return status;
}

kiln_status kiln_processes_meet(kiln_processes **processes, int communicator,
                                const kiln_transport *transport) {
    kiln_transport given;
    kiln_status status;
    if (!processes) return ki_fail(KILN_ERR_ARGUMENT, "kiln_processes_meet: processes is NULL");
    TRY(KI_TAKE(kiln_transport, &given, transport));
    TRY(meet(processes, communicator, transport ? &given : NULL));
    (*processes)->met = true;
done:
    return status;
}

kiln_status kiln_processes_join(kiln_processes **processes, int communicator) {
    struct kiln_processes *p = NULL;
    kiln_status status;
    if (!processes) return ki_fail(KILN_ERR_ARGUMENT, "kiln_processes_join: processes is NULL");
    TRY(meet(&p, communicator, NULL));
    if (!ki_leads(p)) {
        status = ki_processes_serve(p);
        part(p);
        p = NULL;
    }
    if (status == KILN_OK) *processes = p;
done:
    return status;
}

int kiln_processes_count(const kiln_processes *processes) {
    return processes ? processes->transport.count : 0;
}

int kiln_processes_rank(const kiln_processes *processes) {
    return processes ? processes->transport.rank : 0;
}

void kiln_processes_leave(kiln_processes *processes) {
    struct ki_order order = {.kind = KI_ORDER_LEAVE};
    if (!processes) return;
    if (!ki_leads(processes)) {
        while (!processes->ended) (void)ki_processes_serve(processes);
        part(processes);
        return;
    }
    if (!processes->broken) (void)ki_order_send(processes, &order);
    ki_united_end(processes, true);
    processes->left = processes->device != NULL;
    if (processes->left) processes->device->lost = true;
    part(processes);
}

/* ------------------------------------------------------------------------------------------- devices */

/* "cuda" and "opencl" are a GPU for each process of the machine, as long as there are enough. */
static kiln_status name_own(char name[KI_ORDER_NAME], const struct kiln_processes *p, const char *given) {
    kiln_device_info *infos = NULL;
    int64_t count = 0, fitting = 0;
    const size_t length = strlen(given);
    kiln_status status = KILN_OK;
    snprintf(name, KI_ORDER_NAME, "%s", given);
    if (strchr(given, ':') || strcmp(given, "cpu") == 0) return KILN_OK;
    TRY(kiln_device_list(&infos, &count, sizeof *infos));
    for (int64_t i = 0; i < count; i++)
        if (strncmp(infos[i].name, given, length) == 0) fitting++;
    for (int64_t i = 0, seen = 0; i < count; i++)
        if (strncmp(infos[i].name, given, length) == 0 && seen++ == p->transport.local % ki_max(fitting, 1))
            snprintf(name, KI_ORDER_NAME, "%s", infos[i].name);
done:
    kiln_free(infos);
    return status;
}

kiln_status ki_open_here(struct kiln_processes *p, const char *name, const kiln_device_options *options) {
    char own[KI_ORDER_NAME];
    kiln_device_options mine = *options;
    kiln_status status;
    bool bound = false;
    if (mine.threads == 0) mine.threads = ki_threads_among(&bound, p->transport.local_count);
    TRY(name_own(own, p, name));
    TRY(kiln_device_open(&p->device, own, &mine));
    if (bound && ki_leads(p))
        ki_device_message(p->device,
                          "each process is bound to %d of the machine's processors, of which %d run on it: "
                          "mpirun --bind-to none gives it its share",
                          mine.threads, p->transport.local_count);
done:
    return status;
}

static kiln_status check_name(const struct kiln_processes *p, const char *name) {
    if (p->device)
        return ki_fail(KILN_ERR_ARGUMENT, "kiln_processes_open: the processes have a device already");
    if (strcmp(name, "auto") != 0 && !strpbrk(name, ",*") && !strstr(name, ":all") &&
        strlen(name) < KI_ORDER_NAME)
        return KILN_OK;
    ki_fail(KILN_ERR_ARGUMENT, "device '%s': processes take one device each", name);
    return ki_hint("cpu, or cuda: a GPU for each process");
}

kiln_status kiln_processes_open(kiln_device **device, kiln_processes *processes, const char *name,
                                const kiln_device_options *options) {
    static const char call[] = "kiln_processes_open";
    struct ki_order order = {.kind = KI_ORDER_OPEN};
    kiln_device_options own;
    kiln_status status;
    if (!device || !processes || !name) return ki_fail(KILN_ERR_ARGUMENT, "%s: an argument is NULL", call);
    TRY(KI_TAKE(kiln_device_options, &own, options));
    TRY(check_name(processes, name));
    snprintf(order.open.device, sizeof order.open.device, "%s", name);
    order.open.threads = own.threads;
    order.open.memory = own.memory;
    order.open.deterministic = own.deterministic;
    TRY(ki_order_send(processes, &order));
    status = ki_open_here(processes, name, &own);
    status = ki_outcomes_take(processes, status);
    if (status != KILN_OK) goto failed;
    processes->device->processes = &processes->calls;
    *device = processes->device;
    return KILN_OK;
failed:
    order.kind = KI_ORDER_CLOSE;
    if (!processes->broken) (void)ki_order_send(processes, &order);
    kiln_device_close(processes->device);
    processes->device = NULL;
done:
    return status;
}
