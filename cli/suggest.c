/* Edit distance with transpositions (optimal string alignment): d[i][j] = least number of insertions,
 * deletions, replacements and swaps of neighbours that turn the first i letters of one word into the first j
 * of the other. A word that is the beginning of a candidate (--max-iter) counts as one edit away. */
#include "suggest.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 40 };

static int least(int a, int b) {
    return a < b ? a : b;
}

static int edit_distance(const char *a, const char *b) {
    int m = (int)strlen(a), n = (int)strlen(b), d[LONGEST + 1][LONGEST + 1];
    if (m > LONGEST || n > LONGEST) return LONGEST;
    for (int i = 0; i <= m; i++) d[i][0] = i;
    for (int j = 0; j <= n; j++) d[0][j] = j;
    for (int i = 1; i <= m; i++)
        for (int j = 1; j <= n; j++) {
            d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[m][n];
}

void suggest_consider(struct suggestion *suggestion, const char *candidate) {
    size_t length = strlen(suggestion->word);
    int distance = edit_distance(suggestion->word, candidate);
    if (length >= 2 && strncmp(suggestion->word, candidate, length) == 0) distance = least(distance, 1);
    int allowed = length <= 3 ? 1 : (int)(length + 2) / 3;
    if (distance > allowed || (suggestion->best && distance >= suggestion->distance)) return;
    suggestion->best = candidate;
    suggestion->distance = distance;
}
