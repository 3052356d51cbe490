# superstep_units(TARGET): joins the target's source files into units that are compiled together, each of at most 1,500
# lines, so that headers are read and templates made once a unit. cmake/units.py says which files can stand beside each other. A new
# name that meets another file's ("redefinition of ...") is sorted out when CMake runs again.
option(SUPERSTEP_UNITS "compile several files of a room together" ON)
find_program(PYTHON3 python3)

function(superstep_units target)
  if(NOT SUPERSTEP_UNITS OR NOT PYTHON3)
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/units.py)
  get_target_property(sources ${target} SOURCES)
  set(paths "")
  foreach(source ${sources})
    if(NOT source MATCHES "[$]<" AND source MATCHES "[.]cpp$")
      get_filename_component(path ${source} ABSOLUTE)
      list(APPEND paths ${path})
    endif()
  endforeach()
  execute_process(COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/cmake/units.py 1500 ${paths}
                  OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line ${lines})
    string(REGEX MATCH "^([^ ]+) (.*)$" line "${line}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
