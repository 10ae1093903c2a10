/* Numbers as a person reads them. Each returns one of a few rotating static buffers, good for one printf. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdint.h>
#include <stdio.h>

const char *text_count(int64_t count);                    /* 1,234,567 */
const char *text_bytes(double bytes);                     /* 2.1 MB */
const char *text_seconds(double seconds);                 /* 0.31 s, 2 min 05 s */
const char *text_number(double number);                   /* six significant digits */
const char *text_plural(int64_t count, const char *noun); /* 1 row, 1,200 rows */

const char *text_cell(const char *text,
                      int width); /* right-aligned; "~" where it is cut, "?" for line ends */

int text_letter(const char *at); /* length of the UTF-8 character there, 0 if it is none */

/* Writes text that may come from a file: control characters, which a terminal would obey, as \\x1b; of bytes
 * that are not UTF-8 a terminal takes some for controls, so these too. Line feeds and tabs stay where
 * `lines`. */
void text_put(FILE *file, const char *text, int lines);

/* The shortest decimal that reads back to the same number; single: to the same float. Returns its length. */
enum { SHORTEST_ROOM = 32 };
int text_shortest(char text[SHORTEST_ROOM], double number, int single);

/* Prints text in lines of at most `width` columns, each after `indent` spaces; the first line is taken to
 * stand at column `indent` already. An empty line in the text separates paragraphs. */
void text_wrap(FILE *file, const char *text, int indent, int width);

#endif
