/* Topics side by side, the largest first, each with its words and a bar as long as the word is probable
 * there. */
#include <math.h>

#include "picture.h"
#include "topics.h"

enum {
    PANELS = 12,
    ACROSS = 2,
    WORDS = 8,
    WIDE = 260,
    LINE = 19,
    EDGE = 20,
    TOP = 34,
    NAME = 110,
    LETTERS = 13
};

static void draw_topic(struct picture *picture, const struct solving *s, int64_t place, double longest,
                       int top) {
    const struct topics *state = s->state;
    const int64_t c = state->order[place];
    const int x = EDGE + (int)(place % ACROSS) * WIDE;
    const int y = top + (int)(place / ACROSS) * (WORDS + 2) * LINE;
    char text[SHORTEST_ROOM];
    snprintf(text, sizeof text, "%lld: %.1f %%", (long long)place + 1, 100 * state->share[c]);
    picture_text(picture, x, y, "start", 0, text);
    for (int64_t t = 0; t < WORDS && t < state->top && state->word[c * state->top + t] >= 0; t++) {
        const int64_t at = c * state->top + t;
        const int line = y + (int)(t + 1) * LINE;
        picture_text(picture, x + NAME, line, "end", LETTERS, topics_word(s, state->word[at], text));
        fprintf(picture->file, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"12\" fill=\"%s\"/>\n",
                x + NAME + 6, line - 10, (WIDE - NAME - 24) * state->weight[at] / longest,
                picture_palette[place % PICTURE_COLOURS]);
    }
}

int plot_topics(const char *path, const struct solving *s, const char *title) {
    const struct topics *state = s->state;
    const int64_t shown = state->k < PANELS ? state->k : PANELS;
    const int across = (int)(shown < ACROSS ? shown : ACROSS), down = (int)((shown + ACROSS - 1) / ACROSS);
    struct picture picture;
    double longest = 1e-300;
    for (int64_t e = 0; e < state->k * state->top; e++) longest = fmax(longest, state->weight[e]);
    const int width = 2 * EDGE + across * WIDE, top = picture_title_height(width, title) + TOP;
    const int code = picture_open(&picture, path, width, top + down * (WORDS + 2) * LINE);
    if (code) return code;
    picture_title(&picture, title);
    for (int64_t place = 0; place < shown; place++) draw_topic(&picture, s, place, longest, top);
    return picture_close(&picture);
}
