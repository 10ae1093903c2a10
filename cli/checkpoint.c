/* A run that can be stopped and go on. */
#include "checkpoint.h"

#include <string.h>

int checkpoint_open(struct run *run) {
    const struct settings *settings = run->settings;
    const kiln_checkpoint_options options = {.checkpoint = settings->checkpoint,
                                             .checkpoint_every = settings->checkpoint_every,
                                             .resume = settings->resume};
    if (settings->checkpoint_every > 0 && !settings->checkpoint)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "--checkpoint FILE names the file to write",
                         "--checkpoint-every without --checkpoint");
    if (settings->checkpoint && strcmp(settings->checkpoint, "-") == 0)
        return fail_with(KILN_ERR_ARGUMENT, WORKING, "name a file, which is replaced each time",
                         "--checkpoint - cannot be standard output");
    if (!settings->checkpoint && !settings->resume) return 0;
    return kiln_checkpoint_open(&run->checkpoint, &options) == KILN_OK ? 0 : fail_library(USING_MODEL);
}

kiln_control checkpoint_control(const struct run *run, kiln_control control) {
    return run->checkpoint_stays ? control : kiln_checkpoint_control(run->checkpoint, control);
}

static void put_from_0(struct result *result, const char *key, int64_t iteration) {
    PUT(result, key, .kind = iteration >= 0 ? ROW_COUNT : ROW_NONE, .count = iteration);
}

void checkpoint_put(struct result *result, const struct run *run) {
    kiln_checkpoint_info info = {0};
    if (!run->checkpoint || kiln_checkpoint_get_info(&info, run->checkpoint) != KILN_OK) {
        PUT(result, "checkpoint", .kind = ROW_NONE);
        return;
    }
    result_open(result, "checkpoint", false);
    PUT(result, "file", TEXT(run->settings->checkpoint));
    PUT(result, "resume", TEXT(run->settings->resume));
    put_from_0(result, "resumed_after", info.resumed);
    put_from_0(result, "iteration", info.iteration);
    PUT(result, "written", COUNT(info.written));
    PUT(result, "bytes", COUNT(info.bytes));
    PUT(result, "seconds", SECONDS(info.seconds));
    PUT(result, "failed", COUNT(info.failed));
    result_close(result);
}

void checkpoint_warn(const struct run *run) {
    kiln_checkpoint_info info = {0};
    if (!run->checkpoint || kiln_checkpoint_get_info(&info, run->checkpoint) != KILN_OK || !info.failed)
        return;
    say_error("kiln: warning: the checkpoint could not be written, %lld time%s: %s", (long long)info.failed,
              info.failed > 1 ? "s" : "", info.problem);
}

void checkpoint_tell(const struct run *run) {
    kiln_checkpoint_info info = {0};
    if (!run->checkpoint || kiln_checkpoint_get_info(&info, run->checkpoint) != KILN_OK) return;
    const char *file = info.written ? run->settings->checkpoint : run->settings->resume;
    if (!file) return;
    say_error("hint: the same command with --resume %s goes on after iteration %lld", file,
              (long long)(info.written ? info.iteration : info.resumed));
}
