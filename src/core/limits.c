/* The limits in force, measured on an H200 and on EPYC processors (bench/results). */
#include "core/limits.h"

struct ki_limits ki_limits = {
    .index32 = INT32_MAX,
    .due = 2,
    .rows_entries = 1 << 16,
    .columns_entries = 1 << 20,
    .cached_bytes = 20 << 20,
    .gathered_bytes = 60 << 20,
    .gathered_slice = 512,
    .gathered_entries = 20,
    .popular_columns = 1 << 21,
    .panel_bits = 21,
    .panel_height = 2048,
    .piece = 8192,
    .segment = 2048,
    .segmented_least = 256,
    .segmented_most = 1024,
    .launch_entries = 1 << 20,
    .band_bytes = 1 << 16,
    .band_entries = 16,
    .chip_bytes = 128 << 10,
    .chip_bytes_cpu = 32 << 10,
    .cpu_columns = 1 << 18,
    .cpu_exact_bytes = 1 << 20,
    .cpu_panel_bits = 15,
    .cpu_cached_lines = 1 << 14,
};
