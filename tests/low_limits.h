/* Limits so low that the shapes of the tests cross each of them (core/limits.h). */
#ifndef LOW_LIMITS_H
#define LOW_LIMITS_H

#include "core/limits.h"

static const struct ki_limits low_limits = {
    .index32 = 4096,
    .due = 1,
    .rows_entries = 16,
    .columns_entries = 64,
    .sampled_entries = 100,
    .cached_bytes = 1 << 10,
    .gathered_bytes = 256,
    .gathered_slice = 32,
    .gathered_entries = 1,
    .vector_entries = 64,
    .collective_bytes = 1,
    .ranked_bytes = 1 << 10,
    .popular_columns = 48,
    .panel_bits = 6,
    .panel_height = 16,
    .piece = 200,
    .segment = 24,
    .segmented_least = 24,
    .segmented_most = 40,
    .launch_entries = 16,
    .band_bytes = 128,
    .band_entries = 2,
    .chip_bytes = 256,
    .chip_bytes_cpu = 256,
    .gram_columns = INT64_MAX,
    .cpu_columns = 32,
    .cpu_exact_bytes = 256,
    .cpu_panel_bits = 4,
    .ordered_rows = 1 << 8,
    .cpu_past_bytes = 1 << 8,
    .cpu_cached_lines = 8,
};

#endif
