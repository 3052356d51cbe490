// superstep convert IN OUT: samples of any form in another.
#include "superstep/file/convert/convert.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/data/open_samples.h"
#include "superstep/cli/shared/bytes_at.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/file/convert/file_states.h"
#include "superstep/file/convert/sample_writer.h"
#include "superstep/file/source/paths.h"

namespace superstep::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string in;
  SampleOptions samples;
  data::ConvertRequest request;
};

std::string examples() {
  return "Examples:\n"
         "  superstep convert photos photos.h5 --for resnet50       pictures brought to the workload's size\n"
         "  superstep convert 'scans/*.npz' scans.tar               several files as one web data set\n"
         "  superstep convert patches.h5 patches.tfrecord --array patch --array ploc\n"
         "  superstep convert texts tokens.h5 --tokenizer gpt2/tokenizer.json --length 1024\n"
         "OUT is read back and compared before it has its name. Ctrl-C stops; the same call goes on.";
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code none;
  const fs::path inner = fs::weakly_canonical(fs::absolute(file, none), none),
                 outer = fs::weakly_canonical(fs::absolute(folder, none), none);
  const auto [in_outer, in_inner] = std::ranges::mismatch(outer, inner);
  return in_outer == outer.end() || (std::next(in_outer) == outer.end() && in_outer->empty());
}

// What the samples depend on, in words: the files as they are now, and the options.
std::string resume_key(const Arguments& arguments) {
  const SampleOptions& options = arguments.samples;
  std::vector<std::filesystem::path> paths = data::named_paths(arguments.in);
  if (!options.tokenizer.empty()) paths.emplace_back(options.tokenizer);
  return nlohmann::json{{"version", SUPERSTEP_VERSION},
                        {"in", fs::absolute(arguments.in).string()},
                        {"files", data::state_of_files(paths)},
                        {"for", options.workload},
                        {"tokenizer", options.tokenizer},
                        {"length", options.length},
                        {"stride", options.stride},
                        {"skip_broken", options.skip_broken},
                        {"scale", options.scale},
                        {"offset", options.offset}}
      .dump();
}

// What is written in the place of what is read, or among it, would be read the next time.
void require_outside(const Arguments& arguments) {
  std::error_code none;
  const fs::path& out = arguments.request.out;
  for (const fs::path& path : data::named_paths(arguments.in)) {
    const bool folder = fs::is_directory(path, none);
    if (folder ? lies_in(out, path) : fs::exists(out, none) && fs::equivalent(path, out, none))
      throw Error(ErrorCode::invalid_argument,
                  folder ? "would be written into a folder that is read"
                         : "is one of the files that are read: it would be overwritten",
                  out.string(), "name another file to write");
  }
}

nlohmann::json describe(const data::ConvertedArray& each) {
  return {{"name", each.array.name},
          {"written_as", each.name},
          {"type", superstep::name_of(each.array.type)},
          {"shape", each.array.shape().extents()},
          {"sha256", each.sha256}};
}

void report(const Arguments& arguments, const data::Converted& done, double seconds) {
  const double bytes = bytes_at(arguments.request.out.string());
  nlohmann::json config{{"in", arguments.in}, {"form", done.form}, {"threads", thread_count()}};
  record::Result result =
      command_result("convert", arguments.samples.workload, config,
                     {{.name = "samples", .value = static_cast<double>(done.samples)},
                      {.name = "throughput",
                       .value = static_cast<double>(done.samples - done.continued_from) / seconds,
                       .unit = "samples/s"},
                      {.name = "elapsed", .value = seconds, .unit = "s"}});
  result.details = {{"file", arguments.request.out.string()},
                    {"bytes", bytes},
                    {"notes", done.notes},
                    {"continued_from", done.continued_from}};
  for (const data::ConvertedArray& each : done.arrays) result.details["arrays"].push_back(describe(each));
  write_result(std::move(result));
  if (common().quiet) return;
  TextTable table({"array", "type", "shape", "sha256"});
  for (const data::ConvertedArray& each : done.arrays)
    table.add_row({printable(each.name), superstep::name_of(each.array.type), to_string(each.array.shape()),
                   each.sha256.substr(0, 16)});
  fmt::print("{}", table.to_string());
  for (const std::string& note : done.notes) fmt::print("{}\n", printable(note));
  if (done.continued_from > 0)
    fmt::print("gone on with behind {} samples that a stopped call had written\n",
               format_count(static_cast<double>(done.continued_from)));
  fmt::print("{}: {} samples, {}, in {}; read back: the same\n", arguments.request.out.string(),
             format_count(static_cast<double>(done.samples)), format_bytes(bytes), format_seconds(seconds));
}

void convert(const Arguments& arguments) {
  require_outside(arguments);
  // Refused before anything is read.
  data::require_replaceable(arguments.request.out,
                            data::find_writer_form(arguments.request.form, arguments.request.out));
  data::ConvertRequest request = arguments.request;
  request.resume_key = resume_key(arguments);
  const auto source = open_samples(arguments.in, arguments.samples);
  ThreadPool pool(thread_count());
  const Stopwatch watch;
  const data::Converted done = data::convert_samples(*source, request, pool);
  report(arguments, done, watch.seconds());
}

}  // namespace

void declare_convert(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command
      .add_option("IN", arguments->in,
                  "a file or folder of data in any form that `show` reads, a pattern of names, or @LIST")
      ->required();
  command
      .add_option(
          "OUT", arguments->request.out,
          "what to write: .h5 (HDF5), .npz, .tar (web data set), .tfrecord, .parquet, .jsonl or .zarr")
      ->required();
  command.add_option("--to", arguments->request.form, "its form, where the name does not say it")
      ->type_name("FORM");
  command.add_option("--array", arguments->request.arrays, "write only this array (may be repeated)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  add_sample_options(command, arguments->samples);
  command.footer(examples());
  command.callback([arguments] { convert(*arguments); });
}

}  // namespace superstep::cli
