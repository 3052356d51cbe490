#include "registration.h"

namespace popc {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result + "\"";
}

constexpr const char* table = "::poplar::vertex_table::";

// The fields of the number-th vertex. Where a type cannot be a field, the compiler names the field's own line.
std::string fields_of(const Vertex& vertex, const std::string& number) {
  if (vertex.fields.empty()) return {};
  std::string text = "const " + std::string(table) + "Field fields_" + number + "[] = {\n";
  for (const Field& field : vertex.fields)
    text += "#line " + std::to_string(field.line) + " " + quoted(field.file) + "\n  " + table + "field<decltype(V" +
            number + "::" + field.name + ")>(" + quoted(field.name) + ", __builtin_offsetof(V" + number + ", " +
            field.name + ")),\n";
  return text + "};\n";
}

std::string runner_of(const Vertex& vertex, const std::string& number) {
  return table + ("Runner<V" + number) + ", " + table + "kind<V" + number + ">(), " +
         (vertex.constructed ? "true" : "false") + ">::";
}

std::string entry_of(const Vertex& vertex, const std::string& number, const std::string& id) {
  const std::string fields = vertex.fields.empty() ? "nullptr" : "fields_" + number;
  const std::string runner = runner_of(vertex, number);
  return "  {" + quoted(vertex.name) + ", " + table + "kind<V" + number + ">(), sizeof(V" + number + "), alignof(V" +
         number + "), " + fields + ", " + std::to_string(vertex.fields.size()) + ", " + runner + "prepare, " + runner +
         "compute, &poplar_mixes_" + id + "[" + number + "]},\n";
}

// What is counted once the code is there (mix.h), and of which functions.
std::string mixes_of(const std::vector<Vertex>& vertices, const std::string& id) {
  const std::string count = "[" + std::to_string(vertices.size()) + "]";
  std::string text = "}  // namespace\nextern \"C\" {\nextern const " + std::string(table) + "Mix poplar_mixes_" + id + count +
                     ";\nextern bool (*const poplar_computes_" + id + count + ")(void*, unsigned);\nconst " + table +
                     "Mix poplar_mixes_" + id + count + " = {};\nbool (*const poplar_computes_" + id + count +
                     ")(void*, unsigned) = {\n";
  for (std::size_t i = 0; i < vertices.size(); ++i)
    text += "  " + runner_of(vertices[i], std::to_string(i)) + "compute,\n";
  return text + "};\n}\nnamespace {\n";
}

std::string table_function(const std::string& id) { return "::poplar::vertex_table::Part table_" + id + "()"; }

}  // namespace

std::string registration(const std::string& file, const std::string& id, const std::vector<Vertex>& vertices) {
  std::string text = "#include " + quoted(file) + "\n#include <poplar/VertexTable.hpp>\nnamespace poplar_codelets {\n";
  text += table_function(id) + ";\nnamespace {\n";
  std::string entries;
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const std::string name = std::to_string(i);
    text += "using V" + name + " = ::" + vertices[i].type + ";\n" + fields_of(vertices[i], name);
    entries += entry_of(vertices[i], name, id);
  }
  if (!vertices.empty()) text += mixes_of(vertices, id);
  if (!vertices.empty()) text += "const ::poplar::vertex_table::Vertex vertices[] = {\n" + entries + "};\n";
  text += "}  // namespace\n" + table_function(id) + " {\n  return {" + table + "VERSION, " +
          (vertices.empty() ? "nullptr" : "vertices") + ", " + std::to_string(vertices.size()) +
          "};\n}\n}  // namespace poplar_codelets\n";
  return text;
}

// The structures are those of poplar/VertexTable.hpp: reading that header would take longer than all the rest.
std::string joined_tables(const std::vector<std::string>& ids) {
  std::string text =
      "namespace poplar {\nnamespace vertex_table {\nstruct Vertex;\n"
      "struct Part { unsigned version; const Vertex* vertices; decltype(sizeof 1) vertex_count; };\n"
      "struct Table { const Part* parts; decltype(sizeof 1) part_count; };\n"
      "}  // namespace vertex_table\n}  // namespace poplar\nnamespace poplar_codelets {\n";
  for (const std::string& id : ids) text += table_function(id) + ";\n";
  text += "}  // namespace poplar_codelets\n"
          "extern \"C\" __attribute__((visibility(\"default\"))) const ::poplar::vertex_table::Table* "
          "poplar_vertex_table() {\n";
  if (!ids.empty()) text += "  static const ::poplar::vertex_table::Part parts[] = {\n";
  for (const std::string& id : ids) text += "    poplar_codelets::table_" + id + "(),\n";
  if (!ids.empty()) text += "  };\n";
  return text + "  static const ::poplar::vertex_table::Table table{" + (ids.empty() ? "nullptr" : "parts") + ", " +
         std::to_string(ids.size()) + "};\n  return &table;\n}\n";
}

}  // namespace popc
