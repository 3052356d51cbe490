// Any bytes are a GGUF file, or are refused with an Error: the tokenizer and the sizes that its notes
// describe too, and a token that goes through the model.
#include "superstep/language/decode/decoder.h"
#include "superstep/language/tokenizer/tokenizer.h"
#include "tests/fuzz/attempt.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep;
  const InputFile input(data, size, ".gguf");
  attempt([&] {
    const data::WeightFile file = data::WeightFile::open(input.path());
    attempt([&] {
      const language::Tokenizer tokenizer = language::Tokenizer::from_notes(file);
      tokenizer.decode(tokenizer.encode("the crystal's 12 peaks"));
    });
    attempt([&] {
      const std::int32_t token[] = {1};
      language::Decoder(file, language::model_config(file), {}).feed(token);
    });
  });
  return 0;
}
