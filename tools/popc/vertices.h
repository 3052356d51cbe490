// Which vertices a file of codelets has.
#pragma once

#include <string>
#include <vector>

namespace popc {

struct Field {
  std::string name;
  std::string file;
  unsigned line = 0;
};

struct Vertex {
  std::string name;  // as a graph asks for it: popops::Add<popops::Kind::FAST,half>
  std::string type;  // as code writes it
  std::vector<Field> fields;
  bool constructed = false;  // it begins as its constructor says, whose code the file has; else as zeros
};

struct Found {
  bool done = false;
  std::vector<Vertex> vertices;
  std::vector<std::string> files;  // that were read, but for the system's
};

// Parses the file and lists every class derived from a kind of vertex, and every instance of a template of one that
// the file names. What is wrong with the file is said on standard error, with its place, and `done` is false.
Found find_vertices(const std::string& file, const std::vector<std::string>& arguments);

}  // namespace popc
