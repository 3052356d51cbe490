// superstep-cc: compiles C with target constructs to a program that runs them on the tiles of a modelled
// machine.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "translate.h"

namespace {

using Words = std::vector<std::string>;

constexpr const char* usage =
    "usage: superstep-cc [-I FOLDER] [-D NAME=VALUE] [-std=...] [-l LIBRARY] FILE.c... [-o PROGRAM]\n"
    "  -E-omp      print the translation instead of compiling it\n"
    "  --explain   say what becomes of every region\n"
    "  --keep      leave FILE.superstep.c beside the program\n"
    "The host's compiler is gcc, or what SUPERSTEP_CC_HOST names.\n";

struct Call {
  Words files, arguments, link;
  std::string out = "a.out";
  bool print = false, explain = false, keep = false, version = false;
};

bool read_call(int count, char** words, Call& call) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool more = i + 1 < count;
    if (word == "-E-omp")
      call.print = true;
    else if (word == "--explain")
      call.explain = true;
    else if (word == "--keep")
      call.keep = true;
    else if (word == "-o" && more)
      call.out = words[++i];
    else if ((word == "-I" || word == "-D" || word == "-U" || word == "-include" || word == "-isystem") &&
             more)
      call.arguments.insert(call.arguments.end(), {word, words[++i]});
    else if (word.starts_with("-l") || word.starts_with("-L"))
      call.link.push_back(word);
    else if (word.starts_with("-O") || word == "-g" || word == "-fopenmp" || word.starts_with("-W"))
      continue;
    else if (word.starts_with("-"))
      call.arguments.push_back(word), call.version |= word.starts_with("-fopenmp-version");
    else if (word.ends_with(".c"))
      call.files.push_back(word);
    else
      return std::fprintf(stderr, "error: %s: not a C file (.c)\n", word.c_str()), false;
  }
  if (!call.version) call.arguments.push_back("-fopenmp-version=52");
  return !call.files.empty();
}

int run(const Words& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, list[0], nullptr, nullptr, list.data(), environ) != 0) {
    std::fprintf(stderr, "error: %s cannot be started; install it or set SUPERSTEP_CC_HOST\n", list[0]);
    return 1;
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// Same expression, same bits: nothing that lets a compiler round otherwise.
int compile(const Call& call, const Words& translated) {
  const char* chosen = std::getenv("SUPERSTEP_CC_HOST");
  Words words{chosen ? chosen : "gcc", "-fopenmp", "-O2", "-ftree-vectorize",
              "-ffp-contract=off",     "-w",       "-o",  call.out};
  words.insert(words.end(), translated.begin(), translated.end());
  for (const std::string& word : call.arguments)
    if (word.starts_with("-std=")) words.push_back(word);
  words.insert(words.end(), call.link.begin(), call.link.end());
  words.insert(words.end(),
               {"-L" SUPERSTEP_OMP_FOLDER, "-lsuperstep_omp", "-Wl,-rpath," SUPERSTEP_OMP_FOLDER, "-lm"});
  return run(words);
}

}  // namespace

int main(int count, char** words) {
  Call call;
  if (!read_call(count, words, call)) return std::fputs(usage, stderr), 2;
  Words translated;
  bool done = true;
  for (const std::string& file : call.files) {
    const superstep_cc::Translation translation = superstep_cc::translate(file, call.arguments);
    done = done && translation.done;
    std::fputs(translation.warnings.c_str(), stderr);
    if (call.explain) std::fputs(translation.explanation.c_str(), stderr);
    if (!translation.done) continue;
    if (call.print) {
      std::fputs(translation.text.c_str(), stdout);
      continue;
    }
    translated.push_back(call.out + "." + std::to_string(translated.size()) + ".superstep.c");
    std::ofstream out(translated.back());
    out << translation.text;
    if (!out.flush())
      return std::fprintf(stderr, "error: %s cannot be written\n", translated.back().c_str()), 1;
  }
  if (!done) return 1;
  if (call.print) return 0;
  const int result = compile(call, translated);
  if (!call.keep)
    for (const std::string& file : translated) unlink(file.c_str());
  return result;
}
