# Writes files of facts into a C++ source of a room:
# cmake -DROOM=machine -DFOLDER=machines -DFILES="gc2;gc200" -DENDING=toml -DFUNCTION=built_in_files -DOUTPUT=x.cpp -P embed_facts.cmake
set(text "// Made from files of facts when the program is built.\n#include \"superstep/${ROOM}/built_in.h\"\n\n")
string(APPEND text "namespace superstep::${ROOM} {\n\nusing namespace std::literals;\n\nstd::span<const BuiltIn> ${FUNCTION}() {\n  static constexpr BuiltIn files[] = {\n")
foreach(id ${FILES})
  file(READ ${FOLDER}/${id}.${ENDING} content)
  string(APPEND text "      {\"${id}\", R\"toml(${content})toml\"sv},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n\n}  // namespace superstep::${ROOM}\n")
file(WRITE ${OUTPUT} "${text}")
