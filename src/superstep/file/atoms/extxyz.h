// Extended XYZ files, as ASE, OVITO and QUIP read and write them: for each frame the number of atoms, a line
// of key=value pairs, and a line an atom.
//
// Written: Lattice (rows of the box, when periodic), Properties=species:S:1:pos:R:3[:velo:R:3][:forces:R:3],
// energy, pbc and what the caller adds. Read: the same, in any order of columns, with unknown columns and
// keys kept out of the way; and plain XYZ, whose second line is free text. Units are A and eV by convention.
// A file is read frame by frame and may hold anything: damage is an Error (bad_file) that names file and
// line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/file/atoms/configuration.h"

namespace superstep::data {

struct XyzFrame {
  Configuration configuration;
  Labels labels;
  std::map<std::string, std::string> info;  // the other keys, values as text
  std::vector<Cartesian> velocities;        // A/fs by convention (column velo); empty for none
};

class XyzReader {
 public:
  explicit XyzReader(const std::filesystem::path& path);  // throws Error (not_found)
  // Reads from anywhere; `where` names the source in errors.
  XyzReader(std::unique_ptr<std::istream> stream, std::string where);
  bool next(XyzFrame& frame);  // false at the end

 private:
  struct Columns;
  std::string require_line(const char* what);
  std::int64_t read_count(const std::string& text) const;
  Columns read_comment(const std::string& text, XyzFrame& frame) const;
  void read_atom(const std::string& text, const Columns& columns, XyzFrame& frame) const;
  double number(std::string_view text) const;
  [[noreturn]] void refuse(const std::string& message) const;

  std::unique_ptr<std::istream> stream_;
  std::string where_;
  std::size_t line_ = 0;
};

std::vector<XyzFrame> read_xyz(const std::filesystem::path& path);

// One frame as text. Numbers have the digits that read back as the same double.
std::string format_xyz(const XyzFrame& frame);

}  // namespace superstep::data
