# superstep_late_library(ROOM NAME FILE...): the room calls functions of the shared library FILE, which is opened when the
# first of them is called (base/system/late_library.h). SUPERSTEP_LATE_NAME is what its LateLibrary is made of: the name
# for the loader, and the file. Of several files the first that is a shared library; the others are taken for its own.
#
# What opens it so does not show it to who looks for what a package depends on: superstep_late_packages() names the
# packages that these libraries are from.
function(superstep_late_library room name)
  foreach(file ${ARGN})
    if(file MATCHES "[.]so([.][0-9.]+)?$")
      file(REAL_PATH ${file} real)
      execute_process(COMMAND ${CMAKE_READELF} -d ${real} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
      get_filename_component(soname ${real} NAME)
      if(dynamic MATCHES "\\(SONAME\\)[^[]*\\[([^]]*)\\]")
        set(soname ${CMAKE_MATCH_1})
      endif()
      get_filename_component(folder ${real} DIRECTORY)
      set(lies ${real})
      if(EXISTS ${folder}/${soname})  # stays when a later release of it is installed
        set(lies ${folder}/${soname})
      endif()
      target_compile_definitions(superstep_${room} PRIVATE "SUPERSTEP_LATE_${name}=\"${soname}\",\"${lies}\"")
      set_property(GLOBAL APPEND PROPERTY superstep_late_files ${real})
      set_property(GLOBAL APPEND PROPERTY superstep_late_names ${name})
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "${name}: none of these is a shared library: ${ARGN}")
endfunction()

# superstep_write_late_files(FILE): where they lie, a line each, for who bundles them (python/CMakeLists.txt). MPI is left
# out: ranks are connected by the library of the computer that they run on.
function(superstep_write_late_files to)
  get_property(files GLOBAL PROPERTY superstep_late_files)
  get_property(names GLOBAL PROPERTY superstep_late_names)
  set(lines "")
  foreach(file name IN ZIP_LISTS files names)
    if(NOT name STREQUAL MPI)
      string(APPEND lines "${file}\n")
    endif()
  endforeach()
  file(WRITE ${to} "${lines}")
endfunction()

# superstep_late_packages(RESULT): Debian's packages that hold them, joined by commas; "" where dpkg does not know.
function(superstep_late_packages result)
  get_property(files GLOBAL PROPERTY superstep_late_files)
  set(packages "")
  find_program(DPKG_QUERY dpkg-query)
  mark_as_advanced(DPKG_QUERY)
  foreach(file ${files})
    if(DPKG_QUERY)
      execute_process(COMMAND ${DPKG_QUERY} -S ${file} OUTPUT_VARIABLE owner ERROR_QUIET)
      if(owner MATCHES "^([^:, ]+)")
        list(APPEND packages ${CMAKE_MATCH_1})
      endif()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES packages)
  list(JOIN packages ", " packages)
  set(${result} "${packages}" PARENT_SCOPE)
endfunction()
