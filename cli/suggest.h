/* The nearest word to a mistyped one. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

struct suggestion {
    const char *word; /* what was typed */
    const char *best; /* the nearest candidate near enough, or NULL */
    int distance;
};

/* Start with {word, NULL, 0}, consider each candidate, then read best. */
void suggest_consider(struct suggestion *suggestion, const char *candidate);

#endif
