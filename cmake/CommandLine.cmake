# superstep_command_line: the library that reads command lines (CLI11) as this tree compiles it.
#
# CLI11 2.1 is headers alone, and every file that declares an option compiles some 270 of its functions again: 8 of
# the 10 processor seconds that such a file took. GCC can be told that a header's inline functions are in one object
# ("#pragma interface", "#pragma implementation"); the pragma holds for one file, so that CLI11's are joined here
# into one, which stands before the installed CLI/CLI.hpp. Other compilers, and versions of CLI11 that are cut up in
# another way, include the headers as they are.
find_package(CLI11 REQUIRED)
set(folder ${CMAKE_BINARY_DIR}/command_line)
get_target_property(includes CLI11::CLI11 INTERFACE_INCLUDE_DIRECTORIES)
find_file(cli11_header CLI/CLI.hpp PATHS ${includes} REQUIRED)  # not the joined one
mark_as_advanced(cli11_header)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CLI11_VERSION VERSION_LESS 2.3)
  get_filename_component(cli11_folder ${cli11_header} DIRECTORY)
  set(joined "")
  set(seen "")
  # The text of a header with those it includes of its own in their places.
  macro(join_header name)
    if(NOT ${name} IN_LIST seen)
      list(APPEND seen ${name})
      file(STRINGS ${cli11_folder}/${name} includes_of_${name} REGEX "^#include \"")
      foreach(line IN LISTS includes_of_${name})
        string(REGEX REPLACE "^#include \"(.*)\".*" "\\1" inner ${line})
        join_header(${inner})
      endforeach()
      file(READ ${cli11_folder}/${name} text)
      string(REGEX REPLACE "\n#include \"[^\n]*" "" text "${text}")
      string(REPLACE "#pragma once" "" text "${text}")
      string(APPEND joined "${text}")
    endif()
  endmacro()
  join_header(CLI.hpp)
  file(CONFIGURE OUTPUT ${folder}/CLI/CLI.hpp CONTENT "#pragma once\n#pragma interface\n${joined}" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/command_line.cpp
    CONTENT "#pragma implementation \"CLI.hpp\"\n#include <CLI/CLI.hpp>\n")
  add_library(superstep_command_line STATIC ${folder}/command_line.cpp)
  target_include_directories(superstep_command_line SYSTEM BEFORE PUBLIC ${folder})
  target_link_libraries(superstep_command_line PUBLIC CLI11::CLI11)
else()
  add_library(superstep_command_line INTERFACE)
  target_link_libraries(superstep_command_line INTERFACE CLI11::CLI11)
endif()
