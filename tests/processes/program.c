/* A program of MPI's that has Kiln's processes compute X y, writes it to the file that it is given while its
 * rows are still with the processes, and says what the first one has. */
#include <mpi.h>
#include <stdio.h>

#include <kiln.h>
#include <kiln/mpi.h>

enum { ROWS = 7, COLUMNS = 3 };

static int multiply(kiln_processes *processes, const char *path) {
    double X[ROWS * COLUMNS], y[COLUMNS] = {1, 10, 100}, sums[ROWS];
    kiln_device *device = NULL;
    kiln_matrix *A = NULL, *b = NULL, *product = NULL;
    kiln_data *data = NULL;
    for (int i = 0; i < ROWS * COLUMNS; i++) X[i] = i % 4;
    int failed = kiln_processes_open(&device, processes, "cpu", NULL) != KILN_OK ||
                 kiln_matrix_dense(&A, device, KILN_F64, ROWS, COLUMNS, X) != KILN_OK ||
                 kiln_matrix_dense(&b, device, KILN_F64, COLUMNS, 1, y) != KILN_OK ||
                 kiln_matrix_dense(&product, device, KILN_F64, ROWS, 1, NULL) != KILN_OK ||
                 kiln_multiply(product, 1, KILN_PLAIN, A, b, 0, NULL) != KILN_OK ||
                 kiln_data_create(&data, product, NULL) != KILN_OK ||
                 kiln_data_write(data, path, KILN_FILE_CSV, NULL) != KILN_OK ||
                 kiln_matrix_get(sums, product) != KILN_OK;
    if (failed) fprintf(stderr, "%s\n", kiln_last_error()->message);
    for (int i = 0; !failed && i < ROWS; i++) printf("%g ", sums[i]);
    printf("of %d\n", kiln_processes_count(processes));
    kiln_data_free(data);
    kiln_matrix_free(b);
    kiln_matrix_free(A);
    kiln_device_close(device);
    return failed;
}

int main(int argc, char **argv) {
    kiln_processes *processes = NULL;
    int threads, failed = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    if (kiln_group_mpi(&processes, MPI_COMM_WORLD) != KILN_OK) {
        fprintf(stderr, "%s\n", kiln_last_error()->message);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (processes) failed = multiply(processes, argv[1]);
    kiln_processes_leave(processes);
    MPI_Finalize();
    return failed;
}
