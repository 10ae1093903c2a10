/* A kernel's parameters from the list that the host packs its arguments from (core/arguments.h says how both
 * read it). */
#define PARAMETERS(kernel) ARGUMENTS_##kernel(FIRST_PARAMETER, NEXT_PARAMETER)
#define MORE_PARAMETERS(part) ARGUMENTS_##part(NEXT_PARAMETER, NEXT_PARAMETER) /* behind others */
#define FIRST_PARAMETER(kind, type, name) PARAMETER_##kind(type, name)
#define NEXT_PARAMETER(kind, type, name) , PARAMETER_##kind(type, name)

#define PARAMETER_IN(type, name) __global const type *name
#define PARAMETER_OUT(type, name) __global type *name
#define PARAMETER_KEPT(type, name) __global const type *name
#define PARAMETER_TABLE(type, name) __global const type *name
#define PARAMETER_SPACE(type, name) __global type *name
#define PARAMETER_VALUE(type, name) type name
#define PARAMETER_SIXTEEN(type, name)                                                                        \
    type name##0, type name##1, type name##2, type name##3, type name##4, type name##5, type name##6,        \
        type name##7, type name##8, type name##9, type name##10, type name##11, type name##12,               \
        type name##13, type name##14, type name##15
