/* Names of CPU bodies. A row BODY(result, name, (parameters)) of a folder's bodies.h stands for two functions
 * in each instruction set, FN(name) in the file that it is in (each_real.h): ki_assign_f32_avx2 and
 * ki_assign_f64_avx2. CMake names the instruction set, KI_BODY_ISA. */
#ifndef KI_BODY_NAMES_H
#define KI_BODY_NAMES_H

#define KI_BODY_JOIN(name, type, isa) ki_##name##_##type##_##isa
#define KI_BODY_NAME_FOR(name, type, isa) KI_BODY_JOIN(name, type, isa)
#define KI_BODY_NAME(name, type) KI_BODY_NAME_FOR(name, type, KI_BODY_ISA)

#define KI_BODY_PROTOTYPES(result, name, parameters)                                                         \
    result KI_BODY_NAME(name, f32) parameters;                                                               \
    result KI_BODY_NAME(name, f64) parameters;

#endif
