#include "superstep/cli/data/open_samples.h"

#include "superstep/base/error.h"
#include "superstep/cli/command.h"
#include "superstep/cli/data/wanted_fields.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/file/source/forms.h"
#include "superstep/language/text/text_source.h"

namespace superstep::cli {

void add_sample_options(CLI::App& command, SampleOptions& options) {
  command
      .add_option("--for", options.workload,
                  "names and sizes as this workload wants them: pictures are brought to its size")
      ->type_name("WORKLOAD");
  command.add_flag("--skip-broken", options.skip_broken,
                   "look at all samples first; leave out and count those that cannot be read");
  add_scale_options(command, options.scale, options.offset);
  auto* tokenizer =
      command
          .add_option("--tokenizer", options.tokenizer,
                      "read texts, or SQuAD's questions, as tokens of this tokenizer.json or vocab.txt")
          ->type_name("FILE");
  command.add_option("--length", options.length, "tokens of a block of text")
      ->type_name("N")
      ->check(whole_number_from(8, 1 << 20))
      ->needs(tokenizer)
      ->capture_default_str();
  command
      .add_option("--stride", options.stride, "tokens from window to window of a text that is asked about")
      ->type_name("N")
      ->check(whole_number_from(1, 1 << 20))
      ->needs(tokenizer)
      ->capture_default_str();
}

data::SourceRequest request_of(const SampleOptions& options) {
  data::SourceRequest request{.skip_broken = options.skip_broken};
  if (!options.workload.empty()) request.wanted = request_for(wanted_fields(options.workload)).wanted;
  request.scalings = data::scalings_from_text(options.scale, options.offset);
  return request;
}

std::unique_ptr<data::SampleSource> open_samples(const std::string& path, const SampleOptions& options) {
  if (options.tokenizer.empty()) return data::open_source(path, request_of(options));
  if (!options.scale.empty() || !options.offset.empty())
    throw Error(ErrorCode::invalid_argument, "is of numbers, and these data are texts", "--scale, --offset",
                "leave it away");
  const language::TextSettings settings{.tokenizer = std::make_shared<const language::Tokenizer>(
                                            language::Tokenizer::from_file(options.tokenizer)),
                                        .length = options.length,
                                        .stride = options.stride};
  return language::open_texts(path, settings);
}

}  // namespace superstep::cli
