# superstep_room(NAME [WITH_JSON] [USES room ...] [LIBRARIES target ...])
# One static library a room, made of every source file in its folder and below, but for folders that have a
# CMakeLists.txt of their own.
#
# Half of a compilation is reading the standard library and fmt: they are read once, in room base, and reused. Rooms
# in which most files read JSON, too, say so: that header doubles it again.
set(superstep_common_headers <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <ranges>
  <span> <string> <string_view> <vector> <fmt/format.h>)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/with_json.cpp CONTENT "// Holds a precompiled header.\n")
add_library(superstep_with_json OBJECT ${CMAKE_BINARY_DIR}/with_json.cpp)
target_link_libraries(superstep_with_json PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
target_precompile_headers(superstep_with_json PRIVATE ${superstep_common_headers} <filesystem> <expected>
  <nlohmann/json.hpp>)

function(superstep_room name)
  cmake_parse_arguments(ROOM "WITH_JSON" "" "USES;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  # A folder with a CMakeLists.txt of its own is not taken, nor what lies below it.
  file(GLOB_RECURSE own_lists CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/CMakeLists.txt)
  list(REMOVE_ITEM own_lists ${CMAKE_CURRENT_SOURCE_DIR}/CMakeLists.txt)
  foreach(own_list ${own_lists})
    get_filename_component(folder ${own_list} DIRECTORY)
    foreach(source ${sources})
      string(FIND ${source} ${folder}/ at)
      if(at EQUAL 0)
        list(REMOVE_ITEM sources ${source})
      endif()
    endforeach()
  endforeach()
  # A source in two rooms would be compiled twice, with two sets of options, and the linker would take either.
  get_property(taken GLOBAL PROPERTY superstep_sources)
  foreach(source ${sources})
    if(source IN_LIST taken)
      message(FATAL_ERROR "${source} is in room ${name} and in another: give its folder one CMakeLists.txt")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY superstep_sources ${sources})
  add_library(superstep_${name} STATIC ${sources})
  superstep_units(superstep_${name})
  target_include_directories(superstep_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(superstep_${name} PUBLIC fmt::fmt ${ROOM_LIBRARIES} PRIVATE superstep_flags)
  if(name STREQUAL base)
    target_precompile_headers(superstep_base PRIVATE ${superstep_common_headers})
  elseif(ROOM_WITH_JSON)
    target_precompile_headers(superstep_${name} REUSE_FROM superstep_with_json)
  else()
    target_precompile_headers(superstep_${name} REUSE_FROM superstep_base)
  endif()
  foreach(used ${ROOM_USES})
    target_link_libraries(superstep_${name} PUBLIC superstep_${used})
  endforeach()
endfunction()

add_library(superstep_flags INTERFACE)
target_compile_options(superstep_flags INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>)
# In a unit the sources are included, and GCC takes what is included for headers: a class of theirs may hold what is
# in their unnamed namespace.
if(SUPERSTEP_UNITS)
  target_compile_options(superstep_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
if(SUPERSTEP_WERROR)
  target_compile_options(superstep_flags INTERFACE -Werror)
endif()
if(SUPERSTEP_SANITIZE)
  add_compile_options(-fsanitize=${SUPERSTEP_SANITIZE} -fno-omit-frame-pointer -g1)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)  # indices of vectors and spans are checked too
  add_link_options(-fsanitize=${SUPERSTEP_SANITIZE})
endif()
