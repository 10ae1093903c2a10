/* Several processes, on one machine or on many, that compute together: what `mpirun` starts.
 *
 * Process 0 runs the program. All others serve it: each has a part of the rows of X on a device of its own,
 * and runs its part of every operation on X when process 0 does. A program is therefore written as for one
 * device, and only process 0 has results to write. */
#ifndef KILN_PROCESSES_H
#define KILN_PROCESSES_H

#include "kiln/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kiln_processes kiln_processes;

/* Joins the processes of an MPI communicator, each of which calls this. communicator: as MPI_Comm_c2f gives
 * it (kiln/mpi.h has kiln_group_mpi, which takes an MPI_Comm), or KILN_WORLD: all that mpirun started, for
 * which MPI begins and ends here if the program has not begun it. Process 0 returns at once. Every other one
 * serves until process 0 leaves, and then returns KILN_OK with *processes = NULL, or the error for which it
 * could not go on.
 * All processes run the same build of the library, and see the same files under the same names.
 * A process that is killed or stopped, or whose machine is lost, ends all within 30 seconds: MPI_Abort, exit
 * code 5. The program must have begun MPI with MPI_THREAD_MULTIPLE for that, if it has begun it itself.
 * ERR_DEVICE: the plug-in for MPI is missing, the hint says how to get it; or it is of another release, or
 * the builds differ.
 * Cost: some milliseconds. */
KILN_API kiln_status kiln_processes_join(kiln_processes **processes, int communicator);
#define KILN_WORLD (-1)

/* Finds how many there are, this one included; 0 for NULL. */
KILN_API int kiln_processes_count(const kiln_processes *processes);

/* On process 0: opens a device in every process, and one handle for all. name: "cpu"; "cuda" or "opencl", of
 * which processes of one machine take one each in turn; "cuda:1" and the like, the same for all. options as
 * for kiln_device_open; threads = 0 shares a machine's processors among its processes. One device at a time.
 * A matrix on the device whose values come from outside is split by rows, as on a group (kiln_device_open),
 * and kiln_data_read lets each process read its part where the format allows it (docs/mpi.md). Vectors as
 * long as its rows stay with the processes that wrote them until something wants the whole
 * (kiln_device_sharing); others lie in process 0, which does all that is no operation on such a matrix.
 * Operations that cannot be shared are ERR_UNSUPPORTED on a matrix that was read in parts.
 * Deterministic: the same bits for the same number of processes with the same number of threads.
 * An error in one process is the call's error in process 0. ERR_DEVICE_LOST: MPI failed; nothing but closing
 * is possible then. */
KILN_API kiln_status kiln_processes_open(kiln_device **device, kiln_processes *processes, const char *name,
                                         const kiln_device_options *options);

/* Ends the other processes' service. A device that is still open is lost from then on (ERR_DEVICE_LOST), and
 * can only be closed. NULL is accepted. */
KILN_API void kiln_processes_leave(kiln_processes *processes);

#ifdef __cplusplus
}
#endif
#endif
