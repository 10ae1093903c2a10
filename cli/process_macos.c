#include "process.h"

#include <mach-o/dyld.h>
#include <mach/mach.h>

struct process_memory process_memory(void) {
    struct mach_task_basic_info info = {0};
    mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
    if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, (task_info_t)&info, &count) != KERN_SUCCESS)
        return (struct process_memory){0, 0};
    return (struct process_memory){(int64_t)info.resident_size, (int64_t)info.resident_size_max};
}

/* The system's mark is of the process's whole life. */
void process_memory_set_back(void) {
}

bool process_program(char *file, size_t bytes) {
    uint32_t room = (uint32_t)bytes;
    return _NSGetExecutablePath(file, &room) == 0;
}

/* Nothing there sees to that. */
void process_ends_with_parent(void) {
}
