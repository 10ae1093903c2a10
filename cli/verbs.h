/* One function a verb, in the file of that name. Each returns the exit code. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "options.h"

struct run;

/* For descriptions. */
#define DATA_FORMATS                                                                                         \
    "DATA is a LIBSVM, Matrix Market, CSV, npy or npz file, plain or through gzip or zstd; - is standard "   \
    "input, which is read once."
#define TRAINING_SUMMARY                                                                                     \
    "A summary goes to standard output, progress to standard error. Without -o the model is trained and "    \
    "reported, and not kept. The first Ctrl-C stops at the next iteration and keeps what there is; the "     \
    "second stops at once."

int verb_predict(struct run *run);
int verb_evaluate(struct run *run);
int verb_statistics(struct run *run);
int verb_verify(struct run *run);
int verb_info(struct run *run);
int verb_recommend(struct run *run);
int verb_coefficients(struct run *run);
int verb_convert(struct run *run);
int verb_mmchain(struct run *run);
int verb_sddmm(struct run *run);
int verb_devices(struct run *run);
int verb_doctor(struct run *run);
int verb_kernels(struct run *run);
int verb_explain(struct run *run);
int verb_tune(struct run *run);
int verb_completion(struct run *run);
int verb_man(struct run *run);
int verb_help(struct run *run);
int verb_version(struct run *run);

/* Options of their own. */
enum { STATISTICS_OPTIONS = 4, KERNELS_OPTIONS = 3, MMCHAIN_OPTIONS = 4, SDDMM_OPTIONS = 3 };
extern const struct option statistics_options[STATISTICS_OPTIONS], kernels_options[KERNELS_OPTIONS],
    mmchain_options[MMCHAIN_OPTIONS], sddmm_options[SDDMM_OPTIONS];

#endif
