/* Several devices under one name: "cuda:0,1", "cuda:all", "cpu,cuda:0", "cpu*3".
 *
 * The group's handle is its first member, and a matrix on the group lies there as on any device. Passes over
 * X are split over the members (pass/group.c); core only opens them and copies between them. Members of one
 * backend copy as that can, others through host memory. In a group of CPUs alone the members share it. */
#ifndef KI_GROUP_H
#define KI_GROUP_H

#include "core/device.h"
#include "kiln/tune.h"

enum { KI_MEMBERS = 64, KI_MEMBER_NAME = 32 };

struct ki_group {
    int count;
    kiln_device *member[KI_MEMBERS]; /* the first is the device whose group this is */
    kiln_device_info own;            /* the first's, whose info is the group's */
    void *united; /* the backend's collectives over the members; NULL = not asked for yet, or none */
    bool asked;
    bool unlike;              /* members differ in backend or model: X is not shared out evenly */
    double share[KI_MEMBERS]; /* of X, as the name says: parts of their sum; 0: it says nothing */
    kiln_sharing sharing;     /* what it has shared so far */
};

/* The devices that a group's name lists (names.c). */
struct ki_names {
    const char *group;
    int count;
    char name[KI_MEMBERS][KI_MEMBER_NAME];
    int item[KI_MEMBERS]; /* of the list, which the name comes from */
    double share[KI_MEMBERS];
};
kiln_status ki_group_names(struct ki_names *names, const char *group);
kiln_status ki_group_fail_name(const char *group);

/* Returns whether that is the name of a group. */
bool ki_group_named(const char *name);
/* Opens its devices; a list of one is that device. */
kiln_status ki_group_open(kiln_device **device, const char *name, const kiln_device_options *options);
/* The members behind the first, at its close. */
void ki_group_close(kiln_device *device);
/* ERR_DEVICE_LOST if one is. */
kiln_status ki_group_alive(const kiln_device *device);
kiln_status ki_group_sync(kiln_device *device);
/* The members' statistics added up; of times, which pass side by side, the longest. */
void ki_group_statistics(kiln_device_statistics *sum, const kiln_device *device);
/* An error's record, once more, with the member that it happened on. */
kiln_status ki_group_fail(const kiln_device *device, int member, const struct ki_error_copy *error);

/* Work queued on `device` from now on begins after the work that `other` has been given so far: copies
 * between them, and kernels that use what was copied, need it where a backend copies without waiting. */
kiln_status ki_device_after(kiln_device *device, kiln_device *other);
/* Queues a copy behind the work of `queue`, one of the two devices; through host memory, and at once, where
 * there is no other way between them. */
kiln_status ki_device_copy(kiln_device *queue, kiln_device *to_device, struct ki_buffer *to,
                           int64_t to_offset, kiln_device *from_device, const struct ki_buffer *from,
                           int64_t from_offset, int64_t bytes);

/* Seconds that a copy of so many bytes is under way from one member to another, both of which go on
 * computing; 0 where they do not. */
double ki_group_copy_seconds(const kiln_device *device, int64_t bytes);
/* Returns whether sums and copies of so many bytes to all members go by the backend's collectives and not
 * from member to member: where it has some, and is predicted to be through sooner. The first such question
 * connects the members, which takes tenths of a second. */
bool ki_group_collects(kiln_device *device, int64_t bytes);
/* Does what ki_group_collects has said yes to: buffers of each member in turn, then NULL, queued on all.
 * sum: the first's += the others'; spread: theirs = the first's. */
kiln_status ki_group_sum(kiln_device *device, const struct ki_buffer *const *buffers, int64_t count,
                         kiln_type type);
kiln_status ki_group_spread(kiln_device *device, const struct ki_buffer *const *buffers, int64_t count,
                            kiln_type type);

#endif
