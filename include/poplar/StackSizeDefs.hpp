/* What assembly says of its stack: codelets that run on this host have the host's. */
#ifndef poplar_StackSizeDefs_hpp
#define poplar_StackSizeDefs_hpp

#define DEF_STACK_USAGE(size, function)
#define DEF_STACK_SIZE_OWN(size, function)
#define DEF_FUNC_CALL_PTRS(function, pointers)

#endif
