/* All operations that have cases, in the order of their files' names. The list is of the build's making: see
 * cases.cmake. */
#include "cases.h"

#include "operation_list.h"

#define DECLARE(name) extern const struct operation operation_##name;
OPERATION_LIST(DECLARE)

#define ENTRY(name) &operation_##name,
const struct operation *const operations[] = {OPERATION_LIST(ENTRY) NULL};
