/* Threads that live for one loop and then are gone. A reader alternates between short loops and serial
 * reading; a team of OpenMP threads would spin through the latter and take the processor from whoever else
 * has work: on two busy cores that halved the speed. Starting a thread costs some 20 microseconds, a block
 * takes many milliseconds. */
#include "io/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

enum { HELPERS_MAX = 255 };

struct loop {
    atomic_int next;
    int count;
    void (*body)(void *user, int i);
    void *user;
};

static void *take_turns(void *argument) {
    struct loop *loop = argument;
    for (int i; (i = atomic_fetch_add(&loop->next, 1)) < loop->count;) loop->body(loop->user, i);
    return NULL;
}

void ki_parallel(int threads, int count, void (*body)(void *user, int i), void *user) {
    struct loop loop = {.count = count, .body = body, .user = user};
    pthread_t helpers[HELPERS_MAX];
    int wanted = (threads < count ? threads : count) - 1, started = 0;
    if (wanted > HELPERS_MAX) wanted = HELPERS_MAX;
    while (started < wanted && pthread_create(&helpers[started], NULL, take_turns, &loop) == 0) started++;
    take_turns(&loop);
    for (int i = 0; i < started; i++) pthread_join(helpers[i], NULL);
}
