/* kiln svd: the largest singular triples. */
#include "decompose.h"

const struct verb verb_of_svd = {
    "svd",
    "DATA...",
    1,
    MAX_ARGUMENTS,
    NULL,
    "Find the largest singular values and vectors",
    "Truncated singular value decomposition: the K largest s with A v = s u and A'u = s v, for A = DATA as "
    "they are, or with --center and --scale about their columns' means and in their deviations. Of "
    "documents this is latent semantic analysis. The signs are such that in each v the entry of the largest "
    "size is positive.\n\n" DECOMPOSE_DATA,
    "kiln svd docword.kos.txt -k 50 -o topics.kiln --vectors words.csv\n"
    "kiln svd mnist.npy -k 50 --json\n"
    "kiln predict topics.kiln new.txt",
    DECOMPOSE_VERB,
};
