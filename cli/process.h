/* A process that uses a device takes the driver's start and its cleaning up afterwards. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

/* kiln_choose_options' function of this name. */
double process_of(void *user, const char *device);

#endif
