/* Public structs that may grow. Each begins with `size_t size`, the caller's sizeof, and fields are only
 * ever appended; so a program and a library of different releases agree on what both know.
 *
 * Nothing of the caller's beyond its size is read or written. The library works on a full struct of its
 * own. */
#ifndef KI_SIZED_H
#define KI_SIZED_H

#include <stddef.h>

#include "core/status.h"

/* The last field of the first release's layout, which a size of 0 stands for. A field that is appended
 * changes nothing here. */
#define KI_LAST_kiln_device_options message_user
#define KI_LAST_kiln_device_info has_f64
#define KI_LAST_kiln_device_statistics layout_bytes
#define KI_LAST_kiln_probe hint
#define KI_LAST_kiln_pack_options threads
#define KI_LAST_kiln_memory user
#define KI_LAST_kiln_loss offset
#define KI_LAST_kiln_cg curvature
#define KI_LAST_kiln_ratio under_row
#define KI_LAST_kiln_sample B
#define KI_LAST_kiln_guttman weights
#define KI_LAST_kiln_ranks layout
#define KI_LAST_kiln_assignment first
#define KI_LAST_kiln_read_options groups
#define KI_LAST_kiln_row_model link_power
#define KI_LAST_kiln_row_lists top
#define KI_LAST_kiln_report solver
#define KI_LAST_kiln_linreg_options solver
#define KI_LAST_kiln_logreg_options solver
#define KI_LAST_kiln_glm_options l1
#define KI_LAST_kiln_svm_options solver
#define KI_LAST_kiln_path_options user
#define KI_LAST_kiln_verify_options standardize
#define KI_LAST_kiln_verification gap
#define KI_LAST_kiln_glm_verification errors_rounding
#define KI_LAST_kiln_hits_options solver
#define KI_LAST_kiln_mds_options control
#define KI_LAST_kiln_mds_verification fall
#define KI_LAST_kiln_hits_verification hubs
#define KI_LAST_kiln_pagerank_options layout
#define KI_LAST_kiln_pagerank_verification sum
#define KI_LAST_kiln_ranking rows
#define KI_LAST_kiln_factor_rows steps
#define KI_LAST_kiln_als_options control
#define KI_LAST_kiln_als_verification rmse
#define KI_LAST_kiln_sfa_options control
#define KI_LAST_kiln_svd_options control
#define KI_LAST_kiln_svd_verification components
#define KI_LAST_kiln_kmeans_options control
#define KI_LAST_kiln_kmeans_verification weights
#define KI_LAST_kiln_dirichlet logs
#define KI_LAST_kiln_gap_options control
#define KI_LAST_kiln_lda_options control
#define KI_LAST_kiln_topics_verification objective
#define KI_LAST_kiln_checkpoint_options resume
#define KI_LAST_kiln_checkpoint_info problem
#define KI_LAST_kiln_solver why
#define KI_LAST_kiln_work trial
#define KI_LAST_kiln_choose_options user
#define KI_LAST_kiln_metrics_options columns
#define KI_LAST_kiln_inference_options group_count
#define KI_LAST_kiln_coefficient dependent
#define KI_LAST_kiln_comparison ratio_p

struct ki_layout {
    const char *name;
    size_t first, now; /* bytes: of the first release, without padding at its end; of this one */
};
#define KI_LAYOUT(type)                                                                                      \
    (&(const struct ki_layout){                                                                              \
        #type, offsetof(type, KI_LAST_##type) + sizeof(((type *)NULL)->KI_LAST_##type), sizeof(type)})

/* *own = what the caller gave, with the fields that it does not know 0; all 0 if given is NULL. own->size =
 * sizeof *own.
 * ERR_ARGUMENT: an impossible size. ERR_UNSUPPORTED: fields that this library does not know are not 0. */
#define KI_TAKE(type, own, given)                                                                            \
    ki_take(1 ? (own) : (type *)NULL, 1 ? (given) : (const type *)NULL, KI_LAYOUT(type))
/* The size of a result that is to be filled; NULL passes. To be called before work begins. */
#define KI_CHECK_RESULT(type, given) ki_check_size(1 ? (given) : (const type *)NULL, KI_LAYOUT(type))
/* *given = *own as far as the caller's struct reaches, but for its size; fields beyond *own become 0. given
 * may be NULL. */
#define KI_GIVE(type, given, own)                                                                            \
    ki_give(1 ? (given) : (type *)NULL, 1 ? (own) : (const type *)NULL, KI_LAYOUT(type))
/* *given = a list of *count rows that lie `size` bytes apart, the caller's sizeof, from a list of full ones
 * that ki_free takes and that this call takes over. */
#define KI_GIVE_ROWS(type, given, count, size, rows, listed)                                                 \
    ki_give_rows(1 ? (void **)(given) : (void **)(type **)NULL, (count), (size), 1 ? (rows) : (type *)NULL,  \
                 (listed), KI_LAYOUT(type))

kiln_status ki_take(void *own, const void *given, const struct ki_layout *layout);
kiln_status ki_check_size(const void *given, const struct ki_layout *layout);
void ki_give(void *given, const void *own, const struct ki_layout *layout);
kiln_status ki_give_rows(void **given, int64_t *count, size_t size, void *rows, int64_t listed,
                         const struct ki_layout *layout);

/* These are of the headers that stand apart. */
#define KI_LAST_kiln_codes code_bytes
#define KI_LAST_kiln_storage element
#define KI_LAST_kiln_transport sum

#endif
