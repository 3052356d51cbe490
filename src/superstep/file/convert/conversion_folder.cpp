#include "superstep/file/convert/conversion_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/system/partial_files.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string digest_of(std::string_view text) {
  Sha256 sum;
  sum.add(std::as_bytes(std::span(text)));
  return sum.hexadecimal();
}

// Begins with a point: no pattern of names and no reader of folders takes it for data.
fs::path folder_beside(const fs::path& out) {
  const fs::path whole = out.has_filename() ? out : out.parent_path();
  return whole.parent_path() / ("." + whole.filename().string() + ".converting");
}

std::string text_of(const ConversionState& state, const std::string& key) {
  json sums = json::array();
  for (const Sha256& sum : state.sums) sums.push_back(sum.kept());
  return json{{"key", key},   {"checking", state.checking}, {"group", state.group}, {"row", state.row},
              {"sums", sums}, {"written", state.written},   {"mark", state.mark}}
      .dump();
}

// Its digest stands in front: what was damaged, or is of another program, is no state.
std::optional<ConversionState> read_state(const fs::path& path, const std::string& key) {
  std::error_code none;
  if (!fs::exists(path, none)) return std::nullopt;
  const std::string text = read_text_file(path);
  const std::size_t line = text.find('\n');
  if (line == std::string::npos || digest_of(std::string_view(text).substr(line + 1)) != text.substr(0, line))
    return std::nullopt;
  const json all = parse_json(std::string_view(text).substr(line + 1));
  if (!all.is_object() || all.value("key", "") != key) return std::nullopt;
  ConversionState state{.checking = all.at("checking"),
                        .group = all.at("group"),
                        .row = all.at("row"),
                        .sums = {},
                        .written = all.at("written"),
                        .mark = all.at("mark")};
  for (const json& sum : all.at("sums")) {
    const auto kept = Sha256::from_kept(sum.get<std::string>());
    if (!kept) return std::nullopt;
    state.sums.push_back(*kept);
  }
  return state;
}

}  // namespace

ConversionFolder::ConversionFolder(const fs::path& out, const std::string& key)
    : out_(out), folder_(key.empty() ? fs::path(partial_name(out)) : folder_beside(out)), key_(key) {
  (void)partial_name(out);  // refuses devices and pipes
  std::error_code none;
  if (fs::exists(folder_, none) && !fs::is_empty(folder_, none) && !fs::exists(folder_ / "lock", none))
    throw Error(ErrorCode::invalid_argument, "is needed to convert in, and something else is there",
                folder_.string(), "name another place to write");
  make_folder(folder_);
  lock_.emplace(folder_);
  kept_ = keeps();
  if (!keeps()) return;
  const bool there = fs::exists(folder_ / "state");
  left_ = read_state(folder_ / "state", key_);
  began_again_ = there && !left_;
  if (!left_) clear();
}

ConversionFolder::~ConversionFolder() {
  std::error_code none;
  if (!kept_) fs::remove_all(folder_, none);
}

void ConversionFolder::begin_again() {
  left_.reset();
  began_again_ = true;
  clear();
}

// The state first: what is left of the rest is nobody's then.
void ConversionFolder::clear() const {
  std::error_code none;
  fs::remove(folder_ / "state", none);
  std::vector<fs::path> others;
  for (fs::directory_iterator entry(folder_, none), end; entry != end; entry.increment(none))
    if (entry->path().filename() != "lock") others.push_back(entry->path());
  for (const fs::path& path : others) fs::remove_all(path, none);
}

void ConversionFolder::save(const ConversionState& state) const {
  if (!keeps()) return;
  const std::string text = text_of(state, key_);
  write_file_atomically(folder_ / "state", digest_of(text) + "\n" + text);
}

void ConversionFolder::put_in_place() const {
  std::error_code none;
  const fs::path written = data();
  const bool folder = fs::is_directory(written, none);
  const int file = ::open(written.c_str(), O_RDONLY | O_CLOEXEC);
  const bool on_disk = file >= 0 && (folder ? ::syncfs(file) : ::fsync(file)) == 0;
  if (file >= 0) ::close(file);
  // A folder takes the place of an empty one alone.
  if (folder && on_disk && fs::is_directory(out_, none)) {
    const fs::path before = partial_name(out_);
    fs::rename(out_, before, none);
    const bool placed = !none && ::rename(written.c_str(), out_.c_str()) == 0;
    if (!placed && !none) fs::rename(before, out_, none);
    if (placed) fs::remove_all(before, none);
    if (placed) return;
  }
  if (!on_disk || ::rename(written.c_str(), out_.c_str()) != 0)
    throw Error(ErrorCode::io, "could not be put in place: is the disk full?", out_.string());
}

}  // namespace superstep::data
