// Trains a model of the zoo for some steps on data of its own, serves it, writes it as ONNX and serves that.
#include <superstep/superstep.h>

#include <cmath>
#include <cstdio>

using superstep::Tensor;

static Tensor filled(const superstep::Port& port, float phase) {
  Tensor tensor(port.element, port.shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, std::sin(phase + 0.1 * i));
  return tensor;
}

int main() try {
  superstep::Model model("mlp");
  superstep::Trainer trainer =
      model.trainer({.batch = 64, .threads = 1}, {.optimizer = "adam", .learning_rate = 1e-3});
  const Tensor x = filled(trainer.inputs()[0], 0), y = filled(trainer.inputs()[1], 1);
  const std::vector<Tensor> batch{x, y};
  const double first = trainer.step(batch);
  for (int i = 0; i < 200; ++i) trainer.step(batch);
  const double last = trainer.step(batch);
  std::printf("the loss fell %s\n", last < 0.5 * first ? "below a half" : "too little");

  model.take_parameters(trainer);
  model.write_onnx("mlp.onnx");
  const std::vector<Tensor> ours = model.compile({.batch = 64}).run({x});
  const std::vector<Tensor> theirs = superstep::Model("mlp.onnx").compile({.batch = 64}).run({x});
  double apart = 0;
  for (std::int64_t i = 0; i < 64; ++i) apart = std::max(apart, std::abs(ours[0].at(i) - theirs[0].at(i)));
  std::printf("the file gives the same outputs%s\n", apart < 1e-5 ? "" : ", but not to 1e-5");
  return last < 0.5 * first && apart < 1e-5 ? 0 : 1;
} catch (const superstep::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
