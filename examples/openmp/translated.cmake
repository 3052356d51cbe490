# -DCC=superstep-cc -DSOURCE=FILE.c -DFOLDER=...: the program on tiles beside gcc's, or beside what -DEXPECTED=FILE says
# where gcc does not compile it. -DTELLS=TEXT: a region of it runs on the host, which is told in these words.
file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND ${CC} ${SOURCE} -o ${FOLDER}/tiles COMMAND_ERROR_IS_FATAL ANY)
if(EXPECTED)
  file(READ ${EXPECTED} expected)
else()
  execute_process(COMMAND gcc -w -fopenmp -O2 -ffp-contract=off -foffload=disable ${SOURCE} -o ${FOLDER}/host -lm
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env OMP_NUM_THREADS=1 ${FOLDER}/host OUTPUT_VARIABLE expected
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
set(offload mandatory)
set(told "^$")
if(TELLS)
  set(offload default)
  set(told "${TELLS}")
endif()
foreach(options tiles=1 tiles=5 tiles=64 tiles=7,check)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env SUPERSTEP_OMP_OPTIONS=${options} OMP_TARGET_OFFLOAD=${offload}
                          SUPERSTEP_OMP_REPORT=${FOLDER}/report.json ${FOLDER}/tiles
                  OUTPUT_VARIABLE printed ERROR_VARIABLE errors RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT errors MATCHES "${told}" OR NOT printed STREQUAL expected)
    message(FATAL_ERROR "${options}: ended with ${status}\n${errors}\nprinted:  ${printed}expected: ${expected}")
  endif()
endforeach()
