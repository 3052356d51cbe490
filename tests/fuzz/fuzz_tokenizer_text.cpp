// Any bytes are a text that tokenizers take apart, or are refused with an Error: no UTF-8. Of bytes
// everything comes back; a place of a word lies within the text.
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/language/tokenizer/tokenizer.h"

namespace {

using superstep::language::Tokenizer;

const Tokenizer& of_words() {
  static const Tokenizer tokenizer = Tokenizer::from_vocabulary(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\ne\nt\n##a\n##b\n##e\n##t\nthe\n##st\n.\n,\n'\n\u6771\n", {}, "here");
  return tokenizer;
}

// A token for each byte, as its letter, and some pairs.
const Tokenizer& of_bytes() {
  static const Tokenizer tokenizer = [] {
    std::string vocabulary;
    for (int byte = 0; byte < 256; ++byte) {
      const auto own = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
      int code = byte;
      if (!own(byte)) {
        code = 256;
        for (int b = 0; b < byte; ++b) code += !own(b);
      }
      char letter[16];
      std::snprintf(letter, sizeof letter, "\"\\u%04x\":%d,", code, byte);
      vocabulary += letter;
    }
    return Tokenizer::from_json(
        R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"model":{"type":"BPE","vocab":{)" +
            vocabulary + R"("th":256,"the":257},"merges":["t h","th e"]}})",
        "here");
  }();
  return tokenizer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    if (of_bytes().decode(of_bytes().encode(text)) != text) std::abort();
    std::size_t last = 0;
    for (const Tokenizer::Place& place : of_words().places_of(text)) {
      if (place.begin >= place.end || place.end > size || place.begin < last) std::abort();
      last = place.begin;
    }
    of_words().decode(of_words().encode(text));
  } catch (const superstep::Error&) {
  }
  return 0;
}
