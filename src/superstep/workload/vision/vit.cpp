// Vision transformer, base size with patches of 16 pixels (A. Dosovitskiy et al., ICLR 2021): the encoder of
// a language model over patches of a picture, and a token of its own that becomes the class.
//
// image f32 [N, 3, 224, 224] -> logits f32 [N, 1000].
#include <fmt/format.h>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/workload/attention.h"
#include "superstep/workload/vision/classifier.h"

namespace superstep::workload {
namespace {

struct Sizes {
  ClassifierSizes picture;
  std::int64_t patch, layers, width, heads;
  double epsilon;
};

Sizes vit_sizes(const Options& options) {
  const Sizes s{classifier_sizes(options),        options.integer("patch", 4, 64),
                options.integer("layers", 1, 96), options.integer("width", 8, 8192),
                options.integer("heads", 1, 128), options.number("epsilon", 0, 1)};
  if (s.picture.size % s.patch != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} pixels per side cannot be cut into patches of {}", s.picture.size, s.patch),
                "option patch");
  if (s.width % s.heads != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a width of {} cannot be divided into {} heads", s.width, s.heads),
                "option heads");
  return s;
}

class VisionTransformer {
 public:
  VisionTransformer(Layers& layers, const Sizes& sizes) : layers_(layers), b_(layers.builder()), s_(sizes) {}

  Var run(Var image) {
    Var x = embedded(image);
    for (std::int64_t i = 0; i < s_.layers; ++i) x = layer(x, fmt::format("layer{}", i));
    x = layers_.layer_norm(x, "norm", s_.epsilon);
    Var first;
    {
      const op::NameScope scope(b_, "class");
      first = op::reshape(op::slice(x, {0}, {1}, {1}), {x.shape()[0], s_.width});
    }
    return layers_.dense(first, "fc", s_.picture.classes);
  }

 private:
  // A row a patch, in front of them the class's own.
  Var embedded(Var image) {
    const Var patches = layers_.conv(image, "patches", s_.width, s_.patch, {.strides = {s_.patch, s_.patch}});
    const std::int64_t batch = image.shape()[0], count = patches.shape()[2] * patches.shape()[3];
    constexpr double limit = 0.0346;  // a standard deviation of 0.02, drawn uniformly
    const Var own = layers_.uniform("class.token", {1, 1, s_.width}, limit);
    const Var places = layers_.uniform("positions", {1, count + 1, s_.width}, limit);
    const op::NameScope scope(b_, "embeddings");
    const Var rows = op::transpose(op::reshape(patches, {batch, s_.width, count}), {0, 2, 1});
    return op::concat(std::vector{op::expand(own, {batch, 1, s_.width}), rows}, 1) + places;
  }

  Var attention(Var x, const std::string& name) {
    const Var q = layers_.linear(x, name + ".query", s_.width),
              k = layers_.linear(x, name + ".key", s_.width),
              v = layers_.linear(x, name + ".value", s_.width);
    Var mixed;
    {
      const op::NameScope scope(b_, name);
      mixed = workload::attention(layers_, split_heads(q, s_.heads), split_heads(k, s_.heads),
                                  split_heads(v, s_.heads), std::nullopt, 0);
    }
    return layers_.linear(mixed, name + ".out", s_.width);
  }

  Var layer(Var x, const std::string& name) {
    x = x + attention(layers_.layer_norm(x, name + ".attention.norm", s_.epsilon), name + ".attention");
    const Var inner = layers_.gelu(
        layers_.linear(layers_.layer_norm(x, name + ".norm", s_.epsilon), name + ".inner", 4 * s_.width));
    return x + layers_.linear(inner, name + ".outer", s_.width);
  }

  Layers& layers_;
  Builder& b_;
  Sizes s_;
};

graph::Graph build_vit(std::int64_t batch, const Options& options, std::uint64_t seed) {
  const Sizes sizes = vit_sizes(options);
  graph::Graph graph("vit-base");
  Builder b(graph);
  Layers layers(b, seed);
  b.output("logits", VisionTransformer(layers, sizes).run(image_input(b, batch, sizes.picture.size)));
  return graph;
}

// As torchvision writes it, which has query, key and value in one, and as Hugging Face does.
std::span<const data::NameRule> vit_names() {
  using enum data::Arrangement;
  static const std::vector<data::NameRule> rules = [] {
    std::vector<data::NameRule> all = {
        {"patches.*", "conv_proj.*"},
        {"patches.*", "embeddings.patch_embeddings.projection.*"},
        {"class.token", "class_token"},
        {"class.token", "embeddings.cls_token"},
        {"positions", "encoder.pos_embedding"},
        {"positions", "embeddings.position_embeddings"},
        {"layer#.attention.norm.*", "encoder.layers.encoder_layer_#.ln_1.*"},
        {"layer#.norm.*", "encoder.layers.encoder_layer_#.ln_2.*"},
        {"layer#.attention.out.weight", "encoder.layers.encoder_layer_#.self_attention.out_proj.weight",
         transposed},
        {"layer#.attention.out.bias", "encoder.layers.encoder_layer_#.self_attention.out_proj.bias"},
        {"layer#.inner.weight", "encoder.layers.encoder_layer_#.mlp.0.weight", transposed},
        {"layer#.inner.bias", "encoder.layers.encoder_layer_#.mlp.0.bias"},
        {"layer#.outer.weight", "encoder.layers.encoder_layer_#.mlp.3.weight", transposed},
        {"layer#.outer.bias", "encoder.layers.encoder_layer_#.mlp.3.bias"},
        {"layer#.attention.norm.*", "encoder.layer.#.layernorm_before.*"},
        {"layer#.norm.*", "encoder.layer.#.layernorm_after.*"},
        {"layer#.attention.out.weight", "encoder.layer.#.attention.output.dense.weight", transposed},
        {"layer#.attention.out.bias", "encoder.layer.#.attention.output.dense.bias"},
        {"layer#.inner.weight", "encoder.layer.#.intermediate.dense.weight", transposed},
        {"layer#.inner.bias", "encoder.layer.#.intermediate.dense.bias"},
        {"layer#.outer.weight", "encoder.layer.#.output.dense.weight", transposed},
        {"layer#.outer.bias", "encoder.layer.#.output.dense.bias"},
        {"norm.*", "encoder.ln.*"},
        {"norm.*", "layernorm.*"},
        {"fc.*", "heads.head.*"},
        {"fc.*", "classifier.*"},
    };
    int part = 0;
    for (const char* name : {"query", "key", "value"}) {
      const std::string ours = fmt::format("layer#.attention.{}", name),
                        in_all = "encoder.layers.encoder_layer_#.self_attention.in_proj_";
      all.push_back({ours + ".weight", in_all + "weight", transposed, part, 3});
      all.push_back({ours + ".bias", in_all + "bias", as_it_is, part, 3});
      const std::string apart = fmt::format("encoder.layer.#.attention.attention.{}", name);
      all.push_back({ours + ".weight", apart + ".weight", transposed});
      all.push_back({ours + ".bias", apart + ".bias"});
      ++part;
    }
    return all;
  }();
  return rules;
}

}  // namespace

Workload vit_base() {
  Workload workload = classifier(224);
  workload.name = "vit-base";
  workload.summary = "classes of pictures, by twelve transformer layers over patches";
  workload.options.push_back({"patch", "16", "pixels per side of a patch"});
  workload.options.push_back({"layers", "12", "one after the other"});
  workload.options.push_back({"width", "768", "of every patch"});
  workload.options.push_back({"heads", "12", "of attention; a divisor of the width"});
  workload.options.push_back({"epsilon", "1e-6", "of the norms"});
  workload.build = build_vit;
  workload.parameters = 86567656;
  workload.flops = 35211442159;
  workload.weight_names = vit_names;
  workload.training.optimizer = {.kind = transform::OptimizerKind::adamw, .weight_decay = 0.05};
  workload.training.learning_rate = 5e-4;
  return workload;
}

}  // namespace superstep::workload
