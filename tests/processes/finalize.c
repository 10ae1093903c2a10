/* Whether an MPI comes back from MPI_Finalize: a program without Kiln, which sends a little and ends.
 *
 *   mpicc.mpich -o finalize tests/processes/finalize.c && UCX_TLS=self,tcp timeout 4 mpirun.mpich -n 4
 *     ./finalize; echo $?
 *
 * 124 is a run that did not end. MPICH 4.0.2 over UCX 1.13 (Debian 12): seven of twelve did not end
 * (bench/results/cpu2-processes-mpich.json). */
#include <mpi.h>

int main(int argc, char **argv) {
    int rank, count, threads;
    char bytes[64] = "";
    MPI_Comm all, ring;
    MPI_Request sent;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    MPI_Comm_dup(all, &ring);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &count);
    for (int i = 0; i < 20; i++) {
        MPI_Ibcast(bytes, sizeof bytes, MPI_BYTE, 0, all, &sent);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
    }
    MPI_Isend(bytes, 1, MPI_BYTE, (rank + 1) % count, 2, ring, &sent);
    MPI_Recv(bytes + 1, 1, MPI_BYTE, (rank + count - 1) % count, 2, ring, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Barrier(all);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&all);
    return MPI_Finalize();
}
