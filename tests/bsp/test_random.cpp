// Random programs in the engine and in an interpreter that knows only lists of elements.
#include <numeric>

#include "superstep/base/random.h"
#include "tests/bsp/support.h"

namespace superstep::bsp {
namespace {

// Where each place of a tensor lies in one long list of all variables' elements.
using Places = std::vector<std::size_t>;

struct World {
  Graph graph = small_graph(7, 2);
  std::vector<Tensor> variables;
  std::vector<std::size_t> first;  // of each variable, in the long list
  std::vector<float> values;       // the interpreter's memory

  Places places(const Tensor& tensor) const {
    Places result;
    for (const VariableInterval& region : tensor.variable_regions())
      for (std::int64_t e = region.interval.begin; e < region.interval.end; ++e)
        result.push_back(first[region.variable.index()] + static_cast<std::size_t>(e));
    return result;
  }
};

using Action = std::function<void(std::vector<float>&)>;

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(5, seed) {}

  void make() {
    for (int i = 0; i < 5; ++i) add_variable();
    for (int i = 0; i < 6; ++i) add_step(program_, actions_, 2);
    for (std::size_t i = 0; i < world_.variables.size(); ++i)
      world_.graph.create_host_read("v" + std::to_string(i), world_.variables[i]);
  }

  World world_;
  Sequence program_;
  std::vector<Action> actions_;

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(n)));
  }

  void add_variable() {
    const Shape shape{1 + below(6), 1 + below(8)};
    const Tensor tensor = world_.graph.add_variable(Type::f32, shape);
    for (std::int64_t row = 0; row < shape[0]; ++row)
      world_.graph.set_tile_mapping(tensor[row], static_cast<std::uint32_t>(below(14)));
    std::vector<float> initial(static_cast<std::size_t>(shape.element_count()));
    for (float& value : initial) value = static_cast<float>(below(9));
    world_.graph.set_initial_value(tensor, superstep::Tensor::from<float>(shape, initial));
    world_.first.push_back(world_.values.size());
    world_.values.insert(world_.values.end(), initial.begin(), initial.end());
    world_.variables.push_back(tensor);
  }

  // A view of some variables, without aliases when it is to be written.
  Tensor view(bool writeable) {
    Tensor tensor = world_.variables[static_cast<std::size_t>(below(5))];
    for (int i = 0; i < 3; ++i) {
      const int axis = static_cast<int>(below(tensor.rank()));
      switch (below(writeable ? 4 : 6)) {
        case 0: tensor = tensor.transpose(); break;
        case 1: tensor = tensor.reverse(axis); break;
        case 2: {
          const std::int64_t begin = below(tensor.dim(axis));
          tensor = tensor.slice(begin, begin + 1 + below(tensor.dim(axis) - begin), axis);
          break;
        }
        case 3: tensor = tensor.sub_sample(1 + below(3), axis); break;
        case 4: tensor = tensor.broadcast(1 + below(2), axis); break;
        default: tensor = concat(tensor, tensor.reverse(axis), axis); break;
      }
    }
    return tensor.flatten();
  }

  static Tensor cut(const Tensor& tensor, std::int64_t size) { return tensor.slice(0, size); }

  void add_step(Sequence& program, std::vector<Action>& actions, int depth) {
    const std::int64_t kind = below(depth > 0 ? 4 : 3);
    if (kind == 0) {
      Tensor source = view(false), destination = view(true);
      const std::int64_t size = std::min(source.num_elements(), destination.num_elements());
      source = cut(source, size), destination = cut(destination, size);
      program.add(Copy(source, destination));
      actions.push_back(
          [from = world_.places(source), to = world_.places(destination)](std::vector<float>& values) {
            std::vector<float> moved;
            for (const std::size_t place : from) moved.push_back(values[place]);
            for (std::size_t i = 0; i < to.size(); ++i) values[to[i]] = moved[i];
          });
    } else if (kind < 3) {
      add_compute(program, actions);
    } else {
      Sequence body;
      std::vector<Action> inner;
      for (int i = 0; i < 2; ++i) add_step(body, inner, depth - 1);
      const auto count = static_cast<std::uint64_t>(below(4));
      program.add(Repeat(count, body));
      actions.push_back([inner, count](std::vector<float>& values) {
        for (std::uint64_t i = 0; i < count; ++i)
          for (const Action& action : inner) action(values);
      });
    }
  }

  // Vertices on pieces of one destination; sources that the destination does not touch.
  void add_compute(Sequence& program, std::vector<Action>& actions) {
    const Tensor destination = view(true);
    const std::size_t written = destination.view().regions()[0].variable.index();
    Tensor a = view(false), b = view(false);
    const auto touches = [&](const Tensor& tensor) {
      for (const Region& region : tensor.view().regions())
        if (region.variable.index() == written) return true;
      return false;
    };
    const bool scale = touches(a) || touches(b);
    const std::int64_t size =
        scale ? destination.num_elements()
              : std::min({destination.num_elements(), a.num_elements(), b.num_elements()});
    const ComputeSet set = world_.graph.add_compute_set();
    std::vector<Action> parts;
    for (std::int64_t begin = 0; begin < size;) {
      const std::int64_t end = begin + 1 + below(size - begin);
      const Tensor out = destination.slice(begin, end);
      if (scale) {
        const VertexRef vertex = world_.graph.add_vertex(set, "Scale", {{"data", out}});
        world_.graph.set_initial_value(field(vertex, "scale"), 0.5);
        world_.graph.set_tile_mapping(vertex, static_cast<std::uint32_t>(below(14)));
        parts.push_back([to = world_.places(out)](std::vector<float>& values) {
          for (std::size_t i = 0; i < to.size(); ++i)
            values[to[i]] = 0.5f * values[to[i]] + static_cast<float>(i);
        });
      } else {
        const Tensor x = a.slice(begin, end), y = b.slice(begin, end);
        const VertexRef vertex = world_.graph.add_vertex(set, "Add", {{"a", x}, {"b", y}, {"out", out}});
        world_.graph.set_tile_mapping(vertex, static_cast<std::uint32_t>(below(14)));
        parts.push_back([p = world_.places(x), q = world_.places(y),
                         to = world_.places(out)](std::vector<float>& values) {
          for (std::size_t i = 0; i < to.size(); ++i) values[to[i]] = values[p[i]] + values[q[i]];
        });
      }
      begin = end;
    }
    program.add(Execute(set));
    actions.push_back([parts](std::vector<float>& values) {
      for (const Action& part : parts) part(values);
    });
  }

  RandomStream random_;
};

std::vector<float> all_values(const Engine& engine, const World& world) {
  std::vector<float> values;
  for (std::size_t i = 0; i < world.variables.size(); ++i) {
    const auto part =
        read(engine, "v" + std::to_string(i), static_cast<std::size_t>(world.variables[i].num_elements()));
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

TEST(RandomPrograms, AgreeWithTheInterpreterForAnyNumberOfThreads) {
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    Generator generator(seed);
    generator.make();
    const std::vector<float> before = generator.world_.values;
    const Program programs[] = {generator.program_};
    const Executable executable = compile_graph(generator.world_.graph, programs);
    for (const Action& action : generator.actions_) action(generator.world_.values);
    changed += before != generator.world_.values;
    std::uint64_t cycles = 0;
    for (const int threads : {1, 3}) {
      Engine engine(executable, {.threads = threads});
      engine.run();
      ASSERT_EQ(all_values(engine, generator.world_), generator.world_.values) << "seed " << seed;
      if (cycles > 0) {
        ASSERT_EQ(engine.profile().total_cycles(), cycles);
      }
      cycles = engine.profile().total_cycles();
    }
    Engine timed(executable, {.timing_only = true});
    timed.run();
    ASSERT_EQ(timed.profile().total_cycles(), cycles) << "seed " << seed;
  }
  EXPECT_GT(changed, 200);  // the programs do something
}

// The control: one step left out is noticed.
TEST(RandomPrograms, TheInterpreterNoticesAMissingStep) {
  int noticed = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Generator generator(seed);
    generator.make();
    const Program programs[] = {generator.program_};
    Engine engine(generator.world_.graph, programs);
    engine.run();
    for (std::size_t i = 0; i + 1 < generator.actions_.size(); ++i)
      generator.actions_[i](generator.world_.values);
    noticed += all_values(engine, generator.world_) != generator.world_.values;
  }
  EXPECT_GT(noticed, 10);
}

// Exchange counted element by element: what every tile must receive and send.
TEST(RandomPrograms, CopiesMoveTheBytesThatTheyMust) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(9, seed);
    Graph graph = small_graph(6);
    const auto make = [&](std::int64_t size) {
      const Tensor tensor = graph.add_variable(Type::f32, {size});
      for (std::int64_t i = 0; i < size; ++i)
        graph.set_tile_mapping(tensor.slice(i, i + 1), static_cast<std::uint32_t>(random.below(6)));
      graph.set_initial_value(tensor, 0);
      return tensor;
    };
    const Tensor x = make(24), y = make(24);
    const Tensor source = (seed % 2 ? x : x.slice(0, 8).broadcast(3, 0)).reverse(0),
                 destination = y.sub_sample(1, 0);
    const Program programs[] = {Copy(source, destination)};
    const StepProfile step = compile_graph(graph, programs).profile().steps[0];
    const auto from = source.variable_regions(), to = destination.variable_regions();
    const auto tile_of = [&](const Tensor& tensor, std::int64_t element) {
      const TileMapping mapping = graph.tile_mapping(tensor);
      for (std::size_t tile = 0; tile < mapping.size(); ++tile)
        for (const Interval& interval : mapping[tile])
          if (interval.begin <= element && element < interval.end) return tile;
      return mapping.size();
    };
    std::vector<std::int64_t> elements;
    for (const VariableInterval& region : from)
      for (std::int64_t e = region.interval.begin; e < region.interval.end; ++e) elements.push_back(e);
    std::set<std::pair<std::size_t, std::int64_t>> received;  // tile, element
    std::set<std::int64_t> sent;
    for (std::int64_t i = 0; i < 24; ++i) {
      const std::int64_t element = elements[static_cast<std::size_t>(i)];
      const std::size_t home = tile_of(x, element), wanted = tile_of(y, i);
      if (home == wanted) continue;
      received.insert({wanted, element});
      sent.insert(element);
    }
    std::vector<std::uint64_t> in(6), out(6);
    for (const auto& [tile, element] : received) in[tile] += 4;
    for (const std::int64_t element : sent) out[tile_of(x, element)] += 4;
    EXPECT_EQ(step.exchanged_bytes, 4 * received.size()) << seed;
    EXPECT_EQ(step.max_bytes_in, *std::max_element(in.begin(), in.end())) << seed;
    EXPECT_EQ(step.max_bytes_out, *std::max_element(out.begin(), out.end())) << seed;
  }
}

}  // namespace
}  // namespace superstep::bsp
