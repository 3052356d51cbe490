// Keeps the ONNX files that tests write, for tests/written, which has other programs read them.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace superstep {

// What a kept file is called: a number of its bytes (FNV-1a, 64 bits), so that one that many tests write is
// kept once.
inline std::string number_of(const std::string& bytes) {
  std::uint64_t number = 14695981039346656037u;
  for (const char byte : bytes) number = (number ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(number >> shift) & 15];
  return text;
}

// Copies every .onnx below `folder` (or `folder` itself, a file) into the folder that $SUPERSTEP_KEEP_WRITTEN
// names, as NUMBER.onnx, beside NUMBER.txt with who wrote it. One that is no model on purpose has "broken" in
// its path and goes into broken/; files of 2 GiB, which no protobuf reads, are left. Does nothing without
// that variable.
inline void keep_written(const std::filesystem::path& folder, const std::string& writer) {
  namespace fs = std::filesystem;
  const char* kept = std::getenv("SUPERSTEP_KEEP_WRITTEN");
  if (kept == nullptr || *kept == '\0') return;
  const auto keep = [&](const fs::path& file) {
    if (file.extension() != ".onnx" || !fs::is_regular_file(file)) return;
    if (fs::file_size(file) >= std::uintmax_t{1} << 31) return;
    std::ifstream input(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(input), {}};
    const std::string name = file.lexically_relative(folder.parent_path()).string();
    const fs::path place = fs::path(kept) / (name.find("broken") == std::string::npos ? "" : "broken");
    const std::string number = number_of(bytes);
    if (fs::exists(place / (number + ".onnx"))) return;
    fs::create_directories(place);
    std::ofstream(place / (number + ".txt")) << writer << ": " << name << "\n";
    const fs::path half = place / (number + "." + std::to_string(::getpid()));
    std::ofstream(half, std::ios::binary) << bytes;
    fs::rename(half, place / (number + ".onnx"));
  };
  if (!fs::is_directory(folder)) return keep(folder);
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) keep(entry.path());
}

}  // namespace superstep
