// Any bytes are a tokenizer.json, a vocab.txt or a config.json, or are refused with an Error; what was read
// takes every text that is UTF-8 apart and puts it together.
#include "superstep/language/model_config.h"
#include "superstep/language/tokenizer/tokenizer.h"
#include "tests/fuzz/attempt.h"

namespace {

using superstep::language::Tokenizer;

void use(const Tokenizer& tokenizer) {
  for (const char* text :
       {"", "the crystal's 12 peaks\n\n ring", "na\u00efve \u6771\u4eac \U0001f642", "</s>[SEP] x"})
    attempt([&] { tokenizer.decode(tokenizer.encode(text)); });
  for (const std::int32_t token : {-1, 0, 3, 1 << 30}) attempt([&] { tokenizer.bytes_of(token); });
  attempt([&] { tokenizer.places_of("The Crystal, turned."); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  attempt([&] { use(Tokenizer::from_json(text, "fuzz")); });
  attempt([&] { use(Tokenizer::from_vocabulary(text, {}, "fuzz")); });
  attempt([&] { superstep::language::model_config_from_json(text, "fuzz"); });
  return 0;
}
