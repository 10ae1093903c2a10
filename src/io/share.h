/* A part of text that is compressed, which can be read from its beginning alone: the lines that begin in the
 * part's share. */
#ifndef KI_IO_SHARE_H
#define KI_IO_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Holds what is decoded of the bytes [cut[0], cut[1]) of the file; parts whose cuts meet have each line once,
 * as all see what the first cut[i] bytes alone are decoded to. */
struct ki_share {
    int64_t cut[2];
    int64_t skipped; /* bytes of the text that are no part's, such as a line of names; whole lines */
    bool quotes;     /* an end of line in quotes ends nothing: CSV */
    /* The state of reading, zero at first. */
    int passed; /* cuts */
    bool within, open, keeps;
};

/* Bytes of the file that may be decoded before the next cut, when so many have been. */
int64_t ki_share_left(const struct ki_share *share, int64_t decoded);
/* The next piece of the text, decoded between two cuts: what is the part's comes to its front. *over becomes
 * true once nothing more is. */
size_t ki_share_keep(struct ki_share *share, char *text, size_t size, bool *over);

#endif
