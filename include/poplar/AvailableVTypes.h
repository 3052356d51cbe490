/* Which layouts of vectors a target has beside those that all have. Codelets are compiled once, with those of
   the second generation of chips, whose scaled pointers are gone. */
#ifndef poplar_AvailableVTypes_h
#define poplar_AvailableVTypes_h

#define VECTOR_AVAIL_SHORT_SPAN 1

#endif
