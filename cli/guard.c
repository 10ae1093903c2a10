/* While a driver is started in this process: a crash there, or a wait without end, is explained.
 *
 * Where a driver has crashed no promise holds, so that the handler may use what is not safe in others, and
 * a second signal, or an alarm, ends the process. Handlers that somebody else has set (a sanitizer) are
 * left in place. */
#define _GNU_SOURCE
#include "guard.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "errors.h"

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else /* musl knows no callers: a crash is told without the driver's file */
static int backtrace(void **frames, int most) {
    return (void)frames, (void)most, 0;
}
#endif

static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
enum { CRASHES = sizeof crashes / sizeof *crashes, FRAMES = 64 };

static struct sigaction before[CRASHES], alarm_before;

static bool is_system(const char *path) {
    static const char *const names[] = {"/libc.so", "/libc-", "/ld-linux", "/libpthread", "/libOpenCL.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(path, names[i])) return true;
    return false;
}

/* The first file on the stack that is neither Kiln nor the system: the driver, or what it is made of. */
static const char *file_at_fault(void) {
    void *frames[FRAMES];
    Dl_info own, of;
    const int count = backtrace(frames, FRAMES);
    if (!dladdr((void *)(size_t)crashes, &own)) return NULL;
    for (int i = 0; i < count; i++) {
        if (!dladdr(frames[i], &of) || !of.dli_fname || of.dli_fbase == own.dli_fbase) continue;
        if (strstr(of.dli_fname, "libkiln") || is_system(of.dli_fname)) continue;
        return of.dli_fname;
    }
    return NULL;
}

static void on_crash(int number) {
    for (int i = 0; i < CRASHES; i++) signal(crashes[i], SIG_DFL);
    signal(SIGALRM, SIG_DFL);
    alarm(5);
    const char *file = file_at_fault();
    const int code = fail_with(KILN_ERR_DEVICE, WORKING,
                               "--device cpu needs no driver; 'kiln doctor' asks each driver by itself; "
                               "KILN_WITHOUT=opencl, or =cuda, leaves these drivers out",
                               "a driver crashed while a device was started (signal %d, %s)%s%s", number,
                               strsignal(number), file ? ": " : "", file ? file : "");
    fflush(stdout);
    _exit(code);
}

static void on_alarm(int number) {
    static const char text[] = "kiln: a driver has not answered for 30 seconds while a device was started\n"
                               "hint: go on waiting, or stop it: --device cpu needs no driver, and 'kiln "
                               "doctor' asks each by itself\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) return;
}

void guard_begin(void) {
    void *frame[1];
    backtrace(frame, 1); /* loads what it needs, which after a crash might not work */
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = SA_NODEFER},
                     late = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    for (int i = 0; i < CRASHES; i++) {
        sigaction(crashes[i], NULL, &before[i]);
        if (!(before[i].sa_flags & SA_SIGINFO) && before[i].sa_handler == SIG_DFL)
            sigaction(crashes[i], &crash, NULL);
    }
    sigaction(SIGALRM, &late, &alarm_before);
    alarm(GUARD_SECONDS);
}

void guard_end(void) {
    alarm(0);
    sigaction(SIGALRM, &alarm_before, NULL);
    for (int i = 0; i < CRASHES; i++) sigaction(crashes[i], &before[i], NULL);
}
