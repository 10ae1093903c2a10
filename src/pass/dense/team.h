/* Teams: groups that share rows of a dense X and exchange their sums through memory (dialect/exchange.h), of
 * team.cl and tile.cl. */
#ifndef KI_TEAM_H
#define KI_TEAM_H

#include "pass/launch.h"

enum { KI_EXCHANGE_HEAD = 16 }; /* EXCHANGE_HEAD of dialect/exchange.h */

/* Registers of a thread that leave room for all groups of a team's plan at once. */
int64_t ki_team_registers_most(const struct ki_plan *plan, const struct ki_chain *chain);
/* Clears `words` words of the buffer, from word `at` on, before each launch. */
kiln_status ki_team_begin(const struct ki_chain *chain, const struct ki_buffer *buffer, int64_t at,
                          int64_t words);

#endif
