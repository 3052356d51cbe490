# Writes OUTPUT: a digest of FILES as a constant of the planners.
set(all "")
foreach(file ${FILES})
  file(SHA256 ${file} digest)
  string(APPEND all ${digest})
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUTPUT} "#include \"superstep/machine/ipu/planner_digest.h\"\n\nnamespace superstep::machine::ipu {\nextern const char* const planner_digest = \"${digest}\";\n}\n")
