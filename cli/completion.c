/* kiln completion SHELL: completion scripts, from the option and verb tables. */
#include <stdbool.h>
#include <string.h>

#include "common.h"
#include "verbs.h"

/* Prints "a|b|c" with another separator. */
static void choices(const char *text, char separator) {
    for (; *text; text++) putchar(*text == '|' ? separator : *text);
}

/* Single-quoted for the shell, cut at the end of the first sentence; `escape` lists letters that also need a
 * backslash. */
static void brief(const char *text, const char *escape) {
    for (; *text && strncmp(text, ". ", 2) != 0 && strcmp(text, ".") != 0; text++) {
        if (*text == '\'') continue;
        if (strchr(escape, *text)) putchar('\\');
        putchar(*text);
    }
}

/* The line that offers what `choice` lists, or file names if it is NULL. */
static void bash_offer(const char *choice) {
    if (!choice) {
        printf("mapfile -t COMPREPLY < <(compgen -f -- \"$word\")");
        return;
    }
    printf("COMPREPLY=($(compgen -W '");
    choices(choice, ' ');
    printf("' -- \"$word\"))");
}

static bool named_once(const struct option *option) {
    int count = 0;
    for (int i = 0; i < option_count; i++) count += strcmp(option_table[i].name, option->name) == 0;
    return count == 1;
}

/* The pattern is the option after any verb, or, where verbs have options of one name, after those that have
 * this one. */
static void bash_pattern(const struct option *option) {
    bool begun = false;
    for (int v = 0; v < verb_count; v++) {
        const bool once = named_once(option);
        if (once ? v > 0 : !option_applies(option, &verb_table[v])) continue;
        const char *verb = once ? "*" : verb_table[v].name;
        printf("%s%s' --%s'", begun ? "|" : "    ", verb, option->name);
        if (option->letter) printf("|%s' -%c'", verb, option->letter);
        begun = true;
    }
    printf(") ");
}

static void bash_values(void) {
    printf("    case \"$verb $previous\" in\n");
    for (int i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        if (option->kind == OPTION_FLAG) continue;
        bash_pattern(option);
        if (option->choices || file_option(option)) {
            bash_offer(option->choices);
            printf("; ");
        }
        printf("return ;;\n");
    }
    printf("    esac\n");
}

static void bash_verb(const struct verb *verb) {
    printf("    %s)\n        if [[ $word == -* ]]; then\n            COMPREPLY=($(compgen -W '", verb->name);
    for (int i = 0; i < option_count; i++)
        if (option_applies(&option_table[i], verb)) printf("--%s ", option_table[i].name);
    printf("' -- \"$word\"))\n");
    if (verb->most) {
        printf("        else\n            ");
        bash_offer(verb->choices);
        putchar('\n');
    }
    printf("        fi ;;\n");
}

static void bash(void) {
    printf("# bash completion for kiln %s: source <(kiln completion bash)\n_kiln() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb= i\n"
           "    COMPREPLY=()\n",
           kiln_version());
    printf("    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n        ");
    for (int v = 0; v < verb_count; v++) printf("%s%s", v ? "|" : "", verb_table[v].name);
    printf(") verb=${COMP_WORDS[i]}; break ;;\n        esac\n    done\n");
    bash_values();
    printf("    case $verb in\n");
    for (int v = 0; v < verb_count; v++) bash_verb(&verb_table[v]);
    printf("    *) COMPREPLY=($(compgen -W '");
    for (int v = 0; v < verb_count; v++) printf("%s ", verb_table[v].name);
    printf("--help --version' -- \"$word\")) ;;\n    esac\n}\ncomplete -o filenames -F _kiln kiln\n");
}

static void zsh_option(const struct option *option) {
    printf("            '--%s%s[", option->name, option->kind == OPTION_FLAG ? "" : "=");
    brief(option->help, "[]:");
    printf("]");
    if (option->kind != OPTION_FLAG) printf(":%s:", option->value);
    if (option->choices) {
        printf("(");
        choices(option->choices, ' ');
        printf(")");
    } else if (file_option(option)) {
        printf("_files");
    }
    printf("' \\\n");
}

static void zsh(void) {
    printf("#compdef kiln\n# zsh completion for kiln %s\n_kiln() {\n    local -a verbs\n    verbs=(\n",
           kiln_version());
    for (int v = 0; v < verb_count; v++)
        printf("        '%s:%s'\n", verb_table[v].name, verb_table[v].summary);
    printf("    )\n    if (( CURRENT == 2 )); then\n        _describe verb verbs\n        return\n    fi\n"
           "    local verb=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $verb in\n");
    for (int v = 0; v < verb_count; v++) {
        printf("    %s)\n        _arguments \\\n", verb_table[v].name);
        for (int i = 0; i < option_count; i++)
            if (option_applies(&option_table[i], &verb_table[v])) zsh_option(&option_table[i]);
        if (!verb_table[v].most)
            printf("            ;;\n");
        else if (verb_table[v].choices) {
            printf("            '*:%s:(", verb_table[v].arguments);
            choices(verb_table[v].choices, ' ');
            printf(")' ;;\n");
        } else
            printf("            '*:%s:_files' ;;\n", verb_table[v].arguments);
    }
    printf("    esac\n}\n_kiln \"$@\"\n");
}

static void fish(void) {
    printf("# fish completion for kiln %s\ncomplete -c kiln -f\n", kiln_version());
    for (int v = 0; v < verb_count; v++) {
        printf("complete -c kiln -n __fish_use_subcommand -a %s -d '", verb_table[v].name);
        brief(verb_table[v].summary, "");
        printf("'\n");
        if (verb_table[v].most && !verb_table[v].choices)
            printf("complete -c kiln -n '__fish_seen_subcommand_from %s' -F\n", verb_table[v].name);
        if (verb_table[v].choices) {
            printf("complete -c kiln -n '__fish_seen_subcommand_from %s' -a '", verb_table[v].name);
            choices(verb_table[v].choices, ' ');
            printf("'\n");
        }
    }
    for (int i = 0; i < option_count; i++) {
        printf("complete -c kiln -n '__fish_seen_subcommand_from");
        for (int v = 0; v < verb_count; v++)
            if (option_applies(&option_table[i], &verb_table[v])) printf(" %s", verb_table[v].name);
        printf("' -l %s", option_table[i].name);
        if (option_table[i].letter) printf(" -s %c", option_table[i].letter);
        if (option_table[i].kind != OPTION_FLAG) printf(file_option(&option_table[i]) ? " -r -F" : " -x");
        if (option_table[i].choices) {
            printf(" -a '");
            choices(option_table[i].choices, ' ');
            printf("'");
        }
        printf(" -d '");
        brief(option_table[i].help, "");
        printf("'\n");
    }
}

int verb_completion(struct run *run) {
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i].name, run->arguments[0]) == 0) {
            shells[i].print();
            return EXIT_DONE;
        }
    return fail_with(KILN_ERR_ARGUMENT, WORKING, "kiln completion bash, zsh or fish",
                     "no completion for shell '%s'", run->arguments[0]);
}
