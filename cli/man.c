/* kiln man [VERB]: man pages in roff, from the option and verb tables. */
#include <string.h>

#include "common.h"
#include "help.h"
#include "verbs.h"

/* Text in roff: a hyphen that may be copied, no escapes, and no line that begins like a request. */
static void roff(const char *text) {
    bool line_begins = true;
    for (const char *at = text; *at; at++) {
        if (strncmp(at, "\n\n", 2) == 0) {
            printf("\n.PP\n");
            at++;
            line_begins = true;
            continue;
        }
        if (line_begins && (*at == '.' || *at == '\'')) printf("\\&");
        if (*at == '-')
            printf("\\-");
        else if (*at == '\\')
            printf("\\e");
        else if (*at == '|')
            printf("|\\:"); /* a line may break behind it */
        else
            putchar(*at);
        line_begins = *at == '\n';
    }
}

static void heading(const char *name) {
    printf("\n.SH ");
    for (; *name; name++) putchar(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
    putchar('\n');
}

static void paragraph(const char *text) {
    roff(text);
    putchar('\n');
}

static void title(const char *verb, const char *summary) {
    printf(".TH \"KILN");
    for (const char *at = verb; *at; at++) putchar(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    printf("\" 1 \"\" \"kiln %s\" \"Kiln\"\n.nh\n.ad l", kiln_version());
    heading("Name");
    printf("kiln");
    roff(verb);
    printf(" \\- ");
    paragraph(summary);
}

static void option_entry(const struct option *option, const struct verb *verb) {
    char standard[STANDARD_ROOM];
    printf(".TP\n");
    if (option->letter) printf("\\fB\\-%c\\fR, ", option->letter);
    printf("\\fB\\-\\-");
    roff(option->name);
    printf("\\fR");
    if (option->value) printf(" \\fI%s\\fR", option->value);
    putchar('\n');
    roff(option->help);
    if (option->choices && option->kind == OPTION_CHOICE) {
        printf(" One of ");
        roff(option->choices);
        putchar('.');
    }
    if (*option_standard(standard, option, verb)) {
        printf(" Default: ");
        roff(standard);
        putchar('.');
    }
    putchar('\n');
}

static void examples(const char *lines) {
    heading("Examples");
    printf(".nf\n");
    paragraph(lines);
    printf(".fi\n");
}

static void exit_codes(const struct verb *verb) {
    heading("Exit status");
    for (int i = 0; i < exit_meaning_count; i++) {
        if (!exit_applies(&exit_meanings[i], verb)) continue;
        printf(".TP\n\\fB%d\\fR\n", exit_meanings[i].code);
        paragraph(exit_meanings[i].meaning);
    }
}

static void variable(const char *name, const char *meaning) {
    printf(".TP\n\\fB%s\\fR\n", name);
    paragraph(meaning);
}

static void environment(void) {
    heading("Environment");
    variable("KILN_NUM_THREADS, OMP_NUM_THREADS", "CPU threads where --threads does not say.");
    variable("KILN_ISA", "baseline, avx2 or avx512: use no better instructions of the CPU than these.");
    variable("KILN_CACHE_DIR, XDG_CACHE_HOME",
             "Where built kernels and the profile of this machine are kept.");
    variable("KILN_WITHOUT",
             "cuda, opencl or cuda,opencl: drivers that are never loaded, for one that crashes.");
    variable("KILN_KERNEL_PACK",
             "A pack of built kernels, as kiln kernels build writes it, by its absolute path.");
    variable("KILN_KERNEL_DIR", "Kernel sources to use instead of the built-in ones.");
    variable("KILN_BLAS, KILN_NVRTC_PATH, CUDA_HOME, CUDA_PATH, CONDA_PREFIX",
             "Where to look for libraries that are loaded at run time.");
    variable("KILN_MPI_PATH, KILN_MPI_SILENCE", "The plug-in that --mpi loads; seconds, from 2 to 3600, "
                                                "after which a process that is not heard of ends "
                                                "all, 20 if not set.");
    variable("NO_COLOR", "Set: no colours.");
}

static void see_also(const struct verb *except) {
    heading("See also");
    if (except) printf("\\fBkiln\\fR(1)");
    const char *comma = except ? ", " : "";
    for (int v = 0; v < verb_count; v++) {
        if (&verb_table[v] == except) continue;
        printf("%s\\fBkiln\\-%s\\fR(1)", comma, verb_table[v].name);
        comma = ", ";
    }
    putchar('\n');
}

static void page_of_verb(const struct verb *verb) {
    char suffix[40];
    snprintf(suffix, sizeof suffix, "-%s", verb->name);
    title(suffix, verb->summary);
    heading("Synopsis");
    printf("\\fBkiln %s\\fR \\fI%s\\fR [\\fIOPTION\\fR ...]\n", verb->name, verb->arguments);
    heading("Description");
    paragraph(verb->description);
    heading("Options");
    for (int group = 0; group < GROUP_COUNT; group++)
        for (int i = 0; i < option_count; i++)
            if (option_table[i].group == (enum option_group)group && option_applies(&option_table[i], verb))
                option_entry(&option_table[i], verb);
    examples(verb->examples);
    exit_codes(verb);
    environment();
    see_also(verb);
}

static void page_of_kiln(void) {
    title("", "machine learning on large sparse and dense data, at the speed of memory");
    heading("Synopsis");
    printf("\\fBkiln\\fR \\fIVERB\\fR [\\fIARGUMENT\\fR ...] [\\fIOPTION\\fR ...]\n");
    heading("Description");
    for (int v = 0; v < verb_count; v++) {
        printf(".TP\n\\fBkiln %s\\fR \\fI%s\\fR\n", verb_table[v].name, verb_table[v].arguments);
        paragraph(verb_table[v].summary);
    }
    heading("Options of every verb");
    for (int i = 0; i < option_count; i++)
        if (option_table[i].verbs == EVERY_VERB) option_entry(&option_table[i], NULL);
    exit_codes(NULL);
    environment();
    see_also(NULL);
}

int verb_man(struct run *run) {
    const struct verb *verb = run->count ? verb_named(run->arguments[0]) : NULL;
    if (run->count && !verb) return fail_unknown_verb("man", run->arguments[0]);
    if (verb)
        page_of_verb(verb);
    else
        page_of_kiln();
    return EXIT_DONE;
}
