/* kiln: the command line tool, a client of kiln.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "help.h"
#include "json.h"
#include "progress.h"
#include "verbs.h"

/* A closed standard descriptor would be handed out for the next file that is opened, and messages would land
 * in it: occupy it, in a mode in which writing to standard output fails and is noticed. */
static void occupy_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
            int opened = open("/dev/null", fd == 1 ? O_RDONLY : O_RDWR);
            if (opened > fd) close(opened);
        }
}

static bool asked_for(const char *option, int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], option) == 0) return true;
    return false;
}

/* The first of several processes tells what keeps them from meeting. */
static bool is_first(void) {
    const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
    for (int i = 0; i < 3; i++)
        if (getenv(variables[i])) return strcmp(getenv(variables[i]), "0") == 0;
    return true;
}

/* Several processes that do not know of each other do the same, and write the same files. */
static void say_alone(const struct run *run) {
    const char *size = getenv("OMPI_COMM_WORLD_SIZE") ? getenv("OMPI_COMM_WORLD_SIZE") : getenv("PMI_SIZE");
    if (run->processes && kiln_processes_count(run->processes) == 1)
        say_error("kiln: warning: --mpi finds one process, this one: mpirun -n 4 kiln ... starts four");
    if (run->processes || !size || atoi(size) < 2 || !is_first()) return;
    say("started as one of %s processes that know nothing of each other: with --mpi they compute together",
        size);
}

/* The processes of --mpi meet before the command line is looked at, so that one of them tells what is wrong
 * with it. *serves: this one is not the first, and has served it to the end. */
static int meet(kiln_processes **processes, bool *serves) {
    if (!is_first()) talk_leave_signals();
    const kiln_status status = kiln_processes_join(processes, KILN_WORLD);
    *serves = !*processes;
    if (status == KILN_OK) return EXIT_DONE;
    return is_first() ? fail_library(WORKING) : exit_code(status, WORKING);
}

static int run_verb(const struct command *command, kiln_processes *processes) {
    const struct settings *settings = &command->settings;
    struct run run = {.verb = command->verb,
                      .settings = settings,
                      .arguments = command->arguments,
                      .count = command->count,
                      .processes = processes,
                      .started = clock_seconds()};
    talk_begin(settings->quiet, settings->verbose, settings->json);
    talk_catch_signals();
    if (settings->version) return verb_version(&run);
    if (!command->verb && !settings->help) {
        help_print(stderr, NULL);
        return exit_code(KILN_ERR_ARGUMENT, WORKING);
    }
    if (!command->verb || settings->help) {
        help_print(stdout, command->verb);
        return EXIT_DONE;
    }
    if (option_for(command, "map") && !settings->map && !processes)
        offer_for_memory("; or --map, which leaves X in its file");
    if (option_for(command, "mpi")) say_alone(&run);
    int code = command->verb->run(&run);
    progress_end();
    kiln_checkpoint_close(run.checkpoint);
    kiln_device_close(run.device);
    return code;
}

int main(int argc, char **argv) {
    struct command command;
    struct usage_problem problem;
    kiln_processes *processes = NULL;
    bool serves = false;
    int code = EXIT_DONE;
    occupy_standard_descriptors();
    json_begin();
    commands_begin();
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is a failed write, reported below */
    signal(SIGXFSZ, SIG_IGN); /* so is a file that may not grow (ulimit -f) */
    talk_begin(false, false, asked_for("--json", argc, argv));
    if (asked_for("--mpi", argc, argv)) code = meet(&processes, &serves);
    if (code != EXIT_DONE || serves) return code;
    if (parse_command(&command, argc, argv, &problem))
        code = run_verb(&command, processes);
    else
        code = fail_with(KILN_ERR_ARGUMENT, WORKING, problem.hint, "%s", problem.message);
    kiln_processes_leave(processes);
    bool lost = ferror(stdout) != 0;
    if (fclose(stdout) != 0) lost = true;
    if (!lost || code == EXIT_INTERRUPTED) return code;
    /* EPIPE is how `kiln ... | head` ends: still an error to the shell, but nothing to tell. */
    if (errno != EPIPE) say_error("kiln: cannot write to standard output: %s", strerror(errno));
    return code == EXIT_DONE || code == EXIT_NOT_CONVERGED ? exit_code(KILN_ERR_IO, WRITING) : code;
}
