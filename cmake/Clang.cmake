# Clang 19's library, for the programs that read C and C++ (tools/superstep-cc, tools/popc). Only they load it.
set(SUPERSTEP_LLVM /usr/lib/llvm-19 CACHE PATH "where LLVM 19 with Clang's library is")
find_path(SUPERSTEP_CLANG_HEADERS clang/AST/StmtOpenMP.h PATHS ${SUPERSTEP_LLVM}/include NO_DEFAULT_PATH)
find_path(SUPERSTEP_LLVM_HEADERS llvm/Support/FileSystem.h PATHS ${SUPERSTEP_LLVM}/include NO_DEFAULT_PATH)
find_library(SUPERSTEP_CLANG_LIBRARY NAMES clang-cpp libclang-cpp.so.19.1 PATHS ${SUPERSTEP_LLVM}/lib NO_DEFAULT_PATH)
find_library(SUPERSTEP_LLVM_LIBRARY NAMES LLVM-19 LLVM PATHS ${SUPERSTEP_LLVM}/lib NO_DEFAULT_PATH)

# superstep_clang_program(NAME SOURCE...): a program over Clang's library, where that is (libclang-19-dev, llvm-19-dev);
# elsewhere it is said that NAME is left out, and there is no such target. Packages hold it with the folder of the library.
function(superstep_clang_program name)
  if(NOT SUPERSTEP_CLANG_HEADERS OR NOT SUPERSTEP_LLVM_HEADERS OR NOT SUPERSTEP_CLANG_LIBRARY OR NOT SUPERSTEP_LLVM_LIBRARY)
    message(STATUS "${name} is left out: Clang 19's library is not in ${SUPERSTEP_LLVM} (libclang-19-dev, llvm-19-dev)")
    return()
  endif()
  add_executable(${name} ${ARGN})
  target_include_directories(${name} SYSTEM PRIVATE ${SUPERSTEP_CLANG_HEADERS})
  target_compile_definitions(${name} PRIVATE SUPERSTEP_CLANG_RESOURCES="${SUPERSTEP_LLVM}/lib/clang/19")
  target_compile_options(${name} PRIVATE -O1)
  target_link_libraries(${name} PRIVATE ${SUPERSTEP_CLANG_LIBRARY} ${SUPERSTEP_LLVM_LIBRARY})
  set_target_properties(${name} PROPERTIES BUILD_RPATH "${SUPERSTEP_LLVM}/lib" INSTALL_RPATH "${SUPERSTEP_LLVM}/lib")
endfunction()
