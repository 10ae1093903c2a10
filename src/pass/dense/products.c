/* X Y and X^T Y of a dense X and many columns of y on a GPU (products.cl). */
#include "core/arguments.h"
#include "core/narrow/narrow.h"
#include "core/size.h"
#include "pass/dense/products.cl"
#include "pass/dense/variants.h"

KI_ARGUMENTS(products);

enum { SIDE = 16, GROUP = SIDE * SIDE, DEPTH = 16 };

bool ki_dense_multiplies(const struct ki_chain *chain) {
    const bool product = chain->kind == KI_CHAIN_PLAIN || chain->kind == KI_CHAIN_TRANSPOSED;
    return product && chain->k > 8 && chain->X->cols > 0 && chain->X->rows > 0;
}

/* Rows of a thread; a CPU's compiler takes minutes for tall tiles. */
static int tall_of(const struct ki_chain *chain) {
    return chain->X->device->properties.is_gpu ? 8 : 2;
}

/* Columns of a thread: as few tiles as there can be, of f64 half as wide, as a sum takes two registers. */
static int wide_of(const struct ki_chain *chain) {
    const int most = !chain->X->device->properties.is_gpu ? 2 : chain->X->type == KILN_F64 ? 4 : 8;
    return (int)ki_min(ki_power_of_two(ki_ceil_div(chain->k, SIDE)), most);
}

static const char *defines_of(char text[KI_DEFINES_MOST], const struct ki_chain *chain) {
    return ki_defines(text, "-DTRANSPOSED=%d -DTALL=%d -DWIDE=%d%s%s", chain->kind == KI_CHAIN_TRANSPOSED,
                      tall_of(chain), wide_of(chain), ki_element_define(chain->X), ki_index_define(chain, 0));
}

void ki_dense_products_programs(struct ki_programs *programs, const struct ki_chain *chain) {
    char text[KI_DEFINES_MOST];
    ki_programs_add(programs, "products", "dense_products", chain->X->type, defines_of(text, chain));
}

kiln_status ki_dense_products(int64_t *splits, struct ki_buffer *partials, const struct ki_chain *chain) {
    const kiln_matrix *X = chain->X;
    const bool transposed = chain->kind == KI_CHAIN_TRANSPOSED;
    const int64_t across = ki_ceil_div(chain->k, SIDE * wide_of(chain));
    const int64_t down = ki_ceil_div(transposed ? X->cols : X->rows, SIDE * tall_of(chain)),
                  tiles = across * down;
    struct ki_kernel *kernel;
    char text[KI_DEFINES_MOST];
    int64_t groups, bytes = 0;
    kiln_status status;
    TRY(ki_kernel_get(&kernel, X->device, "products", "dense_products", X->type, defines_of(text, chain)));
    TRY(ki_kernel_resident(X->device, &groups, kernel, GROUP));
    *splits = !transposed ? 1 : ki_max(ki_min(groups / tiles, ki_ceil_div(X->rows, 4 * DEPTH)), 1);
    if (transposed && (!ki_mul3(*splits * chain->k, X->cols, ki_type_bytes(X->type), &bytes)))
        return ki_fail(KILN_ERR_ARGUMENT, "the partial results overflow: %lld columns", (long long)X->cols);
    if (transposed) TRY(ki_device_scratch(X->device, partials, bytes));
    TRY(ki_kernel_launch(X->device, kernel, tiles * *splits, GROUP,
                         KI_PACK(products, X, .out = transposed ? partials : &chain->out->values, .X = X,
                                 .y = chain->y, .z = chain->z, .alpha = chain->alpha, .beta = chain->beta,
                                 .rows = X->rows, .n = (int32_t)X->cols, .k = chain->k,
                                 .across = (int32_t)across, .tiles = (int32_t)tiles,
                                 .splits = (int32_t)*splits)));
done:
    return status;
}
