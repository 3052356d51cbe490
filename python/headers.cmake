# Copies the public headers of TREE, and what they include, to TO.
cmake_minimum_required(VERSION 3.22)
include(${TREE}/cmake/PublicHeaders.cmake)
headers_behind(headers ${TREE} superstep/bsp.h)
foreach(header IN LISTS headers)
  file_of_header(file ${TREE} ${header})
  configure_file(${file} ${TO}/${header} COPYONLY)
endforeach()
