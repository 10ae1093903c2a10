/* The rows of a bin in order, and their pairs; included for each width of an `element`, with OF(name) making
 * names for it. An element is what a row's key has below the bin's bits, and behind that a bit that says
 * whether the row is of the class. */

static inline void OF(insert)(element *rows, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        const element row = rows[i];
        int64_t at = i;
        for (; at > 0 && rows[at - 1] > row; at--) rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

/* to = the rows in order of the digit from bit `shift` on, rows of one digit as they come. */
static inline void OF(deal)(element *to, const element *rows, int64_t count, int shift, int bits) {
    int64_t at[1 << DIGIT_MOST] = {0}, sum = 0;
    const element mask = ((element)1 << bits) - 1;
    for (int64_t i = 0; i < count; i++) at[rows[i] >> shift & mask]++;
    for (int d = 0; d < 1 << bits; d++) {
        const int64_t here = at[d];
        at[d] = sum;
        sum += here;
    }
    for (int64_t i = 0; i < count; i++) to[at[rows[i] >> shift & mask]++] = rows[i];
}

/* Elements that differ in the lowest `bits`: by two digits, which tell about as many places apart as there
 * are rows, and what agrees in both the same way again. spare: room for as many. */
static void OF(order)(element *rows, element *spare, int64_t count, int bits) {
    int digit = 3;
    if (count <= FEW) {
        OF(insert)(rows, count);
        return;
    }
    while (digit < DIGIT_MOST && count >> (2 * digit - 2)) digit++;
    digit = (int)ki_min(digit, (bits + 1) / 2);
    const int low = (int)ki_max(bits - 2 * digit, 0);
    OF(deal)(spare, rows, count, low, digit);
    OF(deal)(rows, spare, count, low + digit, digit);
    for (int64_t begin = 0, end; low > 0 && begin < count; begin = end) {
        end = begin + 1;
        while (end < count && rows[end] >> low == rows[begin] >> low) end++;
        if (end - begin > 1) OF(order)(rows + begin, spare, end - begin, low);
    }
}

/* The others before a row of the class in order are below it or tied; a pair that is tied is taken back by
 * half. */
static struct counted OF(count)(const element *rows, int64_t count) {
    uint64_t others = 0, before = 0, tied = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t own = rows[i] & 1;
        others += 1 - own;
        before += own ? others : 0;
        if (i == 0 || rows[i] != rows[i - 1] + 1 || !own) continue;
        /* The first of the class in a tie: others are behind it, more of the class from it on. */
        int64_t first = i - 1, end = i + 1;
        while (first > 0 && rows[first - 1] == rows[first]) first--;
        while (end < count && rows[end] == rows[i]) end++;
        tied += (uint64_t)(i - first) * (uint64_t)(end - i);
    }
    return (struct counted){(uint64_t)count - others, others, (double)before - (double)tied / 2};
}
