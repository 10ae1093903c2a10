/* Kiln's processes for programs that use MPI themselves. Apart from kiln.h; include <mpi.h> before it. */
#ifndef KILN_MPI_H
#define KILN_MPI_H

#include "kiln/processes.h"

#ifdef MPI_VERSION
/* Joins the processes of a communicator, which must stay until they leave; as kiln_processes_join. */
static inline kiln_status kiln_group_mpi(kiln_processes **processes, MPI_Comm communicator) {
    return kiln_processes_join(processes, (int)MPI_Comm_c2f(communicator));
}
#endif

#endif
