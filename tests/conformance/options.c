/* The command line of the conformance suite. A name that nothing has is an error: a run that tests nothing
 * looks like a good one. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: conformance [--device NAME] [--except NAME] [--op NAME] [--type f32|f64] [--require NAME,...] "
    "[--threads N]\n"
    "                   [--quick] [--large] [--all] [--low-limits] [-v] [--plans [--each N] [--part I/N]]\n"
    "  --device   only this device, group, or all of a backend: cpu, opencl, opencl:0.1, cuda, cpu*3\n"
    "  --except   not this device, or none of a backend\n"
    "  --op       only this operation or check\n"
    "  --require  fail if one of these was not tested\n"
    "  --quick    small problems only, for slow tools\n"
    "  --all      every width also on OpenCL processors, whose compiler is slow\n"
    "  --large    also a matrix of 30 million columns\n"
    "  --low-limits  small problems cross the sizes from which on other ways are taken\n"
    "  --plans    every plan of mmchain that the device lists, chosen or not, in place of the operations\n"
    "  --each     at most so many plans of a variant and shape, evenly over the list\n"
    "  --part     one of N processes that share the shapes, I from 0\n"
    "  -v         a line for each case\n";

static bool parse(struct options *options, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        const struct {
            const char *name, **to;
        } named[] = {{"--device", &options->device},
                     {"--except", &options->except},
                     {"--op", &options->operation},
                     {"--type", &options->type},
                     {"--require", &options->require}};
        bool known = true;
        if (!strcmp(argv[i], "-v"))
            options->verbose = true;
        else if (!strcmp(argv[i], "--quick"))
            options->quick = true;
        else if (!strcmp(argv[i], "--all"))
            options->all = true;
        else if (!strcmp(argv[i], "--large"))
            options->large = true;
        else if (!strcmp(argv[i], "--low-limits"))
            options->low_limits = true;
        else if (!strcmp(argv[i], "--plans"))
            options->plans = true;
        else if (!strcmp(argv[i], "--each") && value)
            options->each = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--part") && value &&
                 sscanf(value, "%d/%d", &options->part, &options->parts) == 2)
            i++;
        else if (!strcmp(argv[i], "--threads") && value)
            options->threads = atoi(argv[++i]);
        else
            known = false;
        for (size_t n = 0; !known && value && n < sizeof named / sizeof *named; n++)
            if (!strcmp(argv[i], named[n].name)) {
                *named[n].to = value;
                known = true;
                i++;
            }
        if (!known) return false;
    }
    return true;
}

bool wanted(const char *option, const char *name) {
    return !option || strcmp(option, name) == 0;
}

static bool known_operation(const char *name) {
    bool known = false;
    for (int i = 0; operations[i]; i++) known = known || wanted(name, operations[i]->name);
    for (int i = 0; checks[i]; i++) known = known || wanted(name, checks[i]->name);
    if (known) return true;
    fprintf(stderr, "conformance: no operation or check is called %s; there are", name);
    for (int i = 0; operations[i]; i++) fprintf(stderr, " %s", operations[i]->name);
    for (int i = 0; checks[i]; i++) fprintf(stderr, " %s", checks[i]->name);
    fputc('\n', stderr);
    return false;
}

bool parse_options(struct options *options, int argc, char **argv) {
    options->parts = 1;
    if (parse(options, argc, argv) && (wanted(options->type, "f32") || wanted(options->type, "f64")) &&
        options->each >= 0 && options->part >= 0 && options->part < options->parts)
        return known_operation(options->operation);
    fputs(usage, stderr);
    return false;
}
