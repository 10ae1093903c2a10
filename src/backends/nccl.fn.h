/* The functions of NCCL, collectives of several GPUs, that Kiln calls: FUNCTION(member, symbol,
 * parameters). */
FUNCTION(version, ncclGetVersion, (int *version))
FUNCTION(unite, ncclCommInitAll, (nccl_comm * comms, int count, const int *devices))
FUNCTION(invite, ncclGetUniqueId, (struct ki_invitation * made))
FUNCTION(accept, ncclCommInitRank, (nccl_comm * made, int count, struct ki_invitation invitation, int rank))
FUNCTION(part, ncclCommDestroy, (nccl_comm comm))
FUNCTION(begin, ncclGroupStart, (void))
FUNCTION(end, ncclGroupEnd, (void))
FUNCTION(reduce, ncclReduce,
         (const void *from, void *to, size_t count, int type, int operation, int root, nccl_comm comm,
          cuda_stream stream))
FUNCTION(broadcast, ncclBroadcast,
         (const void *from, void *to, size_t count, int type, int root, nccl_comm comm, cuda_stream stream))
