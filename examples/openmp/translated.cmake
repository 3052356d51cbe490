# -DCC=superstep-cc -DSOURCE=FILE.c -DFOLDER=...: the program on tiles beside gcc's.
file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND gcc -w -fopenmp -O2 -ffp-contract=off -foffload=disable ${SOURCE} -o ${FOLDER}/host -lm
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CC} ${SOURCE} -o ${FOLDER}/tiles COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -E env OMP_NUM_THREADS=1 ${FOLDER}/host OUTPUT_VARIABLE expected
                COMMAND_ERROR_IS_FATAL ANY)
foreach(options tiles=1 tiles=5 tiles=64 tiles=7,check)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env SUPERSTEP_OMP_OPTIONS=${options} OMP_TARGET_OFFLOAD=mandatory
                          SUPERSTEP_OMP_REPORT=${FOLDER}/report.json ${FOLDER}/tiles
                  OUTPUT_VARIABLE printed ERROR_VARIABLE errors RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT errors STREQUAL "" OR NOT printed STREQUAL expected)
    message(FATAL_ERROR "${options}: ended with ${status}\n${errors}\nprinted:  ${printed}expected: ${expected}")
  endif()
endforeach()
