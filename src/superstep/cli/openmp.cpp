// superstep openmp FILE.c: a C program with target constructs, translated, compiled and run on modelled
// tiles.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>

#include "superstep/base/file.h"
#include "superstep/base/system/child_process.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/openmp/program/profile_page.h"
#include "superstep/openmp/program/report_json.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::vector<std::string> words;
  std::string machine = "gc200", launch = "captured", keep, profile, arguments;
  std::int64_t units = 1, tiles = 0;
  bool check = false, timing_only = false, explain = false;
};

// With this program's own input and outputs. Its exit code. Throws Error (interrupted) where the user stopped
// both.
int run(const std::vector<std::string>& command) {
  pid_t child = 0;
  std::vector<std::string> kept = command;
  if (posix_spawnp(&child, kept[0].c_str(), nullptr, nullptr, words_of(kept).data(), environ) != 0)
    throw Error(ErrorCode::not_found, "cannot be started", kept[0],
                "superstep-cc is built where Clang 19's library is installed (libclang-19-dev, llvm-19-dev)");
  const int status = wait_for_process(child);
  if (interrupted()) throw Error(ErrorCode::interrupted, "with what it had started", command[0]);
  return status;
}

std::string translator() {
  const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "superstep-cc";
  return std::filesystem::exists(beside) ? beside.string() : "superstep-cc";
}

// A folder for the program, gone at the end unless it is to stay.
class Folder {
 public:
  explicit Folder(const std::string& keep) : keep_(!keep.empty()) {
    if (keep_) {
      make_folder(keep);
      path = keep;
      return;
    }
    std::string pattern = (std::filesystem::temp_directory_path() / "superstep-openmp-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw Error(ErrorCode::io, "no temporary folder can be made", pattern, "name one: --keep FOLDER");
    path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    if (!keep_) std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;

 private:
  bool keep_;
};

std::string options_of(const Arguments& a) {
  std::string options = fmt::format("units={},launch={}", a.units, a.launch);
  if (a.tiles > 0) options += fmt::format(",tiles={}", a.tiles);
  if (a.check) options += ",check";
  if (a.timing_only) options += ",timing-only";
  return options;
}

void show(const openmp::ProgramReport& report) {
  if (!common().quiet) openmp::print_report(std::cout, report.report);
  for (const openmp::RegionOutcome& region : report.regions) {
    if (region.on_one_tile + region.on_host > 0 && !region.reason.empty())
      fmt::print("{}: {} launches on one tile, {} on the host: {}\n", region.what, region.on_one_tile,
                 region.on_host, region.reason);
    if (region.checked > 0)
      fmt::print("{}: {} launches checked: {}\n", region.what, region.checked,
                 region.difference.empty() ? "as on the host" : region.difference);
  }
}

void run_program(const Arguments& a) {
  std::vector<std::string> compile{translator()}, files;
  std::size_t count = 0;
  while (count < a.words.size() && a.words[count].ends_with(".c")) files.push_back(a.words[count++]);
  if (files.empty() || count < a.words.size())
    throw Error(ErrorCode::invalid_argument, "not a C file (.c)",
                a.words[std::min(count, a.words.size() - 1)], "superstep openmp FILE.c");
  const Folder folder(a.keep);
  const std::string program = (folder.path / "program").string();
  compile.insert(compile.end(), files.begin(), files.end());
  if (a.explain) compile.push_back("--explain");
  if (!a.keep.empty()) compile.push_back("--keep");
  compile.insert(compile.end(), {"-o", program});
  if (const int status = run(compile); status != 0)
    throw Error(ErrorCode::unsupported, "was not translated or not compiled", files[0],
                "see the messages above");
  const std::filesystem::path report = folder.path / "report.json";
  setenv("SUPERSTEP_OMP_ON", a.machine.c_str(), 1);
  setenv("SUPERSTEP_OMP_OPTIONS", options_of(a).c_str(), 1);
  setenv("SUPERSTEP_OMP_REPORT", report.c_str(), 1);
  if (!a.profile.empty()) {
    make_folder(a.profile);  // before the work
    setenv("SUPERSTEP_OMP_PROFILE", std::filesystem::absolute(a.profile).c_str(), 1);
  }
  std::vector<std::string> call{program};
  std::istringstream arguments(a.arguments);
  for (std::string word; arguments >> word;) call.push_back(word);
  call.insert(call.end(), common().handed_on.begin(), common().handed_on.end());
  const int status = run(call);
  if (!std::filesystem::exists(report)) {
    if (status != 0)
      throw Error(ErrorCode::unsupported, fmt::format("the program ended with {}", status), files[0]);
    fmt::print("no target construct was reached\n");
    return;
  }
  const openmp::ProgramReport result = openmp::read_program_report(report);
  show(result);
  if (!a.profile.empty()) {
    openmp::write_profile_page(result, files[0], a.profile);
    if (!common().quiet)
      fmt::print("written to {}\n", (std::filesystem::path(a.profile) / "profile.html").string());
  }
  record::Result written = command_result("openmp", files[0], {{"on", a.machine}, {"options", options_of(a)}},
                                          {{.name = "cycles",
                                            .value = static_cast<double>(result.report.cycles),
                                            .unit = "cycles",
                                            .how = How::predicted}},
                                          a.machine);
  written.details = result.json;
  write_result(std::move(written));
  for (const openmp::RegionOutcome& region : result.regions)
    if (!region.difference.empty())
      throw Error(ErrorCode::internal, "the tiles and the host differ: " + region.difference, region.what);
  if (status != 0)
    throw Error(ErrorCode::unsupported, fmt::format("the program ended with {}", status), files[0]);
}

}  // namespace

void declare_openmp(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  command.add_option("words", a->words, "C files")->type_name("FILE.c")->required();
  command.add_option("--on", a->machine, "the machine: gc2, gc200, bow")->capture_default_str();
  command.add_option("--units", a->units, "its chips")
      ->check(whole_number_from(1, 64))
      ->capture_default_str();
  command.add_option("--tiles", a->tiles, "tiles of each chip that are used (default: all)")
      ->check(whole_number_from(1, 1472));
  command.add_option("--launch", a->launch, "captured: time loops on the device; each: every region alone")
      ->check(CLI::IsMember({"captured", "each"}))
      ->capture_default_str();
  command.add_flag("--check", a->check, "run every region on the host too, and compare");
  command.add_flag("--timing-only", a->timing_only, "cycles and memory alone, no data");
  command.add_flag("--explain", a->explain, "what becomes of every region, before it runs");
  command.add_option("--args", a->arguments, "the same as words behind --, in one text")->type_name("TEXT");
  command.add_option("--profile", a->profile, "a folder for pages: regions by their lines, and the machine")
      ->type_name("FOLDER");
  command.add_option("--keep", a->keep, "a folder for the translated C and the program")->type_name("FOLDER");
  command.footer(
      "Data of the regions are real, cycles are those of the machine's model. What is not dealt to tiles "
      "says why. Words behind -- are the program's.\n"
      "Examples:\n"
      "  superstep openmp heat.c --tiles 64 --check -- 130 20\n"
      "  superstep openmp heat.c --units 4 --json heat.json\n"
      "  superstep openmp heat.c --profile pages/ -- 258 100    what each directive took, line by line");
  command.callback([a] { run_program(*a); });
}

}  // namespace superstep::cli
