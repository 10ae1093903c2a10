/* Teams: groups that share rows of a dense X and exchange their sums through memory, of team.cl, tile.cl and
 * tile_team.cl; and the plans of team.cl, which needs neither clusters nor bulk copies. */
#ifndef KI_MMCHAIN_TEAM_H
#define KI_MMCHAIN_TEAM_H

#include "pass/launch.h"

/* Offers every plan for `least` or more columns of y a launch. */
void ki_team_plans(const struct ki_chain *chain, int least,
                   void (*offer)(void *list, const struct ki_candidate *candidate), void *list);
/* Registers of a thread. */
int64_t ki_team_registers(const struct ki_plan *plan, const struct ki_chain *chain);
/* Registers of a thread that leave room for all groups of a team's plan at once. */
int64_t ki_team_registers_most(const struct ki_plan *plan, const struct ki_chain *chain);
/* 64-bit words of work space that teams of several groups exchange through; 0 for all other plans. */
int64_t ki_team_words(const struct ki_plan *plan);
/* Clears them, from word `at` of the buffer on, before each launch. */
kiln_status ki_team_begin(const struct ki_plan *plan, const struct ki_chain *chain,
                          const struct ki_buffer *buffer, int64_t at);

#endif
