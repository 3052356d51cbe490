#include "superstep/poplar/codelet/compile_codelets.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <poplar/VertexTable.hpp>
#include <poplar/exceptions.hpp>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/file.h"
#include "superstep/base/system/child_process.h"
#include "superstep/base/system/user_folders.h"

namespace poplar::core {
namespace {

namespace fs = std::filesystem;

// Beside this library as it is installed or built; else what PATH has, or SUPERSTEP_POPC names.
fs::path find_popc() {
  if (const char* chosen = std::getenv("SUPERSTEP_POPC"); chosen && *chosen) return chosen;
  Dl_info here{};
  std::error_code ignored;
  if (dladdr(reinterpret_cast<const void*>(&find_popc), &here) && here.dli_fname) {
    const fs::path folder = fs::absolute(here.dli_fname, ignored).parent_path();
    for (const char* place : {SUPERSTEP_POPC_FROM_LIBRARY, "../bin"}) {
      const fs::path program = folder / place / "popc";
      if (fs::exists(program, ignored)) return program.lexically_normal();
    }
  }
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path ? path : ""; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const fs::path program = fs::path(rest.substr(0, end)) / "popc";
    if (end > 0 && fs::exists(program, ignored)) return program;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  throw graph_program_compilation_error(
      "codelets cannot be compiled here: there is no popc, neither beside the library nor in PATH. It is "
      "made where "
      "Clang 19's library is (packages clang-19, libclang-19-dev, llvm-19-dev) and installed with the "
      "library");
}

class Key {
 public:
  void add(std::string_view text) {
    const std::uint64_t size = text.size();
    hash_.add(std::as_bytes(std::span(&size, 1)));
    hash_.add(std::as_bytes(std::span(text.data(), text.size())));
  }
  void add_state(const fs::path& file) {  // of a program: its place, size and time
    std::error_code ignored;
    add(file.string());
    add(std::to_string(fs::file_size(file, ignored)));
    add(std::to_string(fs::last_write_time(file, ignored).time_since_epoch().count()));
  }
  std::string name() { return hash_.hexadecimal(); }

 private:
  superstep::Sha256 hash_;
};

std::string content_name(const fs::path& file) {
  Key key;
  key.add(superstep::read_text_file(file));
  return key.name();
}

// Beside the objects, a manifest a call: which files were read, with names of their contents, and which
// object was made of them. Objects have names of all that went into them, so that none takes the place of one
// that is loaded.
struct Manifest {
  std::string files;  // lines of a content's name and a path

  std::string object_name(const std::string& call) const {
    Key key;
    key.add(call);
    key.add(files);
    return key.name() + ".gp";
  }
};

// Empty where there is none, or where one of its files has changed or is gone.
std::optional<Manifest> read_manifest(const fs::path& file) {
  std::ifstream lines(file);
  if (!lines) return std::nullopt;
  Manifest manifest;
  try {
    for (std::string line; std::getline(lines, line);) {
      const std::size_t space = line.find(' ');
      if (space == std::string::npos || content_name(line.substr(space + 1)) != line.substr(0, space))
        return std::nullopt;
      manifest.files += line + "\n";
    }
  } catch (const superstep::Error&) {
    return std::nullopt;
  }
  return manifest;
}

Manifest manifest_of(const fs::path& dependencies) {
  Manifest manifest;
  std::ifstream lines(dependencies);
  for (std::string line; std::getline(lines, line);) manifest.files += content_name(line) + " " + line + "\n";
  return manifest;
}

// Words as a shell would split them, quotes taken off.
std::vector<std::string> words_of_flags(const std::string& flags) {
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  bool begun = false;
  for (const char letter : flags) {
    if (quote) {
      if (quote == letter)
        quote = 0;
      else
        word += letter;
    } else if (letter == '"' || letter == '\'') {
      quote = letter;
      begun = true;
    } else if (letter == ' ' || letter == '\t' || letter == '\n') {
      if (begun) words.push_back(std::exchange(word, {}));
      begun = false;
    } else {
      word += letter;
      begun = true;
    }
  }
  if (begun) words.push_back(word);
  return words;
}

void run_popc(std::vector<std::string> command, const fs::path& said) {
  const auto child = superstep::start_process(command, said);
  if (!child) throw graph_program_compilation_error("popc cannot be started: " + command[0]);
  const int code = superstep::wait_for_process(*child);
  std::error_code ignored;
  std::string text;
  if (code != 0) text = superstep::read_text_file(said);
  fs::remove(said, ignored);
  if (code != 0) throw graph_program_compilation_error("codelets do not compile:\n" + text);
}

}  // namespace

fs::path compile_codelets(const std::vector<std::string>& files, const std::string& flags) {
  const fs::path popc = find_popc();
  Key key;
  key.add_state(popc);
  key.add(std::to_string(vertex_table::VERSION));
  key.add(flags);
  std::error_code ignored;
  key.add(fs::current_path(ignored).string());  // what flags and includes are relative to
  for (const std::string& file : files) {
    if (!fs::exists(file, ignored))
      throw graph_program_compilation_error(
          fmt::format("there is no file of codelets '{}' in {}", file, fs::current_path(ignored).string()));
    key.add(file);
    key.add(superstep::read_text_file(file));
  }
  const fs::path folder = superstep::user_cache_folder() / "codelets";
  superstep::make_folder(folder);
  const std::string call = key.name();
  const fs::path list = folder / (call + ".files");
  if (const auto manifest = read_manifest(list)) {
    const fs::path object = folder / manifest->object_name(call);
    if (fs::exists(object, ignored)) return object;
  }
  // Written under names of this call and renamed: another process sees whole files alone.
  static std::atomic<unsigned> calls = 0;
  const std::string own = fmt::format("{}.{}-{}", (folder / call).string(), getpid(), ++calls);
  std::vector<std::string> command{popc.string(), "-o", own + ".gp", "--dependencies", own + ".list"};
  const std::vector<std::string> words = words_of_flags(flags);
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), files.begin(), files.end());
  run_popc(command, own + ".said");
  const Manifest manifest = manifest_of(own + ".list");
  fs::remove(own + ".list", ignored);
  const fs::path object = folder / manifest.object_name(call);
  fs::rename(own + ".gp", object);
  superstep::write_file_atomically(list, manifest.files);
  return object;
}

}  // namespace poplar::core
