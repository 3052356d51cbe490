# Which instruction sets the loops of kernels are compiled for, on x86: a third of a build of the program is theirs.
#   all     scalar code, AVX2 and AVX-512: what is given to others (packages, wheels), and what the tests go through
#   native  scalar code and the widest vectors of this machine alone; elsewhere such a program takes what is left of
#           these, and says so
set(SUPERSTEP_KERNELS all CACHE STRING "instruction sets that kernels are compiled for: all, or native (this machine's)")
set_property(CACHE SUPERSTEP_KERNELS PROPERTY STRINGS all native)

# superstep_kernel_sets(RESULT): Highway's names of what is left out, each after a bar; "" where nothing is.
function(superstep_kernel_sets result)
  set(${result} "" PARENT_SCOPE)
  if(SUPERSTEP_KERNELS STREQUAL "all")
    return()
  elseif(NOT SUPERSTEP_KERNELS STREQUAL "native")
    message(FATAL_ERROR "SUPERSTEP_KERNELS is '${SUPERSTEP_KERNELS}': there are all and native")
  endif()
  # What a compiler may use on this machine is what the machine has.
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros
                  COMMAND_ERROR_IS_FATAL ANY)
  set(avx2 __AVX2__ __FMA__ __BMI__ __BMI2__ __F16C__)
  set(avx512 ${avx2} __AVX512F__ __AVX512BW__ __AVX512DQ__ __AVX512VL__ __AVX512CD__)  # as base/system/instruction_set.cpp
  foreach(set IN ITEMS avx2 avx512)
    set(has_${set} TRUE)
    foreach(macro IN LISTS ${set})
      if(NOT macros MATCHES "define ${macro} ")
        set(has_${set} FALSE)
      endif()
    endforeach()
  endforeach()
  if(has_avx512)
    set(${result} "|HWY_AVX2" PARENT_SCOPE)
  elseif(has_avx2)
    set(${result} "|HWY_AVX3" PARENT_SCOPE)
  else()
    set(${result} "|HWY_AVX2|HWY_AVX3" PARENT_SCOPE)
  endif()
endfunction()
