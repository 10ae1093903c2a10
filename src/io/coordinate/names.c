#include "io/coordinate/names.h"

#include "io/decimal.h"

enum { DIGITS_MOST = 9 };

int32_t ki_plain_number(const char *text, int64_t size) {
    int32_t number = 0;
    if (size < 1 || size > DIGITS_MOST || (size > 1 && *text == '0')) return -1;
    for (int64_t i = 0; i < size; i++) {
        if (!ki_is_digit(text[i])) return -1;
        number = number * 10 + (text[i] - '0');
    }
    return number;
}

void ki_names_init(struct ki_names *names, const char *what) {
    *names = (struct ki_names){.what = what};
    ki_table_levels_init(&names->levels);
}

void ki_names_free(struct ki_names *names) {
    ki_table_levels_free(&names->levels);
    ki_bytes_free(&names->direct);
    ki_bytes_free(&names->plain);
}

/* The array knows all names that are numbers below its length: those met before it was so long, too. */
static void enter_known(struct ki_names *names, int64_t from) {
    int32_t *direct = (int32_t *)(void *)names->direct.data;
    const int64_t length = names->direct.size / (int64_t)sizeof *direct;
    for (int64_t i = 0; i < names->levels.count; i++) {
        const struct ki_table_level *level = ki_table_level(&names->levels, i);
        const int32_t number = ki_plain_number(names->levels.text.data + level->text, level->size);
        if (number >= from && number < length) direct[number] = (int32_t)i + 1;
    }
}

/* Makes the array of numbers reach `number` if it may be as long as that; `allowed` bytes of input were
 * read. */
static bool reach(struct ki_names *names, int64_t number, int64_t allowed) {
    const int64_t item = sizeof(int32_t), length = names->direct.size / item;
    if (number < length) return true;
    int64_t wanted = ki_max(number + 1, 2 * length);
    wanted = ki_min(ki_max(wanted, 1024), ki_max(allowed / item, 1024));
    if (number >= wanted || !ki_bytes_room(&names->direct, (wanted - length) * item)) return false;
    memset(names->direct.data + names->direct.size, 0, (size_t)((wanted - length) * item));
    names->direct.size = wanted * item;
    enter_known(names, length);
    return true;
}

static kiln_status fail_no_text(const struct ki_names *names, const struct ki_input *input,
                                const struct ki_block *block, const char *at) {
    struct ki_fault fault = {.status = KILN_OK};
    ki_fault(&fault, KILN_ERR_PARSE, at, "convert the file, for instance with iconv -f latin1 -t utf-8",
             "the name of %s is not UTF-8 text", names->what);
    return ki_report_fault(input, block, &fault);
}

int32_t ki_names_find_number(const struct ki_names *names, int32_t plain) {
    char text[KI_DECIMAL_BYTES];
    const int32_t *direct = (const void *)names->direct.data;
    const int64_t length = names->direct.size / (int64_t)sizeof *direct;
    if (plain < length) return direct[plain] - 1;
    if (names->levels.count == 0) return -1;
    return ki_table_levels_find(&names->levels, 0, text, ki_print_int64(text, plain) - text);
}

static kiln_status fail_full(int64_t size) {
    return ki_fail_nomem((size_t)size, "the names, or there are 2^31 of them");
}

kiln_status ki_names_add_number(int32_t *number, struct ki_names *names, int32_t plain, int64_t allowed) {
    char text[KI_DECIMAL_BYTES];
    const int64_t size = ki_print_int64(text, plain) - text;
    const bool direct = reach(names, plain, allowed);
    int32_t found = ki_names_find_number(names, plain);
    if (found < 0)
        found = (direct ? ki_table_levels_add_unhashed : ki_table_levels_add)(&names->levels, 0, text, size);
    if (found < 0) return fail_full(size);
    if (direct) ((int32_t *)(void *)names->direct.data)[plain] = found + 1;
    *number = found;
    return KILN_OK;
}

kiln_status ki_names_add(int32_t *number, struct ki_names *names, const struct ki_name *name,
                         const struct ki_input *input, const struct ki_block *block) {
    const char *text = name->text;
    int64_t size = name->size;
    if (name->doubled) {
        names->plain.size = 0;
        if (!ki_table_unquote(&names->plain, &(struct ki_table_field){text, size, true}))
            return ki_fail_nomem((size_t)size, "a name");
        text = names->plain.data;
        size = names->plain.size;
    }
    int32_t found = ki_table_levels_find(&names->levels, 0, text, size);
    if (found < 0) {
        if (!ki_table_utf8(text, size)) return fail_no_text(names, input, block, name->text);
        found = ki_table_levels_add(&names->levels, 0, text, size);
        if (found < 0) return fail_full(size);
    }
    *number = found;
    return KILN_OK;
}

kiln_status ki_names_take(char ***list, char **text, struct ki_names *names) {
    const size_t bytes = (size_t)names->levels.count * sizeof **list;
    char **made = ki_alloc(bytes);
    if (!made) return ki_fail_nomem(bytes, "the names");
    *text = ki_bytes_take(&names->levels.text);
    for (int64_t i = 0; i < names->levels.count; i++)
        made[i] = *text + ki_table_level(&names->levels, i)->text;
    *list = made;
    return KILN_OK;
}
