/* Most names of a block have been met before: the threads that parse it look them up, while the tables
 * rest. What is left are new names, which one thread numbers in the order of the file, so that numbers do
 * not depend on the threads. */
#include "io/coordinate/links.h"

#include <string.h>

#include "core/threads.h"

void ki_links_free(struct ki_links *links) {
    ki_bytes_free(&links->links);
}

static struct ki_link *links_of(const struct ki_links *links, int64_t *count) {
    *count = links->links.size / (int64_t)sizeof(struct ki_link);
    return (struct ki_link *)(void *)links->links.data;
}

bool ki_links_add(struct ki_links *links, const struct ki_names *const names[2], struct ki_link *link) {
    for (int k = 0; k < 2; k++) {
        ki_names_find(names[k], &link->name[k]);
        links->unknown += link->name[k].found < 0;
    }
    return ki_bytes_append(&links->links, link, sizeof *link);
}

kiln_status ki_links_number(struct ki_links *links, int parts, struct ki_names *const names[2],
                            const struct ki_input *input, const struct ki_block *block) {
    for (int part = 0; part < parts; part++) {
        int64_t count, left = links[part].unknown;
        struct ki_link *link = links_of(&links[part], &count);
        for (int64_t i = 0; left > 0 && i < count; i++)
            for (int k = 0; k < 2; k++) {
                int32_t number;
                if (link[i].name[k].found >= 0) continue;
                const kiln_status status = ki_names_number(&number, names[k], &link[i].name[k], input, block);
                if (status != KILN_OK) return status;
                link[i].name[k].found = number;
                left--;
            }
    }
    return KILN_OK;
}

struct storing {
    struct ki_entries *entries;
    const struct ki_links *links;
};

static void store_part(void *of, int part) {
    const struct storing *s = of;
    int64_t count;
    const struct ki_link *link = links_of(&s->links[part], &count);
    uint32_t *row = (uint32_t *)(void *)s->entries->row.data + s->links[part].at;
    int32_t *col = (int32_t *)(void *)s->entries->col.data + s->links[part].at;
    double *value = (double *)(void *)s->entries->value.data + s->links[part].at;
    for (int64_t i = 0; i < count; i++) {
        row[i] = (uint32_t)link[i].name[0].found;
        col[i] = link[i].name[1].found;
        value[i] = link[i].value;
    }
}

/* Where each entry stands in its file, for an error about two of them. */
static kiln_status note_places(struct ki_entries *entries, const struct ki_links *links,
                               const struct ki_block *block) {
    int64_t count;
    const struct ki_link *link = links_of(links, &count);
    for (int64_t i = 0; i < count; i++) {
        const kiln_status status = ki_entries_note(entries, block, link[i].name[0].text);
        if (status != KILN_OK) return status;
    }
    return KILN_OK;
}

kiln_status ki_links_store(struct ki_entries *entries, struct ki_links *links, int parts,
                           const kiln_read_options *options, const struct ki_block *block) {
    struct storing s = {entries, links};
    kiln_status status = KILN_OK;
    int64_t more = 0, count;
    for (int part = 0; part < parts; part++) {
        links_of(&links[part], &count);
        links[part].at = entries->count + more;
        more += count;
        if (options->strict) TRY(note_places(entries, &links[part], block));
    }
    if (!ki_bytes_room(&entries->row, more * 4) || !ki_bytes_room(&entries->col, more * 4) ||
        !ki_bytes_room(&entries->value, more * 8))
        TRY(ki_fail_nomem((size_t)more * 16, "the entries of the file"));
    if (more > 0) ki_parallel(options->threads, parts, store_part, &s);
    entries->row.size += more * 4;
    entries->col.size += more * 4;
    entries->value.size += more * 8;
    entries->count += more;
done:
    return status;
}
