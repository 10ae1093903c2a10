/* Any bytes as the model of every verb that reads one: info, predict, evaluate, verify, coefficients,
 * recommend, and the warm start of each algorithm, by the tool's own code, each with rows of numbers, a table
 * with text classes, and a graph. The checksum is not compared in a fuzz build, so that what a model says is
 * reached. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { PATH = 40, WORDS = 24 };

static void put(int file, const void *bytes, size_t size) {
    if (ftruncate(file, 0) != 0 || pwrite(file, bytes, size, 0) != (ssize_t)size) abort();
}

static int open_file(char path[PATH], const char *text) {
    const int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0) abort();
    snprintf(path, PATH, "/proc/self/fd/%d", file);
    put(file, text, strlen(text));
    return file;
}

/* As main.c runs a verb. */
static void run_line(const char *line, const char *model, const char *data) {
    char text[400], *words[WORDS];
    struct command command;
    struct usage_problem problem;
    int count = 0;
    snprintf(text, sizeof text, "kiln %s --device cpu --threads 1 --json", line);
    for (char *word = strtok(text, " "); word && count < WORDS; word = strtok(NULL, " "))
        words[count++] = strcmp(word, "MODEL") == 0  ? (char *)model
                         : strcmp(word, "DATA") == 0 ? (char *)data
                                                     : word;
    if (!parse_command(&command, count, words, &problem)) abort();
    struct run run = {.verb = command.verb,
                      .settings = &command.settings,
                      .arguments = command.arguments,
                      .count = command.count,
                      .started = clock_seconds()};
    talk_begin(true, false, true);
    if (command.verb->run(&run) == 1) abort(); /* an internal error */
    kiln_device_close(run.device);
    rewind(stdout);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static char model[PATH], numbers[PATH], table[PATH], graph[PATH], ratings[PATH], points[PATH];
    static int file = -1;
    if (file < 0) {
        if (!freopen("/dev/null", "w", stdout)) abort();
        commands_begin();
        file = open_file(model, "");
        open_file(numbers, "1 1:1 2:0.5\n0 1:2 3:1\n1 2:3 3:-1\n0 1:-1 2:1 3:2\n1 1:0.5\n");
        open_file(table, "x,z,label\n1,2,no\n2,0.5,yes\n-1,3,no\n0.5,-2,yes\n4,1,no\n");
        open_file(graph, "ann bob\nbob cy\ncy ann\nann cy\n");
        open_file(points, "x,z\n1,2\n2,0.5\n-1,3\n0.5,-2\n");
        open_file(ratings, "%%MatrixMarket matrix coordinate real general\n"
                           "3 3 5\n1 1 4\n1 2 1\n2 2 5\n3 1 2\n3 3 3\n");
    }
    put(file, bytes, size);
    run_line("info MODEL", model, "");
    run_line("predict MODEL DATA", model, numbers);
    run_line("predict MODEL DATA --format csv --target label", model, table);
    run_line("evaluate MODEL DATA", model, numbers);
    run_line("evaluate MODEL DATA --format csv --target label", model, table);
    run_line("coefficients MODEL", model, "");
    run_line("recommend MODEL --user 1", model, "");
    run_line("recommend MODEL --item 2", model, "");
    run_line("recommend MODEL DATA", model, ratings);
    run_line("lda DATA --warm-start MODEL --max-iterations 2 --topics 2", model, ratings);
    run_line("gap DATA --warm-start MODEL --max-iterations 2 --topics 2", model, ratings);
    run_line("sfa DATA --warm-start MODEL --max-iterations 2 --factors 2", model, ratings);
    run_line("verify MODEL DATA --format mtx", model, ratings);
    run_line("verify MODEL DATA", model, numbers);
    run_line("verify MODEL DATA --format csv --target label", model, table);
    run_line("verify MODEL DATA --format edges", model, graph);
    run_line("linreg DATA --warm-start MODEL --max-iterations 2", model, numbers);
    run_line("logreg DATA --warm-start MODEL --max-iterations 2", model, numbers);
    run_line("logreg DATA --warm-start MODEL --max-iterations 2 --format csv --target label", model, table);
    run_line("glm DATA --warm-start MODEL --max-iterations 2 --family poisson", model, numbers);
    run_line("svm DATA --warm-start MODEL --max-iterations 2", model, numbers);
    run_line("svm DATA --warm-start MODEL --max-iterations 2 --regression", model, numbers);
    run_line("hits DATA --warm-start MODEL --max-iterations 2 --format edges", model, graph);
    run_line("pagerank DATA --warm-start MODEL --max-iterations 2 --format edges", model, graph);
    run_line("als DATA --warm-start MODEL --max-iterations 2 --factors 2", model, ratings);
    run_line("kmeans DATA --warm-start MODEL --max-iterations 2 -k 2 --init given", model, numbers);
    run_line("predict MODEL DATA --format csv", model, points);
    run_line("mds DATA --warm-start MODEL --max-iterations 2 --init given --format csv", model, points);
    return 0;
}
