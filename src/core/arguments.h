/* A kernel gets its arguments from one list, which its parameters come from too, so that neither their number
 * nor their order can differ. <file>.cl begins with it:
 *
 *   #define ARGUMENTS_fill(FIRST, NEXT) FIRST(OUT, real, W) NEXT(VALUE, long, count) NEXT(VALUE, real, value)
 *   #ifndef KI_HOST
 *   __kernel void fill(PARAMETERS(fill)) { ...                                            dialect/arguments.h
 *   #endif
 *
 * The host's file includes <file>.cl, of which it sees the lists, and says
 *
 *   KI_ARGUMENTS(fill);
 *   ki_kernel_launch(device, kernel, groups, GROUP,
 *                    KI_PACK(fill, W, .W = W, .count = W->nnz, .value = value));
 *
 * What is not named is 0 or a null pointer. An entry is a kind, the kernel's type and a name:
 *   IN, OUT       the values of a matrix, which the launch brings to the device; OUT where they are written
 *   KEPT          the values of a matrix that is there and held, narrow ones as they are (dialect/stored.h)
 *   TABLE, SPACE  a buffer that is there; SPACE where the kernel writes it
 *   VALUE         a number: int, long, real (as the elements) or wide (the device's widest)
 *   SIXTEEN       sixteen of these, name0 ... name15 to the kernel, an array to the host
 * A list may contain another, ARGUMENTS_part(NEXT, NEXT), or be appended to one as a build or a plan has
 * it. */
#ifndef KI_ARGUMENTS_H
#define KI_ARGUMENTS_H
#define KI_HOST

#include "core/kernels/kernels.h"

/* struct K_arguments, K_pack, which writes to to[0 .. K_count) and returns `to`. `like` is a matrix of the
 * elements' type on the device. */
#define KI_ARGUMENTS(kernel)                                                                                 \
    struct kernel##_arguments {                                                                              \
        ARGUMENTS_##kernel(KI_FIELD, KI_FIELD)                                                               \
    };                                                                                                       \
    static inline struct ki_arg *kernel##_pack(struct ki_arg *to, const kiln_matrix *like,                   \
                                               const struct kernel##_arguments *from) {                      \
        struct ki_arg *next = to;                                                                            \
        (void)like;                                                                                          \
        ARGUMENTS_##kernel(KI_PACK_ONE, KI_PACK_ONE) return to;                                              \
    }                                                                                                        \
    enum { kernel##_count = 0 ARGUMENTS_##kernel(KI_COUNT, KI_COUNT) }

/* The last two arguments of a launch: the packed list, which lives as long as the block around, and its
 * length. */
#define KI_PACK(kernel, like, ...)                                                                           \
    kernel##_pack((struct ki_arg[kernel##_count]){{0}}, like, &(struct kernel##_arguments){__VA_ARGS__}),    \
        kernel##_count

/* The same for a kernel that takes so much local memory, as its last argument. */
#define KI_PACK_LOCAL(kernel, like, bytes, ...)                                                              \
    kernel##_pack((struct ki_arg[kernel##_count + 1]){[kernel##_count] = ki_arg_local(bytes)}, like,         \
                  &(struct kernel##_arguments){__VA_ARGS__}),                                                \
        kernel##_count + 1

#define KI_FIELD(kind, type, name) KI_FIELD_##kind(type, name)
#define KI_FIELD_IN(type, name) const kiln_matrix *name;
#define KI_FIELD_OUT(type, name) kiln_matrix *name;
#define KI_FIELD_KEPT(type, name) const kiln_matrix *name;
#define KI_FIELD_TABLE(type, name) const struct ki_buffer *name;
#define KI_FIELD_SPACE(type, name) const struct ki_buffer *name;
#define KI_FIELD_VALUE(type, name) KI_HOST_##type name;
#define KI_FIELD_SIXTEEN(type, name) KI_HOST_##type name[16];
#define KI_HOST_int int32_t
#define KI_HOST_long int64_t
#define KI_HOST_real double
#define KI_HOST_wide double

#define KI_PACK_ONE(kind, type, name) KI_PACK_##kind(type, name)
#define KI_PACK_IN(type, name) *next++ = ki_arg_read(from->name);
#define KI_PACK_OUT(type, name) *next++ = ki_arg_written(from->name);
#define KI_PACK_KEPT(type, name) *next++ = ki_arg_kept(from->name);
#define KI_PACK_TABLE(type, name) *next++ = ki_arg_buffer(from->name);
#define KI_PACK_SPACE(type, name) *next++ = ki_arg_buffer(from->name);
#define KI_PACK_VALUE(type, name) *next++ = KI_VALUE_##type(from->name);
#define KI_PACK_SIXTEEN(type, name)                                                                          \
    for (int each = 0; each < 16; each++) *next++ = KI_VALUE_##type(from->name[each]);
#define KI_VALUE_int(value) ki_arg_i32(value)
#define KI_VALUE_long(value) ki_arg_i64(value)
#define KI_VALUE_real(value) ki_arg_real(like->type, value)
#define KI_VALUE_wide(value) ki_arg_real(ki_wide_type(like->device), value)

#define KI_COUNT(kind, type, name) KI_COUNT_##kind
#define KI_COUNT_IN +1
#define KI_COUNT_OUT +1
#define KI_COUNT_KEPT +1
#define KI_COUNT_TABLE +1
#define KI_COUNT_SPACE +1
#define KI_COUNT_VALUE +1
#define KI_COUNT_SIXTEEN +16

#endif
