add_library(superstep_flags INTERFACE)
target_compile_options(superstep_flags INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>)
# In a unit the sources are included, and GCC takes what is included for headers: a class of theirs may hold what is
# in their unnamed namespace.
if(SUPERSTEP_UNITS)
  target_compile_options(superstep_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
# GCC looks for memory it could give back whenever what it holds has grown by so much, a fifteenth of its time here.
target_compile_options(superstep_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)
# A product and a sum are rounded each, so that definitions, generators and methods give the same bits on every machine.
# Compilers fuse the two where every processor of a kind can, as on ARM and not on x86. Kernels may (SUPERSTEP_FUSES).
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(superstep_flags INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:SUPERSTEP_FUSES>>>:-ffp-contract=off>)
endif()
if(SUPERSTEP_WERROR)
  target_compile_options(superstep_flags INTERFACE -Werror)
endif()
if(SUPERSTEP_SANITIZE)
  add_compile_options(-fsanitize=${SUPERSTEP_SANITIZE} -fno-omit-frame-pointer -g1)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)  # indices of vectors and spans are checked too
  add_link_options(-fsanitize=${SUPERSTEP_SANITIZE})
endif()

# superstep_room(NAME [BRIEF] [WITH_JSON] [USES room ...] [LIBRARIES target ...])
# One static library a room, made of every source file in its folder and below, but for folders that have a
# CMakeLists.txt of their own.
#
# BRIEF: nothing in the room runs for long, it says what others do. It is compiled with -O1, a third quicker.
#
# Half of a compilation is reading the standard library and fmt: they are read once, in room base, and reused; once
# more for rooms that are BRIEF, since GCC takes some options from where a header was precompiled; and a third time
# with JSON for rooms in which most files read that (WITH_JSON, which is BRIEF): that header doubles it again.
set(superstep_common_headers <algorithm> <array> <cmath> <cstdint> <functional> <map> <memory> <optional> <ranges>
  <span> <string> <string_view> <vector> <fmt/format.h>)
set(superstep_brief_options $<$<CONFIG:Release>:-O1>)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp CONTENT "// Holds a precompiled header.\n")
function(superstep_precompiled name)
  cmake_parse_arguments(HELD "" "" "LIBRARIES;HEADERS" ${ARGN})
  add_library(superstep_${name} OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(superstep_${name} PRIVATE fmt::fmt superstep_flags ${HELD_LIBRARIES})
  target_compile_options(superstep_${name} PRIVATE ${superstep_brief_options})
  target_precompile_headers(superstep_${name} PRIVATE ${superstep_common_headers} ${HELD_HEADERS})
endfunction()
superstep_precompiled(brief)
superstep_precompiled(with_json LIBRARIES nlohmann_json::nlohmann_json HEADERS <filesystem> <expected> <nlohmann/json.hpp>)

# superstep_loops(FILE...): what does run for long in a room that is BRIEF.
function(superstep_loops)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>" SKIP_PRECOMPILE_HEADERS ON
                                                 SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

function(superstep_room name)
  cmake_parse_arguments(ROOM "BRIEF;WITH_JSON" "" "USES;LIBRARIES" ${ARGN})
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
    target_compile_options(superstep_${name} PRIVATE ${superstep_brief_options})
    target_precompile_headers(superstep_${name} REUSE_FROM superstep_with_json)
  elseif(ROOM_BRIEF)
    target_compile_options(superstep_${name} PRIVATE ${superstep_brief_options})
    target_precompile_headers(superstep_${name} REUSE_FROM superstep_brief)
  else()
    target_precompile_headers(superstep_${name} REUSE_FROM superstep_base)
  endif()
  foreach(used ${ROOM_USES})
    target_link_libraries(superstep_${name} PUBLIC superstep_${used})
  endforeach()
endfunction()
