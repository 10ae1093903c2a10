/* A sum by a tree of pairs, the same for as many processes, so that it has the same bits: process 0 waits for
 * log2 of them. The plug-in for MPI takes it, too, so this knows nothing of the library. */
#ifndef KI_TREE_H
#define KI_TREE_H

#include <stdint.h>

struct ki_tree {
    int rank, count;
    void *of, *part; /* of: the functions' own; part: room for what another process sends */
    int (*send)(void *of, int to, const void *bytes, int64_t count);
    int (*receive)(void *of, int from, void *bytes, int64_t count);
};

static inline void ki_tree_add(void *to, const void *from, int64_t count, int real_bytes) {
    for (int64_t i = 0; i < count; i++)
        if (real_bytes == 4)
            ((float *)to)[i] += ((const float *)from)[i];
        else
            ((double *)to)[i] += ((const double *)from)[i];
}

static inline int ki_tree_sum(const struct ki_tree *tree, void *numbers, int64_t count, int real_bytes) {
    const int64_t bytes = count * real_bytes;
    for (int apart = 1; apart < tree->count; apart *= 2) {
        if (tree->rank & apart) return tree->send(tree->of, tree->rank - apart, numbers, bytes);
        if (tree->rank + apart >= tree->count) continue;
        const int code = tree->receive(tree->of, tree->rank + apart, tree->part, bytes);
        if (code) return code;
        ki_tree_add(numbers, tree->part, count, real_bytes);
    }
    return 0;
}

#endif
