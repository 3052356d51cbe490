// SQuAD: P. Rajpurkar et al., EMNLP 2016 (1.1) and ACL 2018 (2.0). {"data": [{"paragraphs": [{"context",
// "qas": [{"id", "question", "is_impossible", "answers": [{"text", "answer_start"}]}]}]}]}, where
// answer_start counts characters.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/regular_file.h"
#include "superstep/file/form.h"
#include "superstep/language/answer/windows.h"
#include "superstep/language/text/text_source.h"

namespace superstep::language {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The byte at which character `count` of UTF-8 begins; none: there are fewer.
std::optional<std::size_t> byte_of_character(std::string_view text, std::int64_t count) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
    if (count-- == 0) return at;
  }
  return std::nullopt;
}

// Tokens of a text, first to last, that the bytes [begin, end) touch; none: there is no such token.
std::optional<std::pair<std::size_t, std::size_t>> tokens_over(std::span<const Tokenizer::Place> places,
                                                               std::size_t begin, std::size_t end) {
  std::size_t first = 0;
  while (first < places.size() && places[first].end <= begin) ++first;
  std::size_t last = first;
  while (last < places.size() && places[last].begin < end) ++last;
  if (last == first) return std::nullopt;
  return std::pair{first, last - 1};
}

std::vector<std::int32_t> tokens_in(std::span<const Tokenizer::Place> places) {
  std::vector<std::int32_t> tokens;
  for (const Tokenizer::Place& place : places) tokens.push_back(place.token);
  return tokens;
}

// A window that holds the whole answer.
struct Sample {
  std::size_t paragraph = 0;
  std::int64_t question = 0;
  std::size_t first = 0, count = 0;  // of the text's tokens
  std::int32_t start = 0, end = 0;   // of the window's
};

class SquadSource : public data::SampleSource {
 public:
  SquadSource(const fs::path& path, const TextSettings& settings) : path_(path), settings_(settings) {
    const json whole = parse_json(read_text_file(path));
    const json* articles = member(whole, "data");
    if (!articles || !articles->is_array()) refuse("is no SQuAD: it has no list 'data'");
    add_articles(*articles);
    if (samples_.empty()) refuse("holds no question whose answer is in its text");
    add_arrays();
  }

  const std::vector<data::SourceArray>& arrays() const override { return arrays_; }
  std::string place(std::size_t, std::int64_t row) const override {
    const auto at = std::min(static_cast<std::size_t>(std::max<std::int64_t>(row, 0)), samples_.size() - 1);
    return fmt::format("{}: question {}", path_.string(), samples_[at].question + 1);
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    const auto note = [&](std::int64_t count, const char* words) {
      if (count > 0) notes.push_back(fmt::format("left out: {} {}", count, words));
    };
    note(without_answer_, "questions that have no answer in their text");
    note(misplaced_, "answers that are not where the file says");
    note(too_long_, "questions that leave no room for a text, or answers that are longer than a window");
    return notes;
  }

  void read(std::span<const std::int64_t> rows, std::span<const data::RowsTo> wanted) const override {
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (const data::RowsTo& to : wanted)
        put(samples_[static_cast<std::size_t>(rows[i])], to.array, to.to + i * arrays_[to.array].row_bytes());
  }

 private:
  static const json* member(const json& object, const char* name) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
  }
  const std::string& text_member(const json& object, const char* name) const {
    const json* found = member(object, name);
    if (!found || !found->is_string())
      refuse(fmt::format("has no '{}' at question {}", name, questions_.size() + 1));
    return found->get_ref<const std::string&>();
  }
  const json& list_member(const json& object, const char* name) const {
    const json* found = member(object, name);
    if (!found || !found->is_array())
      refuse(fmt::format("has no list '{}' at question {}", name, questions_.size() + 1));
    return *found;
  }
  [[noreturn]] void refuse(const std::string& words) const {
    throw Error(ErrorCode::bad_file, words, path_.string());
  }

  void add_articles(const json& articles) {
    Progress progress = Progress::passing("reading questions", static_cast<double>(articles.size()), "texts");
    InterruptCheck stop;
    double done = 0;
    for (const json& article : articles) {
      for (const json& paragraph : list_member(article, "paragraphs")) add_paragraph(paragraph);
      progress.update(++done);
      stop.throw_if_due(path_.string());
    }
  }

  std::vector<Tokenizer::Place> places_of(const std::string& text) const {
    try {
      return settings_.tokenizer->places_of(text);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_argument) throw;
      refuse(fmt::format("question {}: {}", questions_.size() + 1, error.message()));
    }
  }

  void add_paragraph(const json& paragraph) {
    const std::string& context = text_member(paragraph, "context");
    const std::vector<Tokenizer::Place> places = places_of(context);
    texts_.push_back(tokens_in(places));
    for (const json& asked : list_member(paragraph, "qas")) {
      const auto question = tokens_in(places_of(text_member(asked, "question")));
      const json* answers = member(asked, "answers");
      if (answers && answers->is_array() && !answers->empty())
        add_question(question, context, places, answers->front());
      else
        ++without_answer_;
      questions_.push_back(question);
    }
  }

  void add_question(std::span<const std::int32_t> question, const std::string& context,
                    std::span<const Tokenizer::Place> places, const json& answer) {
    const std::string& text = text_member(answer, "text");
    const json* start = member(answer, "answer_start");
    if (!start || !start->is_number_integer()) refuse("has an answer without a whole number 'answer_start'");
    const auto begin = byte_of_character(context, start->get<std::int64_t>());
    const bool there = begin && !text.empty() && std::string_view(context).substr(*begin).starts_with(text);
    const auto span = there ? tokens_over(places, *begin, *begin + text.size()) : std::nullopt;
    if (!span) {
      ++misplaced_;
      return;
    }
    const std::size_t before = samples_.size();
    if (question.size() + 3 < static_cast<std::size_t>(settings_.length) && !question.empty())
      add_windows(question, span->first, span->second);
    if (samples_.size() == before) ++too_long_;
  }

  void add_windows(std::span<const std::int32_t> question, std::size_t first, std::size_t last) {
    const auto windows = windows_of(question, texts_.back(), window_settings());
    for (const Window& window : windows) {
      if (first < window.first || last >= window.first + window.count) continue;
      const std::size_t shift = window.text - window.first;
      samples_.push_back({texts_.size() - 1, static_cast<std::int64_t>(questions_.size()), window.first,
                          window.count, static_cast<std::int32_t>(first + shift),
                          static_cast<std::int32_t>(last + shift)});
    }
  }

  WindowSettings window_settings() const {
    return {.first_token = settings_.tokenizer->first_token(),
            .separator = settings_.tokenizer->separator(),
            .length = static_cast<std::size_t>(settings_.length),
            .stride = static_cast<std::size_t>(settings_.stride)};
  }

  void add_arrays() {
    const auto rows = static_cast<std::int64_t>(samples_.size());
    for (const char* name : {"input_ids", "attention_mask", "token_type_ids"})
      arrays_.push_back(
          {.name = name, .type = ElementType::i32, .row = Shape{settings_.length}, .rows = rows});
    for (const char* name : {"start", "end"})
      arrays_.push_back({.name = name, .type = ElementType::i32, .row = Shape{}, .rows = rows});
    arrays_.push_back({.name = "question", .type = ElementType::i64, .row = Shape{}, .rows = rows});
  }

  // In the order of add_arrays().
  void put(const Sample& sample, std::size_t array, std::byte* to) const {
    const auto& question = questions_[static_cast<std::size_t>(sample.question)];
    const std::size_t text = question.size() + 2, used = text + sample.count + 1;
    std::vector<std::int32_t> row(static_cast<std::size_t>(settings_.length));
    switch (array) {
      case 0: put_tokens(sample, question, row); break;
      case 1: std::fill_n(row.begin(), used, 1); break;
      case 2: std::fill_n(row.begin() + static_cast<std::ptrdiff_t>(text), sample.count + 1, 1); break;
      case 3: row = {sample.start}; break;
      case 4: row = {sample.end}; break;
      default: std::memcpy(to, &sample.question, sizeof sample.question); return;
    }
    std::memcpy(to, row.data(), row.size() * sizeof(std::int32_t));
  }

  void put_tokens(const Sample& sample, const std::vector<std::int32_t>& question,
                  std::vector<std::int32_t>& row) const {
    const WindowSettings signs = window_settings();
    const std::vector<std::int32_t>& text = texts_[sample.paragraph];
    row[0] = signs.first_token;
    auto at = std::copy(question.begin(), question.end(), row.begin() + 1);
    *at++ = signs.separator;
    at = std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(sample.first), sample.count, at);
    *at = signs.separator;
  }

  fs::path path_;
  TextSettings settings_;
  std::vector<std::vector<std::int32_t>> texts_, questions_;  // their tokens
  std::vector<Sample> samples_;
  std::vector<data::SourceArray> arrays_;
  std::int64_t without_answer_ = 0, misplaced_ = 0, too_long_ = 0;
};

}  // namespace

bool is_squad(const fs::path& path) {
  constexpr std::size_t looked_at = 1 << 16;
  if (!data::ends_in(path, {".json"}) || !data::is_text(path, {})) return false;
  std::string begin(looked_at, '\0');
  std::ifstream stream = open_regular_file(path);
  stream.read(begin.data(), looked_at);
  begin.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  return begin.find_first_not_of(" \t\r\n") == begin.find('{') &&
         begin.find("\"paragraphs\"") != std::string::npos;
}

std::unique_ptr<data::SampleSource> open_squad(const fs::path& path, const TextSettings& settings) {
  return std::make_unique<SquadSource>(path, settings);
}

std::unique_ptr<data::SampleSource> open_texts(const fs::path& given, const TextSettings& settings) {
  return is_squad(given) ? open_squad(given, settings) : open_text_blocks(given, settings);
}

}  // namespace superstep::language
