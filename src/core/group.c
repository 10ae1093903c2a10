/* Opening a group's members, and what moves between them. */
#include "core/group.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "core/seams.h"
#include "core/size.h"

static const char every[] = ":all";

static bool ends_with(const char *name, const char *end) {
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

bool ki_group_named(const char *name) {
    return strchr(name, ',') || strchr(name, '*') || ends_with(name, every);
}

/* The members' names. */
struct names {
    int count;
    char name[KI_MEMBERS][KI_MEMBER_NAME];
};

static kiln_status fail_name(const char *group) {
    ki_fail(KILN_ERR_ARGUMENT, "device '%s': that is no list of devices", group);
    return ki_hint(
        "all are of one kind: cuda:all, cuda:0,1, or cpu*3 for three parts of one device; up to %d",
        KI_MEMBERS);
}

static kiln_status add_name(struct names *names, const char *group, const char *backend, size_t length,
                            const char *selector, size_t selected) {
    if (names->count == KI_MEMBERS || selected == 0 || length + 1 + selected >= KI_MEMBER_NAME)
        return fail_name(group);
    snprintf(names->name[names->count++], KI_MEMBER_NAME, "%.*s:%.*s", (int)length, backend, (int)selected,
             selector);
    return KILN_OK;
}

/* "NAME*COUNT": one device so many times. */
static kiln_status list_parts(struct names *names, const char *group) {
    const char *star = strchr(group, '*');
    char *end;
    const size_t length = (size_t)(star - group);
    const long count = strtol(star + 1, &end, 10);
    if (length == 0 || length >= KI_MEMBER_NAME || strchr(group, ',') || star[1] < '1' || star[1] > '9' ||
        *end || count > KI_MEMBERS)
        return fail_name(group);
    for (; names->count < count; names->count++)
        snprintf(names->name[names->count], KI_MEMBER_NAME, "%.*s", (int)length, group);
    return KILN_OK;
}

/* "BACKEND:all": those of the backend, of which one that is not usable is an error. */
static kiln_status list_all(struct names *names, const char *group) {
    const size_t length = strlen(group) - strlen(every);
    kiln_device_info *infos = NULL;
    int64_t count = 0;
    kiln_status status;
    TRY(kiln_device_list(&infos, &count, sizeof *infos));
    for (int64_t i = 0; i < count && names->count < KI_MEMBERS; i++)
        if (strncmp(infos[i].name, group, length) == 0 &&
            (infos[i].name[length] == ':' || !infos[i].name[length]))
            snprintf(names->name[names->count++], KI_MEMBER_NAME, "%s", infos[i].name);
    if (names->count == 0) {
        ki_fail(KILN_ERR_DEVICE, "device '%s': there is none", group);
        status = ki_hint("'kiln devices' lists what there is, and what is missing");
    }
done:
    kiln_free(infos);
    return status;
}

/* "BACKEND:S,T,...": no device twice, which would be a mistake more often than not. */
static kiln_status list_chosen(struct names *names, const char *group) {
    const char *selector = strchr(group, ':');
    kiln_status status = KILN_OK;
    if (!selector) return fail_name(group);
    const size_t length = (size_t)(selector - group);
    do {
        const size_t selected = strcspn(++selector, ",:");
        if (selector[selected] == ':') return fail_name(group);
        TRY(add_name(names, group, group, length, selector, selected));
        selector += selected;
        for (int i = 0; i < names->count - 1; i++)
            if (strcmp(names->name[i], names->name[names->count - 1]) == 0) {
                ki_fail(KILN_ERR_ARGUMENT, "device '%s' has %s twice", group, names->name[i]);
                return ki_hint("%s*2 makes two parts of one device", names->name[i]);
            }
    } while (*selector);
done:
    return status;
}

static kiln_status list_names(struct names *names, const char *group) {
    names->count = 0;
    if (strchr(group, '*')) return list_parts(names, group);
    return strchr(group, ',') ? list_chosen(names, group) : list_all(names, group);
}

/* Every member has the budget that was given; they share the threads. No member is a group itself. */
static kiln_status open_members(struct ki_group *group, const char *name, const struct names *names,
                                const kiln_device_options *options) {
    kiln_status status = KILN_OK;
    kiln_device_options own = *options;
    if (own.threads == 0) own.threads = ki_default_threads();
    own.threads = (int)ki_max(own.threads / ki_max(names->count, 1), 1);
    for (; group->count < names->count; group->count++) {
        const char *one = names->name[group->count];
        if (ki_group_named(one)) TRY(fail_name(name));
        TRY(kiln_device_open(&group->member[group->count], one, &own));
    }
done:
    return status;
}

static kiln_status check_alike(const struct ki_group *group) {
    const kiln_device *first = group->member[0];
    for (int i = 1; i < group->count; i++)
        if (group->member[i]->properties.has_f64 != first->properties.has_f64) {
            ki_fail(KILN_ERR_DEVICE, "devices %s and %s differ: one has no double precision",
                    first->info.name, group->member[i]->info.name);
            return ki_hint("a group of devices of one kind");
        }
    return KILN_OK;
}

/* Lets the members read each other's memory, where the backend can. */
static kiln_status introduce(struct ki_group *group) {
    kiln_device *first = group->member[0];
    kiln_status status = KILN_OK;
    for (int i = 1; i < group->count && first->backend->meet; i++) {
        bool direct = false, back = false;
        TRY(first->backend->meet(group->member[i], first, &direct));
        TRY(first->backend->meet(first, group->member[i], &back));
        if (!direct || !back)
            ki_device_message(first, "devices %s and %s reach each other through host memory only",
                              group->name, group->member[i]->info.name);
    }
done:
    return status;
}

/* The first member's info becomes the group's. */
static void describe(struct ki_group *group, const char *name) {
    kiln_device_info *info = &group->member[0]->info;
    char one[sizeof info->description];
    memcpy(one, info->description, sizeof one);
    snprintf(group->name, sizeof group->name, "%s", info->name);
    snprintf(info->name, sizeof info->name, "%s", name);
    snprintf(info->description, sizeof info->description, "%d x %.140s", group->count, one);
    for (int i = 1; i < group->count; i++) {
        info->memory += group->member[i]->info.memory;
        info->threads += group->member[i]->info.threads;
    }
}

static void close_members(struct ki_group *group, int first) {
    while (group->count > first) kiln_device_close(group->member[--group->count]);
}

kiln_status ki_group_open(kiln_device **device, const char *name, const kiln_device_options *options) {
    struct ki_group *group = NULL;
    struct names *names = ki_alloc(sizeof *names);
    kiln_status status;
    if (!names) return ki_fail_nomem(sizeof *names, "a group of devices");
    TRY(strlen(name) < sizeof group->member[0]->info.name ? KILN_OK : fail_name(name));
    TRY(list_names(names, name));
    group = ki_calloc(sizeof *group);
    if (!group) TRY(ki_fail_nomem(sizeof *group, "a group of devices"));
    TRY(open_members(group, name, names, options));
    TRY(check_alike(group));
    if (group->count == 1) {
        *device = group->member[0];
        group->count = 0;
        goto done;
    }
    describe(group, name);
    TRY(introduce(group));
    group->member[0]->group = group;
    *device = group->member[0];
    group = NULL;
done:
    if (group) close_members(group, 0);
    ki_free(group);
    ki_free(names);
    return status;
}

void ki_group_close(kiln_device *device) {
    if (!device->group) return;
    if (device->group->united)
        device->backend->part(device->group->united, ki_group_alive(device) == KILN_OK);
    close_members(device->group, 1);
    ki_free(device->group);
    device->group = NULL;
}

kiln_status ki_group_fail(const kiln_device *device, int member, const struct ki_error_copy *error) {
    const struct ki_group *group = device->group;
    struct ki_error_copy told = *error;
    snprintf(told.message, sizeof told.message, "%s, member %d of %d (%s): %.*s", device->info.name,
             member + 1, group->count, member ? group->member[member]->info.name : group->name,
             (int)sizeof told.message - 128, error->message);
    return ki_error_renew(&told);
}

kiln_status ki_group_alive(const kiln_device *device) {
    kiln_status status = ki_device_alive(device);
    for (int i = 1; device->group && i < device->group->count && status == KILN_OK; i++)
        status = ki_device_alive(device->group->member[i]);
    return status;
}

kiln_status ki_group_sync(kiln_device *device) {
    kiln_status status = KILN_OK;
    for (int i = 1; device->group && i < device->group->count && status == KILN_OK; i++)
        status = kiln_device_sync(device->group->member[i]);
    return status;
}

void ki_group_statistics(kiln_device_statistics *sum, const kiln_device *device) {
    *sum = device->statistics;
    for (int i = 1; device->group && i < device->group->count; i++) {
        const kiln_device_statistics *s = &device->group->member[i]->statistics;
        sum->bytes_up += s->bytes_up;
        sum->bytes_down += s->bytes_down;
        sum->transfer_seconds = fmax(sum->transfer_seconds, s->transfer_seconds);
        sum->build_seconds = fmax(sum->build_seconds, s->build_seconds);
        sum->kernels_built += s->kernels_built;
        sum->kernels_cached += s->kernels_cached;
        sum->memory_used += s->memory_used;
        sum->memory_peak += s->memory_peak;
        sum->evictions += s->evictions;
        sum->panels += s->panels;
        sum->panel_bytes += s->panel_bytes;
        sum->panel_seconds = fmax(sum->panel_seconds, s->panel_seconds);
        sum->panel_wait_seconds = fmax(sum->panel_wait_seconds, s->panel_wait_seconds);
        sum->layout_seconds = fmax(sum->layout_seconds, s->layout_seconds);
        sum->layout_bytes += s->layout_bytes;
    }
}

kiln_status ki_device_after(kiln_device *device, kiln_device *other) {
    if (device == other || !device->backend->after) return KILN_OK;
    kiln_status status = ki_device_alive(other);
    if (status == KILN_OK) status = ki_device_alive(device);
    return status == KILN_OK ? device->backend->after(device, other) : status;
}

kiln_status ki_device_copy(kiln_device *queue, kiln_device *to_device, struct ki_buffer *to,
                           int64_t to_offset, kiln_device *from_device, const struct ki_buffer *from,
                           int64_t from_offset, int64_t bytes) {
    kiln_status status;
    void *memory;
    if (bytes == 0) return KILN_OK;
    TRY(ki_device_alive(to_device));
    TRY(ki_device_alive(from_device));
    if (queue->backend->copy) return queue->backend->copy(queue, to, to_offset, from, from_offset, bytes);
    TRY(ki_device_staging(to_device, KI_STAGING_COPY, &memory, bytes));
    TRY(ki_device_download(from_device, memory, from, from_offset, bytes));
    TRY(ki_device_upload(to_device, to, to_offset, memory, bytes));
done:
    return status;
}

/* Seconds, and a byte's: NCCL's all-reduce between two H200s (8 MB in 49 us, 64 MB in 239, 240 MB in 798); a
 * copy from GPU to GPU there (393 GB/s) and its sum, which the first member does for each other one in
 * turn. */
static const double COLLECTIVE = 36e-6, COLLECTIVE_BYTE = 3.2e-12, COPY = 8e-6, COPY_BYTE = 2.55e-12,
                    ADD_BYTE = 0.75e-12;

double ki_group_copy_seconds(const kiln_device *device, int64_t bytes) {
    return device->backend->copy ? (double)bytes * COPY_BYTE : 0;
}

bool ki_group_collects(kiln_device *device, int64_t bytes) {
    struct ki_group *group = device->group;
    const double amount = (double)bytes, copies = group->count - 1;
    const bool sooner =
        COLLECTIVE + amount * COLLECTIVE_BYTE < copies * (COPY + amount * (COPY_BYTE + ADD_BYTE));
    if (!device->backend->unite || (!sooner && bytes < ki_limits.collective_bytes)) return false;
    if (!group->asked) group->united = device->backend->unite(group->member, group->count);
    group->asked = true;
    return group->united != NULL;
}

kiln_status ki_group_sum(kiln_device *device, const struct ki_buffer *const *buffers, int64_t count,
                         kiln_type type) {
    const kiln_status status = ki_group_alive(device);
    if (status != KILN_OK) return status;
    return device->backend->sum(device->group->member, device->group->united, buffers, count, type);
}

kiln_status ki_group_spread(kiln_device *device, const struct ki_buffer *const *buffers, int64_t count,
                            kiln_type type) {
    const kiln_status status = ki_group_alive(device);
    if (status != KILN_OK) return status;
    return device->backend->spread(device->group->member, device->group->united, buffers, count, type);
}
