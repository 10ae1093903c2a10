/* Numbers as a person reads them. */
#include "text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 80, BUFFERS = 16 };

static char *next_buffer(void) {
    static _Thread_local char buffers[BUFFERS][ROOM]; /* progress.c has a thread */
    static _Thread_local unsigned next;
    return buffers[next++ % BUFFERS];
}

const char *text_count(int64_t count) {
    char digits[24], *text = next_buffer();
    int length = snprintf(digits, sizeof digits, "%lld", (long long)count), out = 0;
    for (int i = 0; i < length; i++) {
        if (i > (digits[0] == '-') && (length - i) % 3 == 0) text[out++] = ',';
        text[out++] = digits[i];
    }
    text[out] = '\0';
    return text;
}

const char *text_bytes(double bytes) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    int unit = 0;
    while (fabs(bytes) >= 999.5 && unit < 4) {
        bytes /= 1000;
        unit++;
    }
    char *text = next_buffer();
    snprintf(text, ROOM, "%.*f %s", unit && bytes < 99.95 ? 1 : 0, bytes, units[unit]);
    return text;
}

const char *text_seconds(double seconds) {
    char *text = next_buffer();
    if (!isfinite(seconds))
        snprintf(text, ROOM, "?");
    else if (seconds < 9.995)
        snprintf(text, ROOM, "%.*f s", seconds < 0.0995 ? 3 : 2, seconds);
    else if (seconds < 119.5)
        snprintf(text, ROOM, "%.0f s", seconds);
    else if (seconds < 3600)
        snprintf(text, ROOM, "%d min %02d s", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(text, ROOM, "%.0f h %02d min", floor(seconds / 3600), (int)fmod(seconds / 60, 60));
    return text;
}

const char *text_number(double number) {
    char *text = next_buffer();
    snprintf(text, ROOM, "%.6g", number);
    return text;
}

const char *text_plural(int64_t count, const char *noun) {
    char *text = next_buffer();
    const char *ending = noun[strlen(noun) - 1] == 's' ? "es" : "s";
    snprintf(text, ROOM, "%s %s%s", text_count(count), noun, count == 1 ? "" : ending);
    return text;
}

/* Bytes of the character at `at`, which is UTF-8. */
static int character(const char *at) {
    int bytes = 1;
    while ((at[bytes] & 0xC0) == 0x80) bytes++;
    return bytes;
}

const char *text_cell(const char *text, int width) {
    char *cell = next_buffer(), *end = cell;
    int length = 0;
    for (const char *at = text; *at; at += character(at)) length++;
    for (int i = length; i < width; i++) *end++ = ' ';
    const int kept = length > width ? width - 1 : length;
    for (int i = 0; i < kept; i++) {
        const int bytes = character(text);
        const unsigned char *at = (const unsigned char *)text;
        if (*at < ' ' || *at == 127 || (at[0] == 0xC2 && at[1] < 0xA0))
            *end++ = '?';
        else
            end = (char *)memcpy(end, text, (size_t)bytes) + bytes;
        text += bytes;
    }
    if (length > width) *end++ = '~';
    *end = '\0';
    return cell;
}

int text_letter(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    const int length = at[0] < 0x80   ? 1
                       : at[0] < 0xC2 ? 0
                       : at[0] < 0xE0 ? 2
                       : at[0] < 0xF0 ? 3
                       : at[0] < 0xF5 ? 4
                                      : 0;
    for (int i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80) return 0;
    return length;
}

static void put_part(FILE *file, const char *text, size_t size, int lines) {
    const unsigned char *end = (const unsigned char *)text + size;
    for (const unsigned char *at = (const unsigned char *)text; at < end;) {
        const int length = text_letter((const char *)at);
        const int c1 = length == 2 && at[0] == 0xC2 && at[1] < 0xA0; /* U+0080 to U+009F */
        const int kept = lines && (*at == '\n' || *at == '\t');
        if (length == 0 || c1 || (!kept && (*at < ' ' || *at == 127))) {
            for (int i = 0; i < (length ? length : 1); i++) fprintf(file, "\\x%02x", *at++);
            continue;
        }
        fwrite(at, 1, (size_t)length, file);
        at += length;
    }
}

void text_put(FILE *file, const char *text, int lines) {
    put_part(file, text, strlen(text), lines);
}

int text_shortest(char text[SHORTEST_ROOM], double number, int single) {
    int length = 0;
    if (isnan(number)) return snprintf(text, SHORTEST_ROOM, "nan");
    for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17); digits++) {
        length = snprintf(text, SHORTEST_ROOM, "%.*g", digits, number);
        if (single ? strtof(text, NULL) == (float)number : strtod(text, NULL) == number) break;
    }
    return length;
}

void text_wrap(FILE *file, const char *text, int indent, int width) {
    int column = indent;
    for (const char *at = text; *at;) {
        size_t word = strcspn(at, " \n");
        if (column > indent && column + 1 + (int)word > width) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', file);
            column++;
        }
        put_part(file, at, word, 0);
        column += (int)word;
        at += word;
        if (strncmp(at, "\n\n", 2) == 0) {
            fprintf(file, "\n\n%*s", indent, "");
            column = indent;
            at++;
        }
        at += *at != '\0';
    }
    fputc('\n', file);
}
