/* One function a verb, in the file of that name. Each returns the exit code. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

struct run;

int verb_train(struct run *run); /* linreg, logreg, glm, svm */
int verb_predict(struct run *run);
int verb_verify(struct run *run);
int verb_info(struct run *run);
int verb_coefficients(struct run *run);
int verb_convert(struct run *run);
int verb_devices(struct run *run);
int verb_doctor(struct run *run);
int verb_explain(struct run *run);
int verb_tune(struct run *run);
int verb_completion(struct run *run);
int verb_man(struct run *run);
int verb_help(struct run *run);
int verb_version(struct run *run);

#endif
