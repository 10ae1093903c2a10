/* Processes that meet by functions of their own, here of sockets: the rows of each become one matrix, whose
 * product is what the rows alone say; bytes reach process 0 and come from there; an error in one is an error
 * in all, after which all are in step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kiln.h>
#include <kiln/meet.h>

enum { MOST = 5, COLUMNS = 3, LONG = 5 << 20 /* bytes: more than one call takes */ };

#define CHECK(what)                                                                                          \
    do {                                                                                                     \
        if (!(what)) {                                                                                       \
            fprintf(stderr, "%s:%d: process %d: %s: %s\n", __FILE__, __LINE__, mesh.rank, #what,             \
                    kiln_last_error()->message);                                                             \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

static struct { int rank, count, broken, to[MOST]; } mesh;

static int send_bytes(void *user, int to, const void *bytes, int64_t count) {
    (void)user;
    for (int64_t at = 0; at < count;) {
        const ssize_t sent = send(mesh.to[to], (const char *)bytes + at, (size_t)(count - at), MSG_NOSIGNAL);
        if (sent <= 0 || mesh.broken) return 1;
        at += sent;
    }
    return 0;
}

static int receive_bytes(void *user, int from, void *bytes, int64_t count) {
    (void)user;
    for (int64_t at = 0; at < count;) {
        const ssize_t got = recv(mesh.to[from], (char *)bytes + at, (size_t)(count - at), 0);
        if (got <= 0) return 2;
        at += got;
    }
    return 0;
}

/* Process i has i + 1 rows; element j of row r of all is r + 10 j. */
static int64_t own_rows(double *values) {
    const int rows = mesh.rank + 1, first = mesh.rank * (mesh.rank + 1) / 2;
    for (int i = 0; i < rows * COLUMNS; i++) values[i] = first + i / COLUMNS + 10.0 * (i % COLUMNS);
    return rows;
}

static void check_product(kiln_device *device, kiln_matrix *X) {
    const double ones[COLUMNS] = {1, 1, 1};
    double sums[MOST * (MOST + 1) / 2];
    kiln_matrix *y = NULL, *product = NULL;
    CHECK(kiln_matrix_rows(X) == mesh.count * (mesh.count + 1) / 2);
    CHECK(kiln_matrix_dense(&y, device, KILN_F64, COLUMNS, 1, ones) == KILN_OK);
    CHECK(kiln_matrix_dense(&product, device, KILN_F64, kiln_matrix_rows(X), 1, NULL) == KILN_OK);
    CHECK(kiln_multiply(product, 1, KILN_PLAIN, X, y, 0, NULL) == KILN_OK);
    CHECK(kiln_matrix_get(sums, product) == KILN_OK);
    for (int r = 0; r < kiln_matrix_rows(X); r++) CHECK(sums[r] == 3.0 * r + 30);
    kiln_matrix_free(product);
    kiln_matrix_free(y);
}

static void count_release(void *user) {
    ++*(int *)user;
}

/* columns: of this process's rows; *released counts its arrays that came back. */
static void unite(kiln_processes *p, kiln_device *device, int64_t columns, int *released, int fails) {
    double values[MOST * COLUMNS];
    kiln_matrix *X = NULL;
    const kiln_memory mine = {.size = sizeof mine,
                              .type = KILN_F64,
                              .rows = own_rows(values),
                              .cols = columns,
                              .values = values,
                              .release = count_release,
                              .user = released};
    CHECK((kiln_processes_unite(&X, p, &mine) != KILN_OK) == fails);
    CHECK((X != NULL) == (!fails && mesh.rank == 0));
    if (X) check_product(device, X);
    if (mesh.rank == 0) CHECK(kiln_processes_rest(p) == KILN_OK);
    if (mesh.rank > 0) CHECK(kiln_processes_serve(p) == KILN_OK);
    kiln_matrix_free(X); /* which the others learn of at the next order: its number is taken again then */
}

static void check_bytes(kiln_processes *p) {
    int64_t ends[MOST], count = 0;
    void *all = NULL, *bytes = NULL;
    char *own = malloc(LONG);
    CHECK(own);
    memset(own, 'a' + mesh.rank, LONG);
    CHECK(kiln_processes_collect(&all, ends, p, own, mesh.rank == 1 ? LONG : mesh.rank) == KILN_OK);
    for (int i = 0, end = 0; i < mesh.count; i++) CHECK(ends[i] == (end += i == 1 ? LONG : i));
    CHECK((all != NULL) == (mesh.rank == 0));
    for (int i = 0, at = 0; i < mesh.count && all; i++)
        for (; at < ends[i]; at++) CHECK(((char *)all)[at] == 'a' + i);
    if (mesh.rank == 0) {
        bytes = all;
        count = ends[mesh.count - 1];
    }
    CHECK(kiln_processes_spread(&bytes, &count, p) == KILN_OK && count == ends[mesh.count - 1]);
    for (int i = 0, at = 0; i < mesh.count; i++)
        for (; at < ends[i]; at++) CHECK(((char *)bytes)[at] == 'a' + i);
    kiln_free(bytes);
    free(own);
}

static void check_refusals(kiln_processes *p) {
    int64_t count = -1;
    int released = 0;
    kiln_matrix *X = NULL;
    const kiln_memory mine = {.size = sizeof mine, .release = count_release, .user = &released};
    CHECK(kiln_processes_meet(NULL, 0, NULL) == KILN_ERR_ARGUMENT);
    CHECK(kiln_processes_unite(NULL, p, NULL) == KILN_ERR_ARGUMENT);
    CHECK(kiln_processes_unite(NULL, p, &mine) == KILN_ERR_ARGUMENT && released == 1);
    CHECK(kiln_processes_unite(&X, NULL, &mine) == KILN_ERR_ARGUMENT && released == 2 && !X);
    CHECK(kiln_processes_collect(NULL, &count, p, NULL, 0) == KILN_ERR_ARGUMENT);
    CHECK(kiln_processes_spread(NULL, &count, p) == KILN_ERR_ARGUMENT);
    CHECK(kiln_processes_rest(NULL) == KILN_ERR_ARGUMENT);
    if (mesh.rank == 0) CHECK(kiln_processes_serve(p) == KILN_ERR_ARGUMENT);
    if (mesh.rank > 0) CHECK(kiln_processes_rest(p) == KILN_ERR_ARGUMENT);
}

/* One process can neither send any more nor be heard of: the others have the error, and end. */
static void check_lost(kiln_processes *p, int whose) {
    int64_t count = 1;
    int released = 0;
    kiln_matrix *X = NULL;
    const kiln_memory mine = {.size = sizeof mine, .release = count_release, .user = &released};
    char byte = 0, *bytes = &byte;
    if (mesh.rank == whose) {
        mesh.broken = 1;
        for (int i = 0; i < mesh.count; i++)
            if (i != mesh.rank) shutdown(mesh.to[i], SHUT_RDWR);
    }
    kiln_status status = KILN_OK;
    for (int turn = 0; turn < 2 && status == KILN_OK; turn++) {
        void *all = NULL;
        int64_t ends[MOST];
        status = kiln_processes_collect(&all, ends, p, bytes, count);
        kiln_free(all);
    }
    CHECK(status == KILN_ERR_DEVICE_LOST);
    CHECK(kiln_processes_rest(p) == KILN_ERR_DEVICE_LOST);
    CHECK(kiln_processes_unite(&X, p, &mine) == KILN_ERR_DEVICE_LOST && released == 1 && !X);
    for (int i = 0; i < mesh.count; i++)
        if (i != mesh.rank) shutdown(mesh.to[i], SHUT_RDWR); /* as the end of a process does */
}

static void work(int whose) {
    const kiln_transport transport = {.size = sizeof transport,
                                      .rank = mesh.rank,
                                      .count = mesh.count,
                                      .send = send_bytes,
                                      .receive = receive_bytes};
    kiln_transport half = transport;
    kiln_processes *p = NULL;
    kiln_device *device = NULL;
    int released = 0;
    half.receive = NULL;
    CHECK(kiln_processes_meet(&p, KILN_WORLD, &half) == KILN_ERR_ARGUMENT && !p);
    CHECK(kiln_processes_meet(&p, KILN_WORLD, &transport) == KILN_OK);
    CHECK(kiln_processes_count(p) == mesh.count && kiln_processes_rank(p) == mesh.rank);
    if (mesh.rank == 0) {
        CHECK(kiln_processes_open(&device, p, "cpu", NULL) == KILN_OK);
        CHECK(kiln_processes_rest(p) == KILN_OK);
    } else {
        CHECK(kiln_processes_serve(p) == KILN_OK);
    }
    check_refusals(p);
    unite(p, device, COLUMNS, &released, 0);
    CHECK(released == (mesh.rank == 0)); /* the others learn it with the next order */
    unite(p, device, COLUMNS - (mesh.rank == whose && mesh.count > 1), &released,
          mesh.count > 1 && whose >= 0);
    unite(p, device, COLUMNS, &released, 0);
    CHECK(released == 2 + (mesh.rank == 0));
    unite(p, device, mesh.rank == whose ? -1 : COLUMNS, &released, whose >= 0);
    CHECK(released == 4 - (mesh.rank > 0 && whose < 0));
    check_bytes(p);
    if (mesh.count > 1 && whose >= 0) check_lost(p, whose);
    kiln_device_close(device);
    kiln_processes_leave(p);
}

static void run(int count, int whose) {
    int sockets[MOST][MOST], failed = 0;
    pid_t children[MOST];
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) exit(1);
            sockets[i][j] = pair[0];
            sockets[j][i] = pair[1];
        }
    for (int rank = 0; rank < count; rank++) {
        children[rank] = fork();
        if (children[rank]) continue;
        mesh.rank = rank;
        mesh.count = count;
        for (int i = 0; i < count; i++)
            for (int j = 0; j < count; j++)
                if (i == rank && j != i)
                    mesh.to[j] = sockets[i][j];
                else if (j != i)
                    close(sockets[i][j]);
        work(whose);
        exit(0);
    }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
            if (j != i) close(sockets[i][j]);
    for (int rank = 0; rank < count; rank++) {
        int status = 0;
        waitpid(children[rank], &status, 0);
        failed = failed || status;
    }
    if (failed) exit(1);
}

int main(void) {
    for (int count = 1; count <= MOST; count++)
        for (int whose = -1; whose < count; whose++) run(count, whose);
    return 0;
}
