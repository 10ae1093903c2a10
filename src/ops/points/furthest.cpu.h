/* CPU body of ki_furthest. One thread: the pass that found the labels has read a row for each number that is
 * read here. */
void FN(furthest)(kiln_matrix *R, const kiln_matrix *distances, const kiln_matrix *labels) {
    for (int64_t i = 0; i < distances->rows; i++) {
        real *const most = VALUES(R) + (int64_t)VALUES(labels)[i];
        if (VALUES(distances)[i] > *most) *most = VALUES(distances)[i];
    }
}
