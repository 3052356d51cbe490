// Text of codelets: on this host, to standard output.
#ifndef poplar_print_h
#define poplar_print_h

#include <cstdio>

#endif
