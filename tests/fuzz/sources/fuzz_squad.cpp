// Questions in the form of SQuAD: windows of tokens, or an Error.
#include "superstep/language/text/text_source.h"
#include "tests/fuzz/attempt.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep;
  static const auto tokenizer =
      std::make_shared<const language::Tokenizer>(language::Tokenizer::from_vocabulary(
          "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\ncrystal\nturns\nwhat\n?\n.\n", {}, "words"));
  const InputFile file(data, size, ".json");
  attempt([&] {
    if (!language::is_squad(file.path())) return;
    const auto source =
        language::open_squad(file.path(), {.tokenizer = tokenizer, .length = 16, .stride = 3});
    for (std::size_t i = 0; i < source->arrays().size(); ++i) data::read_whole(*source, i);
  });
  return 0;
}
