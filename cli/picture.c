/* Pictures are SVG, because that is text which any browser shows. PNG is what librsvg makes of the same
 * SVG: it is looked for at run time, as drivers are, so that nobody who wants no PNG needs it, and there
 * is one way of drawing. */
#define _GNU_SOURCE
#include "picture.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

const char *const picture_palette[PICTURE_COLOURS] = {"#2191e7", "#fb7b28", "#994d97",
                                                      "#c9212e", "#9e9e9e", "#0c47f3"};

/* ------------------------------------------------------------------------------------------- PNG */

enum { MARGIN = 16, LETTER = 8, TITLE_LINE = 24 }; /* of titles; a letter is as wide at most, on average */
enum { PIXELS = 2, ARGB32 = 0, CAIRO_WRITE_ERROR = 11 }; /* pixels a unit; cairo's numbers */

struct rectangle {
    double x, y, width, height;
};

/* Says what is taken of librsvg (2.46 or later), and of the libraries that it brings. */
#define RENDERER(F)                                                                                          \
    F(void *, rsvg_handle_new_from_data, (const unsigned char *, size_t, void **))                           \
    F(int, rsvg_handle_render_document, (void *, void *, const struct rectangle *, void **))                 \
    F(void, g_object_unref, (void *))                                                                        \
    F(void *, cairo_image_surface_create, (int, int, int))                                                   \
    F(void *, cairo_create, (void *))                                                                        \
    F(void, cairo_set_source_rgb, (void *, double, double, double))                                          \
    F(void, cairo_paint, (void *))                                                                           \
    F(int, cairo_surface_write_to_png_stream,                                                                \
      (void *, int (*)(void *, const unsigned char *, unsigned), void *))                                    \
    F(void, cairo_destroy, (void *))                                                                         \
    F(void, cairo_surface_destroy, (void *))

#define MEMBER(result, name, parameters) result(*name) parameters;
static struct {
    RENDERER(MEMBER)
    bool whole;
} renderer;

/* dlsym also looks in what the library depends on. */
static bool load_renderer(void) {
    void *library = renderer.whole ? NULL : dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) return renderer.whole;
    bool whole = true;
    void *found;
#define RESOLVE(result, name, parameters)                                                                    \
    found = dlsym(library, #name);                                                                           \
    whole = whole && found;                                                                                  \
    memcpy(&renderer.name, &found, sizeof found);
    RENDERER(RESOLVE)
    return renderer.whole = whole;
}

static int write_bytes(void *file, const unsigned char *bytes, unsigned count) {
    return fwrite(bytes, 1, count, file) == count ? 0 : CAIRO_WRITE_ERROR;
}

static int render(const struct picture *picture) {
    void *problem = NULL, *svg, *surface, *context;
    const struct rectangle page = {0, 0, PIXELS * picture->width, PIXELS * picture->height};
    svg = renderer.rsvg_handle_new_from_data((const unsigned char *)picture->text, picture->size, &problem);
    surface = renderer.cairo_image_surface_create(ARGB32, PIXELS * picture->width, PIXELS * picture->height);
    context = renderer.cairo_create(surface);
    renderer.cairo_set_source_rgb(context, 1, 1, 1);
    renderer.cairo_paint(context);
    const bool drawn = svg && renderer.rsvg_handle_render_document(svg, context, &page, &problem);
    /* The file remembers a write that failed: output_commit reports it. */
    const int written =
        drawn ? renderer.cairo_surface_write_to_png_stream(surface, write_bytes, picture->output.file) : 0;
    renderer.cairo_destroy(context);
    renderer.cairo_surface_destroy(surface);
    if (svg) renderer.g_object_unref(svg);
    if (drawn && (written == 0 || written == CAIRO_WRITE_ERROR)) return 0;
    return fail_with(KILN_ERR_INTERNAL, WRITING, "a name in .svg needs no librsvg",
                     "%s: librsvg could not draw the picture", picture->path);
}

/* ------------------------------------------------------------------------------------------ files */

static bool ends_in(const char *path, const char *ending) {
    const size_t length = strlen(path), size = strlen(ending);
    return length > size && strcasecmp(path + length - size, ending) == 0;
}

int picture_check(const char *path) {
    if (!path || ends_in(path, ".svg")) return 0;
    if (ends_in(path, ".png"))
        return load_renderer()
                   ? 0
                   : fail_with(KILN_ERR_UNSUPPORTED, WORKING, "apt install librsvg2-2, or a name in .svg",
                               "%s: PNG is drawn by librsvg (2.46 or later), which is not on this machine",
                               path);
    const char *folders = strrchr(path, '/'), *ending = strrchr(folders ? folders : path, '.');
    return !ending ? 0
                   : fail_with(KILN_ERR_ARGUMENT, WORKING, "a name in .svg or .png",
                               "%s: pictures are not written as %s", path, ending);
}

int picture_open(struct picture *picture, const char *path, int width, int height) {
    *picture = (struct picture){.path = path, .width = width, .height = height};
    int code = picture_check(path);
    if (!code) code = output_open(&picture->output, path);
    if (code) return code;
    picture->file = picture->output.file;
    if (ends_in(path, ".png") && !(picture->file = open_memstream(&picture->text, &picture->size))) {
        output_abandon(&picture->output);
        return fail_with(KILN_ERR_NOMEM, WRITING, "", "out of memory for a picture");
    }
    fprintf(picture->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"14\">\n"
            "<style>svg{color:#222;background:#fff}@media "
            "(prefers-color-scheme:dark){svg{color:#ddd;background:#161616}}"
            "text{fill:currentColor}</style>\n",
            width, height, width, height);
    return 0;
}

int picture_close(struct picture *picture) {
    int code = 0;
    fputs("</svg>\n", picture->file);
    if (picture->file != picture->output.file) {
        if (fclose(picture->file) != 0)
            code = fail_with(KILN_ERR_NOMEM, WRITING, "", "out of memory for a picture");
        if (!code) code = render(picture);
        free(picture->text);
    }
    if (!code) return output_commit(&picture->output);
    output_abandon(&picture->output);
    return code;
}

/* ------------------------------------------------------------------------------------------- text */

/* Length of the letter, 0 if XML may not hold it: controls, halves of pairs, U+FFFE and U+FFFF. */
static int letter_length(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    const int length = text_letter(text);
    const bool half = length == 3 && at[0] == 0xED && at[1] >= 0xA0;
    const bool none = length == 3 && at[0] == 0xEF && at[1] == 0xBF && at[2] >= 0xBE;
    return half || none || *at < ' ' || *at == 0x7F ? 0 : length;
}

void picture_text(struct picture *picture, double x, double y, const char *anchor, int most,
                  const char *text) {
    FILE *file = picture->file;
    int letters = 0;
    if (!*text) return;
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (const char *at = text; *at; letters++) {
        const int length = letter_length(at);
        if (most && letters == most - 1 && at[length ? length : 1]) {
            fputs("\xE2\x80\xA6", file); /* ... as one letter */
            break;
        }
        if (*at == '<' || *at == '&')
            fputs(*at == '<' ? "&lt;" : "&amp;", file);
        else
            fprintf(file, "%.*s", length ? length : 1, length ? at : "?");
        at += length ? length : 1;
    }
    fputs("</text>\n", file);
}

/* Returns how long the first line of the title is, which ends between words where it can. */
static size_t line_of(int width, const char *title) {
    const size_t room = (size_t)((width - 2 * MARGIN) / LETTER), all = strlen(title);
    size_t end = 0;
    if (all <= room) return all;
    for (size_t i = 1; i <= room; i++)
        if (title[i] == ' ') end = i;
    return end ? end : room;
}

int picture_title_height(int width, const char *title) {
    int lines = 0;
    while (*title) {
        title += line_of(width, title);
        title += *title == ' ';
        lines++;
    }
    return TITLE_LINE * (lines ? lines : 1);
}

void picture_title(struct picture *picture, const char *title) {
    for (int line = 1; *title; line++) {
        char text[256];
        const size_t length = line_of(picture->width, title);
        snprintf(text, sizeof text, "%.*s", (int)length, title);
        picture_text(picture, MARGIN, TITLE_LINE * line, "start", 0, text);
        title += length;
        title += *title == ' ';
    }
}

double picture_step(double span, int parts) {
    const double raw = span / parts, power = pow(10, floor(log10(raw)));
    return raw <= power ? power : raw <= 2 * power ? 2 * power : raw <= 5 * power ? 5 * power : 10 * power;
}
