/* The list of devices that a group's name is: items between commas, each
 *
 *     NAME  NAME*COUNT  BACKEND:all  SELECTOR
 *
 * of which a selector belongs to the backend of the item before ("cuda:0,1"), and each may say what share of
 * X its members have ("cpu@1,cuda:0@9"). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/group/group.h"
#include "core/seams.h"

static const char every[] = ":all";
enum { SHARE_MOST = 1000000 };

static bool is_every(const char *name) {
    const size_t length = strlen(name), tail = strlen(every);
    return length >= tail && strcmp(name + length - tail, every) == 0;
}

bool ki_group_named(const char *name) {
    return strpbrk(name, ",*@") || is_every(name);
}

kiln_status ki_group_fail_name(const char *group) {
    ki_fail(KILN_ERR_ARGUMENT, "device '%s': that is no list of devices", group);
    return ki_hint("cuda:all; cuda:0,1; cpu,cuda:0; cpu@1,cuda:0@9, which says their shares; or cpu*3, three "
                   "parts of one device; up to %d",
                   KI_MEMBERS);
}

static kiln_status add(struct ki_names *names, const char *name) {
    if (names->count == KI_MEMBERS || !*name || strlen(name) >= KI_MEMBER_NAME)
        return ki_group_fail_name(names->group);
    snprintf(names->name[names->count++], KI_MEMBER_NAME, "%s", name);
    return KILN_OK;
}

/* Those of the backend, of which one that is not usable is an error. */
static kiln_status add_all(struct ki_names *names, const char *backend) {
    const size_t length = strlen(backend) - strlen(every);
    const int before = names->count;
    kiln_device_info *infos = NULL;
    int64_t count = 0;
    kiln_status status;
    TRY(kiln_device_list(&infos, &count, sizeof *infos));
    for (int64_t i = 0; i < count; i++)
        if (strncmp(infos[i].name, backend, length) == 0 &&
            (infos[i].name[length] == ':' || !infos[i].name[length]))
            TRY(add(names, infos[i].name));
    if (names->count == before) {
        ki_fail(KILN_ERR_DEVICE, "device '%s': there is none", backend);
        status = ki_hint("'kiln devices' lists what there is, and what is missing");
    }
done:
    kiln_free(infos);
    return status;
}

/* Cuts text at the mark, behind which there is a whole number from 1 to `most`, or there was no mark. */
static bool cut(char *text, char mark, long most, long *number) {
    char *at = strchr(text, mark), *end = at;
    if (!at) return true;
    *at++ = '\0';
    *number = *at >= '1' && *at <= '9' ? strtol(at, &end, 10) : 0;
    return *number > 0 && *number <= most && !*end;
}

/* The item becomes a device's whole name, without marks. */
static bool read_item(char name[2 * KI_MEMBER_NAME], const struct ki_names *names, const char *item,
                      long *share, long *times) {
    const char *before = names->count > 0 ? names->name[names->count - 1] : "";
    const size_t length = strcspn(item, ",");
    const bool selects = *item >= '0' && *item <= '9' && names->count > 0;
    snprintf(name, 2 * KI_MEMBER_NAME, "%.*s%s%.*s", selects ? (int)strcspn(before, ":") : 0, before,
             selects ? ":" : "", (int)length, item);
    return length < KI_MEMBER_NAME && cut(name, '@', SHARE_MOST, share) &&
           cut(name, '*', KI_MEMBERS, times) && *name && name[strlen(name) - 1] != ':' &&
           strcmp(name, "auto") != 0;
}

static kiln_status add_item(struct ki_names *names, const char *item, int number) {
    char name[2 * KI_MEMBER_NAME];
    const int first = names->count;
    long share = 0, times = 0;
    kiln_status status = KILN_OK;
    if (!read_item(name, names, item, &share, &times) || (is_every(name) && times > 0))
        return ki_group_fail_name(names->group);
    if (is_every(name)) TRY(add_all(names, name));
    for (long i = 0; !is_every(name) && i < (times > 0 ? times : 1); i++) TRY(add(names, name));
    for (int i = first; i < names->count; i++) {
        names->share[i] = (double)share;
        names->item[i] = number;
        if ((share > 0) != (names->share[0] > 0)) return ki_group_fail_name(names->group);
    }
done:
    return status;
}

kiln_status ki_group_names(struct ki_names *names, const char *group) {
    kiln_status status = KILN_OK;
    *names = (struct ki_names){.group = group};
    for (const char *item = group; status == KILN_OK; item++) {
        status = add_item(names, item, (int)(item - group));
        item += strcspn(item, ",");
        if (!*item) break;
    }
    return status;
}
