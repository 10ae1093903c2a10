/* Opening a group's members, and what moves between them. */
#include "core/group/group.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/limits.h"
#include "core/seams.h"
#include "core/size.h"

static bool names_cpu(const char *name) {
    const size_t length = strcspn(name, ":");
    return length == strlen(ki_backend_cpu.name) && strncmp(name, ki_backend_cpu.name, length) == 0;
}

/* Each item of a list is another device, or the same one in parts. */
static kiln_status check_once(const struct ki_group *group, const struct ki_names *names, const int *item) {
    const kiln_device *last = group->member[group->count - 1];
    for (int i = 0; i < group->count - 1; i++)
        if (item[i] != item[group->count - 1] && strcmp(group->member[i]->info.name, last->info.name) == 0) {
            ki_fail(KILN_ERR_ARGUMENT, "device '%s' has %s twice", names->group, last->info.name);
            return ki_hint("%s*2 makes two parts of one device", last->info.name);
        }
    return KILN_OK;
}

/* Every member has the budget that was given. CPUs share the threads, and so do the others. The first, where
 * matrices lie, is no CPU if there is another device: then a member's memory is its own, whichever it is. */
static kiln_status open_members(struct ki_group *group, const struct ki_names *names,
                                const kiln_device_options *options) {
    kiln_status status = KILN_OK;
    int item[KI_MEMBERS], kind[2] = {0, 0};
    const int threads = options->threads ? options->threads : ki_default_threads();
    for (int i = 0; i < names->count; i++) kind[names_cpu(names->name[i])]++;
    for (int cpu = 0; cpu < 2; cpu++)
        for (int i = 0; i < names->count; i++) {
            kiln_device_options own = *options;
            if (names_cpu(names->name[i]) != (cpu == 1)) continue;
            own.threads = (int)ki_max(threads / kind[cpu], 1);
            TRY(kiln_device_open(&group->member[group->count], names->name[i], &own));
            item[group->count] = names->item[i];
            group->share[group->count++] = names->share[i];
            TRY(check_once(group, names, item));
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
            return ki_hint("a group of devices that all have it");
        }
    return KILN_OK;
}

/* Lets the members read each other's memory, where the backend can. */
static kiln_status introduce(struct ki_group *group) {
    kiln_device *first = group->member[0];
    kiln_status status = KILN_OK;
    for (int i = 1; i < group->count; i++) {
        bool direct = false, back = false;
        if (!first->backend->meet || group->member[i]->backend != first->backend) continue;
        TRY(first->backend->meet(group->member[i], first, &direct));
        TRY(first->backend->meet(first, group->member[i], &back));
        if (!direct || !back)
            ki_device_message(first, "devices %s and %s reach each other through host memory only",
                              group->own.name, group->member[i]->info.name);
    }
done:
    return status;
}

static bool alike(const kiln_device *a, const kiln_device *b) {
    return a->backend == b->backend && strcmp(a->info.description, b->info.description) == 0;
}

/* "2 x NVIDIA H200, ...; CPU, ...": what stands next to each other in the group and is alike comes once. */
static void list_kinds(char *text, size_t size, const struct ki_group *group) {
    size_t used = 0;
    for (int i = 0, same; i < group->count && used < size; i += same) {
        for (same = 1; i + same < group->count && alike(group->member[i], group->member[i + same]);) same++;
        const char *kind = group->member[i]->info.description;
        const int length = same > 1
                               ? snprintf(text + used, size - used, "%s%d x %s", i ? "; " : "", same, kind)
                               : snprintf(text + used, size - used, "%s%s", i ? "; " : "", kind);
        used += (size_t)length;
    }
}

/* The first member's info becomes the group's. Threads are those of its kind. */
static void describe(struct ki_group *group, const char *name) {
    kiln_device_info *info = &group->member[0]->info;
    char all[sizeof info->description];
    group->own = *info;
    list_kinds(all, sizeof all, group);
    for (int i = 1; i < group->count; i++) {
        const kiln_device *member = group->member[i];
        group->unlike |= !alike(group->member[0], member);
        info->memory += member->info.memory;
        if (ki_on_cpu(member) == ki_on_cpu(group->member[0])) info->threads += member->info.threads;
    }
    snprintf(info->name, sizeof info->name, "%s", name);
    memcpy(info->description, all, sizeof all);
}

static void close_members(struct ki_group *group, int first) {
    while (group->count > first) kiln_device_close(group->member[--group->count]);
}

kiln_status ki_group_open(kiln_device **device, const char *name, const kiln_device_options *options) {
    struct ki_group *group = NULL;
    struct ki_names *names = ki_alloc(sizeof *names);
    kiln_status status;
    if (!names) return ki_fail_nomem(sizeof *names, "a group of devices");
    TRY(strlen(name) < sizeof group->member[0]->info.name ? KILN_OK : ki_group_fail_name(name));
    TRY(ki_group_names(names, name));
    group = ki_calloc(sizeof *group);
    if (!group) TRY(ki_fail_nomem(sizeof *group, "a group of devices"));
    TRY(open_members(group, names, options));
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
             member + 1, group->count, member ? group->member[member]->info.name : group->own.name,
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
    if (device == other || device->backend != other->backend || !device->backend->after) return KILN_OK;
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
    if (to_device->backend == from_device->backend && queue->backend->copy)
        return queue->backend->copy(queue, to, to_offset, from, from_offset, bytes);
    if (ki_on_cpu(to_device))
        return ki_device_download(from_device, (char *)ki_host(to) + to_offset, from, from_offset, bytes);
    if (ki_on_cpu(from_device))
        return ki_device_upload(to_device, to, to_offset, (char *)ki_host(from) + from_offset, bytes);
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

/* Returns whether all members are of one backend, which then moves what they exchange. */
static bool of_one_backend(const struct ki_group *group) {
    for (int i = 1; i < group->count; i++)
        if (group->member[i]->backend != group->member[0]->backend) return false;
    return true;
}

double ki_group_copy_seconds(const kiln_device *device, int64_t bytes) {
    return device->backend->copy && of_one_backend(device->group) ? (double)bytes * COPY_BYTE : 0;
}

bool ki_group_collects(kiln_device *device, int64_t bytes) {
    struct ki_group *group = device->group;
    const double amount = (double)bytes, copies = group->count - 1;
    const bool sooner =
        COLLECTIVE + amount * COLLECTIVE_BYTE < copies * (COPY + amount * (COPY_BYTE + ADD_BYTE));
    if (!device->backend->unite || !of_one_backend(group) || (!sooner && bytes < ki_limits.collective_bytes))
        return false;
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
