/* This header says whether rows of a dense X are walked over side by side, so that y and w are loaded once
 * for several, or one after the other.
 *
 * Of rows that lie in one page some processors (Zen 3) guess wrong what will be read next where several are
 * read in turns: of 100 columns in f64 13 GB/s, and 19 one after the other. Short rows are side by side all
 * the same: sums that are back after a few vectors would wait for the row before. */
static bool FN(side_by_side)(int64_t n) {
    enum { SHORT_ROW = 512, LONG_ROW = 2048 };
    const int64_t bytes = n * (int64_t)sizeof(real);
    return bytes < SHORT_ROW || bytes >= LONG_ROW;
}
