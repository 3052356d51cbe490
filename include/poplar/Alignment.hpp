// Alignments of codelets, in bytes.
#ifndef poplar_Alignment_hpp
#define poplar_Alignment_hpp

#define ALIGN(bytes) __attribute__((align_value(bytes)))

#endif
