// popc: compiles codelets to a shared object that the library loads.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "mix.h"
#include "parts.h"
#include "registration.h"
#include "vertices.h"

namespace {

using Words = std::vector<std::string>;
namespace fs = std::filesystem;

constexpr const char* usage =
    "usage: popc [-o FILE.gp] [-I FOLDER] [-D NAME=VALUE] [-O LEVEL] [-g] [-W...] [-std=...] FILE...\n"
    "  FILE: C++ (.cpp), what popc has made (.gp), which is joined, or assembly (.S, .s), which is left out\n"
    "  --target NAME[,NAME]  cpu, ipu1, ipu2: the same code for each, on the host\n"
    "  --list-targets        names of targets\n"
    "  --dependencies FILE   which files were read, a line each\n"
    "The compiler is Clang, or what SUPERSTEP_POPC_COMPILER names.\n";

struct Call {
  Words files, arguments, options;  // arguments: those that change what is read; options: those of code alone
  std::string out = "a.gp", dependencies;
};

bool takes_a_word(const std::string& word) {
  return word == "-I" || word == "-D" || word == "-U" || word == "-include" || word == "-isystem";
}

bool is_source(const std::string& file) {
  return file.ends_with(".cpp") || file.ends_with(".cc") || file.ends_with(".cxx");
}
// Of a tile: this host runs the C++ of the same vertices.
bool is_assembly(const std::string& file) { return file.ends_with(".S") || file.ends_with(".s"); }

// 0: go on; else the exit code of a call that is done.
int read_call(int count, char** words, Call& call) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool more = i + 1 < count;
    if (word == "--list-targets") return std::puts("cpu,ipu1,ipu2"), -1;
    if (word == "--help" || word == "-h") return std::fputs(usage, stdout), -1;
    if (word == "-o" && more)
      call.out = words[++i];
    else if (word == "--dependencies" && more)
      call.dependencies = words[++i];
    else if ((word == "--target" || word == "-target") && more)
      ++i;
    else if (takes_a_word(word) && more)
      call.arguments.insert(call.arguments.end(), {word, words[++i]});
    else if (word.starts_with("--target="))
      continue;
    else if (word.starts_with("-O") || word == "-g" || word.starts_with("-X"))
      call.options.push_back(word);
    else if (word.starts_with("-"))
      call.arguments.push_back(word);
    else
      call.files.push_back(word);
  }
  for (const std::string& file : call.files)
    if (!is_source(file) && !file.ends_with(".gp") && !is_assembly(file))
      return std::fprintf(stderr, "popc: error: %s: only C++ can be compiled (.cpp), and .gp joined\n", file.c_str()), 2;
  return call.files.empty() ? (std::fputs(usage, stderr), 2) : 0;
}

// The headers of the tree that this program is installed in, else those of the sources.
std::string headers() {
  std::error_code ignored;
  const fs::path installed =
      fs::read_symlink("/proc/self/exe", ignored).parent_path() / SUPERSTEP_INSTALLED_HEADERS;
  return fs::exists(installed / "poplar/VertexTable.hpp", ignored) ? installed.lexically_normal().string()
                                                                   : SUPERSTEP_POPLAR_HEADERS;
}

int run(const Words& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, list[0], nullptr, nullptr, list.data(), environ) != 0) {
    std::fprintf(stderr, "popc: error: %s cannot be started: install clang-19 or set SUPERSTEP_POPC_COMPILER\n",
                 list[0]);
    return 1;
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

bool write(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (out.flush()) return true;
  std::fprintf(stderr, "popc: error: %s cannot be written\n", file.c_str());
  return false;
}

// What codelets are read as, whoever reads them. Access is not looked at: fields may be private, and the table names
// them.
Words language(const Call& call) {
  Words words{"-std=c++17", "-D__POPC__=1", "-fno-access-control", "-Wno-unknown-attributes", "-I" + headers()};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  return words;
}

std::string compiler() {
  const char* chosen = std::getenv("SUPERSTEP_POPC_COMPILER");
  if (chosen && *chosen) return chosen;
  std::error_code ignored;
  return fs::exists(SUPERSTEP_CLANG_COMPILER, ignored) ? SUPERSTEP_CLANG_COMPILER : "clang++-19";
}

// What code is made by. Nothing that lets a compiler round otherwise than the source says.
Words code(const Call& call) {
  Words words{compiler(), "-O2", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden"};
  words.insert(words.end(), call.options.begin(), call.options.end());
  return words;
}

// Bitcode of a source, before anything is made of it.
int compile(const Call& call, const std::string& source, const std::string& out) {
  Words words = code(call);
  const Words more = language(call);
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"-Wno-invalid-offsetof", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", source, "-o",
                             out});
  return run(words);
}

// An object file of bitcode (`how`: -c), or the file that is linked (-shared).
int translate(const Call& call, const char* how, const Words& files, const std::string& out) {
  Words words = code(call);
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  words.insert(words.end(), {"-Wno-unused-command-line-argument", how});
  words.insert(words.end(), files.begin(), files.end());
  words.insert(words.end(), {"-o", out});
  return run(words);
}

// The object files of a call, in a folder: compiled, or out of files that were.
class Parts {
 public:
  explicit Parts(fs::path folder) : folder_(std::move(folder)) {}

  int add_source(const Call& call, const std::string& file) {
    std::error_code missing;
    const fs::path whole = fs::canonical(file, missing);
    if (missing) return std::fprintf(stderr, "popc: error: there is no file %s\n", file.c_str()), 1;
    const popc::Found found = popc::find_vertices(file, language(call));
    if (!found.done) return 1;
    read_.insert(read_.end(), found.files.begin(), found.files.end());
    std::string key = popc::registration(whole, "", found.vertices);
    for (const std::string& argument : call.arguments) key += argument + "\n";
    const std::string id = popc::word_of(key);
    const std::string stem = folder_ / id;
    if (!write(stem + ".cpp", popc::registration(whole, id, found.vertices))) return 1;
    if (const int code = compile(call, stem + ".cpp", stem + ".bc")) return code;
    popc::count_instructions(stem + ".bc", id);
    if (const int code = translate(call, "-c", {stem + ".bc"}, stem + ".o")) return code;
    add(id, stem + ".o");
    return 0;
  }

  int add_compiled(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    const auto parts = in ? popc::parts_of(bytes) : std::nullopt;
    if (!parts) return std::fprintf(stderr, "popc: error: %s: no file that popc has made\n", file.c_str()), 1;
    for (const popc::Part& part : *parts) {
      const std::string object = folder_ / (part.id + ".o");
      if (!write(object, part.object)) return 1;
      add(part.id, object);
    }
    return 0;
  }

  int link(const Call& call) const {
    const std::string joined = folder_ / "joined.cpp";
    Words ids, files{joined};
    for (const auto& [id, object] : objects_) {
      ids.push_back(id);
      files.push_back(object);
    }
    if (!write(joined, popc::joined_tables(ids) + popc::source_of_parts(objects_))) return 1;
    return translate(call, "-shared", files, call.out);
  }

  const Words& files_read() const { return read_; }

 private:
  // What is there already is the same codelets, compiled for another target: one is enough on this host.
  void add(const std::string& id, const std::string& object) {
    for (const auto& [known, file] : objects_)
      if (known == id) return;
    objects_.emplace_back(id, object);
  }

  fs::path folder_;
  std::vector<std::pair<std::string, std::string>> objects_;  // id, file
  Words read_;
};

int make(const Call& call, const fs::path& folder) {
  Parts parts(folder);
  for (const std::string& file : call.files) {
    if (is_assembly(file)) continue;
    if (const int code = is_source(file) ? parts.add_source(call, file) : parts.add_compiled(file)) return code;
  }
  if (const int code = parts.link(call)) return code;
  std::string list;
  for (const std::string& file : parts.files_read()) list += file + "\n";
  return call.dependencies.empty() || write(call.dependencies, list) ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  Call call;
  if (const int code = read_call(count, words, call)) return code < 0 ? 0 : code;
  std::string folder = (fs::temp_directory_path() / "popc-XXXXXX").string();
  if (!mkdtemp(folder.data())) return std::fputs("popc: error: no temporary folder can be made\n", stderr), 1;
  const int code = make(call, folder);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return code;
}
