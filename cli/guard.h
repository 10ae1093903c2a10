/* While a driver is started in this process: a crash there, or a wait without end, is explained. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

/* From guard_begin to guard_end a signal that a driver's crash raises ends the process with a message that
 * names the driver's file, and the exit code of a device's error; after GUARD_SECONDS without an end a
 * message says what is waited for. */
enum { GUARD_SECONDS = 30 };
void guard_begin(void);
void guard_end(void);

#endif
