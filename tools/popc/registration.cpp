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

std::string entry_of(const Vertex& vertex, const std::string& number) {
  const std::string fields = vertex.fields.empty() ? "nullptr" : "fields_" + number;
  const std::string runner = table + ("Runner<V" + number) + ", " + table + "kind<V" + number + ">()>::";
  return "  {" + quoted(vertex.name) + ", " + table + "kind<V" + number + ">(), sizeof(V" + number + "), alignof(V" +
         number + "), " + fields + ", " + std::to_string(vertex.fields.size()) + ", " + runner + "prepare, " + runner +
         "compute},\n";
}

std::string table_function(std::size_t file) {
  return "const ::poplar::vertex_table::Vertex* table_" + std::to_string(file) + "(std::size_t& count)";
}

}  // namespace

std::string registration(const std::string& file, std::size_t number, const std::vector<Vertex>& vertices) {
  std::string text = "#include " + quoted(file) + "\n#include <poplar/VertexTable.hpp>\nnamespace poplar_codelets {\n";
  text += table_function(number) + ";\nnamespace {\n";
  std::string entries;
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const std::string name = std::to_string(i);
    text += "using V" + name + " = ::" + vertices[i].type + ";\n" + fields_of(vertices[i], name);
    entries += entry_of(vertices[i], name);
  }
  if (!vertices.empty()) text += "const ::poplar::vertex_table::Vertex vertices[] = {\n" + entries + "};\n";
  text += "}  // namespace\n" + table_function(number) + " {\n  count = " + std::to_string(vertices.size()) +
          ";\n  return " + (vertices.empty() ? "nullptr" : "vertices") + ";\n}\n}  // namespace poplar_codelets\n";
  return text;
}

std::string joined_tables(std::size_t files) {
  std::string text = "#include <poplar/VertexTable.hpp>\n#include <vector>\nnamespace poplar_codelets {\n";
  for (std::size_t i = 0; i < files; ++i) text += table_function(i) + ";\n";
  text += "}  // namespace poplar_codelets\n"
          "extern \"C\" __attribute__((visibility(\"default\"))) const ::poplar::vertex_table::Table* "
          "poplar_vertex_table() {\n"
          "  static std::vector<::poplar::vertex_table::Vertex> all;\n"
          "  static ::poplar::vertex_table::Table table;\n"
          "  if (!all.empty()) return &table;\n"
          "  std::size_t count = 0;\n"
          "  const ::poplar::vertex_table::Vertex* part = nullptr;\n";
  for (std::size_t i = 0; i < files; ++i)
    text += "  part = poplar_codelets::table_" + std::to_string(i) +
            "(count);\n  all.insert(all.end(), part, part + count);\n";
  text += "  table.version = ::poplar::vertex_table::VERSION;\n"
          "  table.vertices = all.data();\n"
          "  table.vertex_count = all.size();\n"
          "  return &table;\n}\n";
  return text;
}

}  // namespace popc
