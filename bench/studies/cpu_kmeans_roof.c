/* Times the instructions of K-Means' labels alone on a processor with AVX-512, nothing loaded and nothing
 * stored: for sixteen numbers of f32 (eight of f64) and one centre, the products of n columns, then
 * also the least two scores, then also the label. Two threads at once, the least of some repeats, in
 * nanoseconds.
 *
 *     gcc -O2 -mavx512f bench/studies/cpu_kmeans_roof.c -o roof -lpthread && ./roof */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { THREADS = 2, REPEATS = 5, ROUNDS = 300000, SCORES = 8 };

/* Scores in registers 0 to 7, numbers of rows and centres in 30 and 31, the least two and the label in 24 to
 * 29. */
#define OF_EACH(a, type)                                                                                     \
    a(type, 0) a(type, 1) a(type, 2) a(type, 3) a(type, 4) a(type, 5) a(type, 6) a(type, 7)
#define PRODUCT(type, i) "vfmadd231" #type " %%zmm30, %%zmm31, %%zmm" #i "\n"
#define COLUMN(type) OF_EACH(PRODUCT, type)
#define FOUR(type) COLUMN(type) COLUMN(type) COLUMN(type) COLUMN(type)
#define EIGHT(type) FOUR(type) FOUR(type)
#define NOTHING(type, i)
#define LEAST(type, i) "vmin" #type " %%zmm" #i ", %%zmm24, %%zmm25\n"
#define TWO(type, i)                                                                                         \
    "vmax" #type " %%zmm" #i ", %%zmm24, %%zmm26\nvmin" #type " %%zmm26, %%zmm27, %%zmm28\n" LEAST(type, i)
#define LABEL(type, i) "vcmplt" #type " %%zmm24, %%zmm" #i ", %%k1\nvmovdqa64 %%zmm31, %%zmm29%{%%k1%}\n"
#define ALL(type, i) TWO(type, i) LABEL(type, i)
#define FIRST(type, i) LEAST(type, i) LABEL(type, i)
#define LOOP(name, type, products, rest)                                                                     \
    static void name(void) {                                                                                 \
        __asm__ volatile("mov %0, %%eax\n1:\n" products(type) OF_EACH(rest, type) "dec %%eax\njnz 1b\n"      \
                         :                                                                                   \
                         : "i"(ROUNDS)                                                                       \
                         : "eax", "k1", "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7",      \
                           "zmm24", "zmm25", "zmm26", "zmm27", "zmm28", "zmm29", "zmm30", "zmm31");          \
    }

LOOP(products_4, ps, FOUR, NOTHING)
LOOP(two_4, ps, FOUR, TWO)
LOOP(all_4, ps, FOUR, ALL)
LOOP(products_8, ps, EIGHT, NOTHING)
LOOP(two_8, ps, EIGHT, TWO)
LOOP(all_8, ps, EIGHT, ALL)
LOOP(double_products_4, pd, FOUR, NOTHING)
LOOP(double_all_4, pd, FOUR, FIRST)
LOOP(double_products_8, pd, EIGHT, NOTHING)
LOOP(double_all_8, pd, EIGHT, FIRST)

static const struct {
    const char *type, *what;
    int columns;
    void (*loop)(void);
} loops[] = {{"f32", "products", 4, products_4},
             {"f32", "products, least two", 4, two_4},
             {"f32", "products, least two, label", 4, all_4},
             {"f32", "products", 8, products_8},
             {"f32", "products, least two", 8, two_8},
             {"f32", "products, least two, label", 8, all_8},
             {"f64", "products", 4, double_products_4},
             {"f64", "products, least, label", 4, double_all_4},
             {"f64", "products", 8, double_products_8},
             {"f64", "products, least, label", 8, double_all_8}};
enum { LOOPS = sizeof loops / sizeof *loops };

static double least[THREADS][LOOPS];

static double clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *measure(void *mine) {
    double *of = mine;
    for (int i = 0; i < LOOPS; i++)
        for (int repeat = 0; repeat < REPEATS; repeat++) {
            const double begin = clock_seconds();
            loops[i].loop();
            const double each = (clock_seconds() - begin) / ROUNDS / SCORES * 1e9;
            if (repeat == 0 || each < of[i]) of[i] = each;
        }
    return NULL;
}

int main(void) {
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&thread[t], NULL, measure, least[t])) return 1;
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    for (int i = 0; i < LOOPS; i++)
        printf("{\"type\": \"%s\", \"columns\": %d, \"what\": \"%s\", \"nanoseconds\": %.3f}%s\n",
               loops[i].type, loops[i].columns, loops[i].what, (least[0][i] + least[1][i]) / 2,
               i + 1 < LOOPS ? "," : "");
    return 0;
}
