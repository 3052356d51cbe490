#include "superstep/workload/texts.h"

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/language/text/text_source.h"

namespace superstep::workload {
namespace {

// Tokens of a sample of this field; 0: it is not wanted.
std::int64_t length_of(const data::SourceRequest& request, std::string_view name) {
  for (const data::SourceArray& array : request.wanted)
    if (array.name == name && array.row.rank() == 1) return array.row[0];
  return 0;
}

}  // namespace

std::unique_ptr<data::SampleSource> open_texts(const std::filesystem::path& path,
                                               const std::filesystem::path& tokenizer,
                                               const data::SourceRequest& request) {
  const std::int64_t block = length_of(request, "tokens"), window = length_of(request, "input_ids");
  const bool questions = language::is_squad(path);
  const std::int64_t length = questions ? window : block;
  if (length == 0)
    throw Error(ErrorCode::invalid_argument,
                questions ? "these are questions, and the model answers none"
                          : "these are texts, and the model does not go on with one",
                path.string(),
                questions ? "bert-base-squad answers questions" : "gpt2 and llama are trained on texts");
  language::TextSettings settings{
      .tokenizer = std::make_shared<const language::Tokenizer>(language::Tokenizer::from_file(tokenizer)),
      .length = length};
  // A third of a window at most is left to what the one before it has shown: chosen.
  settings.stride = std::min(settings.stride, std::max<std::int64_t>(1, length / 3));
  return language::open_texts(path, settings);
}

}  // namespace superstep::workload
