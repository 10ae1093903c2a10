/* This header says how much memory this process may use. */
#ifndef KI_CPU_MEMORY_H
#define KI_CPU_MEMORY_H

#include <stdint.h>

/* Bytes of the machine's memory, or of the limit of a control group that this process is in, such as a
 * container's or that of a job of Slurm, where that is less. groups, mounted: "/proc/self/cgroup" and
 * "/sys/fs/cgroup"; tests have others. */
int64_t ki_memory_limit(const char *groups, const char *mounted);

#endif
