# Writes revision.h: the revision of the code, when it is a git checkout. Run at every build; the file is
# replaced only when it says something new.
cmake_policy(VERSION 3.22)
execute_process(COMMAND git rev-parse --short HEAD WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE revision
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
set(dirty 0)
if(failed)
  set(revision "")
else()
  execute_process(COMMAND git diff --quiet HEAD WORKING_DIRECTORY ${SOURCE} ERROR_QUIET RESULT_VARIABLE dirty)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once
#define SUPERSTEP_REVISION \"${revision}\"
#define SUPERSTEP_REVISION_DIRTY ${dirty}
")
