/* A picture in a file, as its name says: SVG, or PNG. Drawn as SVG in any case, which is text; librsvg, where
 * the machine has it, turns that into pixels. */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include <stdbool.h>
#include <stdio.h>

#include "output.h"

struct picture {
    FILE *file; /* for markup */
    const char *path;
    char *text; /* what was drawn so far, where it becomes a PNG */
    size_t size;
    int width, height;
    struct output output;
};

/* Before any work: whether a picture of that name can be made here. NULL: none is wanted. 0 or an exit
 * code. */
int picture_check(const char *path);
/* Width and height in units of SVG. Text and lines in currentColor are dark on light pages, light on dark
 * ones. */
int picture_open(struct picture *picture, const char *path, int width, int height);
/* Written as a whole or not at all. Each returns 0 or the exit code of an error that it has reported. */
int picture_close(struct picture *picture);

/* Text from anywhere, at most `most` letters of it (0: all); anchor: "start", "middle" or "end". */
void picture_text(struct picture *picture, double x, double y, const char *anchor, int most,
                  const char *text);
/* The title at the top, in as many lines as the width asks for; height: what these take. */
void picture_title(struct picture *picture, const char *title);
int picture_title_height(int width, const char *title);
/* 1, 2 or 5 times a power of ten: the step that divides `span` into about so many parts. */
double picture_step(double span, int parts);

/* Any two of them stay apart for those who see no red, green or blue, and both on light and on dark pages:
 * by at least 0.12 in OKLab, where those two look the same that are 0.02 apart. */
enum { PICTURE_COLOURS = 6 };
extern const char *const picture_palette[PICTURE_COLOURS];

#endif
