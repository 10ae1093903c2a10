/* What of a matrix's slots a write on the CPU makes wrong. On a GPU ki_operands_hold drops all of them; on the CPU whoever writes to A
 * without that says so. */
#ifndef KI_WRITTEN_H
#define KI_WRITTEN_H

#include "core/slots.h"

/* Drops all but slots of the kinds whose owner compares A's values with what they were before he uses one. */
void ki_slots_written(const kiln_matrix *A);

/* These kinds: what processes have of an operand, its parts or copies (processes/share.c). */
enum { KI_COMPARED_PARTS, KI_COMPARED_COPIES, KI_COMPARED };
extern const struct ki_slot_kind ki_compared_kinds[KI_COMPARED];

#endif
