#include "superstep/openmp/body_vertex.h"

#include <fmt/format.h>

#include <new>

#include "superstep/openmp/reduce.h"

namespace superstep::openmp {
namespace {

struct Code {
  std::shared_ptr<const Plan> plan;
  std::uint32_t workers = 6;
  std::vector<int> field_of_array;  // -1: the body does not see it
  std::vector<std::size_t> state_of_array;
  std::size_t fields = 0, states = 0, first_reduction = 0;
  bool scalars_sent = false;  // the last field has them
};

// Followed in memory by `fields` pointers and `states` numbers, which the engine sets.
struct BodyObject {
  const Code* code;
  bool ready = false;
  std::vector<void*> data;
  std::vector<std::int64_t> origin, strides;
  std::vector<Gather> gathers;     // an array of the region
  std::vector<Gather*> of_access;  // empty: nothing is gathered

  explicit BodyObject(const Code* c) : code(c) {}
  void** fields() { return reinterpret_cast<void**>(this + 1); }
  const std::int32_t* states() { return reinterpret_cast<const std::int32_t*>(fields() + code->fields); }

  // Where each access begins in its field, and how far it goes with each loop.
  void prepare() {
    const Region& region = code->plan->region;
    const std::size_t loops = region.loops.size();
    for (const Access& access : region.accesses) {
      const std::int32_t* box = states() + code->state_of_array[static_cast<std::size_t>(access.array)];
      const std::size_t rank = access.subscripts.size();
      std::int64_t first = 0;
      std::vector<std::int64_t> steps(loops, 0);
      for (std::size_t axis = 0; axis < rank; ++axis) {
        const std::int64_t stride = box[rank + axis];
        first += (access.subscripts[axis].constant - box[axis]) * stride;
        for (std::size_t k = 0; k < loops; ++k) steps[k] += access.subscripts[axis].coefficient(k) * stride;
      }
      origin.push_back(first);
      strides.insert(strides.end(), steps.begin(), steps.end());
    }
    data.resize(region.accesses.size());
    if (!code->plan->gathers.empty()) prepare_gathers();
    ready = true;
  }

  void prepare_gathers() {
    const Region& region = code->plan->region;
    const auto part = static_cast<std::size_t>(states()[2 * region.distributed]);
    for (const ElementRuns& runs : code->plan->gathers[part].elements) {
      Gather& gather = gathers.emplace_back();
      gather.first = runs.first.data();
      gather.local = runs.local.data();
      gather.runs = static_cast<std::int64_t>(runs.first.size());
      gather.elements = runs.count;
    }
    for (const Access& access : region.accesses)
      of_access.push_back(access.gathered ? &gathers[static_cast<std::size_t>(access.array)] : nullptr);
  }

  // What steers is what the plan was made for, so that this is a mistake of ours.
  void check_gathers() const {
    for (std::size_t array = 0; array < gathers.size(); ++array)
      if (gathers[array].missed != 0)
        throw Error(ErrorCode::internal,
                    fmt::format("element {} of {} has not been received", gathers[array].outside,
                                code->plan->region.arrays[array].name),
                    to_string(code->plan->region.place));
  }

  void run(unsigned worker) {
    if (!ready) prepare();
    const Region& region = code->plan->region;
    const auto axes = static_cast<std::size_t>(region.distributed);
    for (std::size_t a = 0; a < data.size(); ++a)
      data[a] = fields()[code->field_of_array[static_cast<std::size_t>(region.accesses[a].array)]];
    std::vector<void*> reductions;
    for (std::size_t r = 0; r < region.reductions.size(); ++r) {
      const RegionArray& array = region.arrays[static_cast<std::size_t>(region.reductions[r].array)];
      auto* all = static_cast<std::byte*>(fields()[code->first_reduction + r]);
      reductions.push_back(all +
                           worker * static_cast<std::size_t>(array.count()) * size_in_bytes(array.type));
      fill_neutral(region.reductions[r].op, array.type, reductions.back(), array.count());
    }
    Box box;
    box.begin.assign(states(), states() + axes);
    box.end.assign(states() + axes, states() + 2 * axes);
    if (axes == 0 && worker > 0) return;  // a region of one thread
    const Box share = worker_share(box, worker, code->workers);
    if (share.empty()) return;
    const void* scalars = code->scalars_sent ? fields()[code->fields - 1] : region.scalars.data();
    region.body({share.begin.data(), share.end.data(), data.data(), origin.data(), strides.data(),
                 static_cast<std::int64_t>(region.loops.size()), reductions.data(), scalars,
                 states()[2 * axes], static_cast<std::int32_t>(code->plan->parts.size()),
                 static_cast<std::int32_t>(worker), static_cast<std::int32_t>(code->workers),
                 of_access.empty() ? nullptr : of_access.data()});
    check_gathers();
  }

  static void bind(void* field, std::span<const bsp::Piece> pieces) {
    *static_cast<void**>(field) = pieces[0].data;
  }
};

bsp::FieldInfo vector_field(std::string name, ElementType type, std::size_t number) {
  bsp::FieldInfo info;
  info.name = std::move(name);
  info.type = stored_type(type);
  info.layout = bsp::VectorLayout::one_ptr;
  info.minimum_alignment = static_cast<unsigned>(size_in_bytes(type));
  info.offset = sizeof(BodyObject) + number * sizeof(void*);
  info.bind = &BodyObject::bind;
  return info;
}

void add_array_fields(const Plan& plan, Code& code, std::vector<bsp::FieldInfo>& fields) {
  const Region& region = plan.region;
  for (std::size_t array = 0; array < region.arrays.size(); ++array) {
    const ArrayUse& use = plan.uses[array];
    code.field_of_array.push_back(-1);
    if (!use.reads && !use.writes) continue;
    code.field_of_array.back() = static_cast<int>(fields.size());
    bsp::FieldInfo info =
        vector_field(fmt::format("array {}", array), region.arrays[array].type, fields.size());
    // Elements of the box that the body leaves alone keep their values: what is written is also taken in.
    info.direction = use.writes ? bsp::FieldDirection::in_out : bsp::FieldDirection::input;
    fields.push_back(std::move(info));
  }
  code.first_reduction = fields.size();
  for (std::size_t r = 0; r < region.reductions.size(); ++r) {
    const RegionArray& array = region.arrays[static_cast<std::size_t>(region.reductions[r].array)];
    bsp::FieldInfo info = vector_field(fmt::format("reduction {}", r), array.type, fields.size());
    info.direction = bsp::FieldDirection::output;
    fields.push_back(std::move(info));
  }
  if (code.scalars_sent) fields.push_back(vector_field("scalars", ElementType::u64, fields.size()));
  code.fields = fields.size();
}

void add_state_fields(const Plan& plan, Code& code, std::vector<bsp::FieldInfo>& fields) {
  const auto add = [&](std::string name) {
    bsp::FieldInfo info;
    info.name = std::move(name);
    info.shape = bsp::FieldShape::state;
    info.type = ElementType::i32;
    info.offset = sizeof(BodyObject) + code.fields * sizeof(void*) + code.states++ * sizeof(std::int32_t);
    fields.push_back(std::move(info));
  };
  for (int k = 0; k < plan.region.distributed; ++k) add(fmt::format("begin {}", k));
  for (int k = 0; k < plan.region.distributed; ++k) add(fmt::format("end {}", k));
  add("team");
  for (std::size_t array = 0; array < plan.region.arrays.size(); ++array) {
    code.state_of_array.push_back(code.states);
    if (code.field_of_array[array] < 0) continue;
    const std::size_t rank = plan.region.arrays[array].extents.size();
    for (std::size_t axis = 0; axis < rank; ++axis) add(fmt::format("first {} {}", array, axis));
    for (std::size_t axis = 0; axis < rank; ++axis) add(fmt::format("stride {} {}", array, axis));
  }
  if (code.scalars_sent) return;
  // The scalars, which all vertices share on this host, are in every vertex of the machine.
  for (std::size_t byte = 0; byte < plan.region.scalars.size(); byte += sizeof(std::int32_t))
    add(fmt::format("scalar {}", byte));
}

}  // namespace

std::int64_t scalar_words(const Region& region) {
  return static_cast<std::int64_t>((region.scalars.size() + sizeof(std::uint64_t) - 1) /
                                   sizeof(std::uint64_t));
}

bsp::VertexClass body_class(std::shared_ptr<const Plan> plan, const std::string& name, std::uint32_t workers,
                            bool scalars_sent) {
  auto code = std::make_shared<Code>();
  code->plan = plan;
  code->scalars_sent = scalars_sent;
  code->workers = workers;
  bsp::VertexClass description;
  description.name = name;
  description.kind = bsp::VertexKind::multi;
  add_array_fields(*plan, *code, description.fields);
  add_state_fields(*plan, *code, description.fields);
  description.object_bytes =
      sizeof(BodyObject) + code->fields * sizeof(void*) + code->states * sizeof(std::int32_t);
  description.object_alignment = alignof(BodyObject);
  description.construct = [](void* memory, const void* context) {
    new (memory) BodyObject(static_cast<const Code*>(context));
  };
  description.destroy = [](void* memory) { static_cast<BodyObject*>(memory)->~BodyObject(); };
  description.compute = [](void* object, unsigned worker) { static_cast<BodyObject*>(object)->run(worker); };
  description.context = std::move(code);
  return description;
}

void set_body_state(bsp::Graph& graph, bsp::VertexRef vertex, const Plan& plan, const PlanPart& part,
                    const std::vector<Box>& local) {
  const auto set = [&](const std::string& name, std::int64_t value) {
    graph.set_initial_value(bsp::field(vertex, name), static_cast<double>(value));
  };
  for (std::size_t k = 0; k < part.iterations.rank(); ++k) {
    set(fmt::format("begin {}", k), part.iterations.begin[k]);
    set(fmt::format("end {}", k), part.iterations.end[k]);
  }
  set("team", &part - plan.parts.data());
  for (std::size_t array = 0; array < local.size(); ++array) {
    if (!plan.uses[array].reads && !plan.uses[array].writes) continue;
    std::int64_t stride = 1;
    for (std::size_t axis = local[array].rank(); axis-- > 0;) {
      set(fmt::format("first {} {}", array, axis), local[array].begin[axis]);
      set(fmt::format("stride {} {}", array, axis), stride);
      stride *= local[array].extent(axis);
    }
  }
}

}  // namespace superstep::openmp
