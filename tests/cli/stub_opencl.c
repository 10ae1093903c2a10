/* An OpenCL driver that goes wrong in one call: cc -shared -fPIC -DIN_PLATFORMS='...', or IN_DEVICES,
 * IN_INFO, IN_CONTEXT: what to do there. It has one device, of which it says what Kiln asks for before it
 * opens it. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef IN_PLATFORMS
#define IN_PLATFORMS
#endif
#ifndef IN_DEVICES
#define IN_DEVICES
#endif
#ifndef IN_INFO
#define IN_INFO
#endif
#ifndef IN_CONTEXT
#define IN_CONTEXT
#endif

enum { CALLS = 256 };

typedef void (*call)(void);
struct object {
    const call *calls;
};

static int give(const void *from, size_t bytes, size_t room, void *to, size_t *needed) {
    if (needed) *needed = bytes;
    if (to && room < bytes) return -30;
    if (to) memcpy(to, from, bytes);
    return 0;
}

static int give_text(const char *text, size_t room, void *to, size_t *needed) {
    return give(text, strlen(text) + 1, room, to, needed);
}

static int platform_info(struct object *of, unsigned what, size_t room, void *to, size_t *needed) {
    (void)of;
    const char *text = what == 0x0900   ? "FULL_PROFILE"
                       : what == 0x0901 ? "OpenCL 1.2 stub"
                       : what == 0x0904 ? "cl_khr_icd"
                       : what == 0x0920 ? "STUB"
                                        : "stub";
    return give_text(text, room, to, needed);
}

static const call *calls_of(void);

static int devices(struct object *platform, uint64_t type, unsigned room, struct object **to,
                   unsigned *count) {
    static struct object device;
    (void)platform;
    (void)type;
    device.calls = calls_of();
    IN_DEVICES;
    if (count) *count = 1;
    if (to && room) *to = &device;
    return 0;
}

static int device_info(struct object *of, unsigned what, size_t room, void *to, size_t *needed) {
    const uint64_t number = what == 0x1000                     ? 4
                            : what == 0x101F || what == 0x1010 ? 1 << 30
                            : what == 0x1019                   ? 1024
                                                               : 1;
    (void)of;
    IN_INFO;
    if (what == 0x102B || what == 0x102C || what == 0x102D || what == 0x1030)
        return give_text("stub", room, to, needed);
    if (what == 0x102F) return give_text("OpenCL 1.2 stub", room, to, needed);
    if (what == 0x103D) return give_text("OpenCL C 1.2 stub", room, to, needed);
    return give(&number, to && room < sizeof number ? room : sizeof number, room, to, needed);
}

static void *context(const intptr_t *about, unsigned count, struct object **of, call tell, void *user,
                     int *code) {
    (void)about, (void)count, (void)of, (void)tell, (void)user;
    IN_CONTEXT;
    *code = -6;
    return NULL;
}

static int platforms(unsigned room, struct object **to, unsigned *count) {
    static struct object platform;
    platform.calls = calls_of();
    IN_PLATFORMS;
    if (count) *count = 1;
    if (to && room) *to = &platform;
    return 0;
}

static int nothing(void) {
    return -59;
}

static const call *calls_of(void) {
    static call calls[CALLS];
    for (int i = 0; i < CALLS; i++) calls[i] = (call)nothing;
    calls[0] = (call)platforms;
    calls[1] = (call)platform_info;
    calls[2] = (call)devices;
    calls[3] = (call)device_info;
    calls[4] = (call)context;
    return calls;
}

__attribute__((visibility("default"))) void *clGetExtensionFunctionAddress(const char *name);
void *clGetExtensionFunctionAddress(const char *name) {
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0) return (void *)(intptr_t)platforms;
    if (strcmp(name, "clGetPlatformInfo") == 0) return (void *)(intptr_t)platform_info;
    return NULL;
}

int clGetPlatformInfo(struct object *of, unsigned what, size_t room, void *to, size_t *needed);
int clGetPlatformInfo(struct object *of, unsigned what, size_t room, void *to, size_t *needed) {
    return platform_info(of, what, room, to, needed);
}
