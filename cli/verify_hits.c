/* What a ranking claims: that one more iteration over the same graph would hardly change it. */
#include <math.h>

#include "hits.h"
#include "verify.h"

struct ranks {
    kiln_matrix *hubs, *authorities;
    kiln_hits_verification found;
};

static int read_graph(struct run *run, struct verifying *v, struct ranks *ranks) {
    kiln_type type = KILN_F64;
    int64_t hubs, authorities, columns;
    if (!model_tensor_shape(v->model, "hubs", &type, &hubs, &columns) ||
        !model_tensor_shape(v->model, "authorities", &type, &authorities, &columns) ||
        isnan(verify_number(v->report, "eigenvalue")))
        return verify_no_claims();
    int code = run_open_device(run, "cpu");
    if (!code) code = run_read(run, &v->data, run->arguments[1], type, NULL);
    if (code) return code;
    const kiln_matrix *A = kiln_data_X(v->data);
    if (hubs != kiln_matrix_rows(A) || authorities != kiln_matrix_cols(A) ||
        !hits_same_vertices(v->model, v->data))
        return fail_with(KILN_ERR_MODEL, USING_MODEL, "the graph that was ranked is needed",
                         "%s is no ranking of the vertices of %s", run->arguments[0], run->arguments[1]);
    if (kiln_model_tensor(&ranks->hubs, run->device, type, v->model, "hubs") != KILN_OK ||
        kiln_model_tensor(&ranks->authorities, run->device, type, v->model, "authorities") != KILN_OK)
        return fail_library(USING_MODEL);
    return 0;
}

static int judge(struct run *run, struct verifying *v, struct ranks *ranks) {
    const kiln_hits_options options = {.norm = (int)json_integer_value(json_object_get(v->options, "norm")),
                                       .unweighted = json_is_true(json_object_get(v->options, "unweighted"))};
    const bool single = kiln_matrix_type(ranks->hubs) == KILN_F32;
    const double digits = single ? 1e-4 : 1e-9, factor = single ? 10 : 2;
    const double claimed = fmax(verify_number(v->report, "residual"), verify_number(v->options, "tolerance"));
    double start = clock_seconds();
    if (kiln_verify_hits(&ranks->found, kiln_data_X(v->data), ranks->hubs, ranks->authorities, &options) !=
        KILN_OK)
        return fail_library(READING);
    run->seconds.solve = clock_seconds() - start;
    claim_equal(v, "eigenvalue", "eigenvalue", verify_number(v->report, "eigenvalue"),
                ranks->found.eigenvalue, digits, 0);
    claim_bound(v, "authorities", "authorities", claimed, ranks->found.authorities, factor, 0);
    claim_bound(v, "hubs", "hubs", claimed, ranks->found.hubs, factor, 0);
    return 0;
}

int verify_hits(struct run *run, struct verifying *v) {
    struct ranks ranks = {0};
    int code = read_graph(run, v, &ranks);
    if (!code) code = judge(run, v, &ranks);
    kiln_matrix_free(ranks.hubs);
    kiln_matrix_free(ranks.authorities);
    return code;
}
