#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/stable_file.h"
#include "superstep/base/thread_pool.h"
#include "superstep/file/form.h"
#include "superstep/file/source/ordered_source.h"
#include "superstep/file/source/paths.h"
#include "superstep/language/text/text_source.h"

namespace superstep::language {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t longest_piece = 1 << 20;  // of a document, taken as one of its own: chosen
constexpr std::int32_t padding = -1;              // no token of any tokenizer

// A document, or a megabyte of one.
struct Piece {
  std::size_t file = 0;
  std::uint64_t begin = 0, size = 0;
};

void add_texts(std::vector<fs::path>& files, const fs::path& path) {
  if (!fs::is_directory(path)) return files.push_back(path);
  std::vector<fs::path> inside;
  for (const auto& entry : fs::directory_iterator(path))
    if (!entry.path().filename().string().starts_with('.')) inside.push_back(entry.path());
  std::ranges::sort(inside);
  for (const fs::path& each : inside)
    if (fs::is_directory(each) || data::is_text(each, {".txt"})) add_texts(files, each);
}

// Where a piece ends: behind the last line that ends in it, else before a character that goes on.
std::uint64_t end_of_piece(std::string_view bytes) {
  if (const std::size_t line = bytes.rfind('\n'); line != std::string_view::npos) return line + 1;
  std::size_t end = bytes.size();
  while (end > 1 && (static_cast<unsigned char>(bytes[end - 1]) & 0xc0) == 0x80) --end;
  return std::max<std::size_t>(1, end - 1);
}

// [begin, end) of blocks of at most `length` tokens.
std::vector<std::pair<std::size_t, std::size_t>> blocks_of(std::span<const std::int32_t> tokens,
                                                           std::size_t length) {
  std::vector<std::pair<std::size_t, std::size_t>> blocks;
  for (std::size_t begin = 0; begin + 1 < tokens.size();) {
    std::size_t end = std::min(begin + length, tokens.size());
    if (end == begin + length)
      while (end > begin + 2 && tokens[end - 1] == 0) --end;
    blocks.emplace_back(begin, end);
    begin = end == tokens.size() ? end : end - 1;
  }
  return blocks;
}

class TextBlocks : public data::OrderedSource {
 public:
  TextBlocks(const fs::path& given, const TextSettings& settings) : settings_(settings) {
    std::vector<fs::path> paths;
    for (const fs::path& path : data::named_paths(given)) add_texts(paths, path);
    for (const fs::path& path : paths) {
      const StableFile file(path);
      files_.push_back({path, file.size()});
      cut(file);
    }
    count_blocks();
    if (first_rows_.empty() || rows_ == 0)
      throw Error(ErrorCode::bad_file, "holds no text of two tokens", given.string(),
                  "name a text file, or a folder of such");
    arrays_ = {{.name = "tokens", .type = ElementType::i32, .row = Shape{settings.length}, .rows = rows_}};
  }

  const std::vector<data::SourceArray>& arrays() const override { return arrays_; }
  std::vector<std::int64_t> shards() const override { return first_rows_; }
  std::string place(std::size_t, std::int64_t row) const override {
    const auto after = std::ranges::upper_bound(first_rows_, row);
    const auto shard = std::max<std::ptrdiff_t>(1, after - first_rows_.begin()) - 1;
    return place_of(shards_[static_cast<std::size_t>(shard)]);
  }

 protected:
  std::unique_ptr<data::SampleCursor> open_shard(std::size_t shard) const override {
    return std::make_unique<Cursor>(tokens_of(shards_[shard]), settings_.length);
  }

 private:
  class Cursor : public data::SampleCursor {
   public:
    Cursor(std::vector<std::int32_t> tokens, std::int64_t length)
        : tokens_(std::move(tokens)),
          blocks_(blocks_of(tokens_, static_cast<std::size_t>(length))),
          length_(length) {}
    void next(std::span<std::byte* const> arrays) override {
      const auto [begin, end] = blocks_.at(next_++);
      std::vector<std::int32_t> row(tokens_.begin() + static_cast<std::ptrdiff_t>(begin),
                                    tokens_.begin() + static_cast<std::ptrdiff_t>(end));
      row.resize(static_cast<std::size_t>(length_), padding);
      std::memcpy(arrays[0], row.data(), row.size() * sizeof(std::int32_t));
      if (next_ == blocks_.size())
        std::vector<std::int32_t>().swap(tokens_);  // the cursor is kept, they are not
    }

   private:
    std::vector<std::int32_t> tokens_;
    std::vector<std::pair<std::size_t, std::size_t>> blocks_;
    std::int64_t length_;
    std::size_t next_ = 0;
  };

  // Opened when it is read: a folder may have more texts than a process may have files.
  struct Text {
    fs::path path;
    std::uint64_t size = 0;
  };

  std::string place_of(const Piece& piece) const {
    const std::string path = files_[piece.file].path.string();
    return piece.begin == 0 ? path : fmt::format("{} from byte {}", path, piece.begin);
  }

  std::string text_of(const Piece& piece) const {
    const StableFile file(files_[piece.file].path);
    if (file.size() != files_[piece.file].size)
      throw Error(ErrorCode::io, "was changed since it was opened", file.path().string(), "read it again");
    return bytes_of(file, piece);
  }

  static std::string bytes_of(const StableFile& file, const Piece& piece) {
    std::string text(piece.size, '\0');
    file.read(piece.begin, std::as_writable_bytes(std::span(text)));
    file.require_unchanged();
    return text;
  }

  std::vector<std::int32_t> tokens_of(const Piece& piece) const {
    try {
      return settings_.tokenizer->encode(text_of(piece));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      throw Error(ErrorCode::bad_file, error.message(), place_of(piece), error.hint());
    }
  }

  void cut(const StableFile& file) {
    for (std::uint64_t begin = 0; begin < file.size();) {
      Piece piece{files_.size() - 1, begin, std::min(longest_piece, file.size() - begin)};
      if (begin + piece.size < file.size()) piece.size = end_of_piece(bytes_of(file, piece));
      shards_.push_back(piece);
      begin += piece.size;
    }
  }

  // Of those that have none, none is kept.
  void count_blocks() {
    Progress progress = Progress::passing("counting tokens", static_cast<double>(shards_.size()), "texts");
    ThreadPool pool(available_processors());
    std::vector<std::int64_t> counts(shards_.size());
    std::vector<InterruptCheck> stops(static_cast<std::size_t>(pool.threads()));
    pool.parallel_for(static_cast<std::int64_t>(shards_.size()), [&](std::int64_t item, int worker) {
      const auto at = static_cast<std::size_t>(item);
      counts[at] = static_cast<std::int64_t>(
          blocks_of(tokens_of(shards_[at]), static_cast<std::size_t>(settings_.length)).size());
      if (worker == 0) progress.update(static_cast<double>(item));
      stops[static_cast<std::size_t>(worker)].throw_if_due(place_of(shards_[at]));
    });
    std::vector<Piece> kept;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (counts[i] == 0) continue;
      kept.push_back(shards_[i]);
      first_rows_.push_back(rows_);
      rows_ += counts[i];
    }
    shards_ = std::move(kept);
  }

  TextSettings settings_;
  std::vector<Text> files_;
  std::vector<Piece> shards_;
  std::vector<std::int64_t> first_rows_;  // by shard
  std::int64_t rows_ = 0;
  std::vector<data::SourceArray> arrays_;
};

}  // namespace

std::unique_ptr<data::SampleSource> open_text_blocks(const fs::path& given, const TextSettings& settings) {
  return std::make_unique<TextBlocks>(given, settings);
}

}  // namespace superstep::language
