/* PoCL 3.1 keeps code for each size of a kernel's launches, and gives back, when one ends, the code that was
 * last looked up for the kernel: it aborts where that has meanwhile been another one, which a launch of more
 * threads looks up. So the kernels of one queue run at a time, and behind a kernel none of more threads is
 * launched before it has ended. */
#include "backends/pocl.h"

#include <pthread.h>

/* Whose kernels may be running, and with how many threads each. */
enum { RUNNING_MAX = 32 };
static struct {
    pthread_mutex_t lock;
    cl_object queue;
    int count;
    struct {
        const void *function;
        int64_t threads;
    } kernels[RUNNING_MAX];
} running = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool may_follow(cl_object queue, const void *function, int64_t threads) {
    if (running.queue != queue) return false;
    for (int i = 0; i < running.count; i++)
        if (running.kernels[i].function == function) return threads <= running.kernels[i].threads;
    return running.count < RUNNING_MAX;
}

/* An error of that queue is its own device's, whose next call gets it too. */
static void wait_for_running(void) {
    if (running.queue) ki_opencl.finish(running.queue);
    running.queue = NULL;
    running.count = 0;
}

void ki_pocl_begin_turn(cl_object queue, const void *function, int64_t threads) {
    pthread_mutex_lock(&running.lock);
    if (!may_follow(queue, function, threads)) wait_for_running();
    running.queue = queue;
    for (int i = 0; i < running.count; i++)
        if (running.kernels[i].function == function) return;
    running.kernels[running.count].function = function;
    running.kernels[running.count++].threads = threads;
}

void ki_pocl_end_turn(void) {
    pthread_mutex_unlock(&running.lock);
}

void ki_pocl_leave_turn(cl_object queue) {
    pthread_mutex_lock(&running.lock);
    if (running.queue == queue) wait_for_running();
    pthread_mutex_unlock(&running.lock);
}
