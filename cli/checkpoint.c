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
    return kiln_checkpoint_control(run->checkpoint, control);
}

void checkpoint_json(const struct run *run, json_t *object) {
    kiln_checkpoint_info info = {0};
    if (!run->checkpoint || kiln_checkpoint_get_info(&info, run->checkpoint) != KILN_OK) {
        json_put(object, "checkpoint", json_null());
        return;
    }
    json_t *inner = json_object();
    json_put_text(inner, "file", run->settings->checkpoint);
    json_put_text(inner, "resume", run->settings->resume);
    json_put(inner, "resumed_after", info.resumed >= 0 ? json_integer(info.resumed) : json_null());
    json_put(inner, "iteration", info.iteration >= 0 ? json_integer(info.iteration) : json_null());
    json_put_count(inner, "written", info.written);
    json_put_count(inner, "bytes", info.bytes);
    json_put_number(inner, "seconds", info.seconds);
    json_put_count(inner, "failed", info.failed);
    json_put(object, "checkpoint", inner);
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
