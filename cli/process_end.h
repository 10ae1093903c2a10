/* What a process pays after its work on a GPU: the driver's cleaning up. */
#ifndef CLI_PROCESS_END_H
#define CLI_PROCESS_END_H

/* kiln_device_options' function of this name. */
double process_end(void *user, const char *device);

#endif
